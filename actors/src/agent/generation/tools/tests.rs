//! Tool calls of a model, in paused time.

mod agents;
mod questions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::agent::generation::ActiveGenerations;
use crate::agent::tool::{ToolBody, ToolError, ToolFunction};
use crate::domain::trace::{EntityType, TraceOrigin};
use crate::home::Home;
use crate::observe::feed::FeedHandle;
use crate::ports::memory::MemoryStore;
use crate::ports::meter::NoMeter;
use crate::shard::arbiters::Placement;
use crate::shard::evaluation::Evaluations;
use crate::testkit::TestClock;

fn function<F, R>(body: F) -> ToolBody
where
    F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    let body: ToolFunction = Arc::new(move |arguments, context| body(arguments, context).boxed());
    ToolBody::Function(body)
}

/// Unwinds like a panic, without the panic hook's output.
fn panics() -> Result<Value, ToolError> {
    std::panic::resume_unwind(Box::new("password: hunter2"))
}

fn tool(name: &str, body: ToolBody) -> ToolDefinition {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
    };
    ToolDefinition::new(spec, body).unwrap()
}

fn registry_with(tools: impl IntoIterator<Item = ToolDefinition>) -> Registry {
    let mut registry = Registry::default();
    for tool in tools {
        registry.tools.insert(tool.spec.name.clone(), Arc::new(tool));
    }
    registry
}

/// Returns dependencies over an empty store.
pub(in crate::agent::generation) fn deps_with(registry: Registry) -> GenerationDeps {
    let store = Arc::new(MemoryStore::new());
    GenerationDeps {
        registry: Arc::new(registry),
        generations: Arc::clone(&store) as _,
        conversations: store,
        clock: Arc::new(TestClock::new()),
        active: Arc::new(ActiveGenerations::default()),
        workflows: Arc::new(NoWorkflows),
        tool_limits: ToolLimits {
            timeout: Duration::from_millis(100),
            result_bytes_max: 1000,
            value_depth_max: 100,
            depth_max: 3,
            generations_live_max: 5,
            asks_max: 100,
        },
        compiled: Arc::default(),
        feed: FeedHandle::start(&actix::Arbiter::current(), Duration::from_secs(5)),
        warned: Arc::default(),
        meter: Arc::new(NoMeter),
        evaluations: Arc::new(Evaluations::start(Placement::Here, Duration::ZERO, None).unwrap()),
        live: Arc::default(),
        object_repairs: 1,
        steps_max: 5,
        bytes_max: 65_536,
        crash_attempts: 3,
        left_behind: std::sync::Arc::default(),
        ask_alarm: std::sync::Arc::default(),
        home: Home::default(),
    }
}

fn caller() -> Caller {
    Caller {
        agent_id: Arc::from("writer"),
        generation_id: Arc::from("g1"),
        user_id: Some(Arc::from("anna")),
        conversation_id: Some(Arc::from("c1")),
        context: Arc::new(Map::from_iter([("tier".to_owned(), json!("gold"))])),
        depth: 0,
        trace: Trace::of("g1", EntityType::Agent, &Arc::from("writer"), TraceOrigin::New),
        repetition: 0,
        is_repeated: false,
        is_interrupted: false,
        answers: Vec::new(),
        memo: None,
        approved: None,
        has_noted: false,
        notes: None,
    }
}

fn call(name: &str, input: Value) -> ToolCall {
    ToolCall { tool_call_id: "call 1".to_owned(), tool_name: name.to_owned(), input }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Registers the tools; returns a toolset of all of them.
fn bench(tools: impl IntoIterator<Item = ToolDefinition>) -> (GenerationDeps, Toolset) {
    let deps = deps_with(registry_with(tools));
    let all: Vec<String> = deps.registry.tools.keys().cloned().collect();
    let toolset = Toolset::of(&deps.registry, &all, &[]).unwrap();
    (deps, toolset)
}

fn error(message: &str) -> ToolOutcome {
    ToolOutcome::Error(message.to_owned())
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// Returns one tool for each way in which a call may end.
fn all_endings() -> Vec<ToolDefinition> {
    let closed = Semaphore::new(1);
    closed.close();
    vec![
        tool("echo", function(|arguments, _| async { Ok(arguments) })),
        tool("fails", function(|_, _| async { Err("no luck".into()) })),
        tool("talks", function(|_, _| async { Err("é".repeat(5_000).into()) })),
        tool("hangs", function(|_, _| std::future::pending())),
        tool("panics-late", function(|_, _| async { panics() })),
        tool("panics-early", function(|_, _| std::future::ready(panics()))),
        tool("large", function(|_, _| async { Ok("x".repeat(1_000).into()) })),
        tool("deep", function(|_, _| async { Ok(nested(101)) })),
        tool("fits", function(|_, _| async { Ok("x".repeat(998).into()) })),
        tool("flow", ToolBody::Workflow("nowhere".to_owned())),
        tool("agent", ToolBody::Agent("missing".to_owned())),
        ToolDefinition {
            permits: Some(Arc::new(closed)),
            ..tool("closed", function(|_, _| async { Ok(json!(1)) }))
        },
        ToolDefinition {
            timeout: Some(Duration::from_millis(7)),
            ..tool("impatient", function(|_, _| std::future::pending()))
        },
    ]
}

#[actix::test]
async fn every_call_returns() {
    tokio::time::pause();
    let (deps, toolset) = bench(all_endings());
    let too_deep = |at: &str| {
        let place: String = format!("{at}{}", "[0]".repeat(99)).chars().take(80).collect();
        format!("nested deeper than 100 levels, at {place}…")
    };
    let rows = [
        ("echo", json!({ "n": 1 }), ToolOutcome::Output(json!({ "n": 1 }))),
        ("echo", json!(null), ToolOutcome::Output(json!({}))),
        ("echo", json!(" "), ToolOutcome::Output(json!({}))),
        ("echo", json!("{n: 1"), error("invalid arguments: not a JSON object")),
        ("echo", json!([1]), error("invalid arguments: not a JSON object")),
        (
            "echo",
            json!({ "n": "x" }),
            error(r#"invalid arguments: n: "x" is not of type "integer""#),
        ),
        ("fails", json!({}), error("no luck")),
        ("talks", json!({}), error(&format!("{}…", "é".repeat(MESSAGE_CHARS_MAX)))),
        ("hangs", json!({}), error("timed out after 100 ms")),
        ("impatient", json!({}), error("timed out after 7 ms")),
        ("panics-late", json!({}), error("the tool stopped unexpectedly")),
        ("panics-early", json!({}), error("the tool stopped unexpectedly")),
        ("large", json!({}), error("the result is larger than 1000 bytes")),
        ("deep", json!({}), error(&format!("the result is {}", too_deep("")))),
        (
            "echo",
            json!({ "m": nested(100) }),
            error(&format!("invalid arguments: {}", too_deep("m"))),
        ),
        (
            "echo",
            nested(101).to_string().into(),
            error("invalid arguments: nested deeper than 100 levels"),
        ),
        ("fits", json!({}), ToolOutcome::Output("x".repeat(998).into())),
        ("flow", json!({}), error("workflow nowhere not found")),
        ("agent", json!({}), error("invalid arguments: prompt: must be a string")),
        ("agent", json!({ "prompt": "hi" }), error("agent missing not found")),
        ("closed", json!({}), error("the tool no longer accepts calls")),
    ];
    for (name, input, outcome) in rows {
        let returned = toolset.call(&deps, &caller(), call(name, input)).await;
        assert_eq!((returned.outcome, returned.usage), (outcome, Usage::default()), "{name}");
    }
}

#[actix::test]
async fn a_tool_that_the_agent_lacks_is_not_called() {
    tokio::time::pause();
    let deps = deps_with(registry_with(all_endings()));
    let some = Toolset::of(&deps.registry, &names(&["fails", "echo"]), &[]).unwrap();
    let none = Toolset::of(&deps.registry, &[], &[]).unwrap();
    let long = format!("tool {}… is not available; there are no tools", "x".repeat(100));
    let rows = [
        (&some, "hangs", "tool hangs is not available; there are: fails, echo"),
        (&some, "delegate_task", "tool delegate_task is not available; there are: fails, echo"),
        (&none, "echo", "tool echo is not available; there are no tools"),
        (&none, &"x".repeat(100_000), &long),
    ];
    for (toolset, name, message) in rows {
        let returned = toolset.call(&deps, &caller(), call(name, json!({}))).await;
        assert_eq!(returned.outcome, error(message));
    }
}

#[actix::test]
async fn nesting_of_workflows_is_bounded() {
    tokio::time::pause();
    let (deps, toolset) = bench(all_endings());
    let rows =
        [(2, "workflow nowhere not found"), (3, "agents and workflows are nested deeper than 3")];
    for (depth, message) in rows {
        let caller = Caller { depth, ..caller() };
        let returned = toolset.call(&deps, &caller, call("flow", json!({}))).await;
        assert_eq!(returned.outcome, error(message), "from depth {depth}");
    }
}

#[test]
fn a_toolset_has_the_tools_that_the_agent_lists() {
    let registry = registry_with(all_endings());
    let toolset = Toolset::of(&registry, &names(&["fits", "echo", "fits"]), &[]).unwrap();
    let specs = toolset.specs();
    let listed: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(listed, ["fits", "echo"]);
    assert_eq!(specs[1].parameters, registry.tools["echo"].spec.parameters);

    let rows = [
        (names(&["echo", "gone"]), names(&[]), "tool gone is not registered"),
        (names(&[]), names(&["missing"]), "agent missing is not registered"),
    ];
    for (tools, agents, why) in rows {
        assert_eq!(Toolset::of(&registry, &tools, &agents).err().as_deref(), Some(why));
    }
}

#[actix::test]
async fn a_function_receives_the_callers_context() {
    tokio::time::pause();
    let seen: Arc<Mutex<Option<ToolContext>>> = Arc::default();
    let sees = Arc::clone(&seen);
    let looks = function(move |_, context| {
        *sees.lock().unwrap() = Some(context);
        async { Ok(json!(null)) }
    });
    let (deps, toolset) = bench([tool("looks", looks)]);
    toolset.call(&deps, &caller(), call("looks", json!({}))).await;

    let context = seen.lock().unwrap().take().unwrap();
    assert_eq!(context.agent_id.as_deref(), Some("writer"));
    assert_eq!(context.generation_id.as_deref(), Some("g1"));
    assert_eq!(&*context.tool_call_id, "call 1");
    assert_eq!(context.user_id.as_deref(), Some("anna"));
    assert_eq!(context.conversation_id.as_deref(), Some("c1"));
    assert_eq!(context.context["tier"], "gold");
    assert_eq!(context.idempotency_key, "g1/call 1");
    let again = Caller { repetition: 1, ..caller() };
    assert_eq!(again.tool_context("call 1".into()).idempotency_key, "g1/call 1#2");
    assert!(!context.cancellation.is_cancelled(), "it ended by itself");
}

#[actix::test]
async fn a_timed_out_or_dropped_call_is_cancelled() {
    tokio::time::pause();
    let tokens: Arc<Mutex<Vec<CancellationToken>>> = Arc::default();
    let keeps = Arc::clone(&tokens);
    // whether each of them had timed out when it was dropped
    let ended: Arc<Mutex<Vec<bool>>> = Arc::default();
    let ends = Arc::clone(&ended);
    let waits = function(move |_, context| {
        keeps.lock().unwrap().push(context.cancellation.clone());
        let ends = Arc::clone(&ends);
        let note = move |()| ends.lock().unwrap().push(context.has_timed_out());
        let dropped = scopeguard::guard((), note);
        async move {
            let _dropped = dropped;
            std::future::pending().await
        }
    });
    let (deps, toolset) = bench([tool("waits", waits)]);
    let run = || toolset.call(&deps, &caller(), call("waits", json!({})));

    assert_eq!(run().await.outcome, error("timed out after 100 ms"));
    let mut dropped = run();
    assert!(futures_util::poll!(&mut dropped).is_pending());
    assert!(!tokens.lock().unwrap()[1].is_cancelled());
    drop(dropped);

    let cancelled: Vec<bool> =
        tokens.lock().unwrap().iter().map(CancellationToken::is_cancelled).collect();
    assert_eq!(cancelled, [true, true]);
    assert_eq!(*ended.lock().unwrap(), [true, false]);
}

#[actix::test]
async fn waiting_for_a_busy_tool_counts_against_the_time_limit() {
    tokio::time::pause();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (at_once, peak) = (Arc::clone(&now), Arc::clone(&most));
    let works = function(move |_, _| {
        let (at_once, peak) = (Arc::clone(&at_once), Arc::clone(&peak));
        async move {
            peak.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(40)).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            Ok(json!("done"))
        }
    });
    let permits = Some(Arc::new(Semaphore::new(2)));
    let (deps, toolset) = bench([ToolDefinition { permits, ..tool("works", works) }]);

    let calls = (0..6).map(|_| toolset.call(&deps, &caller(), call("works", json!({}))));
    let outcomes: Vec<_> = join_all(calls).await.into_iter().map(|it| it.outcome).collect();

    let done = ToolOutcome::Output(json!("done"));
    let (in_time, late) = outcomes.split_at(4);
    assert_eq!(in_time, vec![done; 4]);
    for outcome in late {
        let ToolOutcome::Error(why) = outcome else { panic!("not in time: {outcome:?}") };
        assert!(why.starts_with("timed out after 100 ms, 8"), "{why}");
        assert!(why.ends_with(" ms of which it waited for a free slot"), "{why}");
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    // calls that timed out returned their permits
    let after = toolset.call(&deps, &caller(), call("works", json!({}))).await;
    assert_eq!(after.outcome, ToolOutcome::Output(json!("done")));
}

#[actix::test]
async fn work_on_another_thread_can_keep_its_slot() {
    tokio::time::pause();
    let (send, mut slots) = tokio::sync::mpsc::unbounded_channel();
    let works = function(move |_, context| {
        let _ = send.send(context.hold_slot());
        std::future::pending()
    });
    let permits = Arc::new(Semaphore::new(1));
    let tools = [ToolDefinition { permits: Some(Arc::clone(&permits)), ..tool("works", works) }];
    let (deps, toolset) = bench(tools);
    let outcome =
        || async { toolset.call(&deps, &caller(), call("works", json!({}))).await.outcome };
    assert_eq!(outcome().await, error("timed out after 100 ms"));
    let slot = slots.recv().await.unwrap();
    let waited = "timed out after 100 ms, 100 ms of which it waited for a free slot";
    assert_eq!(outcome().await, error(waited));
    drop(slot);
    assert_eq!(permits.available_permits(), 1);
}
