//! Certificates made with the `openssl` command, for the length of a test.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// One that signs others.
pub(crate) struct Authority {
    folder: TempDir,
}

/// A signed certificate and its key.
pub(crate) struct Signed {
    pub(crate) certificate: PathBuf,
    pub(crate) private_key: PathBuf,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("ca.pem"), folder.path().join("ca.key"));
        let extension = "keyUsage=critical,keyCertSign,cRLSign";
        request(&certificate, &key, 2, &["-subj", &format!("/CN={name}"), "-addext", extension]);
        Self { folder }
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A certificate for these, like `IP:127.0.0.1` or `DNS:zk`.
    pub(crate) fn sign(&self, name: &str, alternatives: &str) -> Signed {
        self.sign_for(2, name, alternatives)
    }

    pub(crate) fn sign_for(&self, days: u32, name: &str, alternatives: &str) -> Signed {
        let signed = Signed {
            certificate: self.path(&format!("{name}.pem")),
            private_key: self.path(&format!("{name}.key")),
        };
        let (ca, key) = (self.path("ca.pem"), self.path("ca.key"));
        let arguments = [
            "-CA",
            ca.to_str().unwrap(),
            "-CAkey",
            key.to_str().unwrap(),
            "-subj",
            &format!("/CN={name}"),
            "-addext",
            &format!("subjectAltName={alternatives}"),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        request(&signed.certificate, &signed.private_key, days, &arguments);
        signed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn request(certificate: &Path, key: &Path, days: u32, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-nodes", "-newkey", "ec", "-days", &days.to_string()]);
    command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.arg("-out").arg(certificate).arg("-keyout").arg(key).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
