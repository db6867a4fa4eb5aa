//! Waits of an execution, as they are recorded when its status becomes `suspended`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expression::json_bytes;
use crate::ids::StepPath;
use crate::principal::Principal;
use crate::stored::is_zero;
use crate::time::Timestamp;

/// Says why an execution stands still, as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspension {
    /// Names this wait and no other, before or after it. Facts of older versions have none.
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
    /// The principal that asked for it; none when a step asks by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

impl Suspension {
    /// Returns the bytes of the reason and of the payload as JSON.
    pub(crate) fn value_bytes(&self) -> usize {
        self.reason.len() + self.payload.as_deref().map_or(0, json_bytes)
    }
}

/// Lists the waits beside the one that is shown first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// The longest waits, bounded in number and size.
    pub suspensions: Vec<Suspension>,
    /// Number of waits that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}
