//! Asks single servers about themselves, without a session.

use std::{io, sync::Arc, time::Duration};

use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use super::tls::{Tls, server_name};
use crate::ledger::Server;

/// For one server's answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// An answer is a few dozen lines.
const MOST: u64 = 16 * 1024;

/// Asks all of them at once. Never longer than [`PATIENCE`].
pub(super) async fn ask_all(
    addresses: impl IntoIterator<Item = String>,
    tls: Option<&Tls>,
) -> Vec<Server> {
    let asked: Vec<_> = addresses
        .into_iter()
        .map(|address| {
            let tls = tls.map(Tls::config);
            tokio::spawn(async move { ask(&address, tls).await })
        })
        .collect();
    let mut servers = Vec::new();
    for answer in asked {
        servers.extend(answer.await);
    }
    servers
}

/// What the server at this address says about itself now.
async fn ask(address: &str, tls: Option<Arc<ClientConfig>>) -> Server {
    let started = Instant::now();
    let answer = word(address, "srvr", tls).await;
    let mut server = Server {
        address: address.to_owned(),
        mode: None,
        version: None,
        round_trip: answer.is_ok().then(|| started.elapsed()),
        trouble: None,
    };
    match answer {
        Ok(answer) => understand(&mut server, &answer),
        Err(error) => server.trouble = Some(unreachable(&error)),
    }
    server
}

/// What it answers to one of its four-letter words.
pub(super) async fn word(
    address: &str,
    word: &str,
    tls: Option<Arc<ClientConfig>>,
) -> io::Result<String> {
    let answer = async {
        let stream = TcpStream::connect(address).await?;
        let Some(tls) = tls else { return said(stream, word).await };
        let name = server_name(address).ok_or(io::ErrorKind::InvalidInput)?;
        said(TlsConnector::from(tls).connect(name, stream).await?, word).await
    };
    timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn said(mut stream: impl AsyncRead + AsyncWrite + Unpin, word: &str) -> io::Result<String> {
    stream.write_all(word.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(MOST).read_to_end(&mut answer).await {
        // Servers end TLS without its good-bye.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Ok(_) | Err(_) => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// The value of a line of an answer.
pub(super) fn value<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn understand(server: &mut Server, answer: &str) {
    // Without its build: `3.8.0-5a02a05, built on ...`.
    let digits = |text: &str| {
        let is_other = |c: char| !c.is_ascii_digit() && c != '.';
        text.split(is_other).next().unwrap_or_default().to_owned()
    };
    server.version = value(answer, "Zookeeper version:").map(digits);
    server.mode = value(answer, "Mode:").map(str::to_owned);
    let trouble = match server.mode.as_deref() {
        Some("read-only") => "is read-only: it is cut off from its quorum",
        Some(_) => return,
        None if answer.contains("not currently serving") => {
            "does not serve: it has no quorum; start the others, and see its log for why they \
             do not reach each other"
        }
        None if answer.contains("whitelist") => {
            "may not tell its mode and version; add srvr to its 4lw.commands.whitelist"
        }
        None if answer.is_empty() => {
            "closes connections without an answer; is it a ZooKeeper server, is this a port for \
             TLS, or is its maxClientCnxns reached?"
        }
        None => "does not answer as a ZooKeeper server does; is this the right port?",
    };
    server.trouble = Some(trouble.to_owned());
}

fn unreachable(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::TimedOut {
        let patience = PATIENCE.as_secs();
        return format!(
            "does not answer within {patience} s; is it a ZooKeeper server, is this a port for \
             TLS, does it hang, or does a firewall stand between?"
        );
    }
    format!("cannot be reached ({error}); does it run, and is this its port for clients?")
}

/// The client addresses of those that vote, from lines like
/// `server.1=10.0.0.1:2888:3888:participant;10.0.0.1:2181`.
pub(super) fn voters(config: &str) -> Vec<Option<String>> {
    let servers = config.lines().filter(|line| line.starts_with("server."));
    let voting = servers.filter(|line| !line.contains(":observer"));
    let address = |line: &str| {
        let (peer, client) = line.rsplit_once(';')?;
        let host = peer.split_once('=')?.1.split(':').next()?;
        match client.rsplit_once(':') {
            Some(("0.0.0.0" | "[::]" | "[0:0:0:0:0:0:0:0]", port)) => {
                Some(format!("{host}:{port}"))
            }
            Some(_) => Some(client.to_owned()),
            None if client.is_empty() => None,
            None => Some(format!("{host}:{client}")),
        }
    };
    voting.map(address).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What is made of a server that reads a word, says this and closes.
    async fn server_that_says(answer: &str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = answer.to_owned();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            assert_eq!(&word, b"srvr");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let server = ask(&address, None).await;
        serving.await.unwrap();
        server
    }

    #[tokio::test]
    async fn a_server_that_serves_tells_its_mode_and_release() {
        let answer = "Zookeeper version: 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee, built \
                      on 2024-10-17 23:21 UTC\nLatency min/avg/max: 0/0.0/0\nMode: follower\n";
        let server = server_that_says(answer).await;
        assert_eq!(server.mode.as_deref(), Some("follower"));
        assert_eq!(server.version.as_deref(), Some("3.9.3"));
        assert!(server.serves() && server.round_trip.is_some(), "{server:?}");
    }

    #[tokio::test]
    async fn a_server_that_does_not_serve_says_what_to_do() {
        for (answer, remedy) in [
            ("This ZooKeeper instance is not currently serving requests\n", "quorum"),
            ("Zookeeper version: 3.8.0-1, built on x\nMode: read-only\n", "cut off"),
            ("srvr is not executed because it is not in the whitelist.\n", "whitelist"),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "right port"),
            ("", "maxClientCnxns"),
        ] {
            let server = server_that_says(answer).await;
            let trouble = server.trouble.clone().unwrap_or_default();
            assert!(trouble.contains(remedy) && !server.serves(), "{answer}: {server:?}");
        }
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let asked = timeout(2 * PATIENCE, ask(&address, None)).await.unwrap();
        assert!(asked.trouble.unwrap().contains("does not answer within 1 s"));
        drop(silent);
        let asked = ask(&address, None).await;
        assert!(asked.trouble.unwrap().contains("cannot be reached"));
    }

    #[test]
    fn only_servers_that_vote_are_counted_at_the_address_of_clients() {
        let config = "server.1=10.0.0.1:2888:3888:participant;0.0.0.0:2181\n\
                      server.2=10.0.0.2:2888:3888:participant;127.0.0.1:2182\n\
                      server.3=10.0.0.3:2888:3888:observer;0.0.0.0:2181\n\
                      server.4=10.0.0.4:2888:3888:participant\nversion=0";
        let expected = ["10.0.0.1:2181", "127.0.0.1:2182"].map(|address| Some(address.to_owned()));
        assert_eq!(voters(config), [&expected[..], &[None]].concat());
    }
}
