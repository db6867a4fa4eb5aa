//! Outcomes of executions on the wire.

use greenroom_actors::domain::status::Status;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::runtime::{Durations, Outcomes, OutcomesRequest, Part, Tally};
use serde::Serialize;
use utoipa::ToSchema;

/// Executions that ended within a period, by outcome, time and workflow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionOutcomes)]
#[serde(rename_all = "camelCase")]
pub struct OutcomesView<'a> {
    pub from: String,
    pub to: String,
    /// Length of a part of the period; the last one may be shorter.
    pub part_ms: u64,
    /// True if all executions of the period were counted.
    pub is_complete: bool,
    /// Times from which on all were counted: `from`, or later if more ended than are counted.
    pub counted_from: CountedFromView,
    pub total: TallyView<'a>,
    /// Sorted by id; workflows without outcomes are omitted.
    pub workflows: Vec<WorkflowOutcomesView<'a>>,
}

/// Times from which on all executions with an outcome were counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CountedFrom)]
pub struct CountedFromView {
    pub completed: String,
    pub error: String,
    pub cancelled: String,
}

/// Outcomes of one workflow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowOutcomes)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowOutcomesView<'a> {
    pub workflow_id: &'a str,
    #[serde(flatten)]
    pub tally: TallyView<'a>,
}

/// Numbers of executions by outcome.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutcomeTally)]
#[serde(rename_all = "camelCase")]
pub struct TallyView<'a> {
    pub completed: u64,
    pub error: u64,
    pub cancelled: u64,
    pub duration_ms: DurationsView,
    /// Failures by the step that failed the execution, most frequent first. Not every failure is of
    /// a step.
    pub failed_steps: Vec<FailedStepView<'a>>,
    /// The parts of the period, oldest first.
    pub parts: Vec<PartView>,
}

/// Outcomes of one part of the period.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutcomePart)]
#[serde(rename_all = "camelCase")]
pub struct PartView {
    pub completed: u64,
    pub error: u64,
    pub cancelled: u64,
    /// Duration that 95 % of the completed executions did not exceed; null without any.
    #[schema(required)]
    pub p95_ms: Option<u64>,
}

/// Durations of completed executions, with their waits; null without any.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutcomeDurations)]
pub struct DurationsView {
    /// Duration that half of them did not exceed.
    #[schema(required)]
    pub p50: Option<u64>,
    /// Duration that 95 % of them did not exceed.
    #[schema(required)]
    pub p95: Option<u64>,
    #[schema(required)]
    pub max: Option<u64>,
}

/// Failures of one step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FailedStep)]
#[serde(rename_all = "camelCase")]
pub struct FailedStepView<'a> {
    pub step_id: &'a str,
    pub count: u64,
}

impl<'a> OutcomesView<'a> {
    pub fn of(request: &OutcomesRequest, outcomes: &'a Outcomes) -> Self {
        let counted_from = |status| {
            let of_status = outcomes.counted_from.iter().find(|(of, _)| *of == status);
            of_status.map_or(request.period.start, |(_, from)| *from)
        };
        let text = |status| Timestamp::to_iso(counted_from(status));
        let start = request.period.start;
        Self {
            from: start.to_iso(),
            to: request.period.end.to_iso(),
            part_ms: outcomes.part_ms,
            is_complete: outcomes.counted_from.iter().all(|(_, from)| *from == start),
            counted_from: CountedFromView {
                completed: text(Status::Completed),
                error: text(Status::Error),
                cancelled: text(Status::Cancelled),
            },
            total: TallyView::of(&outcomes.total),
            workflows: outcomes
                .workflows
                .iter()
                .map(|(id, tally)| WorkflowOutcomesView {
                    workflow_id: id,
                    tally: TallyView::of(tally),
                })
                .collect(),
        }
    }
}

impl<'a> TallyView<'a> {
    fn of(tally: &'a Tally) -> Self {
        let sum = |count: fn(&Part) -> u64| tally.parts.iter().map(count).sum();
        let failed = tally.failed_steps.iter();
        let mut failed_steps: Vec<_> =
            failed.map(|(step_id, count)| FailedStepView { step_id, count: *count }).collect();
        failed_steps.sort_by_key(|step| std::cmp::Reverse(step.count));
        Self {
            completed: sum(|part| part.completed),
            error: sum(|part| part.error),
            cancelled: sum(|part| part.cancelled),
            duration_ms: DurationsView::of(&tally.durations),
            failed_steps,
            parts: tally.parts.iter().map(PartView::of).collect(),
        }
    }
}

impl PartView {
    fn of(part: &Part) -> Self {
        let Part { completed, error, cancelled, ref durations } = *part;
        Self { completed, error, cancelled, p95_ms: durations.quantile(95) }
    }
}

impl DurationsView {
    fn of(durations: &Durations) -> Self {
        let [p50, p95, max] = [50, 95, 100].map(|percent| durations.quantile(percent));
        Self { p50, p95, max }
    }
}
