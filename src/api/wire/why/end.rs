//! End of an execution, and the steps from which it can be replayed.

use greenroom_actors::domain::state::Outcome;
use greenroom_actors::wait_report::{Ending, FailedStep, SkippedCompensation};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;
use crate::api::wire::failure::{AttemptErrorView, FailureView, kind_of, status_of};

/// End of an execution.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ExecutionEnd)]
#[serde(rename_all = "camelCase")]
pub struct EndView<'a> {
    pub at: Iso,
    /// Description for people.
    pub message: String,
    /// Failure, if it failed.
    pub error: Option<FailureView<'a>>,
    /// Number of attempts of the failed step.
    pub attempts: Option<u32>,
    /// Failed attempts, oldest first. If there are many, only the newest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<AttemptErrorView<'a>>,
    /// Reason of the cancellation.
    pub reason: Option<&'a str>,
    /// User who cancelled it, if known.
    pub cancelled_by: Option<PrincipalView<'a>>,
    /// Values of `stepId` for a replay. After a failure of a step the last one is the default: the
    /// failed step or what contains it, or the first step that was compensated. Empty for the reversal of an execution,
    /// whose steps it has undone.
    pub replay_from: Vec<&'a str>,
    /// Steps that were not compensated, or not wholly by the reversal of their child, because a person skipped it; the
    /// newest 50. A replay from one of them, or from one before, repeats it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub skipped_compensations: Vec<SkippedView<'a>>,
}

/// Compensation that a person skipped.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkippedCompensation)]
#[serde(rename_all = "camelCase")]
pub struct SkippedView<'a> {
    /// The step that was not compensated.
    pub path: &'a str,
    /// Time of the answer.
    pub at: Option<Iso>,
    /// User who answered, if known.
    pub by: Option<PrincipalView<'a>>,
}

impl<'a> SkippedView<'a> {
    fn of(skipped: &'a SkippedCompensation) -> Self {
        let SkippedCompensation { path, at, by } = skipped;
        Self { path, at: at.map(Iso), by: by.as_deref().map(PrincipalView::of) }
    }
}

impl<'a> EndView<'a> {
    /// Shows the end.
    pub fn of(ending: &'a Ending) -> Self {
        let Ending { end, failed, replayable, skipped, skipped_before } = ending;
        let plain = |message: String| Self {
            at: Iso(end.at),
            message: message + &skips_of(skipped, *skipped_before),
            replay_from: replayable.iter().map(|id| &**id).collect(),
            skipped_compensations: skipped.iter().map(SkippedView::of).collect(),
            ..Self::default()
        };
        match &end.outcome {
            Outcome::Completed { .. } => plain("completed".to_owned()),
            Outcome::Cancelled { reason } => Self {
                reason: Some(reason),
                cancelled_by: end.by.as_deref().map(PrincipalView::of),
                ..plain(format!("cancelled: {reason}"))
            },
            Outcome::Failed { error, step_id, path, class } => {
                let failed = failed.as_ref();
                let place = failed.map(|failed| &*failed.path).or(path.as_deref());
                Self {
                    error: Some(FailureView {
                        message: error,
                        step_id: step_id.as_deref(),
                        path: place,
                        kind: kind_of(*class),
                        status: status_of(*class),
                    }),
                    attempts: failed.map(|failed| failed.attempts),
                    errors: failed
                        .map_or_else(Vec::new, |failed| AttemptErrorView::all(&failed.errors)),
                    ..plain(description_of(error, failed))
                }
            }
        }
    }
}

fn description_of(error: &str, failed: Option<&FailedStep>) -> String {
    match failed {
        None => format!("failed: {error}"),
        Some(FailedStep { path, attempts: 0 | 1, .. }) => format!("failed at {path}: {error}"),
        Some(FailedStep { path, attempts, .. }) => {
            format!("failed at {path} after {attempts} attempts: {error}")
        }
    }
}

/// Returns what the description adds about compensations that were skipped: the newest with its step.
fn skips_of(skipped: &[SkippedCompensation], before: usize) -> String {
    let Some(newest) = skipped.last() else { return String::new() };
    let by = newest.by.as_ref().map_or_else(String::new, |by| format!(" by {}", by.id));
    let others = match skipped.len() - 1 + before {
        0 => String::new(),
        others => format!(", and of {others} more"),
    };
    format!("; the compensation of {} was skipped{by}{others}", newest.path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::failure::{AttemptError, ErrorClass};
    use greenroom_actors::domain::principal::Principal;
    use greenroom_actors::domain::state::End;
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{json, to_value};

    use super::*;

    fn shown(outcome: Outcome, failed: Option<FailedStep>) -> serde_json::Value {
        let end = End {
            at: Timestamp(1_700_000_000_123),
            outcome,
            by: Some(Arc::new(Principal::claimed("eve"))),
            compensates: false,
        };
        let replayable = vec!["a".into(), "b".into()];
        let (skipped, skipped_before) = (Vec::new(), 0);
        let ending = Ending { end, failed, replayable, skipped, skipped_before };
        let mut shown = to_value(EndView::of(&ending)).unwrap();
        assert_eq!(shown["replayFrom"], json!(["a", "b"]));
        assert_eq!(shown["at"], "2023-11-14T22:13:20.123Z");
        let members = shown.as_object_mut().unwrap();
        members.retain(|key, _| key != "replayFrom" && key != "at");
        shown
    }

    #[test]
    fn a_failure_is_shown_with_its_attempts() {
        let class = Some(ErrorClass::http(404));
        let message: Arc<str> = "HTTP 404".into();
        let outcome = Outcome::Failed {
            error: message.clone(),
            step_id: Some("b".into()),
            path: Some("x/b".into()),
            class,
        };
        let errors =
            vec![AttemptError { attempt: 2, at: Timestamp(1_700_000_000_000), message, class }];
        let failed = FailedStep { step_id: "b".into(), path: "x/b".into(), attempts: 2, errors };
        let expected = json!({
            "message": "failed at x/b after 2 attempts: HTTP 404",
            "error": { "message": "HTTP 404", "stepId": "b", "path": "x/b", "kind": "http",
                       "status": 404 },
            "attempts": 2,
            "errors": [{ "attempt": 2, "at": "2023-11-14T22:13:20.000Z", "message": "HTTP 404",
                         "kind": "http", "status": 404 }],
        });
        assert_eq!(shown(outcome, Some(failed)), expected);
        let whole = Outcome::Failed {
            error: "more than 5 events".into(),
            step_id: None,
            path: None,
            class: None,
        };
        let expected = json!({
            "message": "failed: more than 5 events",
            "error": { "message": "more than 5 events", "stepId": null },
        });
        assert_eq!(shown(whole, None), expected);
    }

    #[test]
    fn other_ends_have_a_message() {
        let completed = Outcome::Completed { result: Arc::new(json!(1)) };
        assert_eq!(shown(completed, None), json!({ "message": "completed" }));
        let cancelled = Outcome::Cancelled { reason: "late".into() };
        let expected = json!({ "message": "cancelled: late", "reason": "late",
                               "cancelledBy": { "id": "eve", "verified": false } });
        assert_eq!(shown(cancelled, None), expected);
    }

    #[test]
    fn skipped_compensations_are_named_with_who_skipped_them() {
        let skipped = |path: &str, by: Option<&str>| SkippedCompensation {
            path: path.into(),
            at: by.map(|_| Timestamp(1_700_000_000_000)),
            by: by.map(|id| Arc::new(Principal::claimed(id))),
        };
        let outcome = Outcome::Cancelled { reason: "late".into() };
        let end = End { at: Timestamp(1_700_000_000_123), outcome, by: None, compensates: false };
        let plain = Ending {
            end,
            failed: None,
            replayable: Vec::new(),
            skipped: vec![skipped("hold", Some("eve"))],
            skipped_before: 0,
        };
        let shown = to_value(EndView::of(&plain)).unwrap();
        assert_eq!(
            shown["message"],
            "cancelled: late; the compensation of hold was skipped by eve"
        );
        let by = json!({ "id": "eve", "verified": false });
        let expected = json!([{ "path": "hold", "at": "2023-11-14T22:13:20.000Z", "by": by }]);
        assert_eq!(shown["skippedCompensations"], expected);

        let both = vec![skipped("hold", Some("eve")), skipped("pay", None)];
        let many = Ending { skipped: both, skipped_before: 3, ..plain };
        let shown = to_value(EndView::of(&many)).unwrap();
        let expected = "cancelled: late; the compensation of pay was skipped, and of 4 more";
        assert_eq!(shown["message"], expected);
        assert_eq!(shown["skippedCompensations"][1], json!({ "path": "pay" }));
    }
}
