//! Use cases of executions: list, count, describe, suspend, resume, replay, cancel.

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{CountsOfUser, Projection};
use greenroom_actors::requests::{
    Cancelled, ExecutionOutcome, ExecutionState, Principal, ResumeExecution, Subscriber, Suspended,
    Target, TraceOrigin,
};
use greenroom_actors::runtime::{
    EventPage, Outcomes, OutcomesRequest, Replay, ReplayExecution, Subscription, Versions,
};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::wait_report::WaitReport;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::{ApiError, UnknownName};
use crate::api::json::{self, Closed, Object};
use crate::api::query::{CountQuery, EventsQuery, ExecutionQuery, OutcomesQuery, VersionsQuery};
use crate::api::wire::execution::{ReasonBody, ReplayBody, ResumeBody, ResumeOptions};
use crate::api::wire::state::list_cursor_text;
use crate::api::workflows::{idempotency, read_execution_id, unknown};

/// Body of a request, or its refusal while it was read.
pub type Sent<'a> = Result<&'a [u8], &'a ApiError>;

/// Lists the executions that the caller sees, newest first; those of one workflow if it is given.
pub async fn list(
    runtime: &Runtime,
    workflow_id: Option<String>,
    query: Result<ExecutionQuery, ApiError>,
    caller: &Caller,
) -> Result<(Vec<Projection>, Option<String>), ApiError> {
    if let Some(id) = &workflow_id {
        known(runtime, id).await?;
    }
    let ExecutionQuery { mut filter, after, limit } = query?;
    filter.workflow_id = workflow_id;
    let Some(user_id) = user_filter(caller, filter.user_id.take()) else {
        return Ok((Vec::new(), None));
    };
    filter.user_id = user_id;
    let (rows, next) = runtime.list(&filter, after, limit).await?;
    Ok((rows, next.map(|next| list_cursor_text(next, filter.is_of_ends()))))
}

/// Returns the user to filter by, of all users that the caller sees or of the named one; `None` if
/// the caller sees nothing of that.
fn user_filter(caller: &Caller, named: Option<String>) -> Option<Option<String>> {
    match (caller.visibility(), named) {
        (Visibility::Everything, named) => Some(named),
        (Visibility::Of(id), named) if named.as_deref().is_none_or(|named| *named == *id) => {
            Some(Some(id.to_string()))
        }
        (Visibility::Of(_) | Visibility::Nothing, _) => None,
    }
}

/// Refuses a workflow that is not configured and has no stored executions.
pub(super) async fn known(runtime: &Runtime, workflow_id: &str) -> Result<(), ApiError> {
    let registry = runtime.registry();
    if registry.workflows.contains_key(workflow_id) {
        return Ok(());
    }
    let stored = runtime.counts().await?;
    if stored.iter().any(|count| *count.workflow_id == *workflow_id) {
        return Ok(());
    }
    Err(unknown(&registry, workflow_id))
}

/// Maximum of counted executions of one user, since each is a row to read.
const USER_COUNT_MAX: usize = 10_000;

/// Counts the executions that the caller sees.
pub async fn counts(
    runtime: &Runtime,
    query: CountQuery,
    caller: &Caller,
) -> Result<CountsOfUser, ApiError> {
    let CountQuery { workflow_id, user_id } = query;
    let mut counted = match user_filter(caller, user_id) {
        Some(None) => CountsOfUser { counts: runtime.counts().await?, is_complete: true },
        Some(Some(user)) => runtime.counts_of_user(&user, USER_COUNT_MAX).await?,
        None => CountsOfUser { counts: Vec::new(), is_complete: true },
    };
    if let Some(workflow) = workflow_id {
        counted.counts.retain(|count| *count.workflow_id == *workflow);
        if counted.counts.is_empty() {
            known(runtime, &workflow).await?;
        }
    }
    Ok(counted)
}

/// Counts the outcomes of the executions that the caller sees.
pub async fn outcomes(
    runtime: &Runtime,
    query: OutcomesQuery,
    caller: &Caller,
) -> Result<(OutcomesRequest, Outcomes), ApiError> {
    let mut request = query.request(runtime.clock().now());
    if let Some(workflow) = &request.workflow_id {
        known(runtime, workflow).await?;
    }
    let Some(user_id) = user_filter(caller, request.user_id.take()) else {
        let outcomes = Outcomes::of_none(&request);
        return Ok((request, outcomes));
    };
    request.user_id = user_id;
    let outcomes = runtime.outcomes(&request).await?;
    Ok((request, outcomes))
}

/// Counts the executions that the caller sees of a workflow, by version.
pub async fn versions(
    runtime: &Runtime,
    workflow_id: &str,
    query: Result<VersionsQuery, ApiError>,
    caller: &Caller,
) -> Result<Versions, ApiError> {
    known(runtime, workflow_id).await?;
    let VersionsQuery { user_id } = query?;
    match user_filter(caller, user_id) {
        Some(user) => Ok(runtime.versions(workflow_id, user.as_deref()).await?),
        None => Ok(runtime.versions_without_executions(workflow_id)),
    }
}

/// Lists events of an execution.
pub async fn events(
    runtime: &Runtime,
    target: &Target,
    query: Result<EventsQuery, ApiError>,
) -> Result<(EventsQuery, EventPage), ApiError> {
    let query = existing(runtime, target, query).await?;
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    let page = runtime.events(target, query.after, query.limit).await.map_err(refusal)?;
    Ok((query, page))
}

/// Shows the state of an execution.
pub async fn describe(runtime: &Runtime, target: &Target) -> Result<ExecutionState, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.describe(target).await.map_err(refusal)
}

/// Explains what an execution waits for.
pub async fn why(runtime: &Runtime, target: &Target) -> Result<Box<WaitReport>, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.why(target).await.map_err(refusal)
}

/// Subscribes to the events of an execution.
pub async fn subscribe(
    runtime: &Runtime,
    target: &Target,
    subscriber: Subscriber,
) -> Result<Subscription, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.subscribe(target, subscriber).await.map_err(refusal)
}

/// Pauses a running execution.
pub async fn suspend(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
    caller: &Caller,
) -> Result<Suspended, ApiError> {
    let (reason, by) = existing(runtime, target, read_reason(body, caller)).await?;
    let refusal = |error| ApiError::from_control(&target.execution_id, error);
    runtime.suspend(target, reason, by).await.map_err(refusal)
}

/// Cancels an execution.
pub async fn cancel(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
    caller: &Caller,
) -> Result<Cancelled, ApiError> {
    let (reason, by) = existing(runtime, target, read_reason(body, caller)).await?;
    let refusal = |error| ApiError::from_control(&target.execution_id, error);
    runtime.cancel(target, reason, by).await.map_err(refusal)
}

/// Resumes a suspended execution and waits until it leaves `running` again.
pub async fn resume(
    runtime: &Runtime,
    target: &Target,
    request: Result<ResumeExecution, ApiError>,
) -> Result<ExecutionOutcome, ApiError> {
    let request = existing(runtime, target, request).await?;
    let refusal = |error| ApiError::from_resume(&target.execution_id, error);
    let resumed = runtime.resume(target, request).await.map_err(refusal);
    with_suggested_step(runtime, target, resumed).await
}

/// Starts a new execution from a step of another one and waits until it leaves `running`.
pub async fn replay(
    runtime: &Runtime,
    target: &Target,
    request: Result<ReplayExecution, ApiError>,
) -> Result<Replay<ExecutionOutcome>, ApiError> {
    let request = existing(runtime, target, request).await?;
    let refusal = |error| ApiError::from_replay(&target.execution_id, error);
    let replayed = runtime.replay(target, request).await.map_err(refusal);
    with_suggested_step(runtime, target, replayed).await
}

/// Starts a new execution from a step of another one; resolves when the start is durable.
pub async fn begin_replay(
    runtime: &Runtime,
    target: &Target,
    request: Result<ReplayExecution, ApiError>,
) -> Result<Replay<Target>, ApiError> {
    let request = existing(runtime, target, request).await?;
    let refusal = |error| ApiError::from_replay(&target.execution_id, error);
    let begun = runtime.begin_replay(target, request).await.map_err(refusal);
    let Replay { new: execution_id, from } = with_suggested_step(runtime, target, begun).await?;
    let workflow_id = target.workflow_id.clone();
    // The caller started it: now, or earlier with this key, whose scope has the user.
    let new = Target { workflow_id, execution_id, visibility: Visibility::Everything };
    Ok(Replay { new, from })
}

/// Adds a suggestion to the refusal of an unknown step: the nearest one that has begun, since only
/// those can be resumed or replayed.
async fn with_suggested_step<T>(
    runtime: &Runtime,
    target: &Target,
    result: Result<T, ApiError>,
) -> Result<T, ApiError> {
    let Err(ApiError::StepNotFound(UnknownName { name, .. })) = &result else { return result };
    let Ok(state) = runtime.describe(target).await else { return result };
    let is_path = name.contains('/');
    let known = state.steps.iter().map(|step| if is_path { &*step.path } else { &*step.step_id });
    Err(ApiError::StepNotFound(UnknownName::among(name, known)))
}

/// Returns the parsed request, or its refusal. An execution that does not exist is reported before
/// an invalid body.
pub async fn existing<T>(
    runtime: &Runtime,
    target: &Target,
    read: Result<T, ApiError>,
) -> Result<T, ApiError> {
    if read.is_err() {
        describe(runtime, target).await?;
    }
    read
}

fn parse<T: DeserializeOwned + Closed>(body: Sent<'_>) -> Result<(T, &[u8]), ApiError> {
    let bytes = body.map_err(Clone::clone)?;
    Ok((json::parse_closed_or_empty(bytes)?, bytes))
}

fn read_reason(
    body: Sent<'_>,
    caller: &Caller,
) -> Result<(Option<String>, Option<Principal>), ApiError> {
    let (ReasonBody { reason, options }, _) = parse(body)?;
    let Object(options) = options.unwrap_or_default();
    Ok((reason, caller.principal(options.user_id.as_deref())?))
}

/// Reads a resume, for [`resume`].
pub fn read_resume(
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    caller: &Caller,
) -> Result<ResumeExecution, ApiError> {
    let (ResumeBody { resume_data, options }, bytes) = parse(body)?;
    let Object(options) = options.unwrap_or_default();
    let ResumeOptions { step_id, suspension_id, user_id } = options;
    let subject = target.execution_id.as_str();
    let by = caller.principal(user_id.as_deref())?;
    let answerer = Some(caller.answerer(user_id.as_deref()));
    let user_id = caller.user_id(user_id);
    let idempotency = idempotency(key, "resume", subject, (caller, user_id.as_deref()), bytes)?;
    let data = resume_data.unwrap_or(Value::Null);
    Ok(ResumeExecution { step_id, suspension_id, data, by, answerer, idempotency })
}

/// Reads a replay, for [`replay`].
pub fn read_replay(
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    (caller, trace): (&Caller, TraceOrigin),
) -> Result<ReplayExecution, ApiError> {
    let (ReplayBody { step_id, definition, resume_data, input, options }, bytes) = parse(body)?;
    let Object(options) = options.unwrap_or_default();
    let execution_id = read_execution_id(options.execution_id.as_deref())?;
    let subject = target.execution_id.as_str();
    let by = caller.principal(options.user_id.as_deref())?;
    let answerer = Some(caller.answerer(options.user_id.as_deref()));
    let user_id = caller.user_id(None);
    let idempotency = idempotency(key, "replay", subject, (caller, user_id.as_deref()), bytes)?;
    let definition = definition.unwrap_or_default().into();
    Ok(ReplayExecution {
        step_id,
        resume_data,
        input,
        definition,
        execution_id,
        by,
        answerer,
        idempotency,
        trace,
    })
}
