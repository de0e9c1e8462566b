//! One connection from its first byte to its last.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{
    Settings,
    progress::{Phase, Progress},
    service::bridge,
    wire::{Own, Transport, Wire},
};
use crate::{BoxError, domain::Peer, telemetry::RouteMetrics};

/// What all connections of a listener have in common.
#[derive(Debug)]
pub(super) struct Common {
    http: http1::Builder,
    settings: Settings,
    /// Answers of ours belong to no route.
    unmatched: RouteMetrics,
    /// Cancelled when connections are to end after the request that they serve.
    pub(super) drain: CancellationToken,
}

/// Why a connection is not hyper's any more.
#[derive(Debug)]
enum Left {
    /// hyper is done with it.
    Done(hyper::Result<()>),
    /// A deadline passed in this phase.
    Expired(Phase),
    Refused,
}

/// Bytes of a body that are read or written at once at most, unless heads may be larger.
const BUFFER: usize = 64 * 1024;

/// Serves the requests of a connection until it is closed, by either side.
///
/// Cancel safe in this sense: dropped at any point it closes the connection, and with it the
/// futures of what is being served.
pub(super) async fn serve<T, S, B>(
    stream: T,
    peer: Peer,
    services: watch::Receiver<S>,
    common: Arc<Common>,
) where
    T: Transport,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + Sync + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let Common { http, settings, unmatched, drain } = &*common;
    let progress = Progress::default();
    let wire = Wire::new(stream, progress.clone(), settings.canned.clone());
    let service = bridge(services, peer, progress.clone());
    let mut connection = http.serve_connection(TokioIo::new(wire), service).with_upgrades();

    let mut drained = pin!(drain.cancelled());
    let mut is_draining = false;
    let mut deadline = Instant::now() + settings.header_timeout;
    let mut alarm = pin!(sleep_until(deadline));
    let mut changes = progress.changes();
    // `None` where a head comes at once.
    let mut head_began = None;

    let left = poll_fn(|cx| {
        loop {
            // First of all, so that a request that came before the drain is still served.
            if let Poll::Ready(result) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(Left::Done(result));
            }
            if !is_draining && drained.as_mut().poll(cx).is_ready() {
                is_draining = true;
                Pin::new(&mut connection).graceful_shutdown();
                continue;
            }
            let phase = progress.phase();
            let patience = match phase {
                Phase::Idle => settings.keep_alive,
                Phase::Head => settings.header_timeout,
                Phase::Serving if progress.is_stalled() => settings.write_timeout,
                Phase::Serving | Phase::HandedOver => return Poll::Pending,
                Phase::Refused => return Poll::Ready(Left::Refused),
            };
            if changes != progress.changes() {
                changes = progress.changes();
                let now = Instant::now();
                deadline = now + patience;
                head_began = (phase == Phase::Head).then_some(now);
            }
            // An alarm that is set too early only costs a look; so a busy connection leaves it
            // alone instead of setting it twice a request.
            if deadline < alarm.deadline() || alarm.is_elapsed() {
                alarm.as_mut().reset(deadline);
            }
            ready!(alarm.as_mut().poll(cx));
            if alarm.deadline() >= deadline {
                return Poll::Ready(Left::Expired(phase));
            }
        }
    })
    .await;

    let Some(parts) = connection.into_parts() else {
        // It went to whoever upgraded it, and keeps its place until they are done.
        return progress.handed_back().await;
    };
    let mut wire = parts.io.into_inner();
    if let Left::Done(Err(error)) = &left {
        let error = error as &dyn std::error::Error;
        tracing::debug!(peer = %peer.0, error, "connection failed");
    }
    if !left.answer(progress.phase(), &mut wire) {
        return;
    }
    if let Some(own) = wire.own() {
        let took = head_began.map_or(Duration::ZERO, |began| began.elapsed());
        unmatched.request_ended(own.outcome(), took);
        tracing::debug!(peer = %peer.0, outcome = own.outcome().label(), "request refused");
    }
    // Whether the client is still there to read it is its own affair.
    drop(close(wire, settings.linger).await);
}

/// Writes what is due and closes our side, then reads until the client has closed its own: a
/// socket that is closed with bytes unread resets the connection, and the client may lose an
/// answer that it has not read yet.
async fn close<T>(mut wire: Wire<T>, linger: Duration) -> io::Result<()>
where
    T: Transport,
{
    let closing = async {
        wire.shutdown().await?;
        let mut discarded = vec![0; 4096];
        while !wire.is_read_closed() && wire.read(&mut discarded).await? > 0 {}
        Ok(())
    };
    timeout(linger, closing).await.unwrap_or(Ok(()))
}

// === impl Left ===

impl Left {
    /// Gives the answer that is due, and tells whether to take leave in good order.
    fn answer<T: Transport>(&self, phase: Phase, wire: &mut Wire<T>) -> bool {
        match self {
            Self::Done(Ok(())) | Self::Expired(Phase::Refused | Phase::HandedOver) => true,
            // Nobody is asking, or nobody is reading: there is nobody to tell.
            Self::Expired(Phase::Idle | Phase::Serving) => false,
            Self::Expired(Phase::Head) => {
                wire.answer(Own::RequestTimeout);
                true
            }
            Self::Refused => {
                wire.answer(Own::BadRequest);
                true
            }
            // The end of a broken answer must be seen to be none.
            Self::Done(Err(_)) if phase == Phase::Serving => false,
            Self::Done(Err(error)) => {
                // The preface of HTTP/2 is the one mistake that hyper does not answer.
                if error.is_parse() {
                    wire.answer(Own::BadRequest);
                }
                true
            }
        }
    }
}

// === impl Common ===

impl Common {
    pub(super) fn new(settings: Settings) -> Self {
        let mut http = http1::Builder::new();
        http.half_close(true)
            .header_read_timeout(None)
            .max_header_size(settings.max_header_size)
            .max_buf_size(settings.max_header_size.max(BUFFER));
        Self {
            http,
            settings,
            unmatched: RouteMetrics::unmatched(),
            drain: CancellationToken::new(),
        }
    }
}
