//! The route of bulk operations.

use greenroom_actors::runtime::BULK_WORKFLOW;
use serde_json::json;

use super::components::Components;
use super::described::Described;
use super::parts;
use super::workflows::{failed, filters, key_invalid, not_found, some_execution};
use crate::api::error::ApiError;
use crate::api::wire::bulk::{BulkBody, BulkPreviewView};
use crate::api::wire::execution::ExecutionView;

pub(super) fn bulk_executions(components: &mut Components) -> Described {
    let data = components.answer::<ExecutionView<'_>>();
    let preview = components.answer::<BulkPreviewView<'_>>();
    let done = json!({ "oneOf": [data, preview] });
    let about = "The operation is recorded. Without content if its state cannot be read";
    let begun = parts::accepted_answer(about, data);
    let selecting =
        filters().into_iter().filter(|it| it["name"] != "limit" && it["name"] != "cursor");
    let body = components.body::<BulkBody>();
    Described::new("bulkExecutions")
        .about(format!(
            "Gives one command to all executions that the query selects, or to those named by \
             `executionIds`, as far as it fits them. The operation is an execution of the workflow \
             `{BULK_WORKFLOW}`: it continues if the client disconnects and after a crash, can be \
             watched, suspended and cancelled, and its result has the counts. Executions that are \
             created later are not selected. Replays leave out what was replayed before, unless \
             `again` is set, and what the replay of another selected execution starts anew; what an \
             unfinished execution has started is replayed only if `executionIds` names it. The \
             output of each page names in `changed` the executions that it changed, and their \
             replays. With `dryRun`, it only counts.",
        ))
        .with([
            parts::reference("parameters", parts::IDEMPOTENCY_KEY),
            parts::reference("parameters", parts::PREFER),
        ])
        .with_query([parts::query("workflowId", "Executions of this workflow", parts::name())])
        .with_query(selecting)
        .with_body(body, true, json!({ "action": "cancel", "dryRun": true }))
        .answering(200, parts::execution_answer("The operation ended, or what it would do", done))
        .answering(202, begun)
        .refusing([
            not_found(),
            ApiError::InvalidRequest("executions are selected by the query or by ids".to_owned()),
            ApiError::RoleMissing("operator".to_owned()),
            ApiError::ExecutionExists(some_execution()),
            key_invalid(),
            ApiError::KeyReused,
            failed(),
        ])
        .using_runtime()
        .using_memory()
}
