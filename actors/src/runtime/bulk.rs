//! Bulk operations: one command for many executions.
//!
//! An operation is an execution of a built-in workflow, which takes one page of executions after
//! the other. So it is durable, can be watched, suspended and cancelled like any other execution,
//! and continues after a crash. A page that a crash has interrupted is repeated: what is done
//! already is skipped then, and replays are found by their idempotency keys.

mod family;
mod page;
pub(super) mod workflow;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::ids::ExecutionId;
use crate::domain::principal::Principal;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::function::{StepContext, StepError, StepFunction, StepOutcome};
use crate::ports::store::{self, ExecutionFilter};
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::runtime::weak::WeakRuntime;
use crate::visibility::Visibility;

use self::family::{Family, Sorted};
use self::page::Progress;
pub use self::workflow::BULK_WORKFLOW;

/// Maximum number of executions that a preview reads.
pub const BULK_PREVIEW_MAX: usize = 10_000;

/// Maximum number of executions that an operation names by id.
pub const BULK_IDS_MAX: usize = 1_000;

/// Maximum number of executions that a preview reads whole, to see whether they would accept the
/// command; further ones count as if they would.
const LOOKS_MAX: usize = 1_000;

/// Number of executions that a preview shows.
const SHOWN: usize = 20;

/// Number of executions in a page of a preview.
const PREVIEW_PAGE: usize = 1_000;

/// Command of a bulk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkAction {
    /// Suspends running executions.
    Suspend,
    /// Resumes executions that a caller has suspended. Steps that wait are not answered.
    Resume,
    /// Cancels running and suspended executions.
    Cancel,
    /// Replays failed executions from the step that failed, or from the first one whose effects were
    /// undone, unless they were replayed before, or the replay of another selected execution starts them
    /// anew. What an execution has started that has not ended is replayed only if it is named.
    Replay,
}

impl BulkAction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Replay => "replay",
        }
    }

    /// Returns the statuses of the executions that the command may change.
    fn statuses(self) -> &'static [Status] {
        match self {
            Self::Suspend => &[Status::Running],
            Self::Resume => &[Status::Suspended],
            Self::Cancel => &[Status::Running, Status::Suspended],
            Self::Replay => &[Status::Error],
        }
    }
}

/// Bulk operation: the input of its execution.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkOperation {
    pub action: BulkAction,
    /// Selects executions that were created before the operation; not used if ids are given.
    #[serde(default)]
    pub filter: ExecutionFilter,
    /// At most [`BULK_IDS_MAX`] executions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execution_ids: Vec<ExecutionId>,
    /// Recorded reason of suspensions and cancellations; the default names the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The user whose executions the operation is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_to: Option<Arc<str>>,
    /// The workflows for which the caller may give the command; `None`: all. Ids may name executions
    /// that are created later, of any workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<BTreeSet<Arc<str>>>,
    /// Replays run the workflows as they are registered now, not as they were.
    #[serde(default)]
    pub current_definition: bool,
    /// Replays also what was replayed before the operation.
    #[serde(default)]
    pub again: bool,
    /// Time when the operation began; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
}

impl BulkOperation {
    /// Returns the input of an execution that is created now: the filter selects nothing that is
    /// created later.
    pub fn into_input(mut self, now: Timestamp) -> Value {
        self.filter.to = Some(self.filter.to.map_or(now, |to| to.min(now)));
        self.began = Some(now);
        let mut input = serde_json::to_value(self).unwrap_or_default();
        if let Some(Value::Object(filter)) = input.get_mut("filter") {
            filter.retain(|_, value| !value.is_null());
        }
        input
    }

    /// Returns true if the command may change the execution as it is now. Bulk operations are left
    /// alone: one would cancel itself.
    fn fits(&self, execution: &store::Projection) -> bool {
        let is_paused = || execution.suspension.as_ref().is_some_and(|it| it.is_pause());
        self.action.statuses().contains(&execution.status)
            && (self.action != BulkAction::Resume || is_paused())
            && *execution.header.workflow_id != *BULK_WORKFLOW
            && self.allows(execution)
    }

    /// Returns true if the execution is among those that the operation selects and may change.
    fn selects(&self, execution: &store::Projection) -> bool {
        let is_named = match self.execution_ids.is_empty() {
            true => self.filter.admits(execution),
            false => self.execution_ids.contains(&execution.header.id),
        };
        let user = execution.header.user_id.as_deref();
        is_named && self.fits(execution) && self.visibility().allows(user)
    }

    /// Returns true if pages may be short although many rows were read for them.
    fn is_search(&self) -> bool {
        self.execution_ids.is_empty() && (self.filter.is_search() || self.filter.is_of_ends())
    }

    fn allows(&self, execution: &store::Projection) -> bool {
        let workflow = &execution.header.workflow_id;
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(workflow))
    }

    fn visibility(&self) -> Visibility {
        self.visible_to.clone().map_or(Visibility::Everything, Visibility::Of)
    }
}

/// Preview of a bulk operation: counts of what it would do now.
#[derive(Debug, Default)]
pub struct BulkPreview {
    /// Number of executions that would change.
    pub matched: u64,
    /// Number of those selected that the command does not fit.
    pub skipped: u64,
    /// Number of those skipped because they were replayed before.
    pub replayed: u64,
    /// Number of unfinished executions that those cancelled have started, directly or not.
    pub children: u64,
    /// Ids that name no execution.
    pub unknown: u64,
    /// True if all were read. At most [`BULK_PREVIEW_MAX`] are, and as many children.
    pub is_complete: bool,
    /// The first executions that would change.
    pub executions: Vec<store::Projection>,
}

/// Executions that an operation may change: one, or all of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BulkReach {
    pub workflow: Arc<str>,
    pub execution: Option<ExecutionId>,
}

impl Runtime {
    /// Counts what a bulk operation would change; changes nothing.
    pub async fn preview_bulk(
        &self,
        operation: &BulkOperation,
    ) -> Result<BulkPreview, Unavailable> {
        self.preview_up_to(operation, BULK_PREVIEW_MAX).await
    }

    async fn preview_up_to(
        &self,
        operation: &BulkOperation,
        most: usize,
    ) -> Result<BulkPreview, Unavailable> {
        let mut progress = Progress::default();
        let mut preview = BulkPreview::default();
        let (mut read, mut looks) = (0, LOOKS_MAX);
        let mut family = Family::default();
        while !progress.is_over && read < most {
            let limit = PREVIEW_PAGE.min(most - read);
            let page = self.page_of_bulk(operation, &mut progress, limit).await?;
            read += if operation.is_search() { limit } else { page.len().max(1) };
            let sorted = self.sort(operation, page).await?;
            let Sorted { fitting, skipped, replayed } =
                self.without_refusing(operation, sorted, &mut looks).await;
            preview.skipped += skipped;
            preview.replayed += replayed;
            preview.matched += fitting.len() as u64;
            if operation.action == BulkAction::Cancel {
                self.add_children(&fitting, &mut family).await?;
            }
            let shown = SHOWN - preview.executions.len();
            preview.executions.extend(fitting.into_iter().take(shown));
        }
        preview.unknown = progress.failed;
        preview.children = family.count();
        preview.is_complete = progress.is_over;
        // the last execution of a status may be the last of all
        for _ in operation.action.statuses() {
            if progress.is_over || !self.page_of_bulk(operation, &mut progress, 1).await?.is_empty()
            {
                break;
            }
            preview.is_complete = progress.is_over;
        }
        preview.is_complete &= !family.is_cut;
        Ok(preview)
    }

    /// Returns the workflows and executions that an operation may change: those that it names by
    /// id, or all executions of the workflow that it names, or of all workflows that are registered
    /// or have executions.
    pub async fn reach_of_bulk(
        &self,
        operation: &BulkOperation,
    ) -> Result<BTreeSet<BulkReach>, Unavailable> {
        let all_of = |workflow| BulkReach { workflow, execution: None };
        if let Some(named) = &operation.filter.workflow_id {
            return Ok(BTreeSet::from([all_of(Arc::from(named.as_str()))]));
        }
        if !operation.execution_ids.is_empty() {
            let page = self.page_of_bulk(operation, &mut Progress::default(), BULK_IDS_MAX).await?;
            let reach = |it: store::Projection| BulkReach {
                workflow: Arc::clone(&it.header.workflow_id),
                execution: Some(it.header.id.clone()),
            };
            return Ok(page.into_iter().map(reach).collect());
        }
        let counts = self.counts().await?;
        let stored = counts.into_iter().map(|count| count.workflow_id);
        let registry = self.registry();
        let registered = registry.workflows.keys().map(|id| Arc::from(id.as_str()));
        let all = stored.chain(registered);
        Ok(all.filter(|id| **id != *BULK_WORKFLOW).map(all_of).collect())
    }
}

/// Returns the function of its step.
pub(super) fn function(runtime: WeakRuntime) -> StepFunction {
    Arc::new(move |step| {
        let runtime = runtime.upgrade();
        async move {
            let runtime = runtime.ok_or_else(|| "the server is shutting down".to_owned())?;
            take_page(&runtime, &step).await
        }
        .boxed()
    })
}

/// Body of the step: takes one page.
async fn take_page(runtime: &Runtime, step: &StepContext) -> Result<StepOutcome, StepError> {
    let operation: BulkOperation = step.input_as()?;
    // at first this is the input, which has none of its fields
    let progress: Progress = step.data_as()?;
    let progress = runtime.take_page(&operation, &step.execution_id, progress).await?;
    step.progress(progress.counts());
    Ok(serde_json::to_value(progress).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::definition::{StepDefinition, StepKind, WorkflowDefinition};
    use crate::limits::RuntimeLimits;
    use crate::testkit::{World, registry_of, start};

    #[actix::test]
    async fn a_preview_says_whether_it_read_all() {
        let sleep = StepKind::Sleep { duration_ms: 86_400_000 };
        let definition = WorkflowDefinition::new("w", vec![StepDefinition::new("nap", sleep)]);
        let world = World::launch(registry_of([definition]), RuntimeLimits::default()).await;
        for id in ["a", "b", "c", "d"] {
            world.runtime.begin(start("w", id, json!({}))).await.unwrap();
        }
        let operation: BulkOperation =
            serde_json::from_value(json!({ "action": "cancel" })).unwrap();
        for (most, expected) in [(3, (3, false)), (4, (4, true)), (5, (4, true))] {
            let preview = world.runtime.preview_up_to(&operation, most).await.unwrap();
            assert_eq!((preview.matched, preview.is_complete), expected, "{most}");
        }
    }
}
