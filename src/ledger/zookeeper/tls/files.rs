//! The PEM files of `ledger.zookeeper.tls`: what they must hold.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use zookeeper_client::{TlsCa, TlsCerts, TlsIdentity};

use super::{
    expiry,
    mistake::{TlsFile, TlsMistake},
};
use crate::domain::Timestamp;

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates that signed the servers', and revocation lists if there are any.
    pub ca: PathBuf,
    /// What proves to the servers who this gateway is.
    pub identity: Option<TlsIdentityFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentityFiles {
    /// The gateway's own certificate first, then those between it and the servers' trust store.
    pub certificate: PathBuf,
    /// Not encrypted.
    pub private_key: PathBuf,
}

/// What the files hold. It has the private key, so it has no `Debug`.
#[derive(PartialEq, Eq)]
pub(super) struct Pems {
    ca: String,
    identity: Option<(String, String)>,
}

/// What connections are made with.
pub(super) struct Material {
    /// For the client library.
    pub(super) certs: TlsCerts,
    /// For a look at why it does not connect.
    pub(super) config: Arc<ClientConfig>,
}

/// Far more than a chain of certificates takes.
const MAX_FILE: u64 = 1 << 20;

// === impl TlsFiles ===

impl TlsFiles {
    /// Reads the files as a start does.
    ///
    /// # Errors
    ///
    /// At most one mistake for each file.
    pub fn check(&self) -> Result<(), Vec<TlsMistake>> {
        self.read()?.material().map(drop).map_err(|mistake| vec![mistake])
    }

    pub(super) fn read(&self) -> Result<Pems, Vec<TlsMistake>> {
        let ca = read(TlsFile::Ca, &self.ca);
        let identity = self.identity.as_ref().map(|files| {
            let certificate = read(TlsFile::Certificate, &files.certificate);
            (certificate, read(TlsFile::PrivateKey, &files.private_key))
        });
        match (ca, identity) {
            (Ok(ca), None) => Ok(Pems { ca, identity: None }),
            (Ok(ca), Some((Ok(certificate), Ok(key)))) => {
                Ok(Pems { ca, identity: Some((certificate, key)) })
            }
            (ca, identity) => {
                let identity =
                    identity.into_iter().flat_map(|(certificate, key)| [certificate, key]);
                Err([ca].into_iter().chain(identity).filter_map(Result::err).collect())
            }
        }
    }
}

// === impl Pems ===

impl Pems {
    pub(super) fn material(&self) -> Result<Material, TlsMistake> {
        let ca = TlsCa::from_pem(&self.ca).map_err(|error| unusable(TlsFile::Ca, &error))?;
        let builder = TlsCerts::builder().with_ca(ca);
        let config = ClientConfig::builder().with_root_certificates(self.roots()?);
        let Some((certificate, key)) = &self.identity else {
            let certs = builder.build().map_err(|error| unusable(TlsFile::Ca, &error))?;
            return Ok(Material { certs, config: Arc::new(config.with_no_client_auth()) });
        };
        let chain = certificates(TlsFile::Certificate, certificate)?;
        let config = config.with_client_auth_cert(chain, private_key(key)?);
        let config = config.map_err(|error| unfit(&error))?;
        let identity = TlsIdentity::from_pem(certificate, key)
            .map_err(|error| unusable(TlsFile::PrivateKey, &error))?;
        let certs = builder.with_identity(identity).build();
        let certs = certs.map_err(|error| unusable(TlsFile::Ca, &error))?;
        Ok(Material { certs, config: Arc::new(config) })
    }

    pub(super) fn expiries(&self) -> Vec<(TlsFile, Option<Timestamp>)> {
        let own = self.identity.as_ref().map(|(chain, _key)| (TlsFile::Certificate, chain));
        let files = [(TlsFile::Ca, &self.ca)].into_iter().chain(own);
        let read = |(file, text): (TlsFile, &String)| {
            let certificates = certificates(file, text).unwrap_or_default();
            (file, expiry::earliest(&certificates))
        };
        files.map(read).collect()
    }

    fn roots(&self) -> Result<RootCertStore, TlsMistake> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(TlsFile::Ca, &self.ca)? {
            roots.add(certificate).map_err(|error| unusable(TlsFile::Ca, &error))?;
        }
        Ok(roots)
    }
}

fn read(file: TlsFile, path: &Path) -> Result<String, TlsMistake> {
    let mut bytes = Vec::new();
    // A device or a pipe may have no size and no end.
    let read = File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    let length = read.map_err(|error: io::Error| {
        file.is(
            format!("cannot be read ({error})"),
            "give the path of a PEM file that this process may read",
        )
    })?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_FILE) {
        return Err(file.is("is over 1 MiB", "give the path of a PEM file"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        file.is("is not PEM text", "convert it, as `openssl x509 -inform der` does a certificate")
    })?;
    match file {
        TlsFile::Ca | TlsFile::Certificate => drop(certificates(file, &text)?),
        TlsFile::PrivateKey => drop(private_key(&text)?),
    }
    Ok(text)
}

fn certificates(file: TlsFile, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsMistake> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| unusable(file, &error))?;
    if found.is_empty() {
        let right = "give a PEM file with `-----BEGIN CERTIFICATE-----` in it";
        return Err(file.is("holds no certificate", right));
    }
    Ok(found)
}

fn private_key(text: &str) -> Result<PrivateKeyDer<'static>, TlsMistake> {
    if text.contains("ENCRYPTED") {
        let right = "decrypt it with `openssl pkey`, and let only this process read it";
        return Err(TlsFile::PrivateKey.is("is encrypted", right));
    }
    // What the reader says of a broken file could quote it.
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        let right = "give a PEM file with `-----BEGIN PRIVATE KEY-----` in it";
        TlsFile::PrivateKey.is("holds no private key", right)
    })
}

/// A certificate and a key that do not make a pair.
fn unfit(error: &rustls::Error) -> TlsMistake {
    if let rustls::Error::InconsistentKeys(_) = error {
        let right = "give the key that the certificate was made for";
        TlsFile::PrivateKey.is("does not belong to `certificate`", right)
    } else if let rustls::Error::InvalidCertificate(_) = error {
        unusable(TlsFile::Certificate, error)
    } else {
        unusable(TlsFile::PrivateKey, error)
    }
}

fn unusable(file: TlsFile, error: &dyn std::error::Error) -> TlsMistake {
    file.is(format!("is of no use ({error})"), "have it made anew")
}
