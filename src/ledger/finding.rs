//! What an examination of a ledger, or of what stands around it, came to.

use std::fmt;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub grade: Grade,
    /// What it is, in a few words.
    pub subject: String,
    /// How it is and, unless all is well, what to do about it.
    pub detail: String,
}

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    Good,
    /// A gateway works, but not as well as it could, or not after one more fault.
    Doubtful,
    /// A gateway does not work.
    Bad,
}

// === impl Finding ===

impl Finding {
    pub fn good(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Grade::Good, subject, detail)
    }

    pub fn doubtful(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Grade::Doubtful, subject, detail)
    }

    pub fn bad(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Grade::Bad, subject, detail)
    }

    pub fn new(grade: Grade, subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { grade, subject: subject.into(), detail: detail.into() }
    }
}

// === impl Grade ===

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "ok",
            Self::Doubtful => "warn",
            Self::Bad => "FAIL",
        })
    }
}
