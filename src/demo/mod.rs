//! The main job in one process: a sample payment API, the gateway before it, and a guided tour.

mod api;
mod tour;

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

use crate::{
    app::{self, Program, RunError},
    config::{self, Config, Endpoint, LedgerKind, Storage},
};

/// Where the demo listens. Port 0 picks a free one.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The gateway.
    pub listen: SocketAddr,
    /// The sample payment API.
    pub api: SocketAddr,
    /// Metrics and probes.
    pub admin: SocketAddr,
}

/// Why the demo could not run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("could not listen on {address} (--api); is another process listening there?")]
    Api {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Gateway(RunError),
}

/// The file to start from, so that what the demo shows is what the file does.
const CONFIG: &str = include_str!("../../config/demo.yaml");

/// Runs until it is told to stop; `print` gets the tour once everything listens.
pub async fn run(settings: Settings, print: impl FnOnce(String)) -> Result<(), DemoError> {
    let cannot_listen = |source| DemoError::Api { address: settings.api, source };
    let api = TcpListener::bind(settings.api).await.map_err(cannot_listen)?;
    let api_address = api.local_addr().map_err(cannot_listen)?;
    let serving = tokio::spawn(api::serve(api));
    let program =
        Program { config: configuration(settings, api_address), file: None, warnings: Vec::new() };
    let ran = app::run(program, |addresses| print(tour::text(addresses, api_address))).await;
    serving.abort();
    ran.map_err(|error| DemoError::Gateway(in_flags(error)))
}

/// The demo has no file: what is mistaken is a flag.
fn in_flags(error: RunError) -> RunError {
    match error {
        RunError::Listen { what, address, source } => {
            let what = if what == "admin.address" { "--admin" } else { "--listen" };
            RunError::Listen { what, address, source }
        }
        RunError::Ledger(_)
        | RunError::Log(_)
        | RunError::Metrics(_)
        | RunError::Tracing(_)
        | RunError::Threads(_)
        | RunError::Signals(_) => error,
    }
}

fn configuration(settings: Settings, api: SocketAddr) -> Config {
    let environment = std::collections::BTreeMap::<String, String>::new();
    let loaded = config::parse("demo.yaml", CONFIG.as_bytes(), &environment);
    let mut config = loaded.expect("the built-in file is valid, as its test shows").config;
    config.listen.address = settings.listen;
    config.admin.address = settings.admin;
    // A demo leaves no file behind, and its log does not hide its tour.
    config.ledger.kind = LedgerKind::Embedded(Storage::Memory);
    config.log.level = tracing::Level::WARN;
    for upstream in &mut config.upstreams {
        upstream.endpoints = vec![Endpoint {
            host: api.ip().to_string(),
            port: api.port(),
            authority: api.to_string(),
        }];
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_told_by_its_flag() {
        for (what, flag) in [("listen.address", "(--listen)"), ("admin.address", "(--admin)")] {
            let address = ([127, 0, 0, 1], 8080).into();
            let source = io::ErrorKind::AddrInUse.into();
            let told = in_flags(RunError::Listen { what, address, source }).to_string();
            assert!(told.contains(flag), "{told}");
        }
    }

    #[test]
    fn the_built_in_configuration_is_valid() {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let config = configuration(
            Settings { listen: any, api: any, admin: ([127, 0, 0, 1], 1).into() },
            ([127, 0, 0, 1], 9).into(),
        );
        assert_eq!(config.routes.len(), 2);
        assert_eq!(config.ledger.kind, LedgerKind::Embedded(Storage::Memory));
    }
}
