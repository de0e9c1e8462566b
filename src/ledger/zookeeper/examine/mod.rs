//! Looks at an ensemble as a gateway would use it, and leaves nothing behind.
//!
//! A session at each server shows what the servers really give. All that is written are ephemeral
//! nodes beside those of the gateways, which are deleted at once, and at the latest with their
//! session. Every step is bounded, so an ensemble that does not answer has a finding, too.

mod access;
mod certificates;
mod pace;
mod servers;
mod ticks;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::access::Home;
use super::{
    OpenError, client::Client, connect::connect, fault::Fault, lease::Terms, paths::Layout,
    settings::Settings, tls::Tls,
};
use crate::{
    ledger::{Finding, Grade},
    telemetry::ensemble::OperationMetrics,
};

/// What was found so far, and what has to be closed.
struct Examination<'a> {
    settings: &'a Settings,
    tls: Option<Arc<Tls>>,
    layout: Layout,
    findings: Vec<Finding>,
    opening: VecDeque<Opening>,
    /// One at each server that gave one, in the order of the configuration.
    sessions: Vec<Session>,
}

/// A session that was asked for.
type Opening = JoinHandle<Result<Session, OpenError>>;

struct Session {
    server: String,
    client: Arc<Client>,
    terms: Terms,
}

/// The servers stopped answering: nothing more can be found out.
struct Silent;

/// For the library to say good-bye to all servers.
const GOODBYE: Duration = Duration::from_secs(1);

/// What there is to know about the ensemble of `settings`, as far as it was found out before
/// `stop`. Takes a few times `settings.timeout` at most.
pub async fn examine(settings: &Settings, stop: &CancellationToken) -> Vec<Finding> {
    let mut examination = Examination {
        settings,
        tls: None,
        layout: Layout::new(&settings.root),
        findings: Vec::new(),
        opening: VecDeque::new(),
        sessions: Vec::new(),
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        // What made it stop is a finding.
        _ = examination.run() => {}
    }
    examination.close().await;
    examination.findings
}

// === impl Examination ===

impl Examination<'_> {
    async fn run(&mut self) -> Result<(), Silent> {
        match self.settings.tls.clone().map(Tls::load).transpose() {
            Ok(tls) => self.tls = tls.map(Arc::new),
            Err(mistake) => {
                self.findings.push(Finding::bad("tls", mistake.to_string()));
                return Ok(());
            }
        }
        if let Some(tls) = self.tls.clone() {
            self.certificates(&tls);
        }
        self.doors().await;
        let Some(first) = self.sessions.first() else {
            let detail = "none: no server gives one; keyed requests get 503 until one does";
            self.findings.push(Finding::bad("session", detail));
            return Ok(());
        };
        let (client, terms) = (Arc::clone(&first.client), first.terms);
        self.ensemble(&client).await?;
        self.ticks(terms).await;
        self.credentials(&client).await?;
        if let Some(home) = self.root(&client).await? {
            self.pace(&client, &home).await?;
        }
        self.packets().await;
        Ok(())
    }

    /// Asks every server for a session of its own, all at once. What is wrong with each.
    async fn open(&mut self) -> Vec<Option<OpenError>> {
        let until = Instant::now() + self.settings.timeout;
        for server in &self.settings.servers {
            let (settings, server) = (self.settings.clone(), server.clone());
            let tls = self.tls.clone();
            self.opening.push_back(tokio::spawn(async move {
                let only = std::slice::from_ref(&server);
                let (library, terms) = connect(&settings, only, tls.as_deref()).await?;
                let client = Client::new(library, settings.acls(), OperationMetrics::new());
                Ok(Session { server, client: Arc::new(client), terms })
            }));
        }
        let mut wrong = Vec::new();
        while let Some(opening) = self.opening.front_mut() {
            let opened = timeout_at(until, &mut *opening).await;
            wrong.push(match opened {
                Ok(Ok(Ok(session))) => {
                    self.sessions.push(session);
                    None
                }
                Ok(Ok(Err(error))) => Some(error),
                Ok(Err(_)) | Err(_) => {
                    opening.abort();
                    Some(OpenError::Overdue)
                }
            });
            self.opening.pop_front();
        }
        wrong
    }

    /// The outcome of a step, unless the servers did not answer, which is the last finding.
    fn answered<T>(
        &mut self,
        subject: &str,
        step: Result<T, Fault>,
    ) -> Result<Result<T, Fault>, Silent> {
        match step {
            Err(fault) if fault.refusal().is_none() => {
                let detail =
                    format!("{fault}: the servers stopped answering; look at their logs and disks");
                self.findings.push(Finding::bad(subject, detail));
                Err(Silent)
            }
            step => Ok(step),
        }
    }

    fn push(&mut self, grade: Grade, subject: impl Into<String>, detail: impl Into<String>) {
        self.findings.push(Finding::new(grade, subject, detail));
    }

    /// Ends every session, and with them what was written.
    async fn close(&mut self) {
        let until = Instant::now() + GOODBYE;
        for mut opening in self.opening.drain(..) {
            match timeout_at(until, &mut opening).await {
                Ok(Ok(Ok(session))) => self.sessions.push(session),
                Ok(Ok(Err(_)) | Err(_)) => {}
                Err(_elapsed) => opening.abort(),
            }
        }
        let goodbyes: Vec<_> =
            self.sessions.iter().filter_map(|session| session.client.close()).collect();
        for mut goodbye in goodbyes {
            drop(timeout(GOODBYE, goodbye.changed()).await);
        }
    }
}
