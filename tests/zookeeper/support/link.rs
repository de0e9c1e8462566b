//! The network between a gateway and the ensemble, which can fail at a chosen request.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

use super::{
    Ensemble,
    jute::{Kind, kind, read_packet, unimplemented, write_packet, xid},
};
use crate::shared::soon;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It never reaches the server; its connection ends.
    RequestLost,
    /// It is applied, but its reply never comes; its connection ends.
    ReplyLost,
    /// It waits before the server, and all behind it, until [`Link::let_go`].
    RequestHeld,
    /// It is applied; its reply waits, and all behind it, until [`Link::let_go`].
    ReplyHeld,
    /// The reply is that of a server that does not know such requests.
    Unknown,
}

/// One proxy for each server; it ends with its test.
#[derive(Debug)]
pub(crate) struct Link {
    servers: Vec<SocketAddr>,
    state: Arc<State>,
    accepting: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    rules: Mutex<Vec<(Kind, Fate)>>,
    flows: watch::Sender<bool>,
    /// Connections older than this number's last change have ended.
    cuts: watch::Sender<usize>,
    opened: watch::Sender<usize>,
    /// All requests whose replies came back.
    passed: watch::Sender<Vec<Kind>>,
    held: watch::Sender<usize>,
    let_go: watch::Sender<bool>,
}

/// The requests of a connection that have no reply yet, by their numbers, and what is to happen to
/// the reply.
type Pending = Arc<Mutex<HashMap<i32, (Kind, Option<Fate>)>>>;

/// One direction of a connection.
struct Pump {
    state: Arc<State>,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    pending: Pending,
}

// === impl Link ===

impl Link {
    pub(crate) async fn to(ensemble: &Ensemble) -> Self {
        Self::to_these(ensemble.servers()).await
    }

    pub(crate) async fn to_these(servers: &[SocketAddr]) -> Self {
        let state = Arc::new(State {
            rules: Mutex::default(),
            flows: watch::Sender::new(true),
            cuts: watch::Sender::new(0),
            opened: watch::Sender::new(0),
            passed: watch::Sender::default(),
            held: watch::Sender::new(0),
            let_go: watch::Sender::new(false),
        });
        let mut link = Self { servers: Vec::new(), state, accepting: Vec::new() };
        for server in servers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            link.servers.push(listener.local_addr().unwrap());
            link.accepting.push(tokio::spawn(accept(listener, *server, Arc::clone(&link.state))));
        }
        link
    }

    /// What a gateway takes for the servers.
    pub(crate) fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The next request of this kind meets this fate. Rules for one kind apply in turn.
    pub(crate) fn next(&self, kind: Kind, fate: Fate) {
        self.state.rules.lock().unwrap().push((kind, fate));
    }

    /// Until every fate was met.
    pub(crate) async fn happened(&self) {
        let mut passed = self.state.passed.subscribe();
        let met = async {
            while !self.state.rules.lock().unwrap().is_empty() {
                passed.changed().await.unwrap();
            }
        };
        soon("the request that a fault was planned for", met).await;
    }

    /// Until a request or a reply is held.
    pub(crate) async fn holds(&self) {
        let mut held = self.state.held.subscribe();
        drop(soon("a request to hold", held.wait_for(|held| *held > 0)).await.unwrap());
    }

    /// What was held goes on, and nothing is held any more.
    pub(crate) fn let_go(&self) {
        self.state.let_go.send_replace(true);
    }

    /// No byte passes in either direction, as in a partition.
    pub(crate) fn stall(&self) {
        self.state.flows.send_replace(false);
    }

    pub(crate) fn flow(&self) {
        self.state.flows.send_replace(true);
    }

    /// Ends every connection.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many connections were ever opened.
    pub(crate) fn connections(&self) -> usize {
        *self.state.opened.borrow()
    }

    /// Until so many connections were opened.
    pub(crate) async fn connected(&self, count: usize) {
        let mut opened = self.state.opened.subscribe();
        drop(soon("a connection", opened.wait_for(|now| *now >= count)).await.unwrap());
    }

    /// How many requests of this kind were served, reply included.
    pub(crate) fn passed(&self, kind: Kind) -> usize {
        of(kind, &self.state.passed.borrow())
    }

    /// Until so many requests of this kind were served, reply included.
    pub(crate) async fn passes(&self, kind: Kind, count: usize) {
        let mut passed = self.state.passed.subscribe();
        let reached = passed.wait_for(|passed| of(kind, passed) >= count);
        drop(soon(&format!("{count} requests of {kind:?}"), reached).await.unwrap());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
        for accepting in &self.accepting {
            accepting.abort();
        }
    }
}

fn of(kind: Kind, passed: &[Kind]) -> usize {
    passed.iter().filter(|passed| **passed == kind).count()
}

async fn accept(listener: TcpListener, server: SocketAddr, state: Arc<State>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        tokio::spawn(connect(client, server, Arc::clone(&state)));
    }
}

async fn connect(client: TcpStream, server: SocketAddr, state: Arc<State>) {
    let mut cuts = state.cuts.subscribe();
    let Ok(server) = TcpStream::connect(server).await else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    state.opened.send_modify(|opened| *opened += 1);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let pending = Pending::default();
    let up = Pump {
        state: Arc::clone(&state),
        from: from_client,
        to: to_server,
        pending: Arc::clone(&pending),
    };
    let down = Pump { state, from: from_server, to: to_client, pending };
    // The end of any ends both: no half of a connection lives on.
    tokio::select! {
        _ = up.requests() => {}
        _ = down.replies() => {}
        _ = cuts.changed() => {}
    }
}

// === impl Pump ===

impl Pump {
    async fn requests(mut self) -> Option<()> {
        let handshake = read_packet(&mut self.from).await?;
        self.pass(&handshake).await?;
        loop {
            let packet = read_packet(&mut self.from).await?;
            let kind = kind(&packet);
            let fate = self.state.fate(kind);
            match fate {
                Some(Fate::RequestLost) => {
                    self.state.passed.send_modify(|_| ());
                    return None;
                }
                Some(Fate::RequestHeld) => self.state.hold().await,
                Some(Fate::ReplyLost | Fate::ReplyHeld | Fate::Unknown) | None => {}
            }
            self.pending.lock().unwrap().insert(xid(&packet), (kind, fate));
            self.pass(&packet).await?;
        }
    }

    async fn replies(mut self) -> Option<()> {
        let handshake = read_packet(&mut self.from).await?;
        self.pass(&handshake).await?;
        loop {
            let mut packet = read_packet(&mut self.from).await?;
            // Notifications of watches answer no request.
            let answered = self.pending.lock().unwrap().remove(&xid(&packet));
            match answered.and_then(|(_, fate)| fate) {
                Some(Fate::ReplyLost) => {
                    self.state.passed.send_modify(|_| ());
                    return None;
                }
                Some(Fate::ReplyHeld) => self.state.hold().await,
                Some(Fate::Unknown) => packet = unimplemented(&packet),
                Some(Fate::RequestLost | Fate::RequestHeld) | None => {}
            }
            self.pass(&packet).await?;
            if let Some((kind, _)) = answered {
                self.state.passed.send_modify(|passed| passed.push(kind));
            }
        }
    }

    async fn pass(&mut self, packet: &bytes::Bytes) -> Option<()> {
        let mut flows = self.state.flows.subscribe();
        flows.wait_for(|flows| *flows).await.ok()?;
        write_packet(&mut self.to, packet).await
    }
}

// === impl State ===

impl State {
    fn fate(&self, kind: Kind) -> Option<Fate> {
        let mut rules = self.rules.lock().unwrap();
        let at = rules.iter().position(|(of, _)| *of == kind)?;
        Some(rules.remove(at).1)
    }

    async fn hold(&self) {
        self.held.send_modify(|held| *held += 1);
        let mut let_go = self.let_go.subscribe();
        drop(let_go.wait_for(|let_go| *let_go).await);
    }
}
