//! Use cases of executions: list, describe, suspend, resume, cancel.

use greenroom_actors::Runtime;
use greenroom_actors::outlook::Outlook;
use greenroom_actors::ports::store::{Cursor, Projection};
use greenroom_actors::requests::{
    Cancelled, ExecutionState, Rest, ResumeExecution, Subscriber, Suspended, Target, TraceOrigin,
};
use greenroom_actors::runtime::{ReplayExecution, Replayer, Subscription};
use greenroom_actors::sight::Sight;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::json::{self, Object};
use crate::api::query::ExecutionQuery;
use crate::api::wire::execution::{ReasonBody, ReplayBody, ResumeBody};
use crate::api::workflows::{idempotency, read_execution_id};

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

/// Says what an execution waits for.
pub async fn why(runtime: &Runtime, target: &Target) -> Result<Box<Outlook>, ApiError> {
    let refusal = |error| ApiError::from_describe(&target.execution_id, error);
    runtime.why(target).await.map_err(refusal)
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

/// Starts an execution in the middle of another one and waits until it leaves `running`.
pub async fn replay(
    runtime: &Runtime,
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    origin: (&Caller, TraceOrigin),
) -> Result<Rest, ApiError> {
    let request = read_replay(target, body, key, origin);
    let request = existing(runtime, target, request).await?;
    let refusal = |error| ApiError::from_replay(&target.execution_id, error);
    runtime.replay(target, request).await.map_err(refusal)
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

fn read_replay(
    target: &Target,
    body: Sent<'_>,
    key: Option<&str>,
    (caller, trace): (&Caller, TraceOrigin),
) -> Result<ReplayExecution, ApiError> {
    let bytes = body.map_err(Clone::clone)?;
    let ReplayBody { step_id, resume_data, input, options } = json::parse(bytes)?;
    let step_id = step_id.ok_or_else(|| ApiError::body("stepId", "missing"))?;
    let Object(options) = options.unwrap_or_default();
    let execution_id = read_execution_id(options.execution_id.as_deref())?;
    let subject = target.execution_id.as_str();
    let user_id = caller.user_id(None);
    let idempotency = idempotency(key, "replay", subject, user_id.as_deref(), bytes)?;
    let replayer = if caller.is_taken_at_its_word() {
        Replayer::SameAsBefore
    } else {
        Replayer::Caller {
            user_id,
            profile: caller.user().map(|user| user.profile().clone()),
            keeps_conversation: !caller.is_blind(),
        }
    };
    Ok(ReplayExecution { step_id, resume_data, input, execution_id, replayer, idempotency, trace })
}
