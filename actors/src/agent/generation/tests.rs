//! Generations with scripted models over a store in memory.

mod answers;
mod bounds;
mod chosen;
mod control;
mod conversations;
mod hooks;
mod spans;
mod subscribers;
mod tools;

use crate::domain::message::ToolCall;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::agent::generation::tools::ToolLimits;
use crate::agent::generation::tools::tests::deps_with;
use crate::agent::tool::{ToolBody, ToolDefinition};
use crate::agent::{AgentDefinition, Choice};
use crate::domain::message::Role;
use crate::domain::time::Timestamp;
use crate::limits::RuntimeLimits;
use crate::ports::clock::Clock;
use crate::ports::memory::MemoryStore;
use crate::ports::model::ToolSpec;
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use crate::ports::store::{
    AppendError, ConversationKey, GenerationEntry, GenerationPage, GenerationRecord,
    GenerationStatus, GenerationWrite, PageSize, Read, Row, StoredContinuation, UserCursor,
    Written,
};
use crate::registry::Registry;
use crate::visibility::Visibility;

use super::*;

/// A history that commits at once, or when the test allows it.
#[derive(Default)]
struct History {
    store: Arc<MemoryStore>,
    writes: Mutex<Vec<GenerationWrite>>,
    gated: bool,
    refuses: bool,
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl History {
    fn gated() -> Self {
        Self { gated: true, ..Self::default() }
    }

    fn refusing() -> Self {
        Self { refuses: true, ..Self::default() }
    }

    fn statuses(&self) -> Vec<GenerationStatus> {
        self.writes.lock().unwrap().iter().map(|write| write.record.status).collect()
    }

    fn last(&self) -> GenerationRecord {
        self.writes.lock().unwrap().last().unwrap().record.clone()
    }

    /// Returns every step as written: number, text, calls and results.
    fn steps(&self) -> Vec<String> {
        let writes = self.writes.lock().unwrap();
        let steps = writes.iter().flat_map(|write| &write.steps).map(|(number, step)| {
            let calls = step.tool_calls.iter().map(|call| format!(" {}!", call.tool_call_id));
            let results = step
                .tool_results
                .iter()
                .map(|result| format!(" {}={}", result.tool_call_id, json!(result.outcome)));
            let done: String = calls.chain(results).collect();
            format!("{number}:{}{done}", step.text)
        });
        steps.collect()
    }

    fn commit(&self) {
        for waiting in self.waiting.lock().unwrap().drain(..) {
            let _ = waiting.send(());
        }
    }
}

impl crate::ports::store::Generations for History {
    fn next_generation_row(&self) -> Option<i64> {
        Some(1)
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        self.writes.lock().unwrap().push(write.clone());
        if self.refuses {
            return async { Err(AppendError::Unavailable(Arc::from("disk full"))) }.boxed();
        }
        let recorded = self.store.record_generation(write);
        if !self.gated {
            return recorded;
        }
        let (allow, allowed) = oneshot::channel();
        self.waiting.lock().unwrap().push(allow);
        allowed.map(|_| Ok(())).boxed()
    }

    fn generations<'a>(
        &'a self,
        agent: &'a str,
        user: Option<&'a str>,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, GenerationPage> {
        self.store.generations(agent, user, offset, size)
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        self.store.generation(id)
    }

    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        self.writes.lock().unwrap().push(write.clone());
        self.store.settle_generation(revision, write)
    }

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>> {
        self.store.continuation(id)
    }

    fn unfinished_of_user<'a>(
        &'a self,
        user_id: &'a str,
        after: Option<&'a UserCursor>,
        limit: usize,
    ) -> Read<'a, Vec<(UserCursor, String)>> {
        self.store.unfinished_of_user(user_id, after, limit)
    }

    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>> {
        self.store.suspended_in(key)
    }

    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>> {
        self.store.adopt_interrupted(after, limit)
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        self.store.interrupt_working(now)
    }
}

/// A clock that always returns noon.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp(43_200_000)
    }

    fn new_id(&self) -> Arc<str> {
        Arc::from("fresh")
    }
}

struct World {
    model: ScriptedModel,
    history: Arc<History>,
    active: Arc<ActiveGenerations>,
    deps: GenerationDeps,
    calls: Calls,
}

impl World {
    fn new(model: ScriptedModel, history: History) -> Self {
        Self::with(model, history, |_| {})
    }

    fn local(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::new(ScriptedModel::local(script), History::default())
    }

    /// Creates a world with a change to the agent `writer`.
    fn with(
        model: ScriptedModel,
        history: History,
        change: impl FnOnce(&mut AgentDefinition),
    ) -> Self {
        let mut agent = AgentDefinition {
            id: "writer".to_owned(),
            name: "Writer".to_owned(),
            instructions: Some(Choice::Source(
                "Be {{ context.tone | default('kind') }}.".to_owned(),
            )),
            model: "scripted".into(),
            ..AgentDefinition::default()
        };
        change(&mut agent);
        let mut registry = Registry::default();
        registry.models.insert("scripted".to_owned(), Arc::new(model.clone()));
        let lost =
            AgentDefinition { id: "lost".to_owned(), model: "nowhere".into(), ..agent.clone() };
        registry.agents.insert("lost".to_owned(), Arc::new(lost));
        registry.agents.insert("writer".to_owned(), Arc::new(agent));
        let calls = Calls::default();
        registry.tools =
            calls.tools().map(|tool| (tool.spec.name.clone(), Arc::new(tool))).collect();
        let history = Arc::new(history);
        let deps = GenerationDeps {
            generations: Arc::clone(&history) as _,
            conversations: Arc::clone(&history.store) as _,
            clock: Arc::new(Noon),
            tool_limits: ToolLimits::from(&RuntimeLimits::default()),
            bytes_max: 4096,
            ..deps_with(registry)
        };
        let active = Arc::clone(&deps.active);
        Self { model, history, active, deps, calls }
    }

    fn spawn(&self, request: GenerationRequest) -> GenerationHandle {
        self.spawn_for(request, None)
    }

    fn spawn_for(
        &self,
        request: GenerationRequest,
        subscriber: Option<GenerationSubscriber>,
    ) -> GenerationHandle {
        let arbiter = actix::Arbiter::current();
        spawn_generation(&arbiter, self.deps.clone(), request, "g1".to_owned(), subscriber)
    }

    /// Spawns a generation with a recording subscriber, which lives as long as its address.
    fn spawn_recorded(
        &self,
        request: GenerationRequest,
    ) -> (GenerationHandle, Recorder, actix::Addr<RecorderActor>) {
        let recorder = Recorder::default();
        let (subscriber, actor) = recorder.subscribe();
        (self.spawn_for(request, Some(subscriber)), recorder, actor)
    }

    async fn run(&self, request: GenerationRequest) -> Result<Generation, GenerateError> {
        self.spawn(request).outcome().await
    }
}

/// Counts calls of the tests' tools.
#[derive(Default, Clone)]
struct Calls {
    made: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
}

/// A running call; uncounts it on drop.
struct RunningCall(Arc<AtomicUsize>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Calls {
    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Returns the tools: `add` returns n + 1 after n seconds, `say` n letters, `fail` an error,
    /// `hang` never returns.
    fn tools(&self) -> impl Iterator<Item = ToolDefinition> {
        ["add", "fail", "hang", "say"].into_iter().map(|name| {
            let calls = self.clone();
            let body = ToolBody::Function(Arc::new(move |input: Value, _| {
                calls.made.fetch_add(1, Ordering::SeqCst);
                calls.running.fetch_add(1, Ordering::SeqCst);
                let running = RunningCall(Arc::clone(&calls.running));
                async move {
                    let _running = running;
                    let n = input["n"].as_u64().unwrap_or_default();
                    match name {
                        "add" if n == 0 => {}
                        "add" => tokio::time::sleep(Duration::from_secs(n)).await,
                        "fail" => return Err("no luck".into()),
                        "say" => return Ok(Value::from("x".repeat(n as usize))),
                        _ => std::future::pending().await,
                    }
                    Ok(json!(n + 1))
                }
                .boxed()
            }));
            let parameters = json!({ "type": "object" });
            let description = String::new();
            ToolDefinition::new(ToolSpec { name: name.to_owned(), description, parameters }, body)
                .unwrap()
        })
    }
}

/// Records received events.
#[derive(Default, Clone)]
struct Recorder {
    received: Arc<Mutex<Vec<GenerationEvent>>>,
    cuts: Arc<AtomicUsize>,
}

struct RecorderActor(Recorder);

impl actix::Actor for RecorderActor {
    type Context = actix::Context<Self>;
}

impl actix::Handler<GenerationProgress> for RecorderActor {
    type Result = ();

    fn handle(&mut self, GenerationProgress(events): GenerationProgress, _: &mut Self::Context) {
        self.0.received.lock().unwrap().extend(events.iter().cloned());
    }
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Leave;

impl actix::Handler<Leave> for RecorderActor {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        actix::ActorContext::stop(ctx);
    }
}

impl Recorder {
    fn subscribe(&self) -> (GenerationSubscriber, actix::Addr<RecorderActor>) {
        let actor = RecorderActor(self.clone()).start();
        let cuts = Arc::clone(&self.cuts);
        let disconnect = Arc::new(move || {
            cuts.fetch_add(1, Ordering::SeqCst);
        });
        (GenerationSubscriber { events: actor.clone().recipient(), disconnect }, actor)
    }

    fn received(&self) -> Vec<GenerationEvent> {
        self.received.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        let received = self.received();
        let deltas = received.iter().filter_map(|event| match event {
            GenerationEvent::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

fn request(schema: Option<Value>) -> GenerationRequest {
    GenerationRequest {
        agent_id: "writer".to_owned(),
        messages: vec![Message::text(Role::User, "hello")],
        input: json!("hello"),
        schema,
        user_id: Some("anna".to_owned()),
        ..GenerationRequest::default()
    }
}

/// Returns the conversation `talk` of `writer` and `anna`.
fn key() -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("writer"),
        user_id: Some(Arc::from("anna")),
        conversation_id: Arc::from("talk"),
    }
}

fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

fn call(id: &str, name: &str, n: u64) -> ToolCall {
    ToolCall { tool_call_id: id.to_owned(), tool_name: name.to_owned(), input: json!({ "n": n }) }
}

fn calls(calls: impl IntoIterator<Item = ToolCall>) -> ScriptedAnswer {
    ScriptedAnswer::ToolCalls(calls.into_iter().collect())
}

/// Gives an agent the tests' tools.
fn with_tools(agent: &mut AgentDefinition) {
    agent.tools = Choice::Fixed(["add", "fail", "hang", "say"].map(str::to_owned).to_vec());
}

/// Lets every task on this thread run until all of them wait for the test.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
