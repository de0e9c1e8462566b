//! Why a server gives no TLS connection: the client library does not tell.

use std::{
    error::Error,
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{CertificateError, ClientConfig, ClientConnection, pki_types::ServerName};

/// What stands between this gateway and a server that could be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{server} {wrong}; {right}")]
pub struct TlsRefusal {
    pub server: String,
    wrong: String,
    right: &'static str,
}

/// Of a connection, and of each read and write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Greets the servers at once, and blocks for a few times [`PATIENCE`]. `None` if TLS is not what
/// is wrong with them.
pub(super) fn diagnose(servers: &[String], config: &Arc<ClientConfig>) -> Option<TlsRefusal> {
    let of = |server: &str| {
        let (wrong, right) = greet(server, Arc::clone(config)).err()??;
        Some(TlsRefusal { server: server.to_owned(), wrong, right })
    };
    std::thread::scope(|scope| {
        let looks: Vec<_> = servers.iter().map(|server| scope.spawn(move || of(server))).collect();
        looks.into_iter().find_map(|look| look.join().ok().flatten())
    })
}

/// What is wrong, and what would be right.
type Trouble = (String, &'static str);

fn greet(server: &str, config: Arc<ClientConfig>) -> Result<(), Option<Trouble>> {
    let has_identity = config.client_auth_cert_resolver.has_certs();
    let name = server_name(server).ok_or(None)?;
    let mut tcp = connect(server).map_err(|_unreachable| None)?;
    let mut tls =
        ClientConnection::new(config, name).map_err(|error| Some(of_tls(&error, has_identity)))?;
    let handshake = tls.complete_io(&mut tcp);
    handshake.map_err(|error| of_io(&error, has_identity).or_else(|| no_tls(&error)))?;
    // Servers look at a client's certificate only now, and answer this word or any other.
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    let answer = stream.write_all(b"srvr").and_then(|()| stream.read(&mut [0; 1]));
    let is_silent = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    };
    match answer {
        Err(error) if !is_silent(&error) => {
            Err(of_io(&error, has_identity).or(Some(of_identity(has_identity))))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn connect(server: &str) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The name that a server's certificate must have.
pub(in crate::ledger::zookeeper) fn server_name(server: &str) -> Option<ServerName<'static>> {
    let (host, _port) = server.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).ok()
}

fn of_io(error: &io::Error, has_identity: bool) -> Option<Trouble> {
    let source: &(dyn Error + 'static) = error.get_ref()?;
    Some(of_tls(source.downcast_ref()?, has_identity))
}

fn of_tls(error: &rustls::Error, has_identity: bool) -> Trouble {
    if let rustls::Error::InvalidCertificate(wrong) = error {
        of_certificate(wrong)
    } else if let rustls::Error::AlertReceived(_) = error {
        of_identity(has_identity)
    } else if let rustls::Error::InvalidMessage(_) = error {
        plain()
    } else {
        (
            format!("does not agree on TLS ({error})"),
            "have it speak TLS 1.2 or 1.3 with common ciphers",
        )
    }
}

fn of_certificate(wrong: &CertificateError) -> Trouble {
    // An authority made anew may have the name of the one before.
    if matches!(wrong, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return (
            "has a certificate that ledger.zookeeper.tls.ca did not sign".to_owned(),
            "give the certificates that signed the servers', or see who answers at this address",
        );
    }
    let is_name = matches!(
        wrong,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    );
    if is_name {
        return (
            format!("has a certificate for another name ({wrong})"),
            "write a name of the certificate in ledger.zookeeper.servers, or give the server a \
             certificate with this one as a subject alternative name",
        );
    }
    (format!("has a certificate that is of no use ({wrong})"), "give the server another one")
}

fn of_identity(has_identity: bool) -> Trouble {
    if has_identity {
        return (
            "does not accept ledger.zookeeper.tls.certificate".to_owned(),
            "have the server's trust store hold the certificate that signed it, and see that it \
             has not expired",
        );
    }
    (
        "asks for a certificate of this gateway".to_owned(),
        "write `certificate` and `private_key` in ledger.zookeeper.tls",
    )
}

/// A server that hangs up on a greeting does not know the language.
fn no_tls(error: &io::Error) -> Option<Trouble> {
    let hung_up = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    );
    hung_up.then(plain)
}

fn plain() -> Trouble {
    (
        "does not speak TLS at this port".to_owned(),
        "write its secureClientPort in ledger.zookeeper.servers, or leave ledger.zookeeper.tls out",
    )
}
