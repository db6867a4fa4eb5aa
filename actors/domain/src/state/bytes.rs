//! Sizes of the values in a fact: as JSON, and in memory.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::json_bytes;
use crate::fact::{AfterFailure, Fact};
use crate::failure::ATTEMPT_ERROR_BYTES_MAX;
use crate::footprint::{FACT_BYTES, memory_bytes};

/// Estimates the memory in bytes that a fact adds to a state. A value counts as long as the
/// execution is in memory, also after another one has replaced it.
pub(super) fn memory_of(fact: &Fact) -> u64 {
    let size = |value: &Arc<Value>| memory_bytes(value);
    let more = if let Fact::HoldLifted { data } = fact {
        size(data)
    } else if let Fact::WorkflowSuspended { suspension, .. } = fact {
        suspension.payload.as_ref().map_or(0, size)
    } else if let Fact::StepFailed { error, next, .. } = fact {
        let has_passed = matches!(next, AfterFailure::Continue { .. });
        if has_passed { 0 } else { error.len() as u64 }
    } else {
        reason_bytes(fact)
    };
    FACT_BYTES + fact.step_values().iter().map(size).sum::<u64>() + more
}

/// Returns the size of the values in a fact, in bytes of JSON.
pub(super) fn bytes_of(fact: &Fact) -> u64 {
    let size = |value: &Arc<Value>| json_bytes(value) as u64;
    let more = if let Fact::WorkflowSuspended { suspension, others, .. } = fact {
        let others = others.iter().flat_map(|others| &others.suspensions);
        let all = std::iter::once(&**suspension).chain(others);
        all.map(|suspension| suspension.value_bytes() as u64).sum()
    } else if let Fact::StepFailed {
        error,
        next: AfterFailure::Retry { .. } | AfterFailure::Ask,
        ..
    } = fact
    {
        error.len().min(ATTEMPT_ERROR_BYTES_MAX) as u64
    } else {
        reason_bytes(fact)
    };
    fact.step_values().iter().map(size).sum::<u64>() + more
}

/// Returns the length of the reason of a step's suspension, and of its assignment.
fn reason_bytes(fact: &Fact) -> u64 {
    match fact {
        Fact::StepSuspended { reason, ask, question, .. } => {
            let rules = ask.as_ref().map_or(0, |rules| rules.bytes());
            reason.len() as u64 + rules + question.as_ref().map_or(0, |it| it.bytes())
        }
        Fact::ChildSuspended { reason, .. } => reason.len() as u64,
        Fact::StepNoted { memo, .. } => memory_bytes(memo),
        Fact::WorkflowStarted(_)
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. }
        | Fact::CompensationStarted { .. }
        | Fact::StepStarted { .. }
        | Fact::StepCompleted { .. }
        | Fact::StepFailed { .. }
        | Fact::StepReleased { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepResumed { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. } => 0,
    }
}
