//! Use cases of executions: list, describe, suspend, resume, cancel.

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{Cursor, Projection};
use greenroom_actors::requests::{
    Cancelled, ExecutionState, Rest, ResumeExecution, Subscriber, Suspended, Target,
};
use greenroom_actors::runtime::Subscription;
use greenroom_actors::sight::Sight;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::json::{self, Object};
use crate::api::query::ExecutionQuery;
use crate::api::wire::execution::{ReasonBody, ResumeBody};
use crate::api::workflows::idempotency;

/// What there is of a body: it may have been refused while it came.
pub type Sent<'a> = Result<&'a [u8], &'a ApiError>;

/// Lists the executions that the caller sees, newest first; of one workflow when it is named.
pub async fn list(
    runtime: &Runtime,
    workflow_id: Option<String>,
    query: ExecutionQuery,
    caller: &Caller,
) -> Result<(Vec<Projection>, Option<Cursor>), ApiError> {
    let ExecutionQuery { mut filter, after, limit } = query;
    filter.workflow_id = workflow_id;
    filter.user_id = match (caller.sight(), filter.user_id) {
        (Sight::Everything, named) => named,
        (Sight::Of(id), None) => Some(id.to_string()),
        (Sight::Of(id), Some(named)) if *named == *id => Some(named),
        (Sight::Of(_), Some(_)) | (Sight::Nothing, _) => return Ok((Vec::new(), None)),
    };
    Ok(runtime.list(&filter, after, limit).await?)
}

/// Shows the state of an execution.
pub async fn describe(runtime: &Runtime, target: &Target) -> Result<ExecutionState, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.describe(target).await.map_err(refusal)
}

/// Adds a reader of an execution's events.
pub async fn subscribe(
    runtime: &Runtime,
    target: &Target,
    subscriber: Subscriber,
) -> Result<Subscription, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.subscribe(target, subscriber).await.map_err(refusal)
}

/// Suspends a running execution from outside.
pub async fn suspend(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
) -> Result<Suspended, ApiError> {
    let read = parse(body).map(|(body, _)| body);
    let ReasonBody { reason } = existing(runtime, target, read).await?;
    let refusal = |error| ApiError::from_suspend(&target.execution_id, error);
    runtime.suspend(target, reason).await.map_err(refusal)
}

/// Cancels an execution.
pub async fn cancel(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
) -> Result<Cancelled, ApiError> {
    let read = parse(body).map(|(body, _)| body);
    let ReasonBody { reason } = existing(runtime, target, read).await?;
    let refusal = |error| ApiError::from_cancel(&target.execution_id, error);
    runtime.cancel(target, reason).await.map_err(refusal)
}

/// Resumes a suspended execution and waits until it leaves `running` again.
pub async fn resume(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    caller: &Caller,
) -> Result<Rest, ApiError> {
    let request = read_resume(target, body, key, caller);
    let request = existing(runtime, target, request).await?;
    let refusal = |error| ApiError::from_resume(&target.execution_id, error);
    runtime.resume(target, request).await.map_err(refusal)
}

/// Gives what was read of a request. What is wrong with it is told only where there is an
/// execution to be wrong about: the subject of a route comes before its body.
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

fn parse<T: DeserializeOwned>(body: Sent<'_>) -> Result<(T, &[u8]), ApiError> {
    let bytes = body.map_err(Clone::clone)?;
    Ok((json::parse_or_empty(bytes)?, bytes))
}

fn read_resume(
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    caller: &Caller,
) -> Result<ResumeExecution, ApiError> {
    let (ResumeBody { resume_data, options }, bytes) = parse(body)?;
    let Object(options) = options.unwrap_or_default();
    let subject = target.execution_id.as_str();
    let user_id = caller.user_id(options.user_id);
    let idempotency = idempotency(key, "resume", subject, user_id.as_deref(), bytes)?;
    let data = resume_data.unwrap_or(Value::Null);
    Ok(ResumeExecution { step_id: options.step_id, data, idempotency })
}
