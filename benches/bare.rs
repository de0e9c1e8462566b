//! A client of an ensemble that only sends the transactions of a new key, as the measure of what
//! a gateway adds: `cargo bench --bench bare -- SERVERS IN_FLIGHT SECONDS [read]`.
//!
//! With `read` it looks for the record first, as a gateway does. It prints one line, as the load
//! generator does: `figures KEYS MICROSECONDS ERRORS P50 P99`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement talks and may panic")]

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode};

/// The gateway's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As a gateway has by default.
const SESSIONS: usize = 2;

/// Bytes of a gateway's lock node, intent and record, with the answers of the comparison.
const LOCK: [u8; 150] = [b'x'; 150];
const INTENT: [u8; 360] = [b'x'; 360];
const RECORD: [u8; 560] = [b'x'; 560];

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|a| a != "--bench").collect();
    let [_, servers, in_flight, seconds, rest @ ..] = &arguments[..] else {
        println!("bare SERVERS IN_FLIGHT SECONDS [read]");
        return;
    };
    let (in_flight, seconds) = (in_flight.parse().unwrap(), seconds.parse().unwrap());
    let looks = rest.iter().any(|word| word == "read");
    // As a gateway: sessions have a thread of their own.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(run(servers, in_flight, Duration::from_secs(seconds), looks));
}

async fn run(servers: &str, in_flight: usize, duration: Duration, looks: bool) {
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let connector = Client::connector().with_session_timeout(Duration::from_secs(12));
        clients.push(connector.connect(servers).await.unwrap());
    }
    let root: Arc<str> = format!("/bare-{}", Uuid::new_v4().simple()).into();
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    clients[0].create(&root, b"", &persistent).await.unwrap();
    for shard in 0..=u8::MAX {
        clients[0].create(&format!("{root}/{shard:02x}"), b"", &persistent).await.unwrap();
    }
    let started = Instant::now();
    let workers: Vec<_> = (0..in_flight)
        .map(|number| {
            let (client, root) = (clients[number % SESSIONS].clone(), Arc::clone(&root));
            tokio::spawn(async move {
                let mut times = Vec::new();
                while started.elapsed() < duration {
                    let begun = Instant::now();
                    one(&client, &root, looks).await;
                    times.push(begun.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.append(&mut worker.await.unwrap());
    }
    let took = started.elapsed().as_micros();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_micros();
    println!("figures {} {took} 0 {} {}", times.len(), at(50), at(99));
}

/// One key: begun and completed.
async fn one(client: &Client, root: &str, looks: bool) {
    let key = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let node = format!("{root}/{}/{key}", &key[..2]);
    let (record, acls) = (format!("{node}/record"), Acls::anyone_all());
    if looks {
        client.get_data(&record).await.unwrap_err();
    }
    let lock = format!("{node}/_c_{}-lock-", Uuid::new_v4());
    let mut begin = client.new_multi_writer();
    begin.add_create(&node, b"", &CreateMode::Container.with_acls(acls)).unwrap();
    begin.add_create(&lock, &LOCK, &CreateMode::EphemeralSequential.with_acls(acls)).unwrap();
    begin.add_create(&record, &INTENT, &CreateMode::Persistent.with_acls(acls)).unwrap();
    begin.commit().await.unwrap();
    let mut commit = client.new_multi_writer();
    // The first in a new container.
    commit.add_delete(&format!("{lock}0000000000"), Some(0)).unwrap();
    commit.add_set_data(&record, &RECORD, Some(0)).unwrap();
    commit.commit().await.unwrap();
}
