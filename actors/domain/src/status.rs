//! Where an execution stands, in one word.

use serde::{Deserialize, Serialize};

/// Where an execution stands.
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

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Error | Self::Cancelled => true,
            Self::Running | Self::Suspended => false,
        }
    }
}
