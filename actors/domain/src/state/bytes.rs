//! How large what a fact brings is: as JSON, and in memory.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::json_bytes;
use crate::fact::{AfterFailure, Fact, Opening};
use crate::failure::ATTEMPT_ERROR_BYTES_MAX;
use crate::footprint::{FACT_BYTES, memory_bytes};

/// Estimates what a fact adds to the memory that a state takes. What was given stays as long as the
/// execution is in memory; what is replaced (the data of a hold, what is asked) is counted again.
pub(super) fn memory_of(fact: &Fact) -> u64 {
    let size = |value: &Arc<Value>| memory_bytes(value);
    let values = match fact {
        Fact::StepCompleted { output, .. }
        | Fact::StepFailed { next: AfterFailure::Continue { output }, .. } => size(output),
        Fact::StepStarted { opening: Some(opening), .. } => match &**opening {
            Opening::Items(items) => items.iter().map(size).sum(),
            Opening::Block(_) => 0,
        },
        Fact::StepFailed { error, .. } => error.len() as u64,
        Fact::StepResumed { data, .. } | Fact::HoldLifted { data } => size(data),
        Fact::ChildStarted { input, .. } => size(input),
        Fact::StepSuspended { reason, payload, .. }
        | Fact::ChildSuspended { reason, payload, .. } => {
            reason.len() as u64 + payload.as_ref().map_or(0, size)
        }
        Fact::WorkflowSuspended { suspension, .. } => suspension.payload.as_ref().map_or(0, size),
        Fact::StepStarted { opening: None, .. }
        | Fact::WorkflowStarted(_)
        | Fact::StepReleased { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::WorkflowResumed
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => 0,
    };
    FACT_BYTES + values
}

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
