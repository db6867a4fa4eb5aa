//! Ids and paths, and their allowed characters.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::long_hash;

/// Longest execution id that a caller may choose, in characters.
pub const EXECUTION_ID_CHARS_MAX: usize = 128;

/// Id of an execution, unique over all workflows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutionId(Arc<str>);

/// The text is not a valid execution id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not only dots")]
pub struct InvalidExecutionId;

impl ExecutionId {
    /// Parses an id that a caller chose.
    pub fn parse(text: &str) -> Result<Self, InvalidExecutionId> {
        let length_fits = !text.is_empty() && text.len() <= EXECUTION_ID_CHARS_MAX;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
        if length_fits && text.chars().all(allowed) && !text.chars().all(|c| c == '.') {
            Ok(Self(Arc::from(text)))
        } else {
            Err(InvalidExecutionId)
        }
    }

    /// Wraps an id from a trusted source, an id generator or the store, without checking it.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
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
/// (`checks/ledger/post`). Steps that repeat a block have the number of the iteration instead of
/// the block's name (`each[3]/charge`).
pub type StepPath = Arc<str>;

/// First part of a path: a step, and the lane inside it that the rest of the path is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathHead<'a> {
    pub step_id: &'a str,
    /// The lane, and the rest of the path within it.
    pub inner: Option<(Lane<'a>, &'a str)>,
}

/// One of the sequences inside a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane<'a> {
    Block(&'a str),
    Iteration(usize),
}

impl<'a> PathHead<'a> {
    /// Splits off the first part; `None` if the text is not a path.
    pub fn of(path: &'a str) -> Option<Self> {
        let Some((first, rest)) = path.split_once('/') else {
            return Some(Self { step_id: path, inner: None });
        };
        if let Some((step_id, index)) = first.strip_suffix(']').and_then(|it| it.split_once('[')) {
            let lane = Lane::Iteration(index.parse().ok()?);
            return Some(Self { step_id, inner: Some((lane, rest)) });
        }
        let (block, rest) = rest.split_once('/')?;
        Some(Self { step_id: first, inner: Some((Lane::Block(block), rest)) })
    }
}

/// Returns the step id at the end of a path; for the path of a compensation, that of its step.
pub fn step_id_of(path: &str) -> &str {
    step_name_of(compensated_path(path).unwrap_or(path))
}

/// Returns what stands at the end of a path: the step id, with `:compensate` for a compensation.
pub fn step_name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// End of the path of a compensation. No step id has a colon.
const COMPENSATION_SUFFIX: &str = ":compensate";

/// Returns the path of the compensation of a step (`lines[2]/reserve:compensate`).
pub fn compensation_path(step: &str) -> StepPath {
    Arc::from(format!("{step}{COMPENSATION_SUFFIX}"))
}

/// Returns the path of the step that the node at a path compensates; `None` if it is no
/// compensation.
pub fn compensated_path(path: &str) -> Option<&str> {
    path.strip_suffix(COMPENSATION_SUFFIX)
}

/// Returns the path of the container around a node; `None` for a top-level step.
pub fn container_of(path: &str) -> Option<&str> {
    let (lane, _) = path.rsplit_once('/')?;
    match lane.strip_suffix(']').and_then(|lane| lane.rsplit_once('[')) {
        Some((container, _)) => Some(container),
        None => lane.rsplit_once('/').map(|(container, _)| container),
    }
}

/// Returns true if the first path is the second one, or of a step inside that one. Compensations are
/// inside no step.
pub fn is_at_or_below(path: &str, outer: &str) -> bool {
    let is_inside = |rest: &str| rest.starts_with(['/', '[']) && compensated_path(path).is_none();
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || is_inside(rest))
}

/// Returns true if the text is a valid id of a step or a block: a letter, then letters, digits,
/// `_` or `-`.
pub fn is_step_id(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns true if the text is a valid id of a workflow, an agent or a model: letters, digits,
/// `_`, `-` and `.`, at most 200. `executions` is reserved by a route.
pub fn is_definition_id(text: &str) -> bool {
    let mut chars = text.chars();
    text.len() <= 200
        && text != "executions"
        && chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Prefix of the ids of generations that steps and tools start. Callers cannot choose an id with it.
pub const STEP_GENERATION_PREFIX: &str = "step-";

/// Returns the id of a step's generation in the history of its agent. An attempt that repeats an
/// interrupted one has the same id; each retry has another.
pub fn step_generation_id(execution: &ExecutionId, path: &str, retry: u32) -> String {
    let hash = long_hash(&[execution.as_str(), path, &retry.to_string()]);
    format!("{STEP_GENERATION_PREFIX}{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_the_containers_around_it() {
        let rows = [
            ("a", "a", true),
            ("a/b/c", "a", true),
            ("a[10]/c", "a", true),
            ("a[10]/c/d/e", "a[10]/c", true),
            ("ab", "a", false),
            ("a[10]/c", "a[1]", false),
            ("a", "a/b/c", false),
            ("a:compensate", "a", false),
            ("a[0]/b:compensate", "a", false),
            ("a[0]/b:compensate", "a[0]/b:compensate", true),
        ];
        for (path, outer, expected) in rows {
            assert_eq!(is_at_or_below(path, outer), expected, "{path} in {outer}");
        }
    }

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
    fn a_path_is_split_from_the_outermost_step() {
        let leaf = |step_id| Some(PathHead { step_id, inner: None });
        let in_block = |step_id, block, rest| {
            Some(PathHead { step_id, inner: Some((Lane::Block(block), rest)) })
        };
        let in_round = |step_id, index, rest| {
            Some(PathHead { step_id, inner: Some((Lane::Iteration(index), rest)) })
        };
        for (path, expected) in [
            ("pay", leaf("pay")),
            ("", leaf("")),
            ("checks/ledger/post", in_block("checks", "ledger", "post")),
            ("each[3]/charge", in_round("each", 3, "charge")),
            ("each[3]/", in_round("each", 3, "")),
            ("a[0]/b[12]/c/d/e", in_round("a", 0, "b[12]/c/d/e")),
            ("checks/ledger", None),
            ("each[x]/charge", None),
            ("each[-1]/charge", None),
            ("each[99999999999999999999]/charge", None),
        ] {
            assert_eq!(PathHead::of(path), expected, "for {path:?}");
        }
    }

    #[test]
    fn the_container_of_a_path_is_found() {
        for (path, container) in [
            ("pay", None),
            ("checks/ledger/post", Some("checks")),
            ("each[3]/charge", Some("each")),
            ("a[0]/b[12]/c", Some("a[0]/b")),
            ("a[0]/b/block/c", Some("a[0]/b")),
            ("a/block/b[12]/c", Some("a/block/b")),
        ] {
            assert_eq!(container_of(path), container, "for {path}");
        }
    }

    #[test]
    fn executions_is_not_a_definition_id() {
        assert!(!is_definition_id("executions"));
        assert!(is_definition_id("expense-approval"));
    }
}
