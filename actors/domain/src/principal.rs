//! Principals, which are recorded with the facts that they caused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Replaces the id of a deleted user in facts and states.
pub const FORGOTTEN: &str = "(forgotten)";

/// The user or service that suspended, resumed, cancelled or replayed an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: Arc<str>,
    /// True if authentication established the id; otherwise the request claimed it.
    pub verified: bool,
}

impl Principal {
    /// Creates a principal whose id authentication established.
    pub fn verified(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), verified: true }
    }

    /// Creates a principal whose id the request claimed.
    pub fn claimed(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), verified: false }
    }
}

/// Replaces the id if it is this user's; returns true if it was.
pub fn strike(principal: &mut Option<Arc<Principal>>, user: &str) -> bool {
    let Some(known) = principal.as_mut().filter(|known| *known.id == *user) else { return false };
    *known = Arc::new(Principal { id: Arc::from(FORGOTTEN), verified: known.verified });
    true
}
