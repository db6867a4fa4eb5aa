//! Recorded facts as events of a stream.

mod progress;

use std::io::Write as _;

use greenroom_actors::domain::event::{EventKind, events_of};
use greenroom_actors::domain::fact::{Ended, Fact, HowEnded, Recorded, ResumedBy};
use greenroom_actors::domain::ids::{ExecutionId, step_id_of};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::Iso;
use crate::api::wire::execution::{PrincipalView, SuspensionView, Waits};
use crate::api::wire::failure::{kind_of, status_of};
use crate::api::wire::shape::{error_kind, execution_status, one_of};

pub use progress::{ProgressFrame, render_progress};

static NULL: Value = Value::Null;

/// The data of one event.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = WorkflowEvent)]
#[serde(rename_all = "camelCase")]
pub struct EventFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = kinds)]
    kind: &'static str,
    execution_id: &'a str,
    timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = execution_status, required = false)]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    output: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<&'a str>,
    /// What kind of failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = error_kind, required = false)]
    error_kind: Option<&'static str>,
    /// The status that a called server answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    will_retry: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deadline: Option<Iso>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    suspension: Option<SuspensionView<'a>>,
    /// Everything that it waits for, or what has waited longest of that; the first is
    /// `suspension`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    suspensions: Option<Vec<SuspensionView<'a>>>,
    /// How much more there is, if any: the state shows it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    suspensions_omitted: Option<usize>,
    /// Of a step that waits, or went on: what `options.suspensionId` of the resume names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    suspension_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resumed_by: Option<PrincipalView<'a>>,
    /// The deadline passed, and the definition answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    resumed_by_deadline: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    resume_data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cancelled_by: Option<PrincipalView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replayed_by: Option<PrincipalView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    start_at: Option<Iso>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    end_at: Option<Iso>,
}

/// Events rendered for the wire.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub bytes: Vec<u8>,
    pub events: usize,
}

/// Writes the events of facts as server-sent events, those numbered above `after`.
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
            // Writing to memory fails only where a value cannot be JSON, and these came from JSON.
            let written = write!(out, "id: {seq}\ndata: ")
                .and_then(|()| serde_json::to_writer(&mut *out, &frame).map_err(Into::into))
                .and_then(|()| out.write_all(b"\n\n"));
            debug_assert!(written.is_ok(), "event {seq} of {id} could not be written");
            rendered.events += 1;
        }
    }
    rendered
}

/// How many events the facts give above a number.
pub fn count_events(facts: &[Recorded], after: u64) -> usize {
    let count =
        |recorded: &Recorded| recorded.next_seq().saturating_sub(recorded.seq.max(after + 1));
    usize::try_from(facts.iter().map(count).sum::<u64>()).unwrap_or(usize::MAX)
}

/// Number of the last event that the facts give; `None` when they give none.
pub fn last_seq_of(facts: &[Recorded]) -> Option<u64> {
    facts.last().map(|recorded| recorded.next_seq().saturating_sub(1))
}

/// Whether nothing can follow these facts.
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
        | EventKind::WorkflowComplete
        | EventKind::WorkflowError
        | EventKind::WorkflowCancelled => workflow_frame(frame, recorded),
        EventKind::StepStart
        | EventKind::StepComplete
        | EventKind::StepError
        | EventKind::StepSkipped
        | EventKind::StepCancelled
        | EventKind::StepSuspended
        | EventKind::StepResumed => step_frame(frame, recorded),
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
        let view = SuspensionView::in_result;
        let waits = Waits::of(Some(&**suspension), others.as_deref(), view);
        EventFrame {
            suspension: Some(view(suspension)),
            suspensions: waits.suspensions,
            suspensions_omitted: waits.omitted,
            ..frame
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
    let at = |path: &'a str| (Some(step_id_of(path)), path.contains('/').then_some(path));
    let resumed_by = recorded.by.as_deref().map(PrincipalView::of);
    match &recorded.fact {
        Fact::StepStarted { path, .. }
        | Fact::StepSlept { path, .. }
        | Fact::StepSkipped { path }
        | Fact::StepReleased { path, .. }
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
        Fact::StepCompleted { path, output, .. } => {
            let (from, path) = at(path);
            EventFrame { from, path, output: Some(output), ..frame }
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
        Fact::StepSuspended { path, reason, payload, deadline, id } => {
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
