//! Reasons that are not the caller's fault.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::ids::ExecutionId;
use crate::ports::store::{AppendError, ReadError};

/// Reason why a request cannot be carried out now.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum Unavailable {
    #[error("the server is shutting down")]
    Draining { execution: Option<ExecutionId> },
    #[error("the server is busy")]
    Busy { execution: Option<ExecutionId> },
    /// Another process takes the execution over, or serves it and cannot be reached. With the
    /// execution, the change may or may not be recorded; `None`: nothing was recorded.
    #[error("the server of the execution has changed, or does not answer")]
    Moved { execution: Option<ExecutionId> },
    /// Another process serves the execution, and what was asked is too large to be sent there.
    #[error("the request is too large to be sent to another server")]
    TooLarge,
    /// Another process that the request needs cannot be reached.
    #[error("another server cannot be reached")]
    Unreachable,
    /// The executions in memory have reached their limit.
    #[error("the executions in memory use all of limits.executions_memory_max")]
    NoMemory,
    /// With the execution if it is recorded or waits to be: a repeated request would make another
    /// one.
    #[error("{reason}")]
    Store { reason: Arc<str>, execution: Option<ExecutionId> },
    /// The stored record named here cannot be used; the log has the cause.
    #[error("the record of {0} is corrupt")]
    Corrupt(Arc<str>),
    /// A defect: the actor died on this command.
    #[error("the execution's actor stopped unexpectedly")]
    ActorLost,
}

impl Unavailable {
    /// The store accepts no writes or answers no reads.
    pub fn from_store(reason: Arc<str>) -> Self {
        Self::Store { reason, execution: None }
    }

    /// Returns true if a later attempt of this process may succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Draining { .. } | Self::Corrupt(_) => false,
            Self::Busy { .. }
            | Self::Moved { .. }
            | Self::TooLarge
            | Self::Unreachable
            | Self::NoMemory
            | Self::Store { .. }
            | Self::ActorLost => true,
        }
    }

    /// Returns the execution that the reason names: that of which something may be recorded.
    pub(crate) fn execution(&self) -> Option<&ExecutionId> {
        match self {
            Self::Draining { execution }
            | Self::Busy { execution }
            | Self::Moved { execution }
            | Self::Store { execution, .. } => execution.as_ref(),
            Self::TooLarge
            | Self::Unreachable
            | Self::NoMemory
            | Self::Corrupt(_)
            | Self::ActorLost => None,
        }
    }

    /// Returns the same reason about another execution, or about none: nothing was recorded.
    #[must_use]
    pub(crate) fn about(self, execution: Option<ExecutionId>) -> Self {
        match self {
            Self::Draining { .. } => Self::Draining { execution },
            Self::Busy { .. } => Self::Busy { execution },
            Self::Moved { .. } => Self::Moved { execution },
            Self::Store { reason, .. } => Self::Store { reason, execution },
            Self::TooLarge
            | Self::Unreachable
            | Self::NoMemory
            | Self::Corrupt(_)
            | Self::ActorLost => self,
        }
    }

    /// The store has no row numbers left.
    pub(crate) fn no_rows() -> Self {
        Self::from_store(Arc::from("it has no numbers for new records"))
    }
}

/// Returns true if an answer is a refusal for this reason.
pub(crate) fn is_refused_as<T, E: From<Unavailable> + PartialEq>(
    answer: &Result<T, E>,
    why: Unavailable,
) -> bool {
    matches!(answer, Err(refusal) if *refusal == E::from(why))
}

impl From<AppendError> for Unavailable {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Unavailable(reason) => Self::from_store(reason),
            AppendError::Exists
            | AppendError::Stale
            | AppendError::KeyTaken
            | AppendError::Lost
            | AppendError::Unsettled => Self::from_store(Arc::from(error.to_string())),
        }
    }
}

impl From<ReadError> for Unavailable {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(reason) => Self::from_store(reason),
            ReadError::Corrupt(record) => Self::Corrupt(record),
            ReadError::TooLarge(refusal) => Self::from_store(Arc::from(refusal.to_string())),
        }
    }
}
