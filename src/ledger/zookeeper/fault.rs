//! What a failed request of the ensemble may have done all the same.

use std::sync::Arc;

use zookeeper_client::{Error, MultiWriteError};

/// Why an operation gave nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A server said no: nothing was changed.
    #[error("refused: {refusal}")]
    Refused {
        /// Which operation of a transaction.
        index: usize,
        refusal: Refusal,
    },
    /// It never left this process.
    #[error("not sent: {0}")]
    NotSent(&'static str),
    /// It may have happened, or may still happen.
    #[error("no reply: {0}")]
    InDoubt(Arc<dyn std::error::Error + Send + Sync>),
}

/// What the server said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no such node")]
    NoNode,
    #[error("the node exists")]
    NodeExists,
    #[error("the node has another version")]
    BadVersion,
    #[error("the node has children")]
    NotEmpty,
    #[error("{0}")]
    Other(Error),
}

/// No reply within the time that an operation may take.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server did not reply in time")]
pub(super) struct Overdue;

/// The session was closed while the reply was awaited.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the session was closed")]
pub(super) struct Closed;

// === impl Fault ===

impl Fault {
    /// Only a server's reply code is a "no"; whatever else there is, or will be in a later
    /// version of the client library, is in doubt.
    pub(super) fn of(error: Error, index: usize) -> Self {
        let refusal = match error {
            Error::NoNode => Refusal::NoNode,
            Error::NodeExists => Refusal::NodeExists,
            Error::BadVersion => Refusal::BadVersion,
            Error::NotEmpty => Refusal::NotEmpty,
            Error::NoAuth
            | Error::NoChildrenForEphemerals
            | Error::InvalidAcl
            | Error::NotReadOnly
            | Error::QuotaExceeded
            | Error::Throttled
            | Error::MarshallingError
            | Error::Unimplemented
            | Error::ReconfigDisabled
            | Error::BadArguments(_)
            | Error::UnexpectedErrorCode(_) => Refusal::Other(error),
            // The last arm stands for variants that do not exist yet.
            Error::UnmarshalError { .. }
            | Error::NoHosts
            | Error::Timeout
            | Error::UnexpectedError(_)
            | Error::SessionExpired
            | Error::AuthFailed
            | Error::SessionMoved
            | Error::NoWatcher
            | Error::ConnectionLoss
            | Error::ClientClosed
            | Error::RuntimeInconsistent
            | Error::Custom(_)
            | _ => return Self::InDoubt(Arc::new(error)),
        };
        Self::Refused { index, refusal }
    }

    pub(super) fn is_refused_with(&self, refusal: &Refusal) -> bool {
        self.refusal() == Some(refusal)
    }

    pub(super) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            Self::NotSent(_) | Self::InDoubt(_) => None,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::of(error, 0)
    }
}

impl From<MultiWriteError> for Fault {
    fn from(error: MultiWriteError) -> Self {
        match error {
            MultiWriteError::RequestFailed { source } => Self::of(source, 0),
            MultiWriteError::OperationFailed { index, source } => Self::of(source, index),
        }
    }
}
