//! Use cases of executions: list, describe, suspend, resume, cancel.

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{Cursor, Projection};
use greenroom_actors::requests::{
    Cancelled, ExecutionState, Rest, ResumeExecution, Subscriber, Suspended, Target,
};
use greenroom_actors::runtime::Subscription;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::json::{self, Object};
use crate::api::query::ExecutionQuery;
use crate::api::wire::execution::{ReasonBody, ResumeBody};
use crate::api::workflows::{idempotency, succeeded};

/// Lists executions, newest first; of one workflow when it is named.
pub async fn list(
    runtime: &Runtime,
    workflow_id: Option<String>,
    query: ExecutionQuery,
) -> Result<(Vec<Projection>, Option<Cursor>), ApiError> {
    let ExecutionQuery { mut filter, after, limit } = query;
    filter.workflow_id = workflow_id;
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
    body: &[u8],
) -> Result<Suspended, ApiError> {
    let ReasonBody { reason } = read(runtime, target, body).await?;
    let refusal = |error| ApiError::from_suspend(&target.execution_id, error);
    runtime.suspend(target, reason).await.map_err(refusal)
}

/// Cancels an execution.
pub async fn cancel(
    runtime: &Runtime,
    target: &Target,
    body: &[u8],
) -> Result<Cancelled, ApiError> {
    let ReasonBody { reason } = read(runtime, target, body).await?;
    let refusal = |error| ApiError::from_cancel(&target.execution_id, error);
    runtime.cancel(target, reason).await.map_err(refusal)
}

/// Resumes a suspended execution and waits until it leaves `running` again.
pub async fn resume(
    runtime: &Runtime,
    target: &Target,
    body: &[u8],
    key: Option<&str>,
    caller: &Caller,
) -> Result<Rest, ApiError> {
    let ResumeBody { resume_data, options } = read(runtime, target, body).await?;
    let Object(options) = options.unwrap_or_default();
    let subject = target.execution_id.as_str();
    let user_id = caller.user_id(options.user_id);
    let idempotency = idempotency(key, "resume", subject, user_id.as_deref(), body)?;
    let data = resume_data.unwrap_or(Value::Null);
    let request = ResumeExecution { step_id: options.step_id, data, idempotency };
    let refusal = |error| ApiError::from_resume(&target.execution_id, error);
    succeeded(runtime.resume(target, request).await.map_err(refusal)?)
}

/// Reads a body. A wrong one is answered only where there is an execution to be wrong about:
/// the subject of a route comes before its body.
async fn read<T: DeserializeOwned>(
    runtime: &Runtime,
    target: &Target,
    body: &[u8],
) -> Result<T, ApiError> {
    match json::parse_or_empty(body) {
        Ok(body) => Ok(body),
        Err(refusal) => {
            describe(runtime, target).await?;
            Err(refusal)
        }
    }
}
