//! How large what a fact brings is.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::expression::json_bytes;
use crate::domain::fact::{AfterFailure, Fact, Opening};
use crate::domain::failure::ATTEMPT_ERROR_BYTES_MAX;

/// Bytes of JSON of the values that a fact brings.
pub(super) fn bytes_of(fact: &Fact) -> u64 {
    let size = |value: &Arc<Value>| json_bytes(value) as u64;
    match fact {
        Fact::StepCompleted { output, .. }
        | Fact::StepFailed { next: AfterFailure::Continue { output }, .. } => size(output),
        Fact::StepStarted { opening: Some(opening), .. } => match &**opening {
            Opening::Items(items) => items.iter().map(size).sum(),
            Opening::Block(_) => 0,
        },
        Fact::StepFailed { error, next: AfterFailure::Retry { .. }, .. } => {
            error.len().min(ATTEMPT_ERROR_BYTES_MAX) as u64
        }
        Fact::StepResumed { data, .. } => size(data),
        Fact::ChildStarted { input, .. } => size(input),
        Fact::StepSuspended { reason, payload, .. }
        | Fact::ChildSuspended { reason, payload, .. } => {
            reason.len() as u64 + payload.as_ref().map_or(0, size)
        }
        Fact::WorkflowSuspended { suspension, others, .. } => {
            let others = others.iter().flat_map(|others| &others.suspensions);
            let told = std::iter::once(&**suspension).chain(others);
            told.map(|told| told.value_bytes() as u64).sum()
        }
        Fact::StepStarted { .. }
        | Fact::StepFailed { .. }
        | Fact::WorkflowStarted(_)
        | Fact::StepReleased { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowResumed
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => 0,
    }
}
