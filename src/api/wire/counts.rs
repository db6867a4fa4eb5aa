//! Counts of executions on the wire.

use std::collections::BTreeMap;

use greenroom_actors::ports::store::{ExecutionCount, Status};
use serde::Serialize;
use utoipa::ToSchema;

/// Counts of executions by workflow and status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionCounts)]
#[serde(rename_all = "camelCase")]
pub struct CountsView<'a> {
    /// Sorted by id; workflows without executions are omitted.
    pub workflows: Vec<WorkflowCountsView<'a>>,
    pub total: StatusCountsView,
    /// True if all executions were counted. Of a single user only the newest 10,000 are.
    pub is_complete: bool,
}

/// Executions of one workflow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowCounts)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCountsView<'a> {
    pub workflow_id: &'a str,
    #[serde(flatten)]
    pub counts: StatusCountsView,
}

/// Number of executions with each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = StatusCounts)]
#[serde(rename_all = "camelCase")]
pub struct StatusCountsView {
    pub running: u64,
    pub suspended: u64,
    pub completed: u64,
    pub error: u64,
    pub cancelled: u64,
    /// Number of all executions.
    pub all: u64,
}

impl StatusCountsView {
    /// Adds executions with a status.
    pub fn add(&mut self, status: Status, count: u64) {
        let place = match status {
            Status::Running => &mut self.running,
            Status::Suspended => &mut self.suspended,
            Status::Completed => &mut self.completed,
            Status::Error => &mut self.error,
            Status::Cancelled => &mut self.cancelled,
        };
        *place += count;
        self.all += count;
    }
}

impl<'a> CountsView<'a> {
    /// Sums up counts, in total and for each workflow.
    pub fn of(counts: &'a [ExecutionCount], is_complete: bool) -> Self {
        let mut by_id: BTreeMap<&str, StatusCountsView> = BTreeMap::new();
        let mut total = StatusCountsView::default();
        for ExecutionCount { workflow_id, status, count } in counts {
            by_id.entry(workflow_id).or_default().add(*status, *count);
            total.add(*status, *count);
        }
        let workflow = |(workflow_id, counts)| WorkflowCountsView { workflow_id, counts };
        Self { workflows: by_id.into_iter().map(workflow).collect(), total, is_complete }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn counts_are_summed_by_workflow_and_in_total() {
        let count = |workflow: &str, status, count| ExecutionCount {
            workflow_id: workflow.into(),
            status,
            count,
        };
        let counts = [
            count("b", Status::Error, 1),
            count("a", Status::Suspended, 2),
            count("b", Status::Completed, 40),
        ];
        let shown = to_value(CountsView::of(&counts, true)).unwrap();
        let of = |suspended: u64, completed: u64, error: u64| {
            json!({ "running": 0, "suspended": suspended, "completed": completed, "error": error,
                    "cancelled": 0, "all": suspended + completed + error })
        };
        let named = |id: &str, mut counts: serde_json::Value| {
            counts["workflowId"] = json!(id);
            counts
        };
        let expected = json!({
            "workflows": [named("a", of(2, 0, 0)), named("b", of(0, 40, 1))],
            "total": of(2, 40, 1), "isComplete": true
        });
        assert_eq!(shown, expected);
    }
}
