//! Estimates of the memory that executions take: their values, and what they have beside them.

pub(crate) mod value;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use self::value::memory_bytes;
use self::value::{VALUE_BYTES, members_bytes};
use crate::fact::{AfterFailure, Fact, Opening, Start, Suspension};
use crate::state::node::{Node, Phase, Sequence};

/// Memory of a fact about a node: half of a node with its names and times, since every node has at
/// least two facts.
pub(crate) const FACT_BYTES: u64 = 320;
/// Memory of an execution without its values: actor, mailbox, state, names.
pub(crate) const EXECUTION_BYTES: u64 = 8 * 1024;

/// Estimates the memory of an execution from its request.
pub fn of_request(input: &Value, context: &Map<String, Value>) -> u64 {
    EXECUTION_BYTES + memory_bytes(input) + VALUE_BYTES + members_bytes(context)
}

/// Estimates the memory of an execution from its start, before its first step.
pub fn of_start(start: &Start) -> u64 {
    EXECUTION_BYTES + of_values(start)
}

/// Estimates the memory of the values of a start.
fn of_values(start: &Start) -> u64 {
    let nodes = start.copied().iter().map(of_node).sum::<u64>();
    let answer = start.replayed.as_ref().and_then(|replayed| replayed.answer.as_ref());
    let cause = start.reversal.as_ref().map(|reversal| &reversal.cause);
    memory_bytes(&start.input)
        + memory_bytes(&start.context)
        + answer.map_or(0, |answer| memory_bytes(answer))
        + cause.map_or(0, |cause| memory_bytes(cause))
        + nodes
}

/// Estimates the memory of a fact as it is read, with its values and texts.
pub fn of_fact(fact: &Fact) -> u64 {
    let text = |text: &Arc<str>| text.len() as u64;
    let payload = |payload: &Option<Arc<Value>>| payload.as_ref().map_or(0, |it| memory_bytes(it));
    let suspended = |it: &Suspension| text(&it.reason) + payload(&it.payload);
    let content = match fact {
        Fact::WorkflowStarted(start) => of_values(start),
        Fact::StepStarted { opening: Some(opening), .. } => match &**opening {
            Opening::Items(items) => items.iter().map(|item| memory_bytes(item)).sum(),
            Opening::Block(_) => 0,
        },
        Fact::StepCompleted { output: value, .. }
        | Fact::StepNoted { memo: value, .. }
        | Fact::StepResumed { data: value, .. }
        | Fact::ChildStarted { input: value, .. }
        | Fact::HoldLifted { data: value }
        | Fact::WorkflowCompleted { result: value, .. } => memory_bytes(value),
        Fact::StepFailed { error, next, .. } => {
            let output = match next {
                AfterFailure::Continue { output } => memory_bytes(output),
                AfterFailure::Fail | AfterFailure::Retry { .. } | AfterFailure::Ask => 0,
            };
            text(error) + output
        }
        Fact::StepSuspended { reason, payload: shown, question, .. } => {
            text(reason) + payload(shown) + question.as_ref().map_or(0, |it| it.bytes())
        }
        Fact::ChildSuspended { reason, payload: shown, .. } => text(reason) + payload(shown),
        Fact::WorkflowSuspended { suspension, others, .. } => {
            let others = others.iter().flat_map(|others| &others.suspensions);
            std::iter::once(&**suspension).chain(others).map(suspended).sum()
        }
        Fact::WorkflowFailed { error: why, .. }
        | Fact::WorkflowCancelled { reason: why, .. }
        | Fact::HoldPlaced { reason: why, .. } => text(why),
        Fact::CompensationStarted { outcome } => outcome.why().map_or(0, text),
        Fact::StepStarted { opening: None, .. }
        | Fact::StepReleased { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildResumed { .. }
        | Fact::WorkflowResumed => 0,
    };
    FACT_BYTES + content
}

/// Estimates the memory of a node and the nodes inside it. Its input is not counted, because it is
/// the output of the node before it.
fn of_node(node: &Node) -> u64 {
    let of = |value: &Arc<Value>| memory_bytes(value);
    let given = match &node.phase {
        Phase::Completed { output } => of(output),
        Phase::Failed { output, .. } => output.as_ref().map_or(0, of),
        Phase::Waiting(wait) => wait.payload.as_ref().map_or(0, of),
        Phase::Ready
        | Phase::Running
        | Phase::Sleeping { .. }
        | Phase::Skipped
        | Phase::Cancelled => 0,
    };
    let inside = |sequence: &Sequence| sequence.nodes.iter().map(of_node).sum::<u64>();
    2 * FACT_BYTES
        + given
        + node.resume.as_ref().map_or(0, of)
        + node.noted.as_ref().map_or(0, of)
        + node.questions.as_ref().map_or(0, |questions| {
            let given = questions.before.iter().chain(&questions.answers);
            questions.newest.bytes() + given.map(|given| of(&given.data)).sum::<u64>()
        })
        + node.child.as_ref().map_or(0, |child| of(&child.input))
        + node.items.iter().map(of).sum::<u64>()
        + node.branches.iter().map(inside).sum::<u64>()
}
