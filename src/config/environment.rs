//! `${NAME}` and `${NAME:-default}` inside a scalar.

use std::{collections::BTreeMap, env::VarError};

/// Where the values of `${NAME}` come from.
pub trait Environment {
    /// # Errors
    ///
    /// As [`std::env::var`]: the name is not set, or its value is not UTF-8.
    fn variable(&self, name: &str) -> Result<String, VarError>;
}

/// The environment of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

/// Why a reference could not be replaced. No variant holds a value of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReferenceError {
    Unset(String),
    NotUnicode(String),
    Malformed,
}

// === impl Environment ===

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Result<String, VarError> {
        std::env::var(name)
    }
}

impl Environment for BTreeMap<String, String> {
    fn variable(&self, name: &str) -> Result<String, VarError> {
        self.get(name).cloned().ok_or(VarError::NotPresent)
    }
}

// === impl ReferenceError ===

impl ReferenceError {
    pub(super) fn wrong(&self) -> String {
        match self {
            Self::Unset(name) => format!("`${{{name}}}` is not set in the environment"),
            Self::NotUnicode(name) => format!("`${{{name}}}` is not UTF-8 in the environment"),
            Self::Malformed => "`${` starts no reference".to_owned(),
        }
    }

    pub(super) fn right(&self) -> String {
        match self {
            Self::Unset(name) => format!("set it, or write `${{{name}:-default}}`"),
            Self::NotUnicode(_) => "set it to text in UTF-8".to_owned(),
            Self::Malformed => {
                "write `${NAME}` or `${NAME:-default}`, or `$${` for a plain `${`".to_owned()
            }
        }
    }
}

/// Replaces every reference in `written`. As in a shell, the default also stands in for a value
/// that is empty. What comes from the environment is not looked at again.
pub(super) fn substitute(
    written: &str,
    environment: &dyn Environment,
) -> Result<String, ReferenceError> {
    let mut value = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(dollar) = rest.find('$') {
        value.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix("$${") {
            value.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (reference, after) = after.split_once('}').ok_or(ReferenceError::Malformed)?;
            value.push_str(&look_up(reference, environment)?);
            rest = after;
        } else {
            value.push('$');
            rest = &rest[1..];
        }
    }
    value.push_str(rest);
    Ok(value)
}

fn look_up(reference: &str, environment: &dyn Environment) -> Result<String, ReferenceError> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if !is_name {
        return Err(ReferenceError::Malformed);
    }
    match (environment.variable(name), default) {
        (Ok(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Ok(value), _) => Ok(value),
        (Err(VarError::NotPresent), Some(default)) => Ok(default.to_owned()),
        (Err(VarError::NotPresent), None) => Err(ReferenceError::Unset(name.to_owned())),
        (Err(VarError::NotUnicode(_)), _) => Err(ReferenceError::NotUnicode(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment in which every value is some other system's bytes.
    struct Foreign;

    impl Environment for Foreign {
        fn variable(&self, _name: &str) -> Result<String, VarError> {
            Err(VarError::NotUnicode("secret".into()))
        }
    }

    #[test]
    fn a_value_that_is_not_text_is_an_error_even_where_a_default_is_written() {
        let error = substitute("${NAME:-default}", &Foreign).unwrap_err();
        assert_eq!(error, ReferenceError::NotUnicode("NAME".to_owned()));
        assert!(!error.wrong().contains("secret"));
    }

    #[test]
    fn only_whole_references_are_replaced() {
        let environment = BTreeMap::from([("A".to_owned(), "x".to_owned())]);
        let replaced = |text| substitute(text, &environment);
        assert_eq!(replaced("$A $ {A} ${A}${A}$").unwrap(), "$A $ {A} xx$");
        assert_eq!(replaced("${A:-b}${B:-c:-d}${B:-}").unwrap(), "xc:-d");
        for text in ["${", "${}", "${A", "${A B}", "${A-b}", "${:-b}", "${É}", "${A${A}}"] {
            assert_eq!(replaced(text), Err(ReferenceError::Malformed), "{text}");
        }
    }
}
