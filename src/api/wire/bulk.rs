//! Bulk operations on the wire.

use greenroom_actors::runtime::{BulkAction, BulkPreview};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::json::{Closed, Object};
use crate::api::wire::execution::DefinitionChoice;
use crate::api::wire::shape::optional_execution_id;
use crate::api::wire::state::ExecutionItemView;

/// Body of a bulk operation.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BulkBody)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BulkBody {
    pub action: BulkActionName,
    /// Executions by id, instead of a filter in the query.
    #[serde(default)]
    #[schema(max_items = 1000, nullable = false)]
    pub execution_ids: Vec<String>,
    /// Reason of suspensions and cancellations, at most 4,096 bytes. The default names the operation.
    #[serde(default)]
    pub reason: Option<String>,
    /// Definition that replays run; the default is that of each original execution.
    #[serde(default)]
    #[schema(nullable = false)]
    pub definition: Option<DefinitionChoice>,
    /// Replays also executions that were replayed before.
    #[serde(default)]
    pub again: bool,
    /// Counts what would change, and changes nothing.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    #[schema(value_type = Option<BulkOptions>)]
    pub options: Option<Object<BulkOptions>>,
}

impl Closed for BulkBody {
    const KEYS: &'static [&'static str] = &[
        "action",
        "executionIds",
        "reason",
        "definition",
        "again",
        "dryRun",
        "options",
        "options.executionId",
        "options.userId",
    ];
}

/// Command of a bulk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = BulkAction)]
#[serde(rename_all = "lowercase")]
pub enum BulkActionName {
    /// Suspends running executions.
    Suspend,
    /// Resumes executions that a caller has suspended. Steps that wait are not answered.
    Resume,
    /// Cancels running and suspended executions.
    Cancel,
    /// Replays failed executions, as a replay without `stepId` does, unless they were replayed before.
    Replay,
}

impl From<BulkActionName> for BulkAction {
    fn from(name: BulkActionName) -> Self {
        match name {
            BulkActionName::Suspend => Self::Suspend,
            BulkActionName::Resume => Self::Resume,
            BulkActionName::Cancel => Self::Cancel,
            BulkActionName::Replay => Self::Replay,
        }
    }
}

/// `options` of a bulk operation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BulkOptions {
    /// Id of the execution that is the operation.
    #[schema(schema_with = optional_execution_id)]
    pub execution_id: Option<String>,
    /// User of the request, if no token names one.
    pub user_id: Option<String>,
}

/// Preview of a bulk operation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkPreview)]
#[serde(rename_all = "camelCase")]
pub struct BulkPreviewView<'a> {
    /// Number of executions that would change.
    pub matched: u64,
    /// Number of selected executions that the action does not fit.
    pub skipped: u64,
    /// Number of those skipped because they were replayed before.
    pub replayed: u64,
    /// Number of unfinished executions that those cancelled have started, directly or not: they
    /// are cancelled too.
    pub children: u64,
    /// Number of ids that name no execution.
    pub unknown: u64,
    /// True if all were read: at most 10,000 are, and as many children. The operation has no such
    /// limit.
    pub is_complete: bool,
    /// The first 20 executions that would change.
    pub executions: Vec<ExecutionItemView<'a>>,
}

impl<'a> BulkPreviewView<'a> {
    pub fn of(preview: &'a BulkPreview) -> Self {
        let executions = preview.executions.iter().map(ExecutionItemView::of).collect();
        Self {
            matched: preview.matched,
            skipped: preview.skipped,
            replayed: preview.replayed,
            children: preview.children,
            unknown: preview.unknown,
            is_complete: preview.is_complete,
            executions,
        }
    }
}
