//! Bodies that are calls: of functions, other servers, programs and tools.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use actix::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::domain::ids::StepPath;
use crate::domain::machine::{Callee, DueCall, FunctionCall, StepResult};
use crate::domain::message::ToolOutcome;
use crate::domain::trace::Trace;
use crate::execution::bodies::{Body, BodyEnd, panic_text, timed_out};
use crate::execution::{ExecutionActor, Life};
use crate::function::{StepContext, StepFunction, StepOutcome};
use crate::generation::tools::{Invocation, ToolReturn, checked, invoke};
use crate::ports::model::Usage;
use crate::ports::outside::CallOrigin;
use crate::registry::Absent;
use crate::tool::ToolContext;
use crate::trace::execution::attempt_span;

impl ExecutionActor {
    pub(super) fn start_call(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let call = self.core.at_moment(|moment| life.machine.call(path, moment));
        match call {
            None => {}
            Some(Err(error)) => self.fail_attempt(path, attempt, error, ctx),
            Some(Ok(call)) => {
                let token = CancellationToken::new();
                match self.work_of(life, path, attempt, call, &token) {
                    Ok(work) => {
                        let body = Body { work, cancellation: token, relay: None };
                        self.start_body(path, attempt, body, ctx);
                    }
                    // It went since the step began; it is called once it is registered again.
                    Err(name) => match self.core.absent(name) {
                        Some(absent) => log::warn!("execution {}: {absent}", self.id),
                        None => self.start_bodies(ctx),
                    },
                }
            }
        }
    }

    /// The work of a call, or the name that it needs and that is not there.
    fn work_of(
        &self,
        life: &Life,
        path: &StepPath,
        attempt: u32,
        call: DueCall,
        token: &CancellationToken,
    ) -> Result<BoxFuture<'static, BodyEnd>, Absent> {
        let DueCall { callee, timeout_ms } = call;
        // Nobody waits for ever for what is not in this process.
        let outside_ms = timeout_ms.unwrap_or_else(|| milliseconds(self.core.limits.call_timeout));
        Ok(match callee {
            Callee::Function(call) => {
                let function = self.core.registry().functions.get(&*call.function).cloned();
                let Some(function) = function else {
                    return Err(Absent::Function(call.function));
                };
                let context = self.step_context(life, path, attempt, call, token.clone());
                within(timeout_ms, run_function(function, context)).boxed()
            }
            Callee::Http(request) => {
                let origin = self.call_origin(life, path, attempt);
                let answer = self.core.outside.http(*request, origin);
                within(Some(outside_ms), answer.map(ended).boxed()).boxed()
            }
            Callee::Command(run) => {
                let origin = self.call_origin(life, path, attempt);
                let output = self.core.outside.command(*run, origin);
                within(Some(outside_ms), output.map(ended).boxed()).boxed()
            }
            Callee::Tool { tool, args } => {
                let Some(deps) = self.core.generations.get().cloned() else {
                    return Err(Absent::Tool(tool));
                };
                let registered = self.core.registry().tools.get(&*tool).cloned();
                let Some(tool) = registered else { return Err(Absent::Tool(tool)) };
                let arguments = match checked(&tool, args) {
                    Ok(arguments) => arguments,
                    Err(why) => {
                        let refused = format!("invalid arguments: {why}");
                        return Ok(std::future::ready(failed(refused)).boxed());
                    }
                };
                let context = self.tool_context(life, path, attempt, token.clone());
                let depth = life.machine.state().start.depth + 1;
                let invocation = Invocation { arguments, context, depth };
                within(timeout_ms, invoke(deps, tool, invocation).map(returned).boxed()).boxed()
            }
        })
    }

    fn step_context(
        &self,
        life: &Life,
        path: &StepPath,
        attempt: u32,
        call: FunctionCall,
        cancellation: CancellationToken,
    ) -> StepContext {
        let start = &life.machine.state().start;
        StepContext {
            data: call.data,
            input: Arc::clone(&start.input),
            resume: call.resume,
            context: Arc::clone(&start.context),
            execution_id: self.id.clone(),
            path: Arc::clone(path),
            attempt,
            idempotency_key: self.idempotency_key(path),
            trace: self.trace_below(life, path, attempt),
            cancellation,
        }
    }

    fn call_origin(&self, life: &Life, path: &StepPath, attempt: u32) -> CallOrigin {
        CallOrigin {
            name: Arc::from(format!("step {path}")),
            idempotency_key: self.idempotency_key(path),
            attempt: Some((self.id.clone(), attempt)),
            trace: Some(self.trace_below(life, path, attempt)),
        }
    }

    fn tool_context(
        &self,
        life: &Life,
        path: &StepPath,
        attempt: u32,
        cancellation: CancellationToken,
    ) -> ToolContext {
        let start = &life.machine.state().start;
        let context = start.context.as_object();
        let idempotency_key = self.idempotency_key(path);
        ToolContext {
            agent_id: None,
            generation_id: None,
            tool_call_id: Arc::from(idempotency_key.as_str()),
            user_id: start.user_id.clone(),
            conversation_id: start.conversation_id.clone(),
            context: Arc::new(context.map_or_else(Map::new, Map::clone)),
            idempotency_key,
            cancellation,
            trace: Some(self.trace_below(life, path, attempt)),
        }
    }

    /// The same for every attempt of a step.
    fn idempotency_key(&self, path: &StepPath) -> String {
        format!("{}/{path}", self.id)
    }

    fn trace_below(&self, life: &Life, path: &StepPath, attempt: u32) -> Trace {
        let trace = &life.machine.state().start.trace;
        trace.below(attempt_span(trace, &self.id, path, attempt))
    }
}

/// Bounds an attempt in time.
async fn within(timeout_ms: Option<u64>, body: BoxFuture<'static, BodyEnd>) -> BodyEnd {
    let body = AssertUnwindSafe(body).catch_unwind().map(|ended| {
        ended.unwrap_or_else(|panic| failed(format!("panicked: {}", panic_text(&*panic))))
    });
    match timeout_ms {
        None => body.await,
        Some(ms) => tokio::time::timeout(Duration::from_millis(ms), body)
            .await
            .unwrap_or_else(|_| failed(timed_out(ms))),
    }
}

fn run_function(function: StepFunction, context: StepContext) -> BoxFuture<'static, BodyEnd> {
    // The call itself may panic before it gives a future.
    let call = async move { function(context).await };
    call.map(|ended| {
        BodyEnd::of(match ended {
            Ok(StepOutcome::Completed(output)) => StepResult::Completed(output),
            Ok(StepOutcome::Suspended { reason, payload }) => {
                StepResult::Suspended { reason, payload }
            }
            Err(error) => StepResult::Failed(error.0),
        })
    })
    .boxed()
}

fn ended(result: Result<Value, String>) -> BodyEnd {
    BodyEnd::of(result.map_or_else(StepResult::Failed, StepResult::Completed))
}

fn failed(message: String) -> BodyEnd {
    BodyEnd::of(StepResult::Failed(message))
}

/// What an agent behind the tool used is the step's use.
fn returned(returned: ToolReturn) -> BodyEnd {
    let ToolReturn { outcome, usage } = returned;
    let result = match outcome {
        ToolOutcome::Output(output) => StepResult::Completed(output),
        ToolOutcome::Error(message) => StepResult::Failed(message),
    };
    BodyEnd { result, usage: (usage != Usage::default()).then_some(usage) }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
