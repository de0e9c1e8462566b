//! The words of `oncegate keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use http::{HeaderName, HeaderValue};

use crate::domain::KeyId;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List keys: those in progress first, then those that are remembered longest.
    List {
        #[command(flatten)]
        api: ApiArguments,
        /// Only keys in this state.
        #[arg(long)]
        state: Option<State>,
        /// Only keys that were used on this route.
        #[arg(long, value_name = "NAME")]
        route: Option<String>,
        /// How many keys to list at most.
        #[arg(long, value_name = "COUNT", default_value_t = 100,
              value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        limit: u64,
        /// Where a list that was not whole said that it goes on.
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
    },
    /// Show one key.
    Show {
        #[command(flatten)]
        api: ApiArguments,
        /// The key id: 64 hex digits.
        id: KeyId,
    },
    /// Find a key by the name that its client gave it, and show it.
    Lookup {
        #[command(flatten)]
        api: ApiArguments,
        #[command(flatten)]
        name: Name,
    },
    /// Compute where the ledger has a key. Needs no running gateway.
    ///
    /// The file's environment variables must be as the gateway's: the key secret is part of the id.
    Path {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        #[command(flatten)]
        name: Name,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// State what happened: the key is completed, and every retry gets this answer.
    ///
    /// Only for a key whose outcome is unknown. Look the operation up at the upstream first.
    Resolve {
        #[command(flatten)]
        api: ApiArguments,
        /// The key id: 64 hex digits.
        id: KeyId,
        /// The answer's status, 200 to 599.
        #[arg(long, value_parser = clap::value_parser!(u16).range(200..=599))]
        status: u16,
        /// A header line of the answer; may be given several times.
        #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
        headers: Vec<(HeaderName, HeaderValue)>,
        /// The file with the answer's body; `-` reads standard input. Without it there is none.
        #[arg(long, value_name = "FILE")]
        body: Option<PathBuf>,
        #[command(flatten)]
        decision: Decision,
    },
    /// State that nothing happened: the key is free, and the next request with it executes.
    ///
    /// Only for a key whose outcome is unknown. Look the operation up at the upstream first: if it
    /// ran after all, it runs a second time.
    Release {
        #[command(flatten)]
        api: ApiArguments,
        /// The key id: 64 hex digits.
        id: KeyId,
        /// Take the lock from a holder that cannot be at work any more; the key is then unknown,
        /// not free. The embedded ledger refuses this.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        decision: Decision,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ApiArguments {
    /// The gateway's admin address.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    pub(super) admin: String,
    /// Print the API's JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Name {
    /// The key as in its header, with or without quotes.
    pub(super) key: String,
    /// The route that the key was used on.
    #[arg(long, value_name = "NAME")]
    pub(super) route: String,
    /// A file with the headers of the route's scope, a line `Name: value` each; `-` reads standard
    /// input. On the command line everybody on the machine could read them.
    #[arg(long, value_name = "FILE")]
    pub(super) scope_from: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Decision {
    /// Why; stands in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Who decides; stands in the audit log. The user's name unless given.
    #[arg(long, value_name = "NAME")]
    pub(super) actor: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum State {
    InProgress,
    Unknown,
    Completed,
}

/// A line `Name: value`. What is wrong is told without the value.
pub(super) fn header(line: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let (name, value) = line.split_once(':').ok_or("write a header as `Name: value`")?;
    let name = name.trim().parse().map_err(|_| "what stands before the colon is no header name")?;
    let value = value.trim_matches([' ', '\t']);
    let value = value.parse().map_err(|_| "what stands after the colon is no header value")?;
    Ok((name, value))
}

// === impl State ===

impl State {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Unknown => "unknown",
            Self::Completed => "completed",
        }
    }
}
