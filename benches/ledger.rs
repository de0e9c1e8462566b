//! How many keys an embedded ledger begins and commits in a second, alone and 64 at a time.
//!
//! `cargo bench --bench ledger -- [folder] [keys stored before]`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement talks and may panic")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use oncegate::{
    domain::{
        BodyMode, Clock, Fingerprint, KeyId, Origin, Recipe, Retention, StoredBody, StoredResponse,
        Subject,
    },
    ledger::{
        Begin, Begun, Ledger, Takeover,
        embedded::{Durability, Embedded, Settings, Sweep},
    },
};
use tokio::time::Instant;

/// The gateway's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUND: Duration = Duration::from_secs(4);

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|a| a != "--bench").collect();
    let folder = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let before: u64 = arguments.get(2).map_or(0, |keys| keys.parse().unwrap());
    let path = folder.join("oncegate-bench.redb");
    drop(std::fs::remove_file(&path));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        println!("file: {}", path.display());
        let mut first = 0;
        let ledger = open(Durability::Fsync { path: path.clone() });
        if before > 0 {
            run(&ledger, 512, before, Duration::MAX, &mut first).await;
        }
        for at_once in [1, 64, 512] {
            report(&ledger, at_once, &mut first).await;
        }
        if before > 0 {
            replays(&ledger, before).await;
        }
        println!("{:?}", Embedded::stats(&ledger));
        // As a kill leaves it.
        let copy = folder.join("oncegate-bench-copy.redb");
        std::fs::copy(&path, &copy).unwrap();
        ledger.close().await;
        for (name, path) in [("clean", &path), ("killed", &copy)] {
            let started = Instant::now();
            let ledger = open(Durability::Fsync { path: path.clone() });
            let took = started.elapsed();
            let size = std::fs::metadata(path).unwrap().len() >> 20;
            println!("open after {name}: {took:?} ({size} MiB)");
            ledger.close().await;
            std::fs::remove_file(path).unwrap();
        }
        let ledger = open(Durability::Memory);
        println!("memory:");
        for at_once in [1, 64] {
            report(&ledger, at_once, &mut first).await;
        }
    });
}

fn open(durability: Durability) -> Arc<Embedded> {
    let settings = Settings {
        durability,
        timeout: Duration::from_secs(5),
        clock: Clock::system(),
        sweep: Sweep::default(),
    };
    Arc::new(Embedded::open(&settings).unwrap())
}

async fn report(ledger: &Arc<Embedded>, at_once: u64, first: &mut u64) {
    let (started, busy) = (Instant::now(), cpu());
    let keys = run(ledger, at_once, u64::MAX, ROUND, first).await;
    let (took, busy) = (started.elapsed(), cpu() - busy);
    let keys = f64::from(u32::try_from(keys).unwrap());
    let rate = keys / took.as_secs_f64();
    let cost = busy * 1e6 / keys;
    println!("  {at_once:>4} at a time: {rate:>8.0} keys/s, {cost:.1} us of processor each");
}

/// Begins and commits fresh keys, `at_once` at a time.
async fn run(
    ledger: &Arc<Embedded>,
    at_once: u64,
    most: u64,
    time: Duration,
    first: &mut u64,
) -> u64 {
    let started = Instant::now();
    let tasks: Vec<_> = (0..at_once)
        .map(|task| {
            let (ledger, mut number) = (Arc::clone(ledger), *first + task);
            let last = number.saturating_add(most);
            tokio::spawn(async move {
                let mut done = 0;
                while started.elapsed() < time && number < last {
                    let Begun::Owner(hold) = ledger.begin(request(number)).await.unwrap() else {
                        unreachable!("keys are fresh")
                    };
                    hold.gate().open().unwrap();
                    hold.commit(answer()).await.unwrap();
                    number += at_once;
                    done += 1;
                }
                (done, number)
            })
        })
        .collect();
    let mut keys = 0;
    for task in tasks {
        let (done, number) = task.await.unwrap();
        keys += done;
        *first = number.max(*first);
    }
    keys
}

async fn replays(ledger: &Arc<Embedded>, stored: u64) {
    let (started, mut done) = (Instant::now(), 0_u32);
    while started.elapsed() < Duration::from_secs(1) {
        let number = u64::from(done).wrapping_mul(7919) % stored;
        let begun = ledger.begin(request(number)).await.unwrap();
        assert!(matches!(begun, Begun::Completed(_)), "{begun:?}");
        done += 1;
    }
    println!("  a replay costs {:?}", started.elapsed() / done);
}

fn request(number: u64) -> Begin {
    let mut key = [0; 32];
    // Spread as a hash spreads them.
    let mut spread = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in key.chunks_mut(8) {
        spread ^= spread >> 29;
        spread = spread.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(number);
        chunk.copy_from_slice(&spread.to_be_bytes());
    }
    let recipe = Recipe { version: 1, body: BodyMode::Raw, headers: Vec::new(), authority: true };
    let subject = Subject {
        method: Method::POST,
        authority: "api.example.com".into(),
        path: "/v1/charges".into(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        secret: None,
    };
    Begin {
        key: KeyId::from_bytes(key),
        subject: Arc::new(subject),
        fingerprint: Fingerprint { recipe: Arc::new(recipe), digest: [7; 32] },
        origin: Origin {
            route: "charges".into(),
            gateway: "gateway-1-5f3c".into(),
            request_id: "0192e4a6-5bd4-7c3e-8f9a-1b2c3d4e5f60".into(),
            trace: None,
        },
        retention: Retention {
            completed: Duration::from_hours(24),
            unknown: Some(Duration::from_hours(7 * 24)),
        },
        takeover: Takeover::Never,
        wait_until: None,
        observer: None,
    }
}

fn answer() -> StoredResponse {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("location", HeaderValue::from_static("/v1/charges/ch_3MmlLrLkdIwHu7ix0snN0B15"));
    StoredResponse {
        status: StatusCode::CREATED,
        headers,
        body: StoredBody::Kept(Bytes::from_static(&[b'x'; 400])),
    }
}

/// Seconds of processor that this process has used.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}
