//! Spans from facts: pure, but for the memory of what has begun.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::fact::{Fact, Recorded};
use crate::domain::hash::short_hash;
use crate::domain::ids::{ExecutionId, StepPath, step_id_of};
use crate::domain::time::Timestamp;
use crate::ports::store::Header;
use crate::span::{Span, SpanEvent, SpanPhase, SpanStatus};

/// Attempts whose spans have begun and not ended, so that an attempt that ends without a fact of
/// its own (it suspended, or a crash cut it off) ends its span too.
#[derive(Debug, Default)]
pub(crate) struct OpenAttempts(HashMap<(ExecutionId, StepPath), (u32, Timestamp)>);

/// Attempts remembered at once; beyond it the memory starts anew.
const OPEN_MAX: usize = 100_000;

/// The span id of an execution: the same wherever it is derived.
pub(crate) fn execution_span(id: &ExecutionId) -> String {
    short_hash(&[id.as_str()])
}

/// The span id of a step's attempt.
pub(crate) fn attempt_span(id: &ExecutionId, path: &str, attempt: u32) -> String {
    short_hash(&[id.as_str(), path, &attempt.to_string()])
}

/// The spans that begin and end with these facts, in order.
pub(crate) fn spans_of(
    header: &Header,
    facts: &[Recorded],
    open: &mut OpenAttempts,
) -> Vec<SpanEvent> {
    let mut events = Vec::new();
    for recorded in facts {
        spans_of_fact(header, recorded, open, &mut events);
    }
    events
}

fn spans_of_fact(
    header: &Header,
    recorded: &Recorded,
    open: &mut OpenAttempts,
    events: &mut Vec<SpanEvent>,
) {
    let at = recorded.at;
    match &recorded.fact {
        Fact::WorkflowStarted(_) => events.push(started(root(header, at))),
        Fact::StepStarted { path, attempt, interrupted } => {
            let cut_off = if *interrupted { "interrupted by a crash" } else { "" };
            open.end(header, path, at, cut_off, events);
            open.begin(header, path, *attempt, at, events);
        }
        Fact::StepSlept { path, attempt, .. } => open.begin(header, path, *attempt, at, events),
        Fact::StepCompleted { path, attempt, since, .. } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(ended(span, at, SpanStatus::Ok));
        }
        Fact::StepFailed { path, attempt, since, error, .. } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(ended(span, at, SpanStatus::Error(error.to_string())));
        }
        Fact::StepCancelled { path, attempt, since } => {
            if open.forget(header, path) {
                let span = step(header, path, *attempt, *since);
                events.push(ended(span, at, SpanStatus::Error("cancelled".to_owned())));
            }
        }
        Fact::StepReleased { path, attempt, since } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(ended(span, at, SpanStatus::Error("the server stopped".to_owned())));
        }
        Fact::StepSuspended { path, .. } => open.end(header, path, at, "", events),
        Fact::WorkflowCompleted { since, .. } => {
            events.push(ended(root(header, *since), at, SpanStatus::Ok));
        }
        Fact::WorkflowFailed { since, error, .. } => {
            let status = SpanStatus::Error(error.to_string());
            events.push(ended(root(header, *since), at, status));
        }
        Fact::WorkflowCancelled { since, reason } => {
            let status = SpanStatus::Error(format!("cancelled: {reason}"));
            events.push(ended(root(header, *since), at, status));
        }
        Fact::StepSkipped { .. }
        | Fact::StepResumed { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::ChildSuspended { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed => {}
    }
}

impl OpenAttempts {
    fn begin(
        &mut self,
        header: &Header,
        path: &StepPath,
        attempt: u32,
        at: Timestamp,
        events: &mut Vec<SpanEvent>,
    ) {
        if self.0.len() >= OPEN_MAX {
            self.0.clear();
        }
        self.0.insert((header.id.clone(), Arc::clone(path)), (attempt, at));
        events.push(started(step(header, path, attempt, at)));
    }

    /// Ends the attempt that is open at a path, if one is.
    fn end(
        &mut self,
        header: &Header,
        path: &StepPath,
        at: Timestamp,
        error: &str,
        events: &mut Vec<SpanEvent>,
    ) {
        let Some((attempt, since)) = self.0.remove(&(header.id.clone(), Arc::clone(path))) else {
            return;
        };
        let status = match error {
            "" => SpanStatus::Unset,
            error => SpanStatus::Error(error.to_owned()),
        };
        events.push(ended(step(header, path, attempt, since), at, status));
    }

    fn forget(&mut self, header: &Header, path: &StepPath) -> bool {
        self.0.remove(&(header.id.clone(), Arc::clone(path))).is_some()
    }

    /// Forgets everything: nobody watches.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

fn root(header: &Header, start: Timestamp) -> Span {
    let mut attributes = attributes(header);
    attributes.push(("entity.name", header.workflow_id.to_string()));
    Span {
        trace_id: Arc::clone(&header.trace.id),
        span_id: execution_span(&header.id),
        parent_span_id: header.trace.parent_span.as_deref().map(str::to_owned),
        name: format!("workflow.{}", header.workflow_id),
        start,
        end: None,
        status: SpanStatus::Unset,
        attributes,
    }
}

fn step(header: &Header, path: &str, attempt: u32, start: Timestamp) -> Span {
    // `checks/ledger/post`: the container is two parts up; containers have one attempt.
    let mut outer = path.rsplitn(3, '/');
    let parent = match (outer.next(), outer.next(), outer.next()) {
        (_, Some(_), Some(container)) => attempt_span(&header.id, container, 1),
        _ => execution_span(&header.id),
    };
    let mut attributes = attributes(header);
    attributes.push(("workflow.step.id", step_id_of(path).to_owned()));
    attributes.push(("workflow.step.path", path.to_owned()));
    attributes.push(("workflow.step.attempt", attempt.to_string()));
    Span {
        trace_id: Arc::clone(&header.trace.id),
        span_id: attempt_span(&header.id, path, attempt),
        parent_span_id: Some(parent),
        name: format!("step.{}", step_id_of(path)),
        start,
        end: None,
        status: SpanStatus::Unset,
        attributes,
    }
}

fn attributes(header: &Header) -> Vec<(&'static str, String)> {
    let mut attributes = vec![
        ("entity.type", "workflow".to_owned()),
        ("entity.id", header.workflow_id.to_string()),
        ("workflow.execution.id", header.id.to_string()),
    ];
    if let Some(user) = &header.user_id {
        attributes.push(("user.id", user.to_string()));
    }
    if let Some(conversation) = &header.conversation_id {
        attributes.push(("conversation.id", conversation.to_string()));
    }
    attributes
}

fn started(span: Span) -> SpanEvent {
    SpanEvent { phase: SpanPhase::Started, span }
}

fn ended(span: Span, at: Timestamp, status: SpanStatus) -> SpanEvent {
    SpanEvent { phase: SpanPhase::Ended, span: Span { end: Some(at), status, ..span } }
}
