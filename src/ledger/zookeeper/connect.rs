//! Opens a session, or says why there is none.

use zookeeper_client::{Client, Error};

use super::{OpenError, lease::Terms, servers, settings::Settings, tls::Tls};
use crate::ledger::Server;

/// A session with any of `addresses` whose locks can have a lease.
pub(super) async fn connect(
    settings: &Settings,
    addresses: &[String],
    tls: Option<&Tls>,
) -> Result<(Client, Terms), OpenError> {
    let mut connector =
        Client::connector().with_session_timeout(settings.session_timeout).with_fail_eagerly();
    for auth in &settings.auth {
        connector = connector.with_auth(&auth.scheme, auth.credentials.expose());
    }
    let cluster = addresses.join(",");
    let connected = match tls {
        Some(tls) => connector.with_tls(tls.options()).secure_connect(&cluster).await,
        None => connector.connect(&cluster).await,
    };
    let library = match connected {
        Ok(library) => library,
        Err(Error::AuthFailed) => return Err(OpenError::Auth),
        Err(source) => {
            // The library does not tell what was wrong with which of them.
            if let Some(tls) = tls
                && let Some(refusal) = tls.diagnose(addresses).await
            {
                return Err(OpenError::Tls(refusal));
            }
            let asked = servers::ask_all(addresses.iter().cloned(), tls).await;
            let told: Vec<String> = asked.iter().map(explained).collect();
            return Err(OpenError::Connect { servers: told.join("; "), source });
        }
    };
    let terms = Terms { timeout: library.session_timeout(), tick: settings.tick_time };
    if terms.shortest_lease().is_zero() {
        return Err(OpenError::NoLease { negotiated: terms.timeout, tick: terms.tick });
    }
    Ok((library, terms))
}

/// Why it gave no session, as far as it tells.
fn explained(server: &Server) -> String {
    let Server { address, mode, trouble, .. } = server;
    match (trouble, mode) {
        (Some(trouble), _) => format!("{address} {trouble}"),
        (None, mode) => format!(
            "{address} serves ({}), but gave no session; see its log, and its maxClientCnxns",
            mode.as_deref().unwrap_or("mode unknown")
        ),
    }
}
