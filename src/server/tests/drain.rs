//! How a server stops.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use super::support::{SOON, connect, read_to_end, read_until, settings, start};
use crate::server::{Drain, Drained, Settings};

// R38
#[tokio::test]
async fn what_is_in_flight_is_answered_and_told_that_the_connection_closes() {
    let mut running = start(&settings());
    let mut busy = running.connect().await;
    busy.write_all(b"POST /gated HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
        .await
        .unwrap();
    running.next_seen().await;
    let mut idle = running.connect().await;
    idle.write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut idle, ";").await;
    let gate = running.echo.gate.clone();
    let address = running.address;

    let stopping = running.begin_shutdown();
    assert_eq!(read_to_end(&mut idle).await, "", "an idle connection closes at once");
    assert!(TcpStream::connect(address).await.is_err(), "nobody is let in any more");
    assert!(!stopping.is_finished());
    gate.add_permits(1);

    let answer = read_to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.to_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("first /gated hi;"), "{answer}");
    drop((busy, idle));
    let drained = timeout(SOON, stopping).await.unwrap().unwrap();
    assert_eq!(drained, Drained { finished: true, open: 0 });
}

// R38
#[tokio::test]
async fn what_is_not_over_in_time_is_cut_off_and_counted() {
    let drain = Drain { delay: Duration::ZERO, timeout: Duration::from_millis(50) };
    let mut running = start(&Settings { drain, ..settings() });
    let mut stream = running.connect().await;
    stream.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    running.next_seen().await;

    let drained = timeout(SOON, running.begin_shutdown()).await.unwrap().unwrap();

    assert_eq!(drained, Drained { finished: false, open: 1 });
    let error = timeout(SOON, stream.read_u8()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn until_the_delay_is_over_all_goes_on_as_before() {
    let drain = Drain { delay: Duration::from_hours(1), timeout: SOON };
    let running = start(&Settings { drain, ..settings() });
    let address = running.address;

    let stopping = running.begin_shutdown();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let answer = read_until(&mut stream, ";").await;
        assert!(!answer.to_lowercase().contains("connection: close"), "{answer}");
    }

    assert!(!stopping.is_finished());
    stopping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_came_before_the_drain_is_served() {
    let mut client = connect();
    client.stream.write_all(b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    client.drain.cancel();

    assert!(read_to_end(&mut client.stream).await.ends_with("first /late ;"));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_not_complete_when_the_drain_begins_is_waited_for() {
    let mut client = connect();
    client.stream.write_all(b"GET /late HTTP/1.1\r\n").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    client.drain.cancel();
    sleep(Duration::from_secs(1)).await;
    client.stream.write_all(b"Host: x\r\n\r\n").await.unwrap();

    let answer = read_to_end(&mut client.stream).await;

    assert!(answer.to_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("first /late ;"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stays_incomplete_does_not_hold_the_drain_up_beyond_its_time() {
    let mut client = connect();
    client.stream.write_all(b"GET /late HTTP/1.1\r\n").await.unwrap();
    client.drain.cancel();

    let began = Instant::now();
    let answer = read_to_end(&mut client.stream).await;

    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(began.elapsed(), settings().header_timeout);
}
