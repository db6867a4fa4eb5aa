//! Use cases of bulk operations.

use std::collections::{BTreeSet, HashSet};

use greenroom_actors::Runtime;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::requests::{StartExecution, TraceOrigin};
use greenroom_actors::runtime::{
    BULK_IDS_MAX, BULK_WORKFLOW, BulkAction, BulkOperation, BulkPreview, BulkReach,
};
use greenroom_actors::visibility::Visibility;
use serde_json::Map;

use crate::api::caller::Caller;
use crate::api::catalogue::RouteName;
use crate::api::error::ApiError;
use crate::api::executions::known;
use crate::api::json::{self, Object};
use crate::api::query::{Pairs, execution_filter};
use crate::api::wire::bulk::BulkBody;
use crate::api::wire::execution::DefinitionChoice;
use crate::api::workflows::{idempotency, read_execution_id};

/// Maximum size of a reason, in bytes.
const REASON_BYTES_MAX: usize = 4_096;

/// Checked request for a bulk operation.
#[derive(Debug)]
pub struct BulkRequest {
    pub operation: BulkOperation,
    pub is_dry_run: bool,
    start: StartExecution,
}

/// Returns the route that gives the command to one execution.
pub fn route_of(action: BulkAction) -> RouteName {
    match action {
        BulkAction::Suspend => RouteName::SuspendExecution,
        BulkAction::Resume => RouteName::ResumeExecution,
        BulkAction::Cancel => RouteName::CancelExecution,
        BulkAction::Replay => RouteName::ReplayExecution,
    }
}

/// Reads a request: executions are selected by the parameters of lists, or by their ids.
pub fn read(
    pairs: &Pairs,
    body: &[u8],
    key: Option<&str>,
    (caller, trace): (&Caller, TraceOrigin),
) -> Result<BulkRequest, ApiError> {
    let filter = execution_filter(pairs)?;
    let parsed: BulkBody = json::parse_closed(body)?;
    let BulkBody { action, execution_ids, reason, definition, again, dry_run, options } = parsed;
    let action = BulkAction::from(action);
    check_options(
        action,
        &[
            ("reason", reason.is_some(), &[BulkAction::Suspend, BulkAction::Cancel]),
            ("definition", definition.is_some(), &[BulkAction::Replay]),
            ("again", again, &[BulkAction::Replay]),
        ],
    )?;
    if pairs.is_empty() == execution_ids.is_empty() {
        let what = "executions are selected either by parameters of the query, as ?status=running, \
                    or by executionIds";
        return Err(ApiError::InvalidRequest(what.to_owned()));
    }
    if execution_ids.len() > BULK_IDS_MAX {
        let what = format!("must be at most {BULK_IDS_MAX}");
        return Err(ApiError::body("executionIds", what));
    }
    if reason.as_ref().is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        let what = format!("must be at most {REASON_BYTES_MAX} bytes: every execution records it");
        return Err(ApiError::body("reason", what));
    }
    let id_of = |(n, id): (usize, &String)| {
        let refusal = |error| ApiError::body(format!("executionIds[{n}]"), error);
        ExecutionId::parse(id).map_err(refusal)
    };
    let ids = execution_ids.iter().enumerate().map(id_of).collect::<Result<Vec<_>, _>>()?;
    let mut named = HashSet::new();
    let execution_ids = ids.into_iter().filter(|id| named.insert(id.clone())).collect();
    let Object(options) = options.unwrap_or_default();
    let visible_to = match caller.visibility() {
        Visibility::Everything => None,
        Visibility::Of(user) => Some(user),
        Visibility::Nothing => return Err(ApiError::NotYours),
    };
    let by = caller.principal(options.user_id.as_deref())?;
    let user_id = caller.user_id(options.user_id);
    // the query selects, and so is a part of what the key stands for
    let mut selected = pairs.to_vec();
    selected.sort();
    let request = [&serde_json::to_vec(&selected).unwrap_or_default()[..], body].concat();
    let owner = (caller, user_id.as_deref());
    let idempotency = idempotency(key, "bulk", BULK_WORKFLOW, owner, &request)?;
    let operation = BulkOperation {
        action,
        filter,
        execution_ids,
        reason,
        by,
        visible_to,
        allowed: None,
        current_definition: definition.is_some_and(DefinitionChoice::is_current),
        again,
        began: None,
    };
    let mut context = Map::new();
    caller.sign(&mut context);
    let start = StartExecution {
        workflow_id: BULK_WORKFLOW.to_owned(),
        execution_id: read_execution_id(options.execution_id.as_deref())?,
        input: serde_json::Value::Null,
        user_id,
        conversation_id: None,
        context,
        idempotency,
        trace,
    };
    Ok(BulkRequest { operation, is_dry_run: dry_run, start })
}

/// Refuses options that the action does not use: each with its name, whether it is given, and its
/// actions.
fn check_options(
    action: BulkAction,
    options: &[(&str, bool, &[BulkAction])],
) -> Result<(), ApiError> {
    for (name, is_given, actions) in options {
        if *is_given && !actions.contains(&action) {
            let actions: Vec<_> = actions.iter().map(|action| action.as_str()).collect();
            let what = format!("is only for {}", actions.join(" and "));
            return Err(ApiError::body(name, what));
        }
    }
    Ok(())
}

impl BulkRequest {
    /// Returns the request for the execution that is the operation.
    pub fn start(self, runtime: &Runtime) -> StartExecution {
        let input = self.operation.into_input(runtime.clock().now());
        StartExecution { input, ..self.start }
    }
}

/// Counts what the operation would change.
pub async fn preview(
    runtime: &Runtime,
    operation: &BulkOperation,
) -> Result<BulkPreview, ApiError> {
    Ok(runtime.preview_bulk(operation).await?)
}

/// Returns the executions that the operation may change.
pub async fn reach(
    runtime: &Runtime,
    operation: &BulkOperation,
) -> Result<BTreeSet<BulkReach>, ApiError> {
    if let Some(named) = &operation.filter.workflow_id {
        known(runtime, named).await?;
    }
    Ok(runtime.reach_of_bulk(operation).await?)
}
