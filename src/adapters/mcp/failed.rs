//! Failures of calls.

use greenroom_actors::agent::tool::ToolError;
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};

/// Returns a failure of a kind, with its reason.
pub(crate) fn failed(kind: ErrorKind, why: impl Into<String>) -> ToolError {
    ToolError::Failed(AttemptFailure::new(kind, why))
}
