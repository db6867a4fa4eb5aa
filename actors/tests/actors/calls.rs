//! Steps that leave the process: their timeouts, what ends them, and the keys of repeated calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition};
use greenroom_actors::domain::definition::{
    Body, CommandBody, Compensation, HttpBody, HttpMethod, RetryPolicy, StepDefinition, StepKind,
    WorkflowDefinition,
};
use greenroom_actors::ports::external_calls::scripted::{ExternalCall, ScriptedCalls, ScriptedEnd};
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::store::{ExecutionFilter, Generations as _, Header, PageSize, Status};
use greenroom_actors::requests::{ExecutionState, Subscriber};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::progress::collector;
use crate::workflows::{
    Calls, add_agent, map, race, resume, retried, sleep, spawn, step, workflow,
};

fn http(id: &str) -> StepDefinition {
    let body = Body::Http(HttpBody {
        method: HttpMethod::Post,
        url: format!("https://ledger.example/{id}"),
        headers: [].into(),
        query: [].into(),
        body: None,
    });
    step(id, StepKind::Then { body })
}

fn command(id: &str) -> StepDefinition {
    let body = CommandBody { argv: vec![format!("/bin/{id}")], ..CommandBody::default() };
    step(id, StepKind::Then { body: Body::Command(body) })
}

fn tool(id: &str, name: &str) -> StepDefinition {
    let body = Body::Tool { tool: name.to_owned(), args: None };
    step(id, StepKind::Then { body })
}

fn within(step: StepDefinition, ms: u64) -> StepDefinition {
    StepDefinition { timeout_ms: Some(ms), ..step }
}

/// Returns a tool in Rust that stores its contexts in `contexts`.
fn function_tool(
    name: &str,
    contexts: &Arc<Mutex<Vec<ToolContext>>>,
    hangs: bool,
    panics: bool,
) -> ToolDefinition {
    let contexts = Arc::clone(contexts);
    let spec = spec(name, json!({ "type": "object" }));
    let body = ToolBody::Function(Arc::new(move |_, context| {
        contexts.lock().unwrap().push(context);
        async move {
            assert!(!panics, "a defect of a tool");
            if hangs { std::future::pending().await } else { Ok(json!("given")) }
        }
        .boxed()
    }));
    ToolDefinition::new(spec, body).unwrap()
}

fn spec(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: String::new(), parameters }
}

/// Launches a world whose external calls follow the script.
async fn world(
    definitions: Vec<WorkflowDefinition>,
    script: impl Fn(&ExternalCall) -> ScriptedEnd + Send + Sync + 'static,
) -> (World, ScriptedCalls, Arc<Mutex<Vec<ToolContext>>>) {
    let contexts = Arc::default();
    let mut registry = registry_of(definitions);
    for (name, hangs, panics) in
        [("gives", false, false), ("hangs", true, false), ("breaks", false, true)]
    {
        let tool = function_tool(name, &contexts, hangs, panics);
        registry.tools.insert(name.to_owned(), Arc::new(tool));
    }
    let model = ScriptedModel::local([ScriptedAnswer::Text("hello".to_owned())]);
    add_agent(&mut registry, "clerk", model, AgentDefinition::default());
    for (name, body) in [
        ("runs-part", ToolBody::Workflow("part".to_owned())),
        ("runs-itself", ToolBody::Workflow("w".to_owned())),
        ("asks-clerk", ToolBody::Agent("clerk".to_owned())),
    ] {
        let tool = ToolDefinition::new(spec(name, json!({ "type": "object" })), body).unwrap();
        registry.tools.insert(name.to_owned(), Arc::new(tool));
    }
    let external_calls = ScriptedCalls::new(script);
    let world =
        World::launch_beside(registry, RuntimeLimits::default(), external_calls.clone()).await;
    (world, external_calls, contexts)
}

/// Returns the events of an execution whose only step calls a tool that reports twice.
async fn reported(is_watched: bool) -> Vec<(String, String)> {
    let mut registry = registry_of([workflow("w", vec![tool("a", "reports")])]);
    let body = ToolBody::Function(Arc::new(|_, context| {
        async move {
            let sent = [1, 2].map(|done| context.progress(json!({ "done": done })));
            Ok(json!(sent))
        }
        .boxed()
    }));
    let definition = ToolDefinition::new(spec("reports", json!({ "type": "object" })), body);
    registry.tools.insert("reports".to_owned(), Arc::new(definition.unwrap()));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let (_address, subscriber, events) = collector();
    let progress = subscriber.progress.filter(|_| is_watched);
    let subscriber = Subscriber { progress, ..subscriber };
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_millis(1)).await;
    assert_eq!(described(&world).await.result, Some(json!([is_watched, is_watched]).into()));
    events.borrow().iter().filter(|(path, _)| path == "a").cloned().collect()
}

#[actix::test]
async fn tools_of_steps_report_progress_to_subscribers() {
    tokio::time::pause();
    for (is_watched, progress) in [(true, &["!{\"done\":1}", "!{\"done\":2}"][..]), (false, &[])] {
        let events = reported(is_watched).await;
        let events: Vec<_> = events.iter().map(|(_, what)| what.as_str()).collect();
        let expected = [&["StepStart"][..], progress, &["StepComplete"]].concat();
        assert_eq!(events, expected);
    }
}

/// Starts the execution and waits until its first calls are running.
async fn begin(world: &World) {
    spawn(world, start("w", "e", json!({ "n": 1 })));
    pass(Duration::from_millis(1)).await;
}

async fn described(world: &World) -> ExecutionState {
    world.runtime.describe(&target("w", "e")).await.unwrap()
}

async fn error(world: &World) -> String {
    described(world).await.error.map_or_else(String::new, |error| error.message.to_string())
}

fn keys(external_calls: &ScriptedCalls) -> Vec<(String, u32)> {
    let call = |call: &ExternalCall| {
        let (execution, attempt) = call.origin.attempt.clone().unwrap();
        assert_eq!(execution.as_str(), "e");
        (call.origin.idempotency_key.clone(), attempt)
    };
    external_calls.calls().iter().map(call).collect()
}

#[actix::test]
async fn a_call_ends_at_its_timeout() {
    tokio::time::pause();
    for (step, seconds, said) in [
        (http("a"), 60, "timed out after 60000 ms"),
        (command("a"), 60, "timed out after 60000 ms"),
        (within(http("a"), 2_000), 2, "timed out after 2000 ms"),
        (within(command("a"), 2_000), 2, "timed out after 2000 ms"),
        (within(http("a"), 90_000), 90, "timed out after 90000 ms"),
    ] {
        let (world, external_calls, _) =
            world(vec![workflow("w", vec![step])], |_| ScriptedEnd::Hangs).await;
        begin(&world).await;
        pass(Duration::from_secs(seconds) - Duration::from_millis(100)).await;
        assert_eq!(
            (described(&world).await.status, external_calls.abandoned()),
            (Status::Running, 0)
        );
        pass(Duration::from_millis(200)).await;
        assert_eq!((error(&world).await, external_calls.abandoned()), (said.to_owned(), 1));
    }
}

#[actix::test]
async fn a_tool_step_uses_the_timeout_of_the_step_or_of_tools() {
    tokio::time::pause();
    for (step, seconds) in [(within(tool("a", "hangs"), 2_000), 2), (tool("a", "hangs"), 60)] {
        let (world, _, contexts) =
            world(vec![workflow("w", vec![step])], |_| ScriptedEnd::Hangs).await;
        begin(&world).await;
        pass(Duration::from_secs(seconds) - Duration::from_millis(100)).await;
        assert_eq!(described(&world).await.status, Status::Running);
        assert!(!contexts.lock().unwrap()[0].cancellation.is_cancelled());
        pass(Duration::from_millis(200)).await;
        let said = error(&world).await;
        assert!(said.contains(&format!("timed out after {}", seconds * 1000)), "{said}");
        assert!(contexts.lock().unwrap()[0].cancellation.is_cancelled());
    }
}

#[actix::test]
async fn a_cancel_drops_the_call() {
    tokio::time::pause();
    for step in [http("a"), command("a")] {
        let (world, external_calls, _) =
            world(vec![workflow("w", vec![step])], |_| ScriptedEnd::Hangs).await;
        begin(&world).await;
        world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
        pass(Duration::from_millis(1)).await;
        assert_eq!(described(&world).await.status, Status::Cancelled);
        assert_eq!((external_calls.calls().len(), external_calls.abandoned()), (1, 1));
    }
}

#[actix::test]
async fn a_lost_race_drops_the_call() {
    tokio::time::pause();
    for step in [http("a"), command("a"), tool("a", "hangs")] {
        let blocks = vec![("slow", vec![step]), ("quick", vec![sleep("nap", 50)])];
        let both = vec![workflow("w", vec![race("both", blocks)])];
        let (world, external_calls, contexts) = world(both, |_| ScriptedEnd::Hangs).await;
        begin(&world).await;
        assert_eq!(external_calls.abandoned(), 0);
        pass(Duration::from_millis(60)).await;
        assert_eq!(described(&world).await.status, Status::Completed);
        let tools = contexts.lock().unwrap();
        let dropped = tools.iter().filter(|tool| tool.cancellation.is_cancelled()).count();
        assert_eq!(external_calls.abandoned() + dropped, 1);
    }
}

#[actix::test]
async fn each_attempt_has_the_same_key() {
    tokio::time::pause();
    let fails = |call: &ExternalCall| match call.number {
        0 => ScriptedEnd::Fails("busy".to_owned()),
        1 => ScriptedEnd::Panics,
        _ => ScriptedEnd::Gives(json!("done")),
    };
    for step in [http("a"), command("a")] {
        let definition = workflow("w", vec![retried(step, 3, 100)]);
        let (world, external_calls, _) = world(vec![definition], fails).await;
        begin(&world).await;
        pass(Duration::from_secs(1)).await;
        assert_eq!(described(&world).await.result, Some(json!("done").into()));
        let key = || "e/a".to_owned();
        assert_eq!(keys(&external_calls), [(key(), 1), (key(), 2), (key(), 3)]);
        assert_eq!(external_calls.abandoned(), 0);
        let names: Vec<_> =
            external_calls.calls().iter().map(|it| it.origin.name.to_string()).collect();
        assert_eq!(names, ["step a"; 3]);
    }
}

#[actix::test]
async fn a_call_interrupted_by_a_kill_or_a_shutdown_is_repeated_with_its_key() {
    tokio::time::pause();
    for is_drained in [false, true] {
        let script = |call: &ExternalCall| match call.number {
            0 => ScriptedEnd::Gives(json!(1)),
            1 => ScriptedEnd::Hangs,
            _ => ScriptedEnd::Gives(json!(2)),
        };
        let definition = workflow("w", vec![http("a"), command("b")]);
        let (mut world, external_calls, _) = world(vec![definition], script).await;
        begin(&world).await;
        if is_drained {
            let runtime = world.runtime.clone();
            let drain = actix::spawn(async move { runtime.drain(Duration::from_secs(5)).await });
            pass(Duration::from_secs(4)).await;
            assert_eq!(external_calls.abandoned(), 0, "it has time to end");
            drain.await.unwrap();
            assert_eq!(external_calls.abandoned(), 1);
        }
        world = world.restart().await;
        pass(Duration::from_secs(1)).await;
        assert_eq!(described(&world).await.result, Some(json!(2).into()));
        let expected = [("e/a", 1), ("e/b", 1), ("e/b", 2)];
        assert_eq!(keys(&external_calls), expected.map(|(key, attempt)| (key.to_owned(), attempt)));
        assert_eq!(external_calls.abandoned(), 1);
    }
}

#[actix::test]
async fn a_pause_lets_a_call_end() {
    tokio::time::pause();
    let later = |_: &ExternalCall| ScriptedEnd::Later(Duration::from_secs(1), json!(7));
    let definition = workflow("w", vec![http("a"), http("b")]);
    let (world, external_calls, _) = world(vec![definition], later).await;
    begin(&world).await;
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(5)).await;
    let state = described(&world).await;
    assert_eq!((state.status, state.steps.len()), (Status::Suspended, 1));
    assert_eq!(state.steps[0].output, Some(json!(7).into()));
    assert_eq!((external_calls.calls().len(), external_calls.abandoned()), (1, 0));
}

#[actix::test]
async fn a_panic_in_a_tool_fails_its_step() {
    tokio::time::pause();
    let definition = workflow("w", vec![retried(tool("a", "breaks"), 2, 100)]);
    let (world, _, contexts) = world(vec![definition], |_| ScriptedEnd::Hangs).await;
    begin(&world).await;
    pass(Duration::from_secs(1)).await;
    let said = error(&world).await;
    assert_eq!(said, "the tool stopped unexpectedly");
    let contexts = contexts.lock().unwrap();
    let keys: Vec<_> = contexts.iter().map(|context| &*context.idempotency_key).collect();
    assert_eq!(keys, ["e/a", "e/a"]);
    assert!(contexts.iter().all(|context| context.agent_id.is_none()));
}

async fn headers(world: &World, workflow: &str) -> Vec<Arc<Header>> {
    let filter = ExecutionFilter { workflow_id: Some(workflow.to_owned()), ..Default::default() };
    let (found, _) = world.runtime.list(&filter, None, 100).await.unwrap();
    found.into_iter().map(|found| Arc::clone(&found.header)).collect()
}

#[actix::test]
async fn a_workflow_behind_a_tool_belongs_to_the_trace_and_runs_once() {
    tokio::time::pause();
    let definitions = vec![
        workflow("w", vec![tool("a", "runs-part"), map("b", json!("[data]"))]),
        workflow("part", vec![sleep("nap", 5_000), map("sum", json!("input.n + 1"))]),
    ];
    let (mut world, _, _) = world(definitions, |_| ScriptedEnd::Hangs).await;
    begin(&world).await;
    let [part] = &headers(&world, "part").await[..] else { panic!("one") };
    let above = described(&world).await;
    assert_eq!(part.trace.id, above.header.trace.id);
    assert!(part.trace.parent_span.is_some());
    world = world.restart().await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(described(&world).await.result, Some(json!([2]).into()));
    assert_eq!(headers(&world, "part").await.len(), 1, "the second attempt finds the first one's");
}

/// Returns the end of the calls: the first ones fail.
fn failing(first: usize) -> impl Fn(&ExternalCall) -> ScriptedEnd + Send + Sync + 'static {
    let calls = Calls::default();
    move |_| {
        calls.add_one();
        match calls.count() > first {
            true => ScriptedEnd::Gives(json!(calls.count())),
            false => ScriptedEnd::Fails("not now".to_owned()),
        }
    }
}

#[actix::test]
async fn a_retry_runs_the_workflow_behind_a_tool_again() {
    tokio::time::pause();
    let definitions = vec![
        workflow("w", vec![retried(tool("a", "runs-part"), 2, 1_000)]),
        workflow("part", vec![sleep("nap", 5_000), http("book")]),
    ];
    let (mut world, _, _) = world(definitions, failing(1)).await;
    begin(&world).await;
    pass(Duration::from_secs(8)).await;
    assert_eq!(headers(&world, "part").await.len(), 2);
    world = world.restart().await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(described(&world).await.result, Some(json!(2).into()));
    assert_eq!(headers(&world, "part").await.len(), 2, "the third attempt finds the second's");
}

#[actix::test]
async fn a_person_has_the_workflow_behind_the_tool_of_a_compensation_run_again() {
    tokio::time::pause();
    let StepDefinition { kind, .. } = tool("a", "runs-part");
    let retry = RetryPolicy { attempts: 2, delay_ms: 1_000, ..RetryPolicy::default() };
    let rule = Compensation { retry, ..Compensation::new(kind) };
    let acts = StepDefinition { compensate: Some(Box::new(rule)), ..map("a", json!({})) };
    let definitions = vec![
        workflow("w", vec![acts, map("b", json!("fail('over')"))]),
        workflow("part", vec![http("undo")]),
    ];
    let (world, _, _) = world(definitions, failing(2)).await;
    begin(&world).await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(described(&world).await.status, Status::Suspended);
    assert_eq!(headers(&world, "part").await.len(), 2);
    let answer = resume(json!({ "action": "retry" }));
    world.runtime.resume(&target("w", "e"), answer).await.unwrap();
    assert_eq!(described(&world).await.compensation.unwrap().completed, 1);
    assert_eq!(headers(&world, "part").await.len(), 3);
}

#[actix::test]
async fn an_agent_behind_a_tool_belongs_to_the_trace_and_its_usage_to_the_step() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![tool("a", "asks-clerk")])];
    let (world, _, _) = world(definitions, |_| ScriptedEnd::Hangs).await;
    let started = start("w", "e", json!({ "prompt": "hello?" }));
    let outcome = world.runtime.execute(started).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!("hello")));
    let page = world.store.generations("clerk", None, 0, PageSize::of(10)).await.unwrap();
    let [generation] = &page.entries[..] else { panic!("one") };
    let above = described(&world).await;
    assert_eq!(generation.record.trace.id, above.header.trace.id);
    assert_eq!(above.usage.unwrap().total_tokens, 2);
}

#[actix::test]
async fn a_tool_that_runs_its_own_workflow_stops_at_the_depth_limit() {
    tokio::time::pause();
    let definition = workflow("w", vec![tool("a", "runs-itself")]);
    let (world, _, _) = world(vec![definition], |_| ScriptedEnd::Hangs).await;
    begin(&world).await;
    pass(Duration::from_secs(1)).await;
    let said = error(&world).await;
    assert!(said.contains("16"), "{said}");
    assert_eq!(headers(&world, "w").await.len(), 17, "one, and sixteen below it");
}
