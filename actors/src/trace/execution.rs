//! Spans from facts: pure, but for the memory of what has begun.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::fact::{Fact, Recorded};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::time::Timestamp;
use crate::domain::trace::{SpanId, Trace};
use crate::ports::store::Header;
use crate::span::{Owner, Span, SpanEvent, SpanStatus, SpanWork};

/// Attempts whose spans have begun and not ended, so that an attempt that ends without a fact of
/// its own (it suspended, or a crash cut it off) ends its span too.
#[derive(Debug, Default)]
pub(crate) struct OpenAttempts(HashMap<(ExecutionId, StepPath), (u32, Timestamp)>);

/// Attempts remembered at once; beyond it the memory starts anew.
const OPEN_MAX: usize = 100_000;

/// The span of an execution.
pub(crate) fn execution_span(trace: &Trace, id: &ExecutionId) -> SpanId {
    trace.span(&[id.as_str()])
}

/// The span of a step's attempt.
pub(crate) fn attempt_span(trace: &Trace, id: &ExecutionId, path: &str, attempt: u32) -> SpanId {
    trace.span(&[id.as_str(), path, &attempt.to_string()])
}

/// The spans that begin and end with these facts, in order.
pub(crate) fn spans_of(
    header: &Arc<Header>,
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
    header: &Arc<Header>,
    recorded: &Recorded,
    open: &mut OpenAttempts,
    events: &mut Vec<SpanEvent>,
) {
    let at = recorded.at;
    match &recorded.fact {
        Fact::WorkflowStarted(_) => events.push(root(header, at).started()),
        Fact::StepStarted { path, attempt, interrupted } => {
            let cut_off = if *interrupted { "interrupted by a crash" } else { "" };
            open.end(header, path, at, cut_off, events);
            open.begin(header, path, *attempt, at, events);
        }
        Fact::StepSlept { path, attempt, .. } => open.begin(header, path, *attempt, at, events),
        Fact::StepCompleted { path, attempt, since, .. } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(span.ended(at, SpanStatus::Ok));
        }
        Fact::StepFailed { path, attempt, since, error, .. } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(span.ended(at, SpanStatus::Error(Arc::clone(error))));
        }
        Fact::StepCancelled { path, attempt, since } => {
            if open.forget(header, path) {
                let span = step(header, path, *attempt, *since);
                events.push(span.ended(at, SpanStatus::Error(Arc::from("cancelled"))));
            }
        }
        Fact::StepReleased { path, attempt, since } => {
            open.forget(header, path);
            let span = step(header, path, *attempt, *since);
            events.push(span.ended(at, SpanStatus::Error(Arc::from("the server stopped"))));
        }
        Fact::StepSuspended { path, .. } => open.end(header, path, at, "", events),
        Fact::WorkflowCompleted { since, .. } => {
            events.push(root(header, *since).ended(at, SpanStatus::Ok));
        }
        Fact::WorkflowFailed { since, error, .. } => {
            let status = SpanStatus::Error(Arc::clone(error));
            events.push(root(header, *since).ended(at, status));
        }
        Fact::WorkflowCancelled { since, reason } => {
            let status = SpanStatus::Error(Arc::from(format!("cancelled: {reason}")));
            events.push(root(header, *since).ended(at, status));
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
        header: &Arc<Header>,
        path: &StepPath,
        attempt: u32,
        at: Timestamp,
        events: &mut Vec<SpanEvent>,
    ) {
        if self.0.len() >= OPEN_MAX {
            self.0.clear();
        }
        self.0.insert((header.id.clone(), Arc::clone(path)), (attempt, at));
        events.push(step(header, path, attempt, at).started());
    }

    /// Ends the attempt that is open at a path, if one is.
    fn end(
        &mut self,
        header: &Arc<Header>,
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
            error => SpanStatus::Error(Arc::from(error)),
        };
        events.push(step(header, path, attempt, since).ended(at, status));
    }

    fn forget(&mut self, header: &Arc<Header>, path: &StepPath) -> bool {
        self.0.remove(&(header.id.clone(), Arc::clone(path))).is_some()
    }

    /// Forgets everything: nobody watches.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

fn root(header: &Arc<Header>, start: Timestamp) -> Span {
    Span {
        id: execution_span(&header.trace, &header.id),
        parent: header.trace.parent_span,
        owner: Owner::Execution(Arc::clone(header)),
        start,
        end: None,
        status: SpanStatus::Unset,
        work: SpanWork::Workflow { input: None, output: None },
    }
}

fn step(header: &Arc<Header>, path: &StepPath, attempt: u32, start: Timestamp) -> Span {
    let trace = &header.trace;
    // `checks/ledger/post`: the container is two parts up; containers have one attempt.
    let mut outer = path.rsplitn(3, '/');
    let parent = match (outer.next(), outer.next(), outer.next()) {
        (_, Some(_), Some(container)) => attempt_span(trace, &header.id, container, 1),
        _ => execution_span(trace, &header.id),
    };
    Span {
        id: attempt_span(trace, &header.id, path, attempt),
        parent: Some(parent),
        owner: Owner::Execution(Arc::clone(header)),
        start,
        end: None,
        status: SpanStatus::Unset,
        work: SpanWork::Step { path: Arc::clone(path), attempt, output: None, usage: None },
    }
}
