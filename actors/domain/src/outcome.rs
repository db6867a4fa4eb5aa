//! Outcomes of executions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::ErrorClass;
use crate::ids::StepPath;

/// Outcome of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    Completed {
        result: Arc<Value>,
    },
    Failed {
        error: Arc<str>,
        step_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<StepPath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
    },
    Cancelled {
        reason: Arc<str>,
    },
}

impl Outcome {
    /// Returns the result of a completed execution.
    pub fn result(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Completed { result } => Some(result),
            Self::Failed { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// Returns the error of a failure, or the reason of a cancellation.
    pub fn why(&self) -> Option<&Arc<str>> {
        match self {
            Self::Failed { error: why, .. } | Self::Cancelled { reason: why } => Some(why),
            Self::Completed { .. } => None,
        }
    }

    /// Returns the reason of a cancellation.
    pub fn cancel_reason(&self) -> Option<&Arc<str>> {
        match self {
            Self::Cancelled { reason } => Some(reason),
            Self::Completed { .. } | Self::Failed { .. } => None,
        }
    }
}
