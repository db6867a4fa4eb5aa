//! One call of any kind of tool: checks its arguments, bounds its time, concurrency and result, and
//! catches its panic.

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};
use tokio::time::Instant;

use crate::agent::tool::{Content, ToolBody, ToolContext, ToolDefinition, ToolError};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::message::ToolOutcome;
use crate::domain::nesting::{check_depth, depth_exceeded_at};
use crate::observe::blocked::timed;
use crate::ports::workers::Lane;
use crate::shard::evaluation::Evaluations;

use super::{
    GenerationDeps, ToolReturn, Waiting, agent, ask_user, delegate, gate, question, workflow,
};

/// Refusal of a call whose tool has ended.
const CLOSED: &str = "the tool no longer accepts calls";

/// A call with checked arguments.
pub(crate) struct Invocation {
    pub(crate) arguments: Value,
    pub(crate) context: ToolContext,
    /// Number of agents and workflows above the one that the call starts, if any.
    pub(crate) depth: u32,
    /// True if the call may have been made before.
    pub(crate) is_repeated: bool,
    /// True if a step makes the call, whose polls are timed as a whole.
    pub(crate) is_of_step: bool,
}

/// Rejects arguments that no tool could have.
pub(crate) fn check_shape(arguments: &Value, depth_max: usize) -> Result<(), String> {
    let is_deep_text = |text: &str| depth_exceeded_at(text.as_bytes(), depth_max).is_some();
    match arguments {
        Value::Object(_) => {
            check_depth(arguments, depth_max).map_err(|too_deep| too_deep.to_string())
        }
        // arguments of a model that nest too deep are passed on as text
        Value::String(text) if is_deep_text(text) => {
            Err(format!("nested deeper than {depth_max} levels"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("not a JSON object".to_owned())
        }
    }
}

/// Returns the arguments if they match the tool's schema; the error names the place.
pub(crate) async fn checked(
    evaluations: &Evaluations,
    lane: Lane,
    tool: &ToolDefinition,
    arguments: Value,
    depth_max: usize,
) -> Result<Value, String> {
    check_shape(&arguments, depth_max)?;
    let checked = evaluations.check(lane, &tool.arguments, arguments).await;
    checked.map_err(|violation| violation.to_string())
}

/// Makes the call. Dropping the future cancels it.
pub(crate) async fn invoke(
    deps: GenerationDeps,
    tool: Arc<ToolDefinition>,
    invocation: Invocation,
) -> ToolReturn {
    let limit = time_limit(&deps, &tool, &invocation.arguments);
    let (bytes_max, depth_max) =
        (deps.tool_limits.result_bytes_max, deps.tool_limits.value_depth_max);
    // fires when this future is dropped, for work on other threads
    let cancellation = invocation.context.cancellation.clone().drop_guard();
    let begin = Instant::now();
    let deadline = begin + limit;
    let (context, was_waiting) = invocation.context.after_queue();
    let place = placed(&deps, &tool, &context, was_waiting);
    let permit = match tokio::time::timeout_at(deadline, place).await {
        Ok(Ok(permit)) => permit.map(Arc::new),
        Ok(Err(refused)) => return *refused,
        Err(_) => return timed_out(limit, limit),
    };
    let waited = begin.elapsed();
    // work on other threads can hold it for longer than this call
    let slot = permit.as_ref().map(Arc::downgrade).unwrap_or_default();
    let context = ToolContext { slot, ..context };
    let (follows_task, task_limit) = (context.follows_task.clone(), tool.task_timeout);
    let expiry = context.expiry.clone();
    let invocation = Invocation { context, ..invocation };
    let work = AssertUnwindSafe(perform(deps, tool, invocation)).catch_unwind();
    let mut work = pin!(work);
    let mut limit = limit;
    let ended = tokio::select! {
        biased;
        ended = tokio::time::timeout_at(deadline, &mut work) => ended,
        () = follows_task.cancelled() => {
            drop(permit);
            limit = task_limit.unwrap_or(limit);
            tokio::time::timeout_at(begin + limit, work).await
        }
    };
    match ended {
        Ok(Ok(returned)) => {
            cancellation.disarm();
            within(returned, bytes_max, depth_max)
        }
        // the panic message is in the panic hook's log only
        Ok(Err(_)) => ToolReturn::error("the tool stopped unexpectedly"),
        Err(_) => {
            // before the work is dropped
            expiry.set();
            timed_out(limit, waited)
        }
    }
}

/// Failure of a call without time left; `waited` is the part spent waiting for a permit.
fn timed_out(limit: Duration, waited: Duration) -> ToolReturn {
    let (limit, waited) = (limit.as_millis(), waited.as_millis());
    let message = match waited {
        0 => format!("timed out after {limit} ms"),
        _ => format!("timed out after {limit} ms, {waited} ms of which it waited for a free slot"),
    };
    ToolReturn::failure(AttemptFailure::new(ErrorKind::Timeout, message))
}

/// Returns the time limit of a call: for an agent with a larger budget than the default, its
/// budget.
pub(super) fn time_limit(
    deps: &GenerationDeps,
    tool: &ToolDefinition,
    arguments: &Value,
) -> Duration {
    let agent = match &tool.body {
        ToolBody::Function(_) | ToolBody::Workflow(_) | ToolBody::AskUser => None,
        ToolBody::Agent(id) => Some(id),
        ToolBody::Delegate(ids) => delegate::chosen(ids, arguments),
    };
    let own = agent.and_then(|id| deps.registry.agents.get(id)).and_then(|it| it.budget.time);
    let common = deps.tool_limits.timeout;
    tool.timeout.unwrap_or_else(|| own.map_or(common, |own| own.max(common)))
}

/// Waits for the place of a call among the concurrent calls of its tool, if these are limited. A call
/// that has to wait notes that, so that one whose process ends meanwhile is known not to have happened.
/// That is noted already of a call which a person has approved: its tool gets the approval before.
async fn placed(
    deps: &GenerationDeps,
    tool: &ToolDefinition,
    context: &ToolContext,
    was_waiting: bool,
) -> Result<Option<OwnedSemaphorePermit>, Box<ToolReturn>> {
    let refused = |why| Box::new(ToolReturn::error(why));
    let (permit, is_noted) = match &tool.permits {
        None => (None, was_waiting),
        Some(permits) => match Arc::clone(permits).try_acquire_owned() {
            Ok(permit) => (Some(permit), was_waiting),
            Err(TryAcquireError::Closed) => return Err(refused(CLOSED)),
            Err(TryAcquireError::NoPermits) => {
                let is_noted = was_waiting || context.note_queued().await;
                let permit = Arc::clone(permits).acquire_owned().await;
                (Some(permit.map_err(|_| refused(CLOSED))?), is_noted)
            }
        },
    };
    // places become free at the end of a stop, which drops those that wait too
    if deps.live.is_closed() {
        return std::future::pending().await;
    }
    if !is_noted {
        return Ok(permit);
    }
    if let (Some(accept), Some(subject)) = (&tool.on_approval, &context.approved) {
        let accepted = accept(Arc::clone(subject)).await;
        accepted.map_err(|failure| Box::new(ToolReturn::failure(failure)))?;
    }
    if !context.withdraw_queued().await {
        return Err(refused("the call was not made: its record cannot be written"));
    }
    Ok(permit)
}

/// Runs the tool.
async fn perform(
    deps: GenerationDeps,
    tool: Arc<ToolDefinition>,
    invocation: Invocation,
) -> ToolReturn {
    let Invocation { arguments, context, depth, is_repeated, is_of_step } = invocation;
    let lane = Lane::of(&tool.spec.name, context.user_id.as_deref());
    match &tool.body {
        ToolBody::Function(function) => {
            let context = ToolContext { home: deps.home.clone(), ..context };
            let function = Arc::clone(function);
            // the call itself may block before it returns a future
            let work = async move { function(arguments, context).await }.boxed();
            let result = match is_of_step {
                true => work.await,
                false => timed(work, |held| warn_of(&deps, &tool, held)).await,
            };
            returned(&deps.evaluations, lane, result).await
        }
        ToolBody::Workflow(id) => workflow::run(&deps, id, arguments, &context, depth).await,
        ToolBody::Agent(id) => match arguments.get("prompt").and_then(Value::as_str) {
            Some(prompt) => agent::ask(deps, id, prompt, &context, depth, is_repeated).await,
            None => ToolReturn::error("invalid arguments: prompt: must be a string"),
        },
        ToolBody::Delegate(ids) => match delegate::task(ids, &arguments) {
            Ok((id, task)) => agent::ask(deps, id, task, &context, depth, is_repeated).await,
            Err(detail) => ToolReturn::error(format!("invalid arguments: {detail}")),
        },
        ToolBody::AskUser => {
            let answer = context.ask(ask_user::question(&arguments));
            returned(&deps.evaluations, lane, answer).await
        }
    }
}

/// Warns of a tool that blocks its thread.
fn warn_of(deps: &GenerationDeps, tool: &ToolDefinition, held: Duration) {
    let tool = format!("tool {}", tool.spec.name);
    if deps.warned.is_due(&tool, Instant::now()) {
        let held_ms = held.as_millis();
        log::warn!(
            "{tool} blocked its thread for {held_ms} ms, and every agent and execution on it; \
             register it with Tool::blocking, or move the work to tokio::task::spawn_blocking"
        );
    }
}

async fn returned(
    evaluations: &Evaluations,
    lane: Lane,
    result: Result<Value, ToolError>,
) -> ToolReturn {
    match result {
        Ok(output) => ToolReturn::output(output),
        Err(ToolError::Failed(failure)) => ToolReturn::failure(failure),
        Err(ToolError::Waits(ask)) => match question::check(evaluations, lane, &ask).await {
            Ok(()) => ToolReturn::waiting(Waiting::Input(*ask)),
            Err(why) => ToolReturn::error(why),
        },
        Err(ToolError::NeedsApproval(needed)) => {
            ToolReturn::waiting(Waiting::Approval(gate::approval_for(*needed)))
        }
    }
}

/// Replaces a result that is too large or too deep by an error. Parts that are too large are described.
fn within(returned: ToolReturn, bytes_max: usize, depth_max: usize) -> ToolReturn {
    let ToolOutcome::Output(output) = returned.outcome else { return returned };
    let refused = match check_depth(&output, depth_max) {
        Err(too_deep) => format!("the result is {too_deep}"),
        Ok(()) => match fitting(output, bytes_max) {
            Some((output, _)) => {
                return ToolReturn { outcome: ToolOutcome::Output(output), ..returned };
            }
            None => format!("the result is larger than {bytes_max} bytes"),
        },
    };
    let failure = AttemptFailure::new(ErrorKind::Limit, refused);
    ToolReturn { usage: returned.usage, ..ToolReturn::failure(failure) }
}

/// Returns a result with its size as JSON, or of a list of parts their description if that alone is
/// within `bytes_max`; `None` if nothing is.
pub(in crate::agent::generation) fn fitting(
    output: Value,
    bytes_max: usize,
) -> Option<(Value, usize)> {
    if let Some(bytes) = bytes_within(&output, bytes_max) {
        return Some((output, bytes));
    }
    let described = Value::from(Content::described(&output)?);
    let bytes = bytes_within(&described, bytes_max)?;
    Some((described, bytes))
}

/// Returns the size of a value as JSON, or `None` above `bytes_max`. Writes nothing, and stops at
/// the limit.
pub(super) fn bytes_within(value: &Value, bytes_max: usize) -> Option<usize> {
    let mut room = Room { bytes_left: bytes_max };
    serde_json::to_writer(&mut room, value).ok()?;
    Some(bytes_max - room.bytes_left)
}

struct Room {
    bytes_left: usize,
}

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.bytes_left.checked_sub(bytes.len());
        self.bytes_left = left.ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_measured_as_it_is_written() {
        let rows = [json!(null), json!("a\"é\n"), json!({ "a": [1, 2.5, true], "b": {} })];
        for value in rows {
            let bytes = value.to_string().len();
            assert_eq!(bytes_within(&value, bytes), Some(bytes), "{value}");
            assert_eq!(bytes_within(&value, bytes - 1), None, "{value}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_described() {
        let picture = Content::result([Content::text("a"), Content::image("image/png", [0; 300])]);
        let text = json!("a\n[image: image/png, 300 bytes]");
        let (whole, short) = (picture.to_string().len(), text.to_string().len());
        for (output, bytes_max, expected) in [
            (picture.clone(), whole, Some((picture.clone(), whole))),
            (picture.clone(), whole - 1, Some((text.clone(), short))),
            (picture.clone(), short, Some((text, short))),
            (picture, short - 1, None),
            (json!("abc"), 5, Some((json!("abc"), 5))),
            (json!("abc"), 4, None),
        ] {
            assert_eq!(fitting(output, bytes_max), expected, "{bytes_max}");
        }
    }
}
