//! Agents as steps: their requests and usage, and how they are stopped and started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::BoxStream;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::definition::{OnError, StepDefinition, StepKind};
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Role, Usage,
};
use greenroom_actors::ports::store::{GenerationRecord, GenerationStatus, Status};
use greenroom_actors::requests::{StartExecution, StepStatus};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::progress::collector;
use crate::workflows::{
    self, Calls, add_agent, all, map, race, retried, run, sleep, spawn, step, with_functions,
    workflow,
};

/// Time that the model takes for an answer.
const PACE: Duration = Duration::from_millis(100);

/// A scripted model that takes its time and counts streamed answers.
#[derive(Clone)]
pub(crate) struct Model {
    script: ScriptedModel,
    pub(crate) streamed: Arc<AtomicUsize>,
}

impl Model {
    pub(crate) fn new(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self { script: ScriptedModel::remote(script), streamed: Arc::default() }
    }

    pub(crate) fn requests(&self) -> usize {
        self.script.requests().len()
    }

    /// Returns the messages of this role that it got, request by request.
    pub(crate) fn received(&self, role: Role) -> Vec<String> {
        let requests = self.script.requests();
        let messages = requests.iter().flat_map(|request| request.messages.iter());
        messages
            .filter(|message| message.role == role)
            .map(|message| message.plain_text())
            .collect()
    }
}

impl LanguageModel for Model {
    fn name(&self) -> &str {
        "scripted"
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let answering = self.script.generate(request);
        async move {
            let answer = answering.await;
            pass(PACE).await;
            answer
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.streamed.fetch_add(1, Ordering::SeqCst);
        let slow = |event| async move {
            pass(PACE / 10).await;
            event
        };
        self.script.stream(request).then(slow).boxed()
    }
}

pub(crate) fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

fn error() -> ScriptedAnswer {
    ScriptedAnswer::Error(ModelError::new(ModelErrorKind::Other, "no answer"))
}

pub(crate) fn agent(id: &str) -> StepDefinition {
    asking(id, None, None)
}

fn asking(id: &str, schema: Option<Value>, options: Option<Value>) -> StepDefinition {
    let (agent, prompt) = ("helper".to_owned(), Some(format!("do {id}")));
    step(id, StepKind::Agent { agent, prompt, schema, options })
}

async fn world_with(helper: AgentDefinition, model: &Model, steps: Vec<StepDefinition>) -> World {
    let mut registry = with_functions(registry_of([workflow("w", steps)]), &Calls::default());
    add_agent(&mut registry, "helper", model.clone(), helper);
    World::launch(registry, RuntimeLimits::default()).await
}

pub(crate) async fn world(model: &Model, steps: Vec<StepDefinition>) -> World {
    world_with(AgentDefinition::default(), model, steps).await
}

/// Starts the execution without waiting for it.
fn begin(world: &World) {
    spawn(world, start("w", "e", json!({})));
}

async fn history(world: &World) -> Vec<GenerationRecord> {
    let page = world.runtime.history("helper", &Visibility::Everything, 0, 10).await.unwrap();
    page.entries.into_iter().map(|entry| entry.record).collect()
}

pub(crate) async fn status(world: &World) -> Status {
    world.runtime.describe(&target("w", "e")).await.unwrap().status
}

async fn resume(world: &World) {
    world.runtime.resume(&target("w", "e"), workflows::resume(json!({}))).await.unwrap();
}

#[actix::test]
async fn the_usage_of_agents_is_in_the_state_and_in_the_output() {
    tokio::time::pause();
    let object = json!({ "type": "object", "required": ["n"] });
    let answers = ["hi", "no object", "nor this", "{\"n\":1}", "ho"].map(text);
    let model = Model::new([error()].into_iter().chain(answers));
    let steps = vec![
        retried(agent("a"), 2, 10),
        retried(asking("b", Some(object), None), 2, 10),
        agent("c"),
        sleep("z", 1),
    ];
    let world = world(&model, steps).await;
    let outcome = spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_millis(1)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.usage, None, "nothing is known before the first answer");
    let outcome = outcome.await.unwrap().unwrap();
    let usage = json!({ "promptTokens": 1, "completionTokens": 1, "totalTokens": 2,
                        "cachedInputTokens": 0, "reasoningTokens": 0 });
    assert_eq!(outcome.result(), Some(&json!({ "text": "ho", "usage": usage })));
    let used =
        Usage { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10, ..Usage::default() };
    let world = world.restart().await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.usage, Some(used));
    assert_eq!(state.steps[1].output.as_deref(), Some(&json!({ "n": 1 })));
}

#[actix::test]
async fn the_call_of_a_step_reaches_the_model_and_the_history() {
    tokio::time::pause();
    let model = Model::new([text("{\"n\":1}")]);
    let schema = json!({ "type": "object", "required": ["n"] });
    let options = json!({
        "temperature": 0.25, "maxOutputTokens": 20, "topP": 0.5, "frequencyPenalty": 0.5,
        "presencePenalty": 0.75, "seed": 7, "stopSequences": ["END"],
        "providerOptions": { "a": { "b": 1 } }, "maxSteps": 3, "contextLimit": 4
    });
    let helper = AgentDefinition {
        instructions: Some(Choice::Source("Serve {{ user.name }}.".to_owned())),
        ..AgentDefinition::default()
    };
    let steps = vec![asking("a", Some(schema.clone()), Some(options.clone()))];
    let world = world_with(helper, &model, steps).await;
    let context = json!({ "user": { "name": "Ada" } });
    let request = StartExecution {
        user_id: Some("ada".to_owned()),
        conversation_id: Some("c1".to_owned()),
        context: context.as_object().unwrap().clone(),
        ..start("w", "e", json!({}))
    };
    world.runtime.execute(request).await.unwrap();

    let request = model.script.requests().remove(0);
    assert_eq!(request.schema.as_deref(), Some(&schema));
    for (key, value) in serde_json::to_value(&request.options).unwrap().as_object().unwrap() {
        assert_eq!(value, &options[key], "{key}");
    }
    let messages: Vec<_> = request.messages.iter().map(|message| message.plain_text()).collect();
    assert_eq!(messages, ["Serve Ada.", "do a"]);
    let entry = history(&world).await.remove(0);
    let origin = entry.origin.unwrap();
    assert_eq!((origin.execution_id.as_str(), &*origin.path), ("e", "a"));
    assert_eq!(entry.user_id.as_deref(), Some("ada"));
    assert_eq!(entry.conversation_id.as_deref(), Some("c1"));
    assert_eq!((entry.input, entry.output), (json!("do a"), Some(json!({ "n": 1 }))));
}

#[actix::test]
async fn the_end_of_a_step_drops_its_model_call_at_once() {
    tokio::time::pause();
    let limited = StepDefinition { timeout_ms: Some(200), ..agent("a") };
    let late = || vec![sleep("s", 100), run("fails", "boom")];
    let cases = [
        ("cancel", vec![agent("a")], Status::Cancelled),
        (
            "a lost race",
            vec![race("r", vec![("x", vec![agent("a")]), ("y", vec![sleep("s", 100)])])],
            Status::Completed,
        ),
        (
            "a failed sibling",
            vec![all("b", vec![("x", vec![agent("a")]), ("y", late())])],
            Status::Error,
        ),
        ("a timeout", vec![limited], Status::Error),
    ];
    let read = cases.clone().map(|case| (case, true));
    for ((name, steps, end), is_read) in cases.map(|case| (case, false)).into_iter().chain(read) {
        let model = Model::new([ScriptedAnswer::Hang]);
        let world = world(&model, steps).await;
        let (_address, subscriber, _) = collector();
        if is_read {
            world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
        } else {
            begin(&world);
        }
        pass(Duration::from_millis(50)).await;
        assert_eq!((model.requests(), model.script.abandoned()), (1, 0), "{name}");
        if name == "cancel" {
            world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
            pass(Duration::from_millis(1)).await;
        } else {
            pass(Duration::from_millis(200)).await;
        }
        assert_eq!(model.script.abandoned(), 1, "{name}");
        assert_eq!(model.streamed.load(Ordering::SeqCst), usize::from(is_read), "{name}");
        assert_eq!(status(&world).await, end, "{name}");
        let entries = history(&world).await;
        assert_eq!(entries.len(), 1, "{name}");
        assert_eq!(entries[0].status, GenerationStatus::Cancelled, "{name}");
        assert!(!world.runtime.activity().await.is_agent_working("helper"), "{name}");
    }
}

#[actix::test]
async fn a_pause_lets_the_current_turn_end_and_starts_no_other() {
    tokio::time::pause();
    let object = json!({ "type": "object" });
    let step = StepDefinition { timeout_ms: Some(250), ..asking("a", Some(object), None) };
    let model = Model::new([text("no object"), text("{}")]);
    let world = world(&model, vec![step, map("after", json!("data"))]).await;
    begin(&world);
    pass(PACE / 2).await;
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(3600)).await;
    assert_eq!((model.requests(), model.script.abandoned()), (1, 0), "the turn ended");
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.steps[0].status), (Status::Suspended, StepStatus::Running));

    resume(&world).await;
    assert_eq!(model.requests(), 2);
    assert_eq!(status(&world).await, Status::Completed, "paused time did not count");
}

#[actix::test]
async fn an_answer_during_a_pause_is_recorded_and_starts_nothing() {
    tokio::time::pause();
    let model = Model::new([text("hi"), text("ho")]);
    let world = world(&model, vec![agent("a"), agent("b")]).await;
    begin(&world);
    pass(PACE / 2).await;
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(60)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((model.requests(), state.steps.len()), (1, 1));
    assert_eq!(state.steps[0].status, StepStatus::Completed);
    resume(&world).await;
    assert_eq!(status(&world).await, Status::Completed);
}

#[actix::test]
async fn after_a_kill_the_rerun_reuses_its_history_entry() {
    tokio::time::pause();
    let model = Model::new([error(), ScriptedAnswer::Hang, text("hi")]);
    let world = world(&model, vec![retried(agent("a"), 2, 10)]).await;
    begin(&world);
    pass(Duration::from_secs(1)).await;
    let before = history(&world).await;
    let statuses: Vec<_> = before.iter().map(|entry| entry.status).collect();
    assert_eq!(statuses, [GenerationStatus::Working, GenerationStatus::Error]);

    let world = world.restart().await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(status(&world).await, Status::Completed);
    let after = history(&world).await;
    let ids = |entries: &[GenerationRecord]| -> Vec<_> {
        entries.iter().map(|entry| entry.id.clone()).collect()
    };
    assert_eq!(ids(&after), ids(&before), "one entry for each attempt that was not interrupted");
    assert_eq!(after[0].status, GenerationStatus::Completed);
    assert_eq!(model.requests(), 3);
}

/// Starts an agent whose model does not answer the first request.
async fn with_a_model_that_hangs() -> (Model, World) {
    let model = Model::new([ScriptedAnswer::Hang, text("hi")]);
    let world = world(&model, vec![agent("a")]).await;
    begin(&world);
    pass(Duration::from_secs(1)).await;
    (model, world)
}

#[actix::test]
async fn an_orderly_stop_drops_the_agent_and_the_restart_runs_it_again() {
    tokio::time::pause();
    let (model, world) = with_a_model_that_hangs().await;
    world.runtime.drain(Duration::from_millis(10)).await;
    assert_eq!(model.script.abandoned(), 1);
    let world = world.restart().await;
    pass(Duration::from_secs(1)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.steps[0].attempts), (Status::Completed, 2));
    let entries = history(&world).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].status, GenerationStatus::Completed);
}

#[actix::test]
async fn after_a_kill_during_a_pause_the_agent_runs_only_after_the_resume() {
    tokio::time::pause();
    let (model, world) = with_a_model_that_hangs().await;
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    let world = world.restart().await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(status(&world).await, Status::Suspended);
    assert_eq!(model.requests(), 1);
    resume(&world).await;
    assert_eq!((model.requests(), status(&world).await), (2, Status::Completed));
    assert_eq!(history(&world).await.len(), 1);
}

#[actix::test]
async fn a_generation_that_is_not_run_again_is_ended_in_the_history() {
    tokio::time::pause();
    for (name, end) in
        [("cancelled", GenerationStatus::Cancelled), ("interrupted", GenerationStatus::Error)]
    {
        let model = Model::new(std::iter::repeat_n(ScriptedAnswer::Hang, 3));
        let mut world = world(&model, vec![agent("a")]).await;
        begin(&world);
        pass(Duration::from_secs(1)).await;
        if name == "cancelled" {
            world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
            world = world.restart().await;
            world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
        } else {
            for _ in 0..3 {
                world = world.restart().await;
                pass(Duration::from_secs(1)).await;
            }
        }
        pass(Duration::from_secs(1)).await;
        let entries = history(&world).await;
        assert_eq!(entries.len(), 1, "{name}");
        assert_eq!(entries[0].status, end, "{name}");
        assert!(entries[0].end_time.is_some(), "{name}");
    }
}

#[actix::test]
async fn a_step_whose_agent_lacks_a_tool_waits() {
    tokio::time::pause();
    let model = Model::new([]);
    let helper = AgentDefinition {
        tools: Choice::Fixed(vec!["gone".to_owned()]),
        ..AgentDefinition::default()
    };
    let ignoring = StepDefinition { on_error: OnError::Ignore, ..agent("a") };
    let world = world_with(helper, &model, vec![ignoring]).await;
    begin(&world);
    pass(Duration::from_secs(1)).await;
    assert_eq!((model.requests(), status(&world).await), (0, Status::Running));
}
