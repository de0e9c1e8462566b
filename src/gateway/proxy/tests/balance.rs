//! Which endpoint a request goes to.

use super::support::*;
use crate::gateway::proxy::{Balance, Upstream, UpstreamError, endpoint::Endpoints};

#[tokio::test]
async fn requests_go_round_the_endpoints() {
    within(async {
        let (first, one) = upstream(echo).await;
        let (second, two) = upstream(echo).await;
        for balance in [Balance::RoundRobin, Balance::LeastRequests] {
            let mut settings = settings(&[first, second]);
            settings.balance = balance;
            let upstream = Upstream::new(settings);
            let (before_one, before_two) = (one.count(), two.count());
            for _ in 0..6 {
                text(upstream.forward(get("/")).await).await.unwrap();
            }
            assert_eq!((one.count() - before_one, two.count() - before_two), (3, 3));
        }
    })
    .await;
}

#[tokio::test]
async fn the_endpoint_with_the_fewest_requests_in_flight_is_chosen() {
    within(async {
        let (busy, one) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1").await;
            connection.ended().await.unwrap();
        })
        .await;
        let (free, two) = upstream(echo).await;
        let upstream = Upstream::new(settings(&[busy, free]));
        // Its answer is still arriving, so it stays in flight.
        let held = upstream.forward(get("/")).await.unwrap();
        assert_eq!((one.count(), two.count()), (1, 0));
        for _ in 0..4 {
            text(upstream.forward(get("/")).await).await.unwrap();
        }
        assert_eq!((one.count(), two.count()), (1, 4));
        drop(held);
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_passed_over() {
    within(async {
        let down = refusing().await;
        let (up, received) = upstream(echo).await;
        let upstream = Upstream::new(settings(&[down, up]));
        for _ in 0..10 {
            let (request, gate) = keyed("/", "x");
            text(upstream.forward(request).await).await.unwrap();
            assert!(gate.is_passed());
        }
        assert_eq!((received.count(), received.connections()), (10, 1));
    })
    .await;
}

#[tokio::test]
async fn each_endpoint_is_tried_once_before_nothing_is_sent() {
    within(async {
        // Closes each connection before a byte was sent.
        let closing = |connection: Accepted| async move { connection.reset() };
        let (first, one) = upstream(closing).await;
        let (second, two) = upstream(closing).await;
        let upstream = Upstream::new(settings(&[first, second, refusing().await]));
        for _ in 0..50 {
            let (request, gate) = keyed("/", "x");
            match upstream.forward(request).await.unwrap_err() {
                UpstreamError::NotSent(_) => assert!(!gate.is_passed()),
                // The reset came after the first byte.
                UpstreamError::Interrupted(_) => assert!(gate.is_passed()),
                error @ (UpstreamError::Lapsed
                | UpstreamError::TimedOut
                | UpstreamError::RequestBody(_)) => panic!("{error:?}"),
            }
        }
        assert!(one.connections() <= 50 && two.connections() <= 50);
        assert_eq!(one.count() + two.count(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_could_not_be_connected_to_comes_last_for_a_second() {
    for balance in [Balance::RoundRobin, Balance::LeastRequests] {
        let mut settings = settings(&["127.0.0.1:1", "127.0.0.1:2"].map(|it| it.parse().unwrap()));
        settings.balance = balance;
        let endpoints = Endpoints::new(&settings);
        let first = |tried: &[usize]| endpoints.pick(tried).map(|(number, _)| number);
        endpoints.rest(endpoints.pick(&[1]).unwrap().1);
        for _ in 0..4 {
            assert_eq!((first(&[]), first(&[1]), first(&[0, 1])), (Some(1), Some(0), None));
        }
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let mut seen = [first(&[]), first(&[])];
        seen.sort();
        assert_eq!(seen, [Some(0), Some(1)]);
    }
}
