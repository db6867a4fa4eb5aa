//! Notes of the tools of running attempts: where they continue after an interruption.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Member of the note of a call that waits for its place.
const WAITS_FOR_PLACE: &str = "greenroom/waitsForPlace";

/// Returns the note of a call that waits for its place among the concurrent calls of its tool: nothing
/// of it has happened yet.
pub fn waiting_for_place() -> Value {
    json!({ WAITS_FOR_PLACE: true })
}

/// Returns true for that note.
pub fn waits_for_place(note: &Value) -> bool {
    note.as_object().is_some_and(|note| note.len() == 1 && note.contains_key(WAITS_FOR_PLACE))
}

/// Progress of the call of a tool, as its note says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStage {
    /// It works, as far as is known.
    #[default]
    Works,
    WaitsForPlace,
    /// It follows something elsewhere, such as a task.
    Follows,
}

impl CallStage {
    pub(crate) fn of(note: Option<&Value>) -> Self {
        match note {
            None => Self::Works,
            Some(note) if waits_for_place(note) => Self::WaitsForPlace,
            Some(_) => Self::Follows,
        }
    }
}
