//! News of asks, and their distribution within a process.

use std::sync::Arc;

use tokio::sync::{Mutex, broadcast};

use crate::ports::store::Ask;

/// Change of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskNewsKind {
    Opened,
    Claimed,
    /// The claim was given up, or its time is over.
    Released,
    Assigned,
    /// A reminder fell due.
    Reminded,
    Answered,
    Expired,
    Withdrawn,
}

impl AskNewsKind {
    pub const ALL: [Self; 8] = [
        Self::Opened,
        Self::Claimed,
        Self::Released,
        Self::Assigned,
        Self::Reminded,
        Self::Answered,
        Self::Expired,
        Self::Withdrawn,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Claimed => "claimed",
            Self::Released => "released",
            Self::Assigned => "assigned",
            Self::Reminded => "reminded",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// News for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskNews {
    Changed {
        kind: AskNewsKind,
        ask: Arc<Ask>,
    },
    /// More asks are open than are watched: from here on, some changes are missed.
    Overflow,
}

/// Distributes news while there are subscribers.
#[derive(Debug, Default)]
pub(crate) struct AskFeed(pub(crate) Mutex<Option<broadcast::Sender<AskNews>>>);
