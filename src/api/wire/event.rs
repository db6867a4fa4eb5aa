//! Facts as events of a stream.

mod page;
mod progress;

use std::io::Write as _;

use greenroom_actors::domain::event::{EventKind, events_of};
use greenroom_actors::domain::fact::{Ended, Fact, HowEnded, Recorded, ResumedBy};
use greenroom_actors::domain::ids::{ExecutionId, compensated_path, step_id_of};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;
use crate::api::wire::failure::{kind_of, status_of};
use crate::api::wire::shape::{error_kind, execution_status, one_of};
use crate::api::wire::suspension::{SuspensionView, SuspensionsView};

pub use page::EventsView;
pub use progress::{ProgressFrame, render_progress};

static NULL: Value = Value::Null;

/// Data of an event.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = WorkflowEvent)]
#[serde(rename_all = "camelCase")]
pub struct EventFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = kinds)]
    kind: &'static str,
    execution_id: &'a str,
    timestamp: &'a str,
    from: Option<&'a str>,
    path: Option<&'a str>,
    #[schema(schema_with = execution_status, required = false)]
    status: Option<&'static str>,
    output: Option<&'a Value>,
    result: Option<&'a Value>,
    error: Option<&'a str>,
    /// Kind of failure.
    #[schema(schema_with = error_kind, required = false)]
    error_kind: Option<&'static str>,
    /// HTTP status of the called server.
    error_status: Option<u16>,
    attempt: Option<u32>,
    will_retry: Option<bool>,
    /// True for a compensation that a person skipped, where `step-resumed` before it says who, and for a reversal in
    /// which one was skipped. Absent in records of older versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    skipped: bool,
    reason: Option<&'a str>,
    payload: Option<&'a Value>,
    deadline: Option<Iso>,
    #[serde(flatten)]
    suspensions: SuspensionsView<'a>,
    /// Id of the suspension of a step, for `options.suspensionId` of a resume.
    suspension_id: Option<&'a str>,
    resumed_by: Option<PrincipalView<'a>>,
    /// True if the deadline passed and the value of the definition resumed the step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    resumed_by_deadline: bool,
    resume_data: Option<&'a Value>,
    cancelled_by: Option<PrincipalView<'a>>,
    replayed_by: Option<PrincipalView<'a>>,
    start_at: Option<Iso>,
    end_at: Option<Iso>,
}

/// Events rendered for the wire.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub bytes: Vec<u8>,
    pub events: usize,
}

/// Renders the events with numbers above `after` as server-sent events.
pub fn render_sse(id: &ExecutionId, facts: &[Recorded], after: u64) -> Rendered {
    let mut rendered = Rendered::default();
    for recorded in facts.iter().filter(|recorded| recorded.next_seq() > after + 1) {
        let timestamp = recorded.at.to_iso();
        for (seq, kind) in (recorded.seq..).zip(events_of(&recorded.fact)) {
            if seq <= after {
                continue;
            }
            let frame = frame_of(*kind, id, &timestamp, recorded);
            let out = &mut rendered.bytes;
            // Cannot fail: writes to memory, and the values came from JSON.
            let written = write!(out, "id: {seq}\ndata: ")
                .and_then(|()| serde_json::to_writer(&mut *out, &frame).map_err(Into::into))
                .and_then(|()| out.write_all(b"\n\n"));
            debug_assert!(written.is_ok(), "event {seq} of {id} could not be written");
            rendered.events += 1;
        }
    }
    rendered
}

/// Returns the events of a fact with numbers above `after`, as JSON values.
pub fn numbered(
    id: &ExecutionId,
    recorded: &Recorded,
    after: u64,
) -> impl Iterator<Item = (u64, Value)> {
    let timestamp = recorded.at.to_iso();
    let events = (recorded.seq..).zip(events_of(&recorded.fact));
    events.filter(move |(sequence, _)| *sequence > after).map(move |(sequence, kind)| {
        // cannot fail: the values came from JSON
        let value = serde_json::to_value(frame_of(*kind, id, &timestamp, recorded));
        (sequence, value.unwrap_or_default())
    })
}

/// Counts the events with numbers above `after`.
pub fn count_events(facts: &[Recorded], after: u64) -> usize {
    let count =
        |recorded: &Recorded| recorded.next_seq().saturating_sub(recorded.seq.max(after + 1));
    usize::try_from(facts.iter().map(count).sum::<u64>()).unwrap_or(usize::MAX)
}

/// Returns the number of the last event; `None` without facts.
pub fn last_seq_of(facts: &[Recorded]) -> Option<u64> {
    facts.last().map(|recorded| recorded.next_seq().saturating_sub(1))
}

/// Returns true if the last fact ends the execution.
pub fn is_end(facts: &[Recorded]) -> bool {
    facts.last().is_some_and(|recorded| recorded.fact.end().is_some())
}

fn kinds() -> Object {
    let all = [
        EventKind::WorkflowStart,
        EventKind::StepStart,
        EventKind::StepComplete,
        EventKind::StepError,
        EventKind::StepSkipped,
        EventKind::StepCancelled,
        EventKind::StepSuspended,
        EventKind::StepResumed,
        EventKind::WorkflowSuspended,
        EventKind::WorkflowResumed,
        EventKind::WorkflowCompensating,
        EventKind::CompensationStart,
        EventKind::CompensationComplete,
        EventKind::CompensationError,
        EventKind::CompensationCancelled,
        EventKind::WorkflowComplete,
        EventKind::WorkflowError,
        EventKind::WorkflowCancelled,
        EventKind::WorkflowResult,
    ];
    one_of(all.map(name_of))
}

fn name_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::WorkflowStart => "workflow-start",
        EventKind::StepStart => "step-start",
        EventKind::StepComplete => "step-complete",
        EventKind::StepError => "step-error",
        EventKind::StepSkipped => "step-skipped",
        EventKind::StepCancelled => "step-cancelled",
        EventKind::StepSuspended => "step-suspended",
        EventKind::StepResumed => "step-resumed",
        EventKind::WorkflowSuspended => "workflow-suspended",
        EventKind::WorkflowResumed => "workflow-resumed",
        EventKind::WorkflowCompensating => "workflow-compensating",
        EventKind::CompensationStart => "compensation-start",
        EventKind::CompensationComplete => "compensation-complete",
        EventKind::CompensationError => "compensation-error",
        EventKind::CompensationCancelled => "compensation-cancelled",
        EventKind::WorkflowComplete => "workflow-complete",
        EventKind::WorkflowError => "workflow-error",
        EventKind::WorkflowCancelled => "workflow-cancelled",
        EventKind::WorkflowResult => "workflow-result",
    }
}

fn frame_of<'a>(
    kind: EventKind,
    id: &'a ExecutionId,
    timestamp: &'a str,
    recorded: &'a Recorded,
) -> EventFrame<'a> {
    let frame = EventFrame {
        kind: name_of(kind),
        execution_id: id.as_str(),
        timestamp,
        ..Default::default()
    };
    match kind {
        EventKind::WorkflowResult => result_frame(frame, recorded),
        EventKind::WorkflowStart
        | EventKind::WorkflowSuspended
        | EventKind::WorkflowResumed
        | EventKind::WorkflowCompensating
        | EventKind::WorkflowComplete
        | EventKind::WorkflowError
        | EventKind::WorkflowCancelled => workflow_frame(frame, recorded),
        EventKind::StepStart
        | EventKind::StepComplete
        | EventKind::StepError
        | EventKind::StepSkipped
        | EventKind::StepCancelled
        | EventKind::StepSuspended
        | EventKind::StepResumed
        | EventKind::CompensationStart
        | EventKind::CompensationComplete
        | EventKind::CompensationError
        | EventKind::CompensationCancelled => step_frame(frame, recorded),
    }
}

fn result_frame<'a>(frame: EventFrame<'a>, recorded: &'a Recorded) -> EventFrame<'a> {
    let Some(Ended { since, how }) = recorded.fact.end() else { return frame };
    let (result, error) = match how {
        HowEnded::Completed { result } => (&**result, None),
        HowEnded::Failed { error, .. } => (&NULL, Some(&**error)),
        HowEnded::Cancelled { .. } => (&NULL, None),
    };
    EventFrame {
        status: Some(how.status().as_str()),
        result: Some(result),
        error,
        start_at: Some(Iso(since)),
        end_at: Some(Iso(recorded.at)),
        ..frame
    }
}

fn workflow_frame<'a>(frame: EventFrame<'a>, recorded: &'a Recorded) -> EventFrame<'a> {
    let by = recorded.by.as_deref().map(PrincipalView::of);
    if let Some(Ended { how, .. }) = recorded.fact.end() {
        return match how {
            HowEnded::Completed { result } => EventFrame { result: Some(result), ..frame },
            HowEnded::Failed { error, .. } => EventFrame { error: Some(error), ..frame },
            HowEnded::Cancelled { reason } => {
                EventFrame { reason: Some(reason), cancelled_by: by, ..frame }
            }
        };
    }
    if let Fact::WorkflowSuspended { suspension, others, .. } = &recorded.fact {
        let (others, view_of) = (others.as_deref(), SuspensionView::in_result);
        EventFrame { suspensions: SuspensionsView::of(Some(suspension), others, view_of), ..frame }
    } else if let Fact::CompensationStarted { outcome } = &recorded.fact {
        let why = outcome.why().map(|why| &**why);
        match outcome.cancel_reason() {
            Some(_) => EventFrame { reason: why, cancelled_by: by, ..frame },
            None => EventFrame { error: why, ..frame },
        }
    } else if let Fact::WorkflowStarted(_) = &recorded.fact {
        EventFrame { replayed_by: by, ..frame }
    } else if matches!(recorded.fact, Fact::WorkflowResumed) {
        EventFrame { resumed_by: by, ..frame }
    } else {
        frame
    }
}

fn step_frame<'a>(frame: EventFrame<'a>, recorded: &'a Recorded) -> EventFrame<'a> {
    let shows = |path: &str| path.contains('/') || compensated_path(path).is_some();
    let at = |path: &'a str| (Some(step_id_of(path)), shows(path).then_some(path));
    let resumed_by = recorded.by.as_deref().map(PrincipalView::of);
    match &recorded.fact {
        Fact::StepStarted { path, .. }
        | Fact::StepSlept { path, .. }
        | Fact::StepSkipped { path }
        | Fact::StepReleased { path, .. }
        | Fact::StepNoted { path, .. }
        | Fact::StepCancelled { path, .. } => {
            let (from, path) = at(path);
            EventFrame { from, path, ..frame }
        }
        Fact::StepResumed { path, data, by, id } => {
            let (from, path) = at(path);
            let resumed_by_deadline = *by == ResumedBy::Deadline;
            let resume_data = Some(&**data);
            let frame = EventFrame { suspension_id: id.as_deref(), resume_data, ..frame };
            EventFrame { from, path, resumed_by, resumed_by_deadline, ..frame }
        }
        Fact::ChildResumed { path, id, .. } => {
            let (from, path) = at(path);
            EventFrame { from, path, suspension_id: id.as_deref(), resumed_by, ..frame }
        }
        Fact::StepCompleted { path, output, skipped, .. } => {
            let (from, path) = at(path);
            EventFrame { from, path, output: Some(output), skipped: *skipped, ..frame }
        }
        Fact::StepFailed { path, attempt, error, class, next, .. } => {
            let (from, path) = at(path);
            EventFrame {
                from,
                path,
                error: Some(error),
                error_kind: kind_of(*class),
                error_status: status_of(*class),
                attempt: Some(*attempt),
                will_retry: Some(next.will_retry()),
                ..frame
            }
        }
        Fact::StepSuspended { path, reason, payload, deadline, id, .. } => {
            let frame = EventFrame { deadline: deadline.map(Iso), ..frame };
            asking(frame, at(path), (id.as_deref(), reason, payload.as_deref()))
        }
        Fact::ChildSuspended { path, reason, payload, id, deadline, .. } => {
            let frame = EventFrame { deadline: deadline.map(Iso), ..frame };
            asking(frame, at(path), (id.as_deref(), reason, payload.as_deref()))
        }
        Fact::WorkflowStarted(_)
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed
        | Fact::CompensationStarted { .. }
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => frame,
    }
}

fn asking<'a>(
    frame: EventFrame<'a>,
    (from, path): (Option<&'a str>, Option<&'a str>),
    (suspension_id, reason, payload): (Option<&'a str>, &'a str, Option<&'a Value>),
) -> EventFrame<'a> {
    EventFrame { from, path, suspension_id, reason: Some(reason), payload, ..frame }
}

#[cfg(test)]
mod tests;
