//! Status of an execution.

use serde::{Deserialize, Serialize};

/// Status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Suspended,
    Completed,
    Error,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Suspended, Self::Completed, Self::Error, Self::Cancelled];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status with this name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns true if the execution has ended; no fact follows.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Error | Self::Cancelled => true,
            Self::Running | Self::Suspended => false,
        }
    }
}
