//! Suspensions, as recorded when the status becomes `suspended`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expression::json_bytes;
use crate::footprint::value::memory_bytes;
use crate::ids::StepPath;
use crate::principal::Principal;
use crate::stored::{is_false, is_zero};
use crate::time::Timestamp;

/// Maximum number of further suspensions in an announcement, which repeats them every time.
const OTHERS_MAX: usize = 49;
/// Maximum total size of their reasons and payloads, in bytes.
const OTHERS_BYTES_MAX: usize = 64 * 1024;

/// Maximum size of a payload in rows of lists, in bytes of memory.
const LISTED_PAYLOAD_BYTES_MAX: u64 = 8 << 10;

/// A suspension, as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspension {
    /// Unique id of the suspension. Facts of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub reason: Arc<str>,
    pub suspended_at: Timestamp,
    pub step_id: Arc<str>,
    pub path: StepPath,
    /// Index of the top-level step.
    pub step_index: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The principal that paused the execution; `None` for the suspension of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// True for a pause of the execution. Those of older versions with a principal are pauses too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pause: bool,
    /// True if there is a payload that is too large for rows of lists. Facts have every payload.
    #[serde(default, skip_serializing_if = "is_false")]
    pub payload_omitted: bool,
}

impl Suspension {
    /// Omits a payload that is too large for rows of lists.
    #[must_use]
    pub fn listed(mut self) -> Self {
        let is_large = |payload: &mut Arc<Value>| memory_bytes(payload) > LISTED_PAYLOAD_BYTES_MAX;
        self.payload_omitted |= self.payload.take_if(is_large).is_some();
        self
    }

    /// Returns true if a caller paused the execution; otherwise a step waits.
    pub fn is_pause(&self) -> bool {
        self.pause || self.by.is_some()
    }

    /// Returns the size of the reason, and of the payload as JSON, in bytes.
    pub(crate) fn value_bytes(&self) -> usize {
        self.reason.len() + self.payload.as_deref().map_or(0, json_bytes)
    }
}

/// Suspensions other than the one that is shown first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// The oldest suspensions, limited in number and size.
    pub suspensions: Vec<Suspension>,
    /// Number of omitted suspensions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

impl Others {
    /// Omits payloads that are too large for rows of lists.
    #[must_use]
    pub fn listed(self) -> Self {
        let suspensions = self.suspensions.into_iter().map(Suspension::listed).collect();
        Self { suspensions, ..self }
    }

    /// Returns how many of these are announced; the remaining ones are omitted.
    pub fn announced(others: &[Suspension]) -> usize {
        let mut bytes = 0;
        let announced = others.iter().take(OTHERS_MAX).take_while(|other| {
            bytes += other.value_bytes();
            bytes <= OTHERS_BYTES_MAX
        });
        announced.count()
    }
}
