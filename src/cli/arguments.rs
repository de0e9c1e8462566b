//! The words of the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use super::keys::Keys;

/// An HTTP reverse proxy that makes retries safe: each Idempotency-Key runs at most once.
#[derive(Debug, Parser)]
#[command(name = "oncegate", version, propagate_version = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the gateway. SIGTERM drains and stops it, SIGHUP reloads the file.
    ///
    /// Exits with 0 after a drain, 2 if the configuration has mistakes, 1 if it cannot start.
    Serve {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a gateway and a sample payment API behind it, and print what to try.
    ///
    /// Needs no file and no other server. Everything is in memory and on loopback.
    Demo(Demo),
    /// Validate a configuration file: prints every mistake and every warning.
    ///
    /// Exits with 0 if the file can be used, 2 if it has mistakes.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Examine what a gateway would stand on: the servers of its ledger, and its upstreams.
    ///
    /// Connects to each of them as the gateway would and prints a line for each thing it looked
    /// at: `ok`, `warn` for what works but not as well as it could, `FAIL` for what does not. With
    /// an ensemble these are every server with its mode and version, the quorum, the session
    /// timeout that was negotiated and the lease that follows, the credentials, who else may read
    /// the root, whether it can be written to, round trips, clocks, ticks and the size of a packet.
    ///
    /// It may be run beside gateways at work: it writes a few short-lived nodes of its own, changes
    /// no record and leaves nothing behind, even when it is stopped.
    ///
    /// Exits with 0 if nothing is `FAIL`, 1 if something is or it was stopped, 2 if the
    /// configuration has mistakes.
    #[command(verbatim_doc_comment)]
    Doctor {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Print the JSON Schema of the configuration file, for editors.
    Schema,
    /// See keys, and decide about those whose outcome is unknown.
    ///
    /// All but `path` ask the API on a gateway's admin address, with the token that the
    /// environment variable `ONCEGATE_ADMIN_TOKEN` holds. Exits with 0; with 1 if it was refused,
    /// nothing was found, or nobody answers; with 2 if the command line is wrong.
    #[command(subcommand)]
    Keys(Keys),
    /// Ask a running gateway whether it is ready, for a container's HEALTHCHECK.
    ///
    /// Exits with 0 if it is, 1 if it is not or does not answer.
    Health {
        /// The gateway's admin address.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
        admin: String,
    },
}

#[derive(Args, Debug)]
pub(super) struct Demo {
    /// Where the gateway listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(super) listen: SocketAddr,
    /// Where the sample payment API listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub(super) api: SocketAddr,
    /// Where metrics and probes are served.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub(super) admin: SocketAddr,
}
