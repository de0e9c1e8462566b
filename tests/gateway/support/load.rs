//! Clients that send fresh keys without pause, and remember what they were told.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::task::{JoinHandle, JoinSet};

use super::{Answer, Client, post, soon};

/// Each key that was asked for, with its answer if a whole one came.
pub(crate) type Known = HashMap<String, Option<Answer>>;

/// Clients at work.
pub(crate) struct Load {
    answered: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    clients: JoinHandle<Known>,
}

const CLIENTS: usize = 8;

impl Load {
    /// Each client uses one connection until it breaks; `name` makes the keys its own.
    pub(crate) fn start(address: SocketAddr, name: impl std::fmt::Display) -> Self {
        let answered = Arc::<AtomicUsize>::default();
        let stop = Arc::<AtomicBool>::default();
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let keys = format!("{name}-{number}");
            clients.spawn(client(address, keys, Arc::clone(&answered), Arc::clone(&stop)));
        }
        let clients =
            tokio::spawn(async move { clients.join_all().await.into_iter().flatten().collect() });
        Self { answered, stop, clients }
    }

    /// Until this many requests have been answered in all.
    pub(crate) async fn answered(&self, count: usize) {
        let reached = async {
            while self.answered.load(Ordering::Relaxed) < count {
                tokio::task::yield_now().await;
            }
        };
        soon("answers under load", reached).await;
    }

    /// Until some more requests have been answered.
    pub(crate) async fn goes_on(&self) {
        self.answered(self.answered.load(Ordering::Relaxed) + 4 * CLIENTS).await;
    }

    /// What is known once every connection has broken.
    pub(crate) async fn broken(self) -> Known {
        soon("the end of the clients", self.clients).await.unwrap()
    }

    /// What is known once every client has got its last answer.
    pub(crate) async fn stopped(self) -> Known {
        self.stop.store(true, Ordering::Relaxed);
        self.broken().await
    }
}

async fn client(
    address: SocketAddr,
    keys: String,
    answered: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
) -> Known {
    let mut known = Known::new();
    let mut client = Client::connect(address).await;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{keys}-{number}");
        let request = post(&key);
        known.insert(key.clone(), None);
        if !client.try_send(&request).await {
            break;
        }
        let Some(answer) = client.try_answer_to(&request).await else { break };
        let closes = answer.header("connection") == Some("close");
        known.insert(key, Some(answer));
        answered.fetch_add(1, Ordering::Relaxed);
        if closes {
            break;
        }
    }
    known
}
