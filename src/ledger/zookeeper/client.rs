//! The few operations that the ledger needs of the client library, with the bounds it lacks.
//!
//! A request is given up after [`DEADLINE`], but never taken back: the library sends it all the
//! same, and its place among the requests in flight stays taken until its fate is known.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{
    Acl, Acls, AuthUser, CreateMode, Error, MultiWriteResult, OneshotWatcher, SessionState, Stat,
    StateWatcher,
};

use super::fault::{Closed, Fault, Overdue};
pub(super) use crate::telemetry::ensemble::Operation;
use crate::telemetry::ensemble::OperationMetrics;

/// One session's client. There are no clones of the library's client beside this one, but for
/// those that requests in flight have until [`close`](Self::close).
#[derive(Debug)]
pub(super) struct Client {
    library: std::sync::Mutex<Option<zookeeper_client::Client>>,
    permits: Arc<Semaphore>,
    acls: Acls<'static>,
    closed: CancellationToken,
    metrics: OperationMetrics,
}

/// One operation of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Check { path: String, version: i32 },
    CreateContainer { path: String },
    CreateLock { prefix: String, data: Vec<u8> },
    Create { path: String, data: Vec<u8> },
    SetData { path: String, data: Vec<u8>, version: i32 },
    Delete { path: String, version: Option<i32> },
}

/// In a check: the node is there. A GUID in its name says whose it is, and its data are anyone's.
pub(super) const ANY: i32 = -1;

/// Above this many unanswered requests of one session, a server may stop reading from it.
const MOST_IN_FLIGHT: usize = 256;

/// Kept below the servers' 1 MiB for a packet, over which they close the connection.
pub(super) const MOST_BYTES: usize = 1_000_000;

/// An operation without a reply for so long is in doubt.
const DEADLINE: Duration = Duration::from_secs(3);

// === impl Client ===

impl Client {
    pub(super) fn new(
        library: zookeeper_client::Client,
        acls: Acls<'static>,
        metrics: OperationMetrics,
    ) -> Self {
        Self {
            library: std::sync::Mutex::new(Some(library)),
            permits: Arc::new(Semaphore::new(MOST_IN_FLIGHT)),
            acls,
            closed: CancellationToken::new(),
            metrics,
        }
    }

    /// Drops every clone, which closes the session. Requests in flight fail as in doubt.
    pub(super) fn close(&self) -> Option<StateWatcher> {
        let library = self.lock().take();
        self.closed.cancel();
        library.map(|library| library.state_watcher())
    }

    pub(super) fn state(&self) -> SessionState {
        self.lock().as_ref().map_or(SessionState::Closed, zookeeper_client::Client::state)
    }

    /// Tells how the session does; `None` once it is closed.
    pub(super) fn watcher(&self) -> Option<StateWatcher> {
        self.lock().as_ref().map(zookeeper_client::Client::state_watcher)
    }

    pub(super) async fn get(&self, path: &str) -> Result<(Vec<u8>, Stat), Fault> {
        self.call(Operation::GetData, |client| client.get_data(path)).await
    }

    /// As [`get`](Self::get), and the watcher resolves when the node changes or is gone.
    pub(super) async fn watch(&self, path: &str) -> Result<OneshotWatcher, Fault> {
        let path = path.to_owned();
        self.call(Operation::GetData, |client| {
            let client = client.clone();
            async move { client.get_and_watch_data(&path).await.map(|(_, _, watcher)| watcher) }
        })
        .await
    }

    pub(super) async fn exists(&self, path: &str) -> Result<Option<Stat>, Fault> {
        self.call(Operation::Exists, |client| client.check_stat(path)).await
    }

    pub(super) async fn children(&self, path: &str) -> Result<Vec<String>, Fault> {
        self.call(Operation::GetChildren, |client| client.get_children(path))
            .await
            .map(|(children, _)| children)
    }

    /// Who may do what with a node.
    pub(super) async fn acl(&self, path: &str) -> Result<Vec<Acl>, Fault> {
        let path = path.to_owned();
        self.call(Operation::GetData, |client| {
            let client = client.clone();
            async move { client.get_acl(&path).await.map(|(acl, _)| acl) }
        })
        .await
    }

    /// Whom the servers take this session for.
    pub(super) async fn identities(&self) -> Result<Vec<AuthUser>, Fault> {
        self.call(Operation::GetData, zookeeper_client::Client::list_auth_users).await
    }

    /// Later reads show what was written before this call, through whichever server.
    pub(super) async fn sync(&self, path: &str) -> Result<(), Fault> {
        let path = path.to_owned();
        self.call(Operation::GetData, |client| {
            let client = client.clone();
            async move { client.sync(&path).await }
        })
        .await
    }

    /// What the servers say about themselves.
    pub(super) async fn ensemble(&self) -> Result<String, Fault> {
        self.call(Operation::GetData, zookeeper_client::Client::get_config)
            .await
            .map(|(config, _)| String::from_utf8_lossy(&config).into_owned())
    }

    /// This session's ephemeral nodes below `path`.
    pub(super) async fn ephemerals(&self, path: &str) -> Result<Vec<String>, Fault> {
        let path = path.to_owned();
        self.call(Operation::GetChildren, |client| {
            let client = client.clone();
            async move { client.list_ephemerals(&path).await }
        })
        .await
    }

    /// The record, the children and the record again, in one round trip and in this order.
    pub(super) async fn look(&self, record: &str, node: &str) -> Result<Looked, Fault> {
        let permits = self.permits(3).await?;
        let started = Instant::now();
        let (first, children, second) = {
            let client = self.lock();
            let client = client.as_ref().ok_or(Fault::NotSent(CLOSED))?;
            (client.get_data(record), client.get_children(node), client.get_data(record))
        };
        let replies = async { tokio::join!(first, children, second) };
        let replies = self.finish(replies, permits).await?;
        self.metrics.answered(Operation::GetData, started.elapsed());
        let absent = |result| match result {
            Ok(found) => Ok(Some(found)),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(Fault::from(error)),
        };
        let children = match replies.1 {
            Ok((children, _)) => Some(children),
            Err(Error::NoNode) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Looked { before: absent(replies.0)?, children, after: absent(replies.2)? })
    }

    pub(super) async fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<(String, Stat), Fault> {
        let (path, data, options) = (path.to_owned(), data.to_vec(), mode.with_acls(self.acls));
        self.call(Operation::Create, |client| {
            let client = client.clone();
            async move {
                let (stat, sequence) = client.create(&path, &data, &options).await?;
                let is_sequential = matches!(
                    mode,
                    CreateMode::EphemeralSequential | CreateMode::PersistentSequential
                );
                Ok((if is_sequential { format!("{path}{sequence}") } else { path }, stat))
            }
        })
        .await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.call(Operation::Delete, |client| client.delete(path, None)).await
    }

    /// A quorum write that takes no place from the others.
    pub(super) async fn beat(&self, path: &str) -> Result<Stat, Fault> {
        let started = Instant::now();
        let reply = {
            let client = self.lock();
            client.as_ref().ok_or(Fault::NotSent(CLOSED))?.set_data(path, b"", None)
        };
        let stat = self.finish(reply, ()).await??;
        self.metrics.answered(Operation::Heartbeat, started.elapsed());
        Ok(stat)
    }

    /// All of it or nothing.
    pub(super) async fn transact(
        &self,
        operation: Operation,
        ops: Vec<Op>,
    ) -> Result<Vec<MultiWriteResult>, Fault> {
        if ops.iter().map(Op::size).sum::<usize>() > MOST_BYTES {
            return Err(Fault::NotSent("the request is over the size of a packet"));
        }
        let permit = self.permits(1).await?;
        let started = Instant::now();
        let client = self.lock().clone().ok_or(Fault::NotSent(CLOSED))?;
        let acls = self.acls;
        let reply = async move {
            let mut writer = client.new_multi_writer();
            for op in &ops {
                op.add_to(&mut writer, acls)?;
            }
            writer.commit().await.map_err(Fault::from)
        };
        let results = self.finish(reply, permit).await?;
        self.metrics.answered(operation, started.elapsed());
        results
    }

    async fn call<T, F>(
        &self,
        operation: Operation,
        request: impl FnOnce(&zookeeper_client::Client) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let permit = self.permits(1).await?;
        let started = Instant::now();
        let reply = {
            let client = self.lock();
            request(client.as_ref().ok_or(Fault::NotSent(CLOSED))?)
        };
        let reply = self.finish(reply, permit).await?;
        self.metrics.answered(operation, started.elapsed());
        Ok(reply?)
    }

    async fn permits(&self, number: u32) -> Result<tokio::sync::OwnedSemaphorePermit, Fault> {
        let permits = Arc::clone(&self.permits).acquire_many_owned(number);
        tokio::select! {
            permits = permits => permits.map_err(|_closed| Fault::NotSent(CLOSED)),
            () = self.closed.cancelled() => Err(Fault::NotSent(CLOSED)),
            () = tokio::time::sleep(DEADLINE) => {
                Err(Fault::NotSent("too many requests of the session are in flight"))
            }
        }
    }

    /// Awaits a reply, but neither longer than the deadline nor than the session.
    async fn finish<T: Send + 'static>(
        &self,
        reply: impl Future<Output = T> + Send + 'static,
        permit: impl Send + 'static,
    ) -> Result<T, Fault> {
        let closed = self.closed.clone();
        let mut reply = Box::pin(async move {
            let reply = tokio::select! {
                biased;
                reply = reply => Ok(reply),
                () = closed.cancelled() => Err(Fault::InDoubt(Arc::new(Closed))),
            };
            drop(permit);
            reply
        });
        match timeout(DEADLINE, &mut reply).await {
            Ok(reply) => reply,
            Err(_elapsed) => {
                tokio::spawn(reply);
                Err(Fault::InDoubt(Arc::new(Overdue)))
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<zookeeper_client::Client>> {
        self.library.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

const CLOSED: &str = "the session is closed";

/// What a key's node held. The two looks at the record are no snapshot unless they are equal.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) before: Option<(Vec<u8>, Stat)>,
    pub(super) children: Option<Vec<String>>,
    pub(super) after: Option<(Vec<u8>, Stat)>,
}

// === impl Looked ===

impl Looked {
    /// Whether the record was the same before and after the children were listed. A commit between
    /// the two would look like an unknown outcome.
    pub(super) fn is_of_one_moment(&self) -> bool {
        let written = |found: &Option<(Vec<u8>, Stat)>| found.as_ref().map(|(_, stat)| stat.mzxid);
        written(&self.before) == written(&self.after)
    }
}

// === impl Op ===

impl Op {
    fn size(&self) -> usize {
        // Lengths, flags and the access list of one operation.
        const AROUND: usize = 128;
        AROUND
            + match self {
                Self::Check { path, .. }
                | Self::CreateContainer { path }
                | Self::Delete { path, .. } => path.len(),
                Self::CreateLock { prefix: path, data }
                | Self::Create { path, data }
                | Self::SetData { path, data, .. } => path.len() + data.len(),
            }
    }

    fn add_to(
        &self,
        writer: &mut zookeeper_client::MultiWriter<'_>,
        acls: Acls<'_>,
    ) -> Result<(), Error> {
        match self {
            Self::Check { path, version } => writer.add_check_version(path, *version),
            Self::CreateContainer { path } => {
                writer.add_create(path, b"", &CreateMode::Container.with_acls(acls))
            }
            Self::CreateLock { prefix, data } => {
                let options = CreateMode::EphemeralSequential.with_acls(acls);
                writer.add_create(prefix, data, &options)
            }
            Self::Create { path, data } => {
                writer.add_create(path, data, &CreateMode::Persistent.with_acls(acls))
            }
            Self::SetData { path, data, version } => {
                writer.add_set_data(path, data, Some(*version))
            }
            Self::Delete { path, version } => writer.add_delete(path, *version),
        }
    }
}
