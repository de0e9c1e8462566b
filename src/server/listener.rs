//! The listening socket: who gets in, when, and how it ends.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{self, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};
use tower::Service;

use super::{
    Drain, Settings,
    connection::{self, Common},
};
use crate::{BoxError, domain::Peer, telemetry};

/// A bound listener. The kernel completes connections from now on; they are served by
/// [`serve`](Self::serve).
#[derive(Debug)]
pub struct Server {
    listener: net::TcpListener,
    local_address: SocketAddr,
    /// For connections, shared by all servers of one address.
    places: Arc<Semaphore>,
    settings: Settings,
}

/// How the drain went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Whether every connection came to its end by itself.
    pub finished: bool,
    /// Connections that were cut off.
    pub open: usize,
}

/// Connections that wait to be accepted; the kernel may allow fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// A pause after failures to accept. Most are a lack of descriptors, which only time mends.
#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
    until: Instant,
}

/// Whether other sockets of this user may be bound to the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Alone,
    Shared,
}

fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of a former process, still in TIME_WAIT, must not keep the address.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Waits for a connection, and then for a place to give it.
///
/// Cancel safe: a connection that has no place yet stays in `waiting`.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    pause: &Pause,
    waiting: &mut Option<(TcpStream, Peer)>,
) -> io::Result<(OwnedSemaphorePermit, TcpStream, Peer)> {
    let (stream, peer) = if let Some(connection) = waiting.take() {
        connection
    } else {
        sleep_until(pause.until).await;
        let (stream, peer) = listener.accept().await?;
        // It fails for connections that are gone already, as their first read will tell.
        stream.set_nodelay(true).ok();
        (stream, Peer(peer))
    };
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Ok((place, stream, peer));
    }
    *waiting = Some((stream, peer));
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    match waiting.take() {
        Some((stream, peer)) => Ok((place, stream, peer)),
        None => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// A panic ends its own connection only, but nobody may miss it.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = &error as &dyn std::error::Error, "connection panicked");
    }
}

// === impl Server ===

impl Server {
    /// Binds the address `count` times, at least once: the kernel spreads new connections over
    /// the servers, each of which may be served on a runtime of its own.
    pub fn bind(settings: &Settings, count: usize) -> io::Result<Vec<Self>> {
        // Sockets that share an address would share it with another process of this user too:
        // one that has it must be noticed first.
        drop(listen(settings.address, Sharing::Alone)?);
        let first = listen(settings.address, Sharing::Shared)?;
        let local_address = first.local_addr()?;
        let places = Arc::new(Semaphore::new(settings.max_connections));
        let others = (1..count).map(|_| listen(local_address, Sharing::Shared));
        std::iter::once(Ok(first))
            .chain(others)
            .map(|listener| {
                let (places, settings) = (Arc::clone(&places), settings.clone());
                Ok(Self { listener: listener?, local_address, places, settings })
            })
            .collect()
    }

    /// Where it listens, with the port that was picked.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Serves connections until `shutdown` resolves, then drains.
    ///
    /// Each request goes to the service that `services` holds at that moment, so a reload sends
    /// the next one there: requests in flight end where they began.
    ///
    /// Draining: for [`Drain::delay`] all goes on as before. Then the listener closes, idle
    /// connections close, the others close after their answer, which says so. What is not over
    /// within [`Drain::timeout`] is cut off.
    ///
    /// Dropping the future cuts everything off at once.
    pub async fn serve<S, B>(
        self,
        services: watch::Receiver<S>,
        shutdown: impl Future<Output = ()>,
    ) -> Drained
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
        S: Clone + Send + Sync + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Self { listener, local_address, places, settings } = self;
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%local_address, %error, "listener cannot be used");
                return Drained { finished: true, open: 0 };
            }
        };
        let Drain { delay, timeout: patience } = settings.drain;
        let common = Arc::new(Common::new(settings));
        let mut connections = JoinSet::new();
        let mut pause = Pause::default();
        let mut waiting = None;
        let mut stop = pin!(async {
            shutdown.await;
            sleep(delay).await;
        });

        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(ended) = connections.join_next() => {
                    report(ended);
                    continue;
                }
                accepted = accept(&listener, &places, &pause, &mut waiting) => accepted,
            };
            match accepted {
                Ok((place, stream, peer)) => {
                    pause = Pause::default();
                    let serving =
                        connection::serve(stream, peer, services.clone(), Arc::clone(&common));
                    connections.spawn(async move {
                        let _place = place;
                        let _counted = telemetry::connection_opened();
                        serving.await;
                    });
                }
                Err(error) => {
                    telemetry::accept_failed();
                    tracing::warn!(%local_address, %error, "connection not accepted");
                    // A connection that was given up while it waited says nothing of the next one.
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        pause = pause.longer();
                    }
                }
            }
        }

        drop((listener, waiting));
        common.drain.cancel();
        let finished = timeout(patience, async {
            while let Some(ended) = connections.join_next().await {
                report(ended);
            }
        })
        .await
        .is_ok();
        let open = connections.len();
        connections.shutdown().await;
        Drained { finished, open }
    }
}

// === impl Pause ===

impl Pause {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);

    /// Twice as long as this one, from now on.
    fn longer(self) -> Self {
        let length = (self.length * 2).clamp(Self::FIRST, Self::LONGEST);
        Self { length, until: Instant::now() + length }
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self { length: Duration::ZERO, until: Instant::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_second_while_nothing_can_be_accepted() {
        let mut pause = Pause::default();
        assert_eq!(pause.until, Instant::now());
        let lengths = [10, 20, 40, 80, 160, 320, 640, 1000, 1000];
        for length in lengths.map(Duration::from_millis) {
            pause = pause.longer();
            assert_eq!(pause.until, Instant::now() + length);
        }
    }
}
