//! What is wrong with a file of `ledger.zookeeper.tls`.

/// Which file; also the name of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    Ca,
    Certificate,
    PrivateKey,
}

/// Why a file is of no use. Neither its path nor what it holds stands in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file of ledger.zookeeper.tls.{} {wrong}; {right}", .file.field())]
pub struct TlsMistake {
    pub file: TlsFile,
    /// To be read after the file's name.
    pub wrong: String,
    /// What would be right.
    pub right: &'static str,
}

// === impl TlsFile ===

impl TlsFile {
    pub fn field(self) -> &'static str {
        match self {
            Self::Ca => "ca",
            Self::Certificate => "certificate",
            Self::PrivateKey => "private_key",
        }
    }

    pub(super) fn is(self, wrong: impl Into<String>, right: &'static str) -> TlsMistake {
        TlsMistake { file: self, wrong: wrong.into(), right }
    }
}
