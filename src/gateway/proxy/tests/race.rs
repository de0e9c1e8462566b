//! Keep-alive's race: the upstream closes at the moment at which the connection is used again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::support::*;
use crate::gateway::proxy::UpstreamError;

/// Spins, since timers are too coarse for this.
async fn pause(micros: u64) {
    let until = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < until {
        tokio::task::yield_now().await;
    }
}

// R15 to R18: however the two race, a request is received at most once, and one that was received
// is never called "not sent".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_received_is_never_called_not_sent() {
    const ROUNDS: u64 = 600;
    let seen = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let see = Arc::clone(&seen);
    let (address, received) = upstream(move |mut connection: Accepted| {
        let see = Arc::clone(&see);
        async move {
            let rounds = connection.number % 3 + 1;
            for _ in 0..rounds {
                let Some((head, _)) = connection.request().await else { return };
                let path = head.split(' ').nth(1).unwrap().to_owned();
                *see.lock().unwrap().entry(path).or_default() += 1;
                connection.ok("done").await;
            }
            pause(u64::try_from(connection.number).unwrap() * 7 % 120).await;
            if connection.number.is_multiple_of(2) {
                connection.reset();
            }
        }
    })
    .await;
    let upstream = to(address);
    let (mut answered, mut interrupted) = (0, 0);
    for round in 0..ROUNDS {
        let path = format!("/{round}");
        let (request, gate) = keyed(&path, "x");
        let outcome = within(async { text(upstream.forward(request).await).await }).await;
        let times = seen.lock().unwrap().get(&path).copied().unwrap_or_default();
        match outcome {
            Ok(_) => {
                answered += 1;
                assert_eq!(times, 1, "{path}");
            }
            Err(UpstreamError::NotSent(_)) => {
                assert_eq!(times, 0, "{path}");
                assert!(!gate.is_passed());
            }
            Err(UpstreamError::Interrupted(_)) => {
                interrupted += 1;
                assert!(times <= 1, "{path}");
                assert!(gate.is_passed());
            }
            Err(error) => panic!("{error:?}"),
        }
        pause(round * 13 % 120).await;
    }
    // Interrupted requests may still have been received after that was said.
    assert!(seen.lock().unwrap().values().all(|&times| times == 1));
    assert!(received.count() <= usize::try_from(ROUNDS).unwrap());
    assert!(answered > ROUNDS / 2, "{answered} answered, {interrupted} interrupted");
}

// R18, R36: wherever a call is dropped, a gate that is not passed means that nothing was received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_before_its_first_byte_was_not_received() {
    const ROUNDS: u64 = 400;
    let seen = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let see = Arc::clone(&seen);
    let (address, _) = upstream(move |mut connection: Accepted| {
        let see = Arc::clone(&see);
        async move {
            while let Some(head) = connection.head().await {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                *see.lock().unwrap().entry(path).or_default() += 1;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                // The gateway may be gone already.
                drop(connection.stream.try_write(answer));
            }
        }
    })
    .await;
    let upstream = to(address);
    let mut gates = Vec::new();
    let mut dropped = 0;
    for round in 0..ROUNDS {
        let path = format!("/{round}");
        let (request, gate) = keyed(&path, "");
        tokio::select! {
            biased;
            () = pause(round * 7 % 250) => dropped += 1,
            answer = within(async { text(upstream.forward(request).await).await }) => {
                assert_eq!(answer.unwrap(), "ok");
                assert!(gate.is_passed());
            }
        }
        gates.push((path, gate));
    }
    text(upstream.forward(get("/last")).await).await.unwrap();
    assert!(dropped > 0 && dropped < ROUNDS, "{dropped}");
    for (path, gate) in gates {
        let times = seen.lock().unwrap().get(&path).copied().unwrap_or_default();
        assert!(times <= u32::from(gate.is_passed()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_get_their_own_answers_over_few_connections() {
    let (address, received) = upstream(|mut connection: Accepted| async move {
        while let Some((head, body)) = connection.request().await {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            connection.ok(&format!("{path} {}", body.len())).await;
        }
    })
    .await;
    let upstream = Arc::new(to(address));
    let clients: Vec<_> = (0..16)
        .map(|client| {
            let upstream = Arc::clone(&upstream);
            tokio::spawn(async move {
                for round in 0..100 {
                    let path = format!("/{client}/{round}");
                    let (request, _) = keyed(&path, "four");
                    let answer = text(upstream.forward(request).await).await.unwrap();
                    assert_eq!(answer, format!("{path} 4"));
                }
            })
        })
        .collect();
    for client in clients {
        within(client).await.unwrap();
    }
    assert_eq!(received.count(), 1600);
    assert!(received.connections() <= 16);
}
