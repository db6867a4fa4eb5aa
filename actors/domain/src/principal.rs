//! Who caused something: recorded with the facts that follow from it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What stands in the record in place of the id of a user who was forgotten.
pub const FORGOTTEN: &str = "(forgotten)";

/// Who suspended, resumed, cancelled or replayed an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: Arc<str>,
    /// Whether authentication established the id; else it is what the request claimed.
    pub verified: bool,
}

impl Principal {
    /// An id that authentication established.
    pub fn verified(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), verified: true }
    }

    /// An id that the request claimed.
    pub fn claimed(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), verified: false }
    }
}

/// Gives the bytes that a principal of this id begins with wherever it is stored as JSON: stores
/// search what they have written for it.
pub fn written_prefix(id: &str) -> String {
    format!("{{\"id\":{},\"verified\":", serde_json::Value::from(id))
}

/// Replaces the id where it is this user's; says whether it was.
pub fn strike(principal: &mut Option<Arc<Principal>>, user: &str) -> bool {
    let Some(known) = principal.as_mut().filter(|known| *known.id == *user) else { return false };
    *known = Arc::new(Principal { id: Arc::from(FORGOTTEN), verified: known.verified });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_principal_begins_with_its_prefix() {
        for id in ["lea", "", "a \"b\" \\ c", "zoë/\n\u{1}"] {
            for principal in [Principal::verified(id), Principal::claimed(id)] {
                let written = serde_json::to_string(&principal).unwrap();
                assert!(written.starts_with(&written_prefix(id)), "{written}");
            }
            let longer = serde_json::to_string(&Principal::verified(format!("{id}x"))).unwrap();
            assert!(!longer.starts_with(&written_prefix(id)), "{longer}");
        }
    }
}
