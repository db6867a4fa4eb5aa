//! Tools that the caller of a run has itself: the model may call them, and the caller makes the calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::generation::GenerateError;
use crate::ports::model::{ModelAnswer, ToolSpec};

/// Tools of a caller. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::agent::generation) struct ClientTools(Arc<[ToolSpec]>);

impl ClientTools {
    /// Refuses a tool that has the name of another one, or of one of the agent's own.
    pub(in crate::agent::generation) fn checked(
        tools: Arc<[ToolSpec]>,
        own: &[ToolSpec],
    ) -> Result<Self, GenerateError> {
        for (index, ToolSpec { name, .. }) in tools.iter().enumerate() {
            let is_named_so = |tool: &ToolSpec| tool.name == *name;
            let why = if own.iter().any(is_named_so) {
                "the agent has a tool of this name"
            } else if tools.iter().take(index).any(is_named_so) {
                "two tools have this name"
            } else {
                continue;
            };
            return Err(GenerateError::InvalidRequest(format!("tools[{index}]: {name}: {why}")));
        }
        Ok(Self(tools))
    }

    pub(in crate::agent::generation) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the agent's own tools with these behind them.
    pub(super) fn beside(&self, own: Arc<[ToolSpec]>) -> Arc<[ToolSpec]> {
        match self.is_empty() {
            true => own,
            false => own.iter().chain(self.0.iter()).cloned().collect(),
        }
    }

    pub(super) fn have(&self, name: &str) -> bool {
        self.0.iter().any(|tool| tool.name == name)
    }

    pub(super) fn are_called_in(&self, answer: &ModelAnswer) -> bool {
        answer.tool_calls.iter().any(|call| self.have(&call.tool_name))
    }
}
