//! Notes of the tools of running attempts: where they continue after an interruption.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Member of the note of a call that waits for its place.
const WAITS_FOR_PLACE: &str = "greenroom/waitsForPlace";

/// A call that waits for its place among the concurrent calls of its tool: this attempt has done nothing
/// yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queued {
    /// Memo of the tool's newest question, which the call finds once it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memo: Option<Arc<Value>>,
    /// True if an attempt before may have had its effect.
    pub is_repetition: bool,
}

impl Queued {
    /// Returns the note of the call.
    pub fn to_note(&self) -> Value {
        json!({ WAITS_FOR_PLACE: self })
    }

    /// Reads the note of a call; `None` for another note.
    pub fn of(note: &Value) -> Option<Self> {
        let queued = note.as_object().filter(|note| note.len() == 1)?.get(WAITS_FOR_PLACE)?;
        Self::deserialize(queued).ok()
    }
}

/// Stage of the call of a tool, as its note says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStage {
    /// It works, as far as is known.
    #[default]
    Works,
    WaitsForPlace,
    /// It follows something that it has begun elsewhere, such as a task.
    Follows,
    /// A person is asked.
    Asks,
}

impl CallStage {
    /// Returns the stage of a call that has this note.
    pub fn of(note: Option<&Value>) -> Self {
        match note {
            None => Self::Works,
            Some(note) if Queued::of(note).is_some() => Self::WaitsForPlace,
            Some(_) => Self::Follows,
        }
    }
}
