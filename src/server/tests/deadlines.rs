//! How long a connection is waited for, to the millisecond.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, sleep, timeout},
};

use super::support::{LARGE, SOON, connect, read_to_end, read_until, settings};

const REQUEST: &[u8] = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n";

fn request_timeout() -> String {
    String::from_utf8(settings().canned.request_timeout.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_is_told_so_after_exactly_its_time_from_its_first_byte() {
    let mut client = connect();
    sleep(Duration::from_secs(3)).await;
    let began = Instant::now();
    for byte in &REQUEST[..9] {
        client.stream.write_all(&[*byte]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }

    assert_eq!(read_to_end(&mut client.stream).await, request_timeout());

    assert_eq!(began.elapsed(), settings().header_timeout);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_before_there_is_a_route_is_counted_without_one() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _local = metrics::set_default_local_recorder(&recorder);
    let mut client = connect();
    client.stream.write_all(REQUEST).await.unwrap();
    read_until(&mut client.stream, ";").await;
    sleep(Duration::from_mins(1)).await;
    client.stream.write_all(&REQUEST[..9]).await.unwrap();
    read_to_end(&mut client.stream).await;
    drop(client.stream);
    timeout(SOON, client.served).await.expect("it ends").unwrap();

    let text = recorder.handle().render();

    let counted = "oncegate_requests_total{route=\"\",outcome=\"request_timeout\"} 1\n";
    assert!(text.contains(counted), "{text}");
    // From the first byte of its head on.
    let took = "oncegate_request_duration_seconds_sum{route=\"\",outcome=\"request_timeout\"} 10\n";
    assert!(text.contains(took), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_after_an_answer_has_its_own_time() {
    let mut client = connect();
    client.stream.write_all(REQUEST).await.unwrap();
    read_until(&mut client.stream, ";").await;
    sleep(Duration::from_mins(1)).await;
    let began = Instant::now();
    client.stream.write_all(&REQUEST[..9]).await.unwrap();

    assert_eq!(read_to_end(&mut client.stream).await, request_timeout());

    assert_eq!(began.elapsed(), settings().header_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_first_byte_is_closed_without_a_word() {
    let mut client = connect();
    let began = Instant::now();

    assert_eq!(read_to_end(&mut client.stream).await, "");

    assert_eq!(began.elapsed(), settings().header_timeout);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_without_a_word_after_exactly_its_time() {
    let mut client = connect();
    for _ in 0..3 {
        sleep(Duration::from_secs(5)).await;
        client.stream.write_all(REQUEST).await.unwrap();
        read_until(&mut client.stream, ";").await;
    }
    let began = Instant::now();

    // `read_to_end` has a limit of its own, which is shorter.
    sleep(Duration::from_mins(1)).await;
    assert_eq!(read_to_end(&mut client.stream).await, "");

    assert_eq!(began.elapsed(), settings().keep_alive);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_served_has_no_deadline_here() {
    let mut client = connect();
    client.stream.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    client.seen.recv().await.unwrap();
    sleep(Duration::from_hours(1)).await;

    client.echo.gate.add_permits(1);

    assert!(read_until(&mut client.stream, ";").await.ends_with("first /gated ;"));
    client.stream.write_all(REQUEST).await.unwrap();
    assert!(read_until(&mut client.stream, ";").await.ends_with("first /x ;"));
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_is_read_from_for_the_time_to_linger_and_no_longer() {
    let mut client = connect();
    client.stream.write_all(b"nonsense\r\n\r\n").await.unwrap();
    read_to_end(&mut client.stream).await;
    let began = Instant::now();
    // The client never closes, and goes on sending.
    client.stream.write_all(&vec![b'x'; 200 * 1024]).await.unwrap();

    timeout(SOON, client.served).await.expect("it ends").unwrap();

    assert_eq!(began.elapsed(), settings().linger);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_cut_off_after_exactly_its_time() {
    let mut client = connect();
    client.stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let began = Instant::now();

    timeout(SOON, &mut client.served).await.expect("it ends").unwrap();

    assert_eq!(began.elapsed(), settings().write_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_gets_all_of_its_answer() {
    let mut client = connect();
    client.stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut client.stream, "\r\n\r\n").await;
    let mut left = LARGE;
    let mut part = vec![0; 64 * 1024];
    while left > 0 {
        sleep(settings().write_timeout / 2).await;
        let read = timeout(SOON, client.stream.read(&mut part)).await.expect("bytes").unwrap();
        assert_ne!(read, 0, "cut off with {left} bytes left");
        left -= read;
    }

    client.stream.write_all(REQUEST).await.unwrap();
    assert!(read_until(&mut client.stream, ";").await.ends_with("first /x ;"));
}
