//! Tools that ask agents.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use futures_util::stream::{self, BoxStream, StreamExt as _};

use crate::agent::{AgentDefinition, Budget};
use crate::ports::memory::MemoryStore;
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use crate::ports::model::{
    FinishReason, LanguageModel, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
};
use crate::ports::store::{GenerationRecord, GenerationStatus, Generations as _, PageSize};

use super::*;

struct Stage {
    model: ScriptedModel,
    store: Arc<MemoryStore>,
    deps: GenerationDeps,
    toolset: Toolset,
}

/// Builds an agent `clerk` with the script, asked by the tool `ask` and by `delegate_task`.
fn stage(script: impl IntoIterator<Item = ScriptedAnswer>) -> Stage {
    let model = ScriptedModel::local(script);
    let mut asks = tool("ask", ToolBody::Agent("clerk".to_owned()));
    asks.spec.parameters = ToolDefinition::agent_parameters();
    let asks = ToolDefinition::new(asks.spec, asks.body).unwrap();
    let mut registry = registry_with([asks]);
    registry.models.insert("scripted".to_owned(), Arc::new(model.clone()));
    for (id, description) in [("clerk", "Keeps the books"), ("porter", "")] {
        let agent = AgentDefinition {
            id: id.to_owned(),
            name: format!("The {id}"),
            description: description.to_owned(),
            model: "scripted".into(),
            ..AgentDefinition::default()
        };
        registry.agents.insert(id.to_owned(), Arc::new(agent));
    }
    let agents = names(&["clerk", "porter", "clerk"]);
    let toolset = Toolset::of(&registry, &names(&["ask"]), &agents).unwrap();
    let store = Arc::new(MemoryStore::new());
    let deps = GenerationDeps { generations: Arc::clone(&store) as _, ..deps_with(registry) };
    Stage { model, store, deps, toolset }
}

impl Stage {
    async fn call(&self, name: &str, input: Value) -> ToolReturn {
        self.toolset.call(&self.deps, &caller(), call(name, input)).await
    }

    async fn history(&self, agent_id: &str) -> Vec<GenerationRecord> {
        let page = self.store.generations(agent_id, None, 0, PageSize::of(10)).await.unwrap();
        page.entries.into_iter().map(|entry| entry.record).collect()
    }
}

fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

#[actix::test]
async fn an_agent_is_asked_for_the_callers_user() {
    tokio::time::pause();
    let rows = [
        ("ask", json!({ "prompt": "how much?" }), "clerk"),
        ("delegate_task", json!({ "agent": "clerk", "task": "how much?" }), "clerk"),
        ("delegate_task", json!({ "agent": "porter", "task": "how much?" }), "porter"),
    ];
    for (name, input, agent_id) in rows {
        let stage = stage([text("12")]);
        let returned = stage.call(name, input).await;
        assert_eq!(returned.outcome, ToolOutcome::Output(json!("12")), "{name}");
        assert_eq!(returned.usage.total_tokens, 2, "{name}");
        let history = stage.history(agent_id).await;
        assert_eq!(history[0].input, json!("how much?"));
        assert_eq!(history[0].user_id.as_deref(), Some("anna"));
        assert_eq!(history[0].conversation_id.as_deref(), Some("c1"));
        assert_eq!(stage.model.requests()[0].messages[0].plain_text(), "how much?");
    }
}

#[actix::test]
async fn a_task_needs_one_of_the_sub_agents() {
    tokio::time::pause();
    let stage = stage([]);
    let rows = [
        (json!({ "task": "sweep" }), "invalid arguments: agent: missing"),
        (json!({ "agent": "clerk" }), "invalid arguments: task: missing"),
        (
            json!({ "agent": "boss", "task": "sweep" }),
            r#"invalid arguments: agent: "boss" is not one of "clerk" or "porter""#,
        ),
    ];
    for (input, message) in rows {
        assert_eq!(stage.call("delegate_task", input).await.outcome, error(message));
    }
    assert!(stage.model.requests().is_empty());
}

#[actix::test]
async fn an_only_sub_agent_need_not_be_named() {
    tokio::time::pause();
    let stage = stage([text("swept"), text("again")]);
    let toolset = Toolset::of(&stage.deps.registry, &[], &names(&["porter"])).unwrap();
    for (input, said) in [
        (json!({ "task": "sweep" }), "swept"),
        (json!({ "agent": "porter", "task": "sweep" }), "again"),
    ] {
        let returned = toolset.call(&stage.deps, &caller(), call("delegate_task", input)).await;
        assert_eq!(returned.outcome, ToolOutcome::Output(json!(said)));
    }
}

#[actix::test]
async fn sub_agents_are_described_to_the_model() {
    tokio::time::pause();
    let specs = stage([]).toolset.specs();
    let delegate = specs.last().unwrap();
    assert_eq!(delegate.name, "delegate_task");
    let lines: Vec<&str> = delegate.description.lines().skip(1).collect();
    assert_eq!(lines, ["- clerk: Keeps the books", "- porter: The porter"]);
    assert_eq!(delegate.parameters["properties"]["agent"]["enum"], json!(["clerk", "porter"]));
    assert_eq!(delegate.parameters["required"], json!(["agent", "task"]));
}

#[actix::test]
async fn the_name_of_the_delegation_tool_is_reserved() {
    tokio::time::pause();
    let mut registry = Registry::clone(&stage([]).deps.registry);
    let taken = tool("delegate_task", function(|_, _| async { Ok(json!(null)) }));
    registry.tools.insert("delegate_task".to_owned(), Arc::new(taken));
    let names_only = Toolset::of(&registry, &names(&["delegate_task"]), &[]);
    assert!(names_only.is_ok(), "an agent without sub-agents may have it");
    let both = Toolset::of(&registry, &names(&["delegate_task"]), &names(&["clerk"]));
    let why = "the tool name delegate_task is reserved for sub-agents";
    assert_eq!(both.err().as_deref(), Some(why));
}

#[actix::test]
async fn an_agent_that_fails_is_a_failed_call() {
    tokio::time::pause();
    let overloaded = ModelError::new(ModelErrorKind::Unavailable, "overloaded");
    let rows = [
        (ScriptedAnswer::Error(overloaded), "overloaded"),
        (ScriptedAnswer::Panic, "the model stopped unexpectedly"),
        (ScriptedAnswer::Hang, "timed out after 100 ms"),
    ];
    for (answer, message) in rows {
        let stage = stage([answer]);
        let returned = stage.call("ask", json!({ "prompt": "x" })).await;
        assert_eq!(returned.outcome, error(message));
    }
    let stage = stage([text("unread")]);
    stage.store.set_writable(false);
    let returned = stage.call("ask", json!({ "prompt": "x" })).await;
    assert_eq!(returned.outcome, error("agent clerk is not available"));
}

#[actix::test]
async fn nesting_of_agents_is_bounded() {
    tokio::time::pause();
    let too_deep = error("agents and workflows are nested deeper than 3");
    let rows = [(2, ToolOutcome::Output(json!("12"))), (3, too_deep.clone()), (4, too_deep)];
    for (depth, outcome) in rows {
        let stage = stage([text("12")]);
        let caller = Caller { depth, ..caller() };
        let asked = call("ask", json!({ "prompt": "x" }));
        let returned = stage.toolset.call(&stage.deps, &caller, asked).await;
        assert_eq!(returned.outcome, outcome, "from depth {depth}");
    }
}

/// A model that asks its own agent, as a turn loop would, and answers with the outcome.
#[derive(Default)]
struct Circle {
    bench: OnceLock<(GenerationDeps, Toolset)>,
    depth: AtomicU32,
}

impl Circle {
    async fn ask(self: Arc<Self>) -> String {
        let (deps, toolset) = self.bench.get().unwrap();
        let depth = self.depth.fetch_add(1, Ordering::SeqCst) + 1;
        let asked = call("ask", json!({ "prompt": "again" }));
        let generation_id = Arc::from(format!("at-{depth}"));
        let above = Caller { depth, generation_id, ..caller() };
        let returned = toolset.call(deps, &above, asked).await;
        format!("{:?}", returned.outcome)
    }
}

struct AsksItself(Arc<Circle>);

impl LanguageModel for AsksItself {
    fn name(&self) -> &str {
        "circle"
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let finish_reason = FinishReason::Stop;
        let finished =
            Ok(ModelEvent::Finished { usage: Usage::default(), finish_reason, served: None });
        let asked = Arc::clone(&self.0).ask();
        asked
            .map(|text| stream::iter([Ok(ModelEvent::TextDelta(text)), finished]))
            .flatten_stream()
            .boxed()
    }
}

#[actix::test]
async fn agents_that_ask_each_other_end() {
    tokio::time::pause();
    let mut stage = stage([]);
    let circle = Arc::new(Circle::default());
    let mut registry = Registry::clone(&stage.deps.registry);
    registry.models.insert("scripted".to_owned(), Arc::new(AsksItself(Arc::clone(&circle))));
    stage.deps.registry = Arc::new(registry);
    assert!(circle.bench.set((stage.deps.clone(), stage.toolset.clone())).is_ok());

    let returned = stage.call("ask", json!({ "prompt": "begin" })).await;

    let ToolOutcome::Output(Value::String(said)) = returned.outcome else { panic!("{returned:?}") };
    assert!(said.contains("nested deeper than 3"), "{said}");
    assert_eq!(circle.depth.load(Ordering::SeqCst), 3);
    assert_eq!(stage.history("clerk").await.len(), 3);
}

#[actix::test]
async fn generations_that_tools_ask_for_count_against_the_limit() {
    tokio::time::pause();
    let stage = stage([text("12")]);
    let others: Vec<_> = (0..5).map(|_| stage.deps.active.enter("other")).collect();
    let returned = stage.call("ask", json!({ "prompt": "x" })).await;
    assert_eq!(returned.outcome, error("the server is busy"));
    drop(others);
    let returned = stage.call("ask", json!({ "prompt": "x" })).await;
    assert_eq!(returned.outcome, ToolOutcome::Output(json!("12")));
}

#[actix::test]
async fn a_dropped_call_cancels_the_agent_that_it_asks() {
    tokio::time::pause();
    let stage = stage([ScriptedAnswer::Hang]);
    let mut asking = Box::pin(stage.call("ask", json!({ "prompt": "x" })));
    while stage.model.requests().is_empty() {
        assert!(futures_util::poll!(&mut asking).is_pending());
        tokio::task::yield_now().await;
    }
    drop(asking);
    stage.deps.active.idle().await;
    assert_eq!(stage.model.abandoned(), 1);
    assert_eq!(stage.history("clerk").await[0].status, GenerationStatus::Cancelled);
}

#[actix::test]
async fn an_agent_may_take_the_time_of_its_own_budget() {
    tokio::time::pause();
    let rows = [(Some(500), 500), (Some(10), 100), (None, 100)];
    for (budget_ms, bound_ms) in rows {
        let mut stage = stage([ScriptedAnswer::Hang]);
        let mut registry = Registry::clone(&stage.deps.registry);
        let budget = Budget { time: budget_ms.map(Duration::from_millis), ..Budget::default() };
        let clerk = AgentDefinition { budget, ..AgentDefinition::clone(&registry.agents["clerk"]) };
        registry.agents.insert("clerk".to_owned(), Arc::new(clerk));
        stage.deps.registry = Arc::new(registry);
        for (name, input) in [
            ("ask", json!({ "prompt": "x" })),
            ("delegate_task", json!({ "agent": "clerk", "task": "x" })),
        ] {
            let tool = stage.toolset.tools.iter().find(|tool| tool.spec.name == name).unwrap();
            let bound = call::time_limit(&stage.deps, tool, &input);
            assert_eq!(bound, Duration::from_millis(bound_ms), "{name} with {budget_ms:?}");
        }
    }
}
