//! Names of things: what a caller may choose, what a definition may be called.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest execution id that a caller may choose, in characters.
pub const EXECUTION_ID_CHARS_MAX: usize = 128;

/// Names one execution, unique over all workflows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutionId(Arc<str>);

/// Says why a text is no execution id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not only dots")]
pub struct InvalidExecutionId;

impl ExecutionId {
    /// Accepts an id that a caller chose.
    pub fn parse(text: &str) -> Result<Self, InvalidExecutionId> {
        let length_fits = !text.is_empty() && text.len() <= EXECUTION_ID_CHARS_MAX;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
        if length_fits && text.chars().all(allowed) && !text.chars().all(|c| c == '.') {
            Ok(Self(Arc::from(text)))
        } else {
            Err(InvalidExecutionId)
        }
    }

    /// Takes an id from a trusted source: an id generator or the store.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Place of a node in an execution: step ids and block names, joined by `/`
/// (`checks/ledger/post`).
pub type StepPath = Arc<str>;

/// The step id at the end of a path.
pub fn step_id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a text may name a step or a block: a letter, then letters, digits, `_` or `-`.
pub fn is_step_id(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Whether a text may name a workflow, an agent or a model: like a step id, dots allowed.
/// `executions` is taken by a route of its own.
pub fn is_definition_id(text: &str) -> bool {
    let mut chars = text.chars();
    text.len() <= 200
        && text != "executions"
        && chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_ids_have_a_length_and_an_alphabet() {
        let long = "x".repeat(129);
        for bad in ["", ".", "...", "a b", "a/b", "é", "a\n", long.as_str()] {
            assert!(ExecutionId::parse(bad).is_err(), "{bad:?} was accepted");
        }
        for good in ["a", "order-1", "a.b:c_d", &long[..128]] {
            assert!(ExecutionId::parse(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn step_ids_start_with_a_letter() {
        assert!(is_step_id("my-step_2"));
        for bad in ["", "2step", "a.b", "a/b", "-a"] {
            assert!(!is_step_id(bad), "{bad:?} was accepted");
        }
    }

    #[test]
    fn executions_is_no_definition_id() {
        assert!(!is_definition_id("executions"));
        assert!(is_definition_id("expense-approval"));
    }
}
