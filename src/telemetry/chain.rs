//! An error with its causes, on one line.

use std::{error::Error, fmt};

/// Shows an error and all its causes, separated by colons. The JSON form of a log line would show
/// the first only.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a dyn Error);

// === impl Chain ===

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn every_cause_is_shown_once() {
        let error = Outer(std::io::Error::other("inner"));
        assert_eq!(Chain(&error).to_string(), "outer: inner");
    }
}
