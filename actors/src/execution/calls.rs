//! Bodies that are calls: of functions, servers, programs and tools.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix::{AsyncContext, Context};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agent::ToolAsk;
use crate::agent::generation::tools::{Invocation, ToolReturn, Waiting, checked, invoke};
use crate::agent::tool::{Answers, Expiry, NoteRecipient, NoteSender, ToolContext, ToolDefinition};
use crate::domain::fact::McpCall;
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::StepPath;
use crate::domain::machine::{
    Callee, DueCall, FunctionCall, Machine, Spent, StepResult, ToolQuestion,
};
use crate::domain::message::ToolOutcome;
use crate::domain::question::{Question, Questions};
use crate::domain::trace::Trace;
use crate::execution::bodies::{Body, BodyEnd, is_set, panic_text, timed_out};
use crate::execution::progress::{ProgressRelay, RelayGuard};
use crate::execution::{ExecutionActor, LiveExecution};
use crate::function::{ProgressSender, StepContext, StepFunction, StepOutcome};
use crate::observe::trace::execution::attempt_span;
use crate::ports::external_calls::CallOrigin;
use crate::ports::model::Usage;
use crate::ports::workers::Lane;
use crate::registry::Missing;

impl ExecutionActor {
    pub(super) fn start_call(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        self.prepare(path, attempt, Machine::call, Self::begin_call, ctx);
    }

    fn begin_call(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: DueCall,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        let token = CancellationToken::new();
        let tool = match &call.callee {
            Callee::Tool { tool, .. } => Some(Arc::clone(tool)),
            Callee::Function(_) | Callee::Http(_) | Callee::Command(_) => None,
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        let notes = NoteSender {
            recipient: NoteRecipient::Step {
                path: Arc::clone(path),
                attempt,
                execution: ctx.address().recipient(),
            },
            is_interrupted: is_set(&interrupted),
        };
        let begun = self.work_of(life, path, attempt, (call, notes), &token);
        match begun {
            Ok((work, relay)) => {
                let body = Body { work, tool, cancellation: token, interrupted, relay };
                self.start_body(path, attempt, body, ctx);
            }
            // Removed since the step began; it is called once it is registered again.
            Err(name) => match self.shared.note_missing(name) {
                Some(missing) => log::warn!("execution {}: {missing}", self.id),
                None => self.start_bodies(ctx),
            },
        }
    }

    /// Returns the call as a future, or the missing name that it would call.
    fn work_of(
        &self,
        life: &LiveExecution,
        path: &StepPath,
        attempt: u32,
        (call, notes): (DueCall, NoteSender),
        token: &CancellationToken,
    ) -> Result<(BoxFuture<'static, BodyEnd>, Option<RelayGuard>), Missing> {
        let DueCall { callee, timeout_ms } = call;
        let registry = self.shared.registry();
        // Every call that leaves the process has a timeout.
        let outside_ms =
            timeout_ms.unwrap_or_else(|| milliseconds(self.shared.limits.call_timeout));
        let outside = |call: BoxFuture<'static, Result<Value, AttemptFailure>>| {
            let call = call.map(ended).boxed();
            within(Some(outside_ms), call, token.clone(), Expiry::default()).boxed()
        };
        let origin = || self.call_origin(life, path, attempt);
        let work = match callee {
            Callee::Function(call) => {
                let registered = registry.functions.get(&*call.function).cloned();
                let built_in = || self.shared.built_in_function(&call.function);
                let Some(function) = registered.or_else(built_in) else {
                    return Err(Missing::Function(call.function));
                };
                let context = self.step_context(life, path, attempt, call, token.clone());
                return Ok(self.function_body(life, function, context, timeout_ms));
            }
            Callee::Http(request) => outside(self.shared.external_calls.http(*request, origin())),
            Callee::Command(run) => outside(self.shared.external_calls.command(*run, origin())),
            Callee::Tool { tool: name, args, questions, noted } => {
                let tool = registry.tools.get(&*name).cloned();
                let tool = tool.ok_or(Missing::Tool(name))?;
                let context = self.tool_context(life, path, attempt, token.clone());
                let context = after_questions(context, questions.as_deref());
                let (relay, progress) = self.relay(life, path);
                let (has_noted, memo) = (noted.is_some(), noted.or(context.memo));
                let notes = Some(notes);
                let context = ToolContext { progress, memo, has_noted, notes, ..context };
                let depth = life.machine.state().start.depth + 1;
                let body = self.tool_body(tool, args, context, depth, timeout_ms);
                return Ok((flushed(body, relay.as_ref()), relay));
            }
        };
        Ok((work, None))
    }

    fn function_body(
        &self,
        life: &LiveExecution,
        function: StepFunction,
        context: StepContext,
        timeout_ms: Option<u64>,
    ) -> (BoxFuture<'static, BodyEnd>, Option<RelayGuard>) {
        let (relay, progress) = self.relay(life, &context.path);
        let token = context.cancellation.clone();
        let context = StepContext { progress, ..context };
        let work = run_function(function, context);
        let body = within(timeout_ms, work, token, Expiry::default());
        (flushed(body, relay.as_ref()), relay)
    }

    /// Returns the relay of an attempt, and the sender of its progress.
    fn relay(&self, life: &LiveExecution, path: &StepPath) -> (Option<RelayGuard>, ProgressSender) {
        // Without subscribers its progress has no recipient.
        let relay = life.subscribers.want_progress().then(|| {
            let (subscribers, clock) = (life.subscribers.clone(), Arc::clone(&self.shared.clock));
            ProgressRelay::start(self.id.clone(), Arc::clone(path), subscribers, clock)
        });
        let sender = relay.as_ref().map(|relay| relay.sender(&self.shared)).unwrap_or_default();
        (relay, sender)
    }

    fn tool_body(
        &self,
        tool: Arc<ToolDefinition>,
        args: Value,
        context: ToolContext,
        depth: u32,
        timeout_ms: Option<u64>,
    ) -> BoxFuture<'static, BodyEnd> {
        let (token, expiry) = (context.cancellation.clone(), context.expiry.clone());
        let (reached, name) = (context.reached.clone(), Arc::from(tool.spec.name.as_str()));
        match self.shared.generation_deps() {
            Some(deps) => {
                let lane = Lane::of(&tool.spec.name, context.user_id.as_deref());
                let answer = async move {
                    let depth_max = deps.tool_limits.value_depth_max;
                    match checked(&deps.evaluations, lane, &tool, args, depth_max).await {
                        Ok(arguments) => {
                            let invocation = Invocation {
                                arguments,
                                context,
                                depth,
                                is_repeated: false,
                                is_of_step: true,
                            };
                            returned(invoke(deps, tool, invocation).await)
                        }
                        Err(why) => failed(ErrorKind::Schema, format!("invalid arguments: {why}")),
                    }
                };
                async move {
                    let ended = within(timeout_ms, answer.boxed(), token, expiry).await;
                    let mcp = reached.take().map(|request| McpCall { tool: Some(name), ..request });
                    let spent = Spent { mcp: mcp.map(Box::new), ..ended.spent };
                    BodyEnd { spent, ..ended }
                }
                .boxed()
            }
            None => {
                let why = "the server is still starting";
                std::future::ready(failed(ErrorKind::Internal, why)).boxed()
            }
        }
    }

    fn step_context(
        &self,
        life: &LiveExecution,
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
            resumed_by: call.resumed_by,
            error: call.error,
            outputs: call.outputs,
            context: Arc::clone(&start.context),
            execution_id: life.machine.acts_for().clone(),
            path: Arc::clone(path),
            attempt,
            idempotency_key: life.machine.idempotency_key(path),
            trace: self.trace_below(life, path, attempt),
            cancellation,
            progress: ProgressSender::default(),
            home: self.shared.home.clone(),
        }
    }

    fn call_origin(&self, life: &LiveExecution, path: &StepPath, attempt: u32) -> CallOrigin {
        CallOrigin {
            name: Arc::from(format!("step {path}")),
            idempotency_key: life.machine.idempotency_key(path),
            attempt: Some((self.id.clone(), attempt)),
            trace: Some(self.trace_below(life, path, attempt)),
        }
    }

    fn tool_context(
        &self,
        life: &LiveExecution,
        path: &StepPath,
        attempt: u32,
        cancellation: CancellationToken,
    ) -> ToolContext {
        let start = &life.machine.state().start;
        let context = start.context.as_object();
        let key = life.machine.idempotency_key(path);
        ToolContext {
            user_id: start.user_id.clone(),
            conversation_id: start.conversation_id.clone(),
            context: Arc::new(context.map_or_else(Map::new, Map::clone)),
            cancellation,
            trace: Some(self.trace_below(life, path, attempt)),
            is_repetition: follows_interruption(life, path),
            after: life.machine.failures_before(path).map(Arc::from),
            home: self.shared.home.clone(),
            ..ToolContext::new(Arc::from(key.as_str()), key)
        }
    }

    /// Returns the trace of what an attempt calls.
    fn trace_below(&self, life: &LiveExecution, path: &StepPath, attempt: u32) -> Trace {
        let trace = &life.machine.state().start.trace;
        trace.below(attempt_span(trace, &self.id, path, attempt))
    }
}

/// Ends once all progress of a body has been published.
fn flushed(
    body: impl Future<Output = BodyEnd> + Send + 'static,
    relay: Option<&RelayGuard>,
) -> BoxFuture<'static, BodyEnd> {
    let flushed = relay.map(RelayGuard::flushed);
    async move {
        let ended = body.await;
        if let Some(flushed) = flushed {
            flushed.await;
        }
        ended
    }
    .boxed()
}

/// Adds the answers to earlier questions of a tool.
fn after_questions(context: ToolContext, questions: Option<&Questions>) -> ToolContext {
    let Some(questions) = questions else { return context };
    let given = questions.answers.iter().map(|given| Value::clone(&given.data)).collect();
    let memo = questions.newest.memo.clone();
    ToolContext { answers: Arc::new(Answers::new(given)), memo, ..context }
}

fn question_of(ask: ToolAsk) -> ToolQuestion {
    let ToolAsk { question: reason, schema, to, deadline, is_declinable, memo, .. } = ask;
    let memo = memo.map(Arc::new);
    let question = Question { schema, can_decline: is_declinable, memo };
    let deadline_ms = deadline.map(milliseconds);
    ToolQuestion { reason, to, deadline_ms, question: Arc::new(question) }
}

/// Returns true if the process ended during the attempt before the current one.
fn follows_interruption(life: &LiveExecution, path: &StepPath) -> bool {
    let node = life.machine.node(path).map(|(_, node)| node);
    let before = node.and_then(|node| {
        let newest = node.errors.last()?;
        (newest.attempt + 1 == node.attempt).then_some(newest)
    });
    let class = before.and_then(|error| error.class.as_ref());
    class.is_some_and(|class| class.kind == ErrorKind::Interrupted)
}

/// Applies the attempt timeout, and fires the cancellation token for work on other threads.
async fn within(
    timeout_ms: Option<u64>,
    body: BoxFuture<'static, BodyEnd>,
    cancellation: CancellationToken,
    expiry: Expiry,
) -> BodyEnd {
    let body = AssertUnwindSafe(body).catch_unwind().map(|ended| {
        ended.unwrap_or_else(|panic| {
            failed(ErrorKind::Function, format!("panicked: {}", panic_text(&*panic)))
        })
    });
    let Some(ms) = timeout_ms else { return body.await };
    let mut body = pin!(body);
    tokio::time::timeout(Duration::from_millis(ms), &mut body).await.unwrap_or_else(|_| {
        expiry.set();
        cancellation.cancel();
        BodyEnd::of(StepResult::Failed(timed_out(ms)))
    })
}

fn run_function(function: StepFunction, context: StepContext) -> BoxFuture<'static, BodyEnd> {
    // The call itself may panic before it returns a future.
    let call = async move { function(context).await };
    call.map(|ended| {
        BodyEnd::of(match ended {
            Ok(StepOutcome::Completed(output)) => StepResult::Completed(Arc::new(output)),
            Ok(StepOutcome::Suspended { reason, payload }) => {
                StepResult::Suspended { reason, payload: payload.map(Arc::new) }
            }
            Err(error) => StepResult::Failed(error.into()),
        })
    })
    .boxed()
}

fn ended(result: Result<Value, AttemptFailure>) -> BodyEnd {
    BodyEnd::of(match result {
        Ok(output) => StepResult::Completed(Arc::new(output)),
        Err(failure) => StepResult::Failed(failure),
    })
}

fn failed(kind: ErrorKind, message: impl Into<String>) -> BodyEnd {
    BodyEnd::of(StepResult::Failed(AttemptFailure::new(kind, message)))
}

/// Returns the end of a tool call; usage of an agent behind the tool is the step's.
fn returned(returned: ToolReturn) -> BodyEnd {
    let ToolReturn { outcome, usage, failure, waits, mcp: _ } = returned;
    if let Some(Waiting::Input(ask)) = waits.map(|waits| *waits) {
        return BodyEnd::of(StepResult::Asked(Box::new(question_of(ask))));
    }
    let result = match outcome {
        ToolOutcome::Output(output) => StepResult::Completed(Arc::new(output)),
        ToolOutcome::Error(message) | ToolOutcome::Denied(message) => {
            let known =
                failure.map(|failure| AttemptFailure { message: message.clone(), ..*failure });
            let failure = known.unwrap_or_else(|| AttemptFailure::new(ErrorKind::Tool, message));
            StepResult::Failed(failure)
        }
    };
    let usage = (usage != Usage::default()).then_some(usage);
    BodyEnd { result, spent: Spent { usage, mcp: None } }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
