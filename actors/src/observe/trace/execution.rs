//! Derives spans from the facts of executions.
//!
//! An execution is a span, with a child span for each attempt of a step and each suspension. A
//! condition that did not hold has none, nor has the delay before a retry: it is the gap between
//! two attempts. A sleep is its step's attempt. An attempt ends when its step is suspended, but
//! continues while its step waits for a child.

mod memory;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use crate::domain::fact::{Fact, Recorded, ResumedBy, Start};
use crate::domain::ids::{ExecutionId, StepPath, compensated_path, container_of};
use crate::domain::plan::Plan;
use crate::domain::principal::Principal;
use crate::domain::state::{Phase, State};
use crate::domain::time::Timestamp;
use crate::domain::trace::{SpanId, Trace};
use crate::observe::span::{CANCELLED, INTERRUPTED, Owner, Span, SpanEvent, SpanStatus, SpanWork};
use crate::ports::store::Header;

pub(crate) use memory::SpanMemory;

/// Returns the span id of an execution.
pub(crate) fn execution_span(trace: &Trace, id: &ExecutionId) -> SpanId {
    trace.span(&[id.as_str()])
}

/// Returns the span id of a step's attempt.
pub(crate) fn attempt_span(trace: &Trace, id: &ExecutionId, path: &str, attempt: u32) -> SpanId {
    trace.span(&[id.as_str(), path, &attempt.to_string()])
}

/// Returns the span id of a suspension that began with this event, of a step or the whole
/// execution.
fn wait_span(trace: &Trace, id: &ExecutionId, path: &str, seq: u64) -> SpanId {
    trace.span(&[id.as_str(), path, "wait", &seq.to_string()])
}

/// Returns the spans of an execution from all its facts.
pub(crate) fn spans_of_record(header: &Arc<Header>, facts: &[Recorded]) -> Vec<SpanEvent> {
    let mut open = OpenSpans::of(header);
    let mut events = Vec::new();
    facts.iter().for_each(|recorded| open.apply(recorded, &mut events));
    events
}

/// Returns the spans that are open in this state.
pub(crate) fn open_spans(header: &Arc<Header>, plan: &Plan, state: &State) -> Vec<Span> {
    let mut open = OpenSpans::of(header);
    if state.end.is_some() {
        return open.spans;
    }
    open.spans.push(open.root(begun(&state.start), state.created_at));
    state.each_node(plan, &mut |_, path, _, node| {
        let path: StepPath = Arc::from(path);
        let attempt_since = match &node.phase {
            Phase::Running | Phase::Sleeping { retry: false, .. } => Some(node.attempt_started_at),
            Phase::Waiting(_) if node.child.is_some() => Some(node.attempt_started_at),
            Phase::Waiting(wait) => {
                let what = Waiting { id: Some(&wait.id), reason: &wait.reason, by: None };
                open.spans.push(open.wait(Some(&path), what, (wait.seq, wait.since)));
                None
            }
            Phase::Ready
            | Phase::Sleeping { retry: true, .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => None,
        };
        if let Some(since) = attempt_since {
            open.spans.push(open.attempt(&path, node.attempt, since));
        }
    });
    if let Some(hold) = &state.hold {
        let what = Waiting { id: Some(&hold.id), reason: &hold.reason, by: hold.by.as_ref() };
        open.spans.push(open.wait(None, what, (hold.seq, hold.since)));
    }
    open.spans
}

/// Open spans of one execution, outer ones first.
struct OpenSpans<'a> {
    header: &'a Arc<Header>,
    spans: Vec<Span>,
}

/// Key of an open span.
#[derive(Clone, Copy)]
enum Of<'a> {
    Workflow,
    Attempt(&'a StepPath),
    /// Without a path: of the whole execution.
    Wait(Option<&'a StepPath>),
}

/// Properties of a suspension that are known when it begins.
struct Waiting<'a> {
    id: Option<&'a Arc<str>>,
    reason: &'a Arc<str>,
    by: Option<&'a Arc<Principal>>,
}

/// Returns the work of an execution that starts.
fn begun(start: &Start) -> SpanWork {
    SpanWork::Workflow {
        input: Some(Arc::clone(&start.input)),
        output: None,
        replayed_by: start.replayed.as_ref().and_then(|replayed| replayed.by.clone()),
        cancelled_by: None,
    }
}

impl Of<'_> {
    fn is_of(self, span: &Span) -> bool {
        match (self, &span.work) {
            (Self::Workflow, SpanWork::Workflow { .. }) => true,
            (Self::Attempt(path), SpanWork::Step { path: known, .. }) => path == known,
            (Self::Wait(path), SpanWork::Wait { path: known, .. }) => path == known.as_ref(),
            _ => false,
        }
    }
}

impl<'a> OpenSpans<'a> {
    fn of(header: &'a Arc<Header>) -> Self {
        Self { header, spans: Vec::new() }
    }

    /// Applies a fact; adds the spans that start and end with it.
    fn apply(&mut self, recorded: &Recorded, events: &mut Vec<SpanEvent>) {
        let at = recorded.at;
        match &recorded.fact {
            Fact::WorkflowStarted(start) => {
                self.begin(self.root(begun(start), at), events);
            }
            Fact::StepStarted { path, attempt, interrupted, .. } => {
                let status = if *interrupted { failed(INTERRUPTED) } else { SpanStatus::Unset };
                self.end(Of::Attempt(path), at, status, events);
                self.begin(self.attempt(path, *attempt, at), events);
            }
            Fact::StepSlept { path, attempt, .. } => {
                self.begin(self.attempt(path, *attempt, at), events);
            }
            Fact::StepSuspended { path, reason, id, mcp, .. } => {
                if let Some(mut span) = self.take(Of::Attempt(path)) {
                    if let SpanWork::Step { mcp: made, .. } = &mut span.work {
                        made.clone_from(mcp);
                    }
                    events.push(span.ended(at, SpanStatus::Unset));
                }
                let what = Waiting { id: id.as_ref(), reason, by: None };
                self.begin(self.wait(Some(path), what, (recorded.seq, at)), events);
            }
            Fact::StepResumed { path, .. } => {
                self.end_wait(Some(path), recorded, events);
            }
            Fact::StepCompleted { .. }
            | Fact::StepFailed { .. }
            | Fact::StepReleased { .. }
            | Fact::StepCancelled { .. } => self.apply_end_of_step(recorded, events),
            Fact::HoldPlaced { reason, id } => {
                let what = Waiting { id: id.as_ref(), reason, by: recorded.by.as_ref() };
                self.begin(self.wait(None, what, (recorded.seq, at)), events);
            }
            Fact::HoldLifted { .. } => self.end_wait(None, recorded, events),
            Fact::WorkflowCompleted { since, result } => {
                let output = Some(Arc::clone(result));
                self.finish(*since, recorded, SpanStatus::Ok, output, events);
            }
            Fact::WorkflowFailed { since, error, .. } => {
                let status = SpanStatus::Error(Arc::clone(error));
                self.finish(*since, recorded, status, None, events);
            }
            Fact::WorkflowCancelled { since, reason, .. } => {
                let status = failed(&format!("{CANCELLED}: {reason}"));
                self.finish(*since, recorded, status, None, events);
            }
            Fact::StepNoted { .. }
            | Fact::StepSkipped { .. }
            | Fact::TimerFired { .. }
            | Fact::ChildStarted { .. }
            | Fact::ChildSuspended { .. }
            | Fact::ChildResumed { .. }
            | Fact::WorkflowSuspended { .. }
            | Fact::WorkflowResumed
            | Fact::CompensationStarted { .. } => {}
        }
    }

    fn apply_end_of_step(&mut self, recorded: &Recorded, events: &mut Vec<SpanEvent>) {
        let at = recorded.at;
        if let Fact::StepCompleted { path, attempt, since, output, usage, mcp, .. } = &recorded.fact
        {
            let work = SpanWork::Step {
                path: Arc::clone(path),
                attempt: *attempt,
                output: Some(Arc::clone(output)),
                usage: usage.clone(),
                mcp: mcp.clone(),
            };
            let is_compensation = compensated_path(path).is_some();
            if is_compensation && !self.has_attempt(path) {
                // Skipped by a person: its attempt has ended, and failed.
                return;
            }
            let span = Span { work, ..self.take_attempt(path, *attempt, *since) };
            events.push(span.ended(at, SpanStatus::Ok));
        } else if let Fact::StepFailed { path, attempt, since, error, usage, mcp, .. } =
            &recorded.fact
        {
            let status = SpanStatus::Error(Arc::clone(error));
            // a suspension whose deadline passed
            self.end(Of::Wait(Some(path)), at, status.clone(), events);
            let (path, attempt, output) = (Arc::clone(path), *attempt, None);
            let known = self.take_attempt(&path, attempt, *since);
            let (usage, mcp) = (usage.clone(), mcp.clone());
            let work = SpanWork::Step { path, attempt, output, usage, mcp };
            events.push(Span { work, ..known }.ended(at, status));
        } else if let Fact::StepReleased { path, attempt, since } = &recorded.fact {
            let span = self.take_attempt(path, *attempt, *since);
            events.push(span.ended(at, failed(INTERRUPTED)));
        } else if let Fact::StepCancelled { path, .. } = &recorded.fact {
            // no-ops between two attempts
            self.end(Of::Wait(Some(path)), at, failed(CANCELLED), events);
            self.end(Of::Attempt(path), at, failed(CANCELLED), events);
        }
    }

    fn begin(&mut self, span: Span, events: &mut Vec<SpanEvent>) {
        events.push(span.clone().started());
        self.spans.push(span);
    }

    fn end(&mut self, of: Of<'_>, at: Timestamp, status: SpanStatus, events: &mut Vec<SpanEvent>) {
        if let Some(span) = self.take(of) {
            events.push(span.ended(at, status));
        }
    }

    /// Ends a suspension that a caller or its deadline resumed.
    fn end_wait(
        &mut self,
        path: Option<&StepPath>,
        recorded: &Recorded,
        events: &mut Vec<SpanEvent>,
    ) {
        let Some(mut span) = self.take(Of::Wait(path)) else { return };
        if let SpanWork::Wait { resumed_by, by_deadline, .. } = &mut span.work {
            resumed_by.clone_from(&recorded.by);
            *by_deadline =
                matches!(recorded.fact, Fact::StepResumed { by: ResumedBy::Deadline, .. });
        }
        events.push(span.ended(recorded.at, SpanStatus::Unset));
    }

    /// Ends the execution and all spans that are still open.
    fn finish(
        &mut self,
        since: Timestamp,
        Recorded { at, by, .. }: &Recorded,
        status: SpanStatus,
        output: Option<Arc<serde_json::Value>>,
        events: &mut Vec<SpanEvent>,
    ) {
        let known = self.take(Of::Workflow);
        let left = if status == SpanStatus::Ok { SpanStatus::Unset } else { failed(CANCELLED) };
        while let Some(span) = self.spans.pop() {
            events.push(span.ended(*at, left.clone()));
        }
        let (input, replayed_by) = match known {
            Some(Span { work: SpanWork::Workflow { input, replayed_by, .. }, .. }) => {
                (input, replayed_by)
            }
            Some(_) | None => (None, None),
        };
        let cancelled_by = by.clone();
        let work = SpanWork::Workflow { input, output, replayed_by, cancelled_by };
        events.push(self.root(work, since).ended(*at, status));
    }

    fn take(&mut self, of: Of<'_>) -> Option<Span> {
        let place = self.spans.iter().rposition(|span| of.is_of(span))?;
        Some(self.spans.remove(place))
    }

    fn has_attempt(&self, path: &StepPath) -> bool {
        self.spans.iter().any(|span| Of::Attempt(path).is_of(span))
    }

    /// Takes the open attempt; if it is unknown, rebuilds it from the fact of its end.
    fn take_attempt(&mut self, path: &StepPath, attempt: u32, since: Timestamp) -> Span {
        let known = self.take(Of::Attempt(path)).filter(
            |span| matches!(span.work, SpanWork::Step { attempt: known, .. } if known == attempt),
        );
        known.unwrap_or_else(|| self.attempt(path, attempt, since))
    }

    fn root(&self, work: SpanWork, start: Timestamp) -> Span {
        let Header { id, trace, .. } = &**self.header;
        self.span(execution_span(trace, id), trace.parent_span, start, work)
    }

    fn attempt(&self, path: &StepPath, attempt: u32, start: Timestamp) -> Span {
        let id = attempt_span(&self.header.trace, &self.header.id, path, attempt);
        let parent = self.parent_of(path);
        let path = Arc::clone(path);
        let work = SpanWork::Step { path, attempt, output: None, usage: None, mcp: None };
        self.span(id, Some(parent), start, work)
    }

    fn wait(
        &self,
        path: Option<&StepPath>,
        Waiting { id: suspension, reason, by }: Waiting<'_>,
        (seq, start): (u64, Timestamp),
    ) -> Span {
        let Header { id, trace, .. } = &**self.header;
        let step = path.map_or("", |path| path);
        let parent = self.parent_of(step);
        let span_id = wait_span(trace, id, step, seq);
        let work = SpanWork::Wait {
            path: path.map(Arc::clone),
            reason: Arc::clone(reason),
            id: suspension.cloned(),
            suspended_by: by.cloned(),
            resumed_by: None,
            by_deadline: false,
        };
        self.span(span_id, Some(parent), start, work)
    }

    fn span(&self, id: SpanId, parent: Option<SpanId>, start: Timestamp, work: SpanWork) -> Span {
        let owner = Owner::Execution(Arc::clone(self.header));
        Span { id, parent, owner, start, end: None, status: SpanStatus::Unset, work }
    }

    /// Returns the parent of a step's attempts and suspensions. It is open while they are, and
    /// usually known. That of a compensation is the execution, since containers have ended by then.
    fn parent_of(&self, path: &str) -> SpanId {
        let Header { id, trace, .. } = &**self.header;
        let container = container_of(path).filter(|_| compensated_path(path).is_none());
        let known = self.spans.iter().find(|span| match (&span.work, container) {
            (SpanWork::Step { path, .. }, Some(container)) => **path == *container,
            (SpanWork::Workflow { .. }, None) => true,
            _ => false,
        });
        match (known, container) {
            (Some(span), _) => span.id,
            // containers have one attempt
            (None, Some(container)) => attempt_span(trace, id, container, 1),
            (None, None) => execution_span(trace, id),
        }
    }
}

fn failed(message: &str) -> SpanStatus {
    SpanStatus::Error(Arc::from(message))
}
