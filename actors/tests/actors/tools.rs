//! Direct calls of tools: what they run, and what ends with the call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition, ToolError};
use greenroom_actors::agent::{AgentDefinition, Approval, ToolAsk};
use greenroom_actors::domain::assignment::Answerer;
use greenroom_actors::domain::definition::{StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::observe::log_record::LogScope;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::store::{
    ExecutionFilter, GenerationStatus, Generations as _, PageSize, Status,
};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{Target, Unavailable};
use greenroom_actors::runtime::{AskedBefore, CallTool, CallToolError};
use greenroom_actors::testkit::{TestClock, World, pass, registry_of, target};
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::{Map, Value, json};

use crate::workflows::{Calls, add_agent, ask, map, resume, run, sleep, with_functions, workflow};

fn takes_n(id: &str, step: StepDefinition) -> WorkflowDefinition {
    let schema = json!({ "type": "object", "required": ["n"],
                         "properties": { "n": { "type": "integer" } } });
    WorkflowDefinition { input_schema: Some(schema), ..workflow(id, vec![step]) }
}

fn function_tool(
    name: &str,
    body: impl Fn(Value, ToolContext) -> Value + Send + Sync + 'static,
) -> ToolDefinition {
    function_tool_of(name, move |arguments, context| Ok(body(arguments, context)))
}

fn function_tool_of(
    name: &str,
    body: impl Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
) -> ToolDefinition {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object", "required": ["n"] }),
    };
    let body: ToolBody = ToolBody::Function(Arc::new(move |arguments, context| {
        let output = body(arguments, context);
        async { output }.boxed()
    }));
    ToolDefinition::new(spec, body).unwrap()
}

/// Each workflow as a tool of the same name, the agent as `asks-clerk`, and a function.
fn registry(model: &ScriptedModel) -> Registry {
    let definitions = vec![
        takes_n("adds", map("add", json!("data.n + 1"))),
        takes_n("waits", ask("manager")),
        takes_n("naps", sleep("nap", 1_000)),
        takes_n("hangs", run("hang", "hang")),
        takes_n("breaks", run("boom", "boom")),
    ];
    let mut registry = with_functions(registry_of(definitions), &Calls::default());
    for plan in registry.workflows.values() {
        let name = plan.definition.id.clone();
        let tool = ToolDefinition::for_workflow(name.clone(), None, None, plan).unwrap();
        registry.tools.insert(name, Arc::new(tool));
    }
    let spec = ToolSpec {
        name: "asks-clerk".to_owned(),
        description: String::new(),
        parameters: ToolDefinition::agent_parameters(),
    };
    let asks = ToolDefinition::new(spec, ToolBody::Agent("clerk".to_owned())).unwrap();
    let shows =
        function_tool("shows-context", |_, context| Value::Object((*context.context).clone()));
    for tool in [asks, shows] {
        registry.tools.insert(tool.spec.name.clone(), Arc::new(tool));
    }
    add_agent(&mut registry, "clerk", model.clone(), AgentDefinition::default());
    registry
}

async fn world_with(model: &ScriptedModel) -> World {
    World::launch(registry(model), RuntimeLimits::default()).await
}

async fn world() -> World {
    world_with(&ScriptedModel::local([])).await
}

fn call(name: &str, input: Value) -> CallTool {
    CallTool { name: name.to_owned(), input, ..CallTool::default() }
}

/// Returns the only execution of the workflow.
async fn execution_of(world: &World, workflow: &str) -> Target {
    let filter = ExecutionFilter { workflow_id: Some(workflow.to_owned()), ..Default::default() };
    let (found, _) = world.runtime.list(&filter, None, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    target(workflow, found[0].header.id.as_str())
}

#[actix::test]
async fn a_direct_call_returns_a_result_or_the_reason_why_not() {
    tokio::time::pause();
    let model = ScriptedModel::local([ScriptedAnswer::Text("hello".to_owned())]);
    let world = world_with(&model).await;
    let invalid = |detail: &str| Err(CallToolError::InvalidInput(detail.to_owned()));
    let failed = |message: &str| Err(CallToolError::Failed(message.to_owned()));
    let rows = [
        ("adds", json!({ "n": 1 }), Ok(json!(2))),
        ("asks-clerk", json!({ "prompt": "hi" }), Ok(json!("hello"))),
        ("nowhere", json!({}), Err(CallToolError::UnknownTool("nowhere".to_owned()))),
        ("adds", json!({}), invalid("n: missing")),
        ("adds", json!({ "n": "x" }), invalid(r#"n: "x" is not of type "integer""#)),
        ("adds", json!(null), invalid("not a JSON object")),
        ("adds", json!("n"), invalid("not a JSON object")),
        (
            "breaks",
            json!({ "n": 1 }),
            failed("workflow breaks failed: panicked: a defect in the step"),
        ),
        ("hangs", json!({ "n": 1 }), failed("timed out after 60000 ms")),
        ("asks-clerk", json!({ "prompt": "hi" }), failed("the script has ended")),
    ];
    for (name, input, expected) in rows {
        assert_eq!(world.runtime.call_tool(call(name, input)).await, expected, "{name}");
    }
}

#[actix::test]
async fn what_a_direct_call_logs_has_the_ids_of_its_request() {
    tokio::time::pause();
    let mut registry = registry(&ScriptedModel::local([]));
    let seen = function_tool("seen", |_, _| json!(LogScope::current().as_deref()));
    registry.tools.insert("seen".to_owned(), Arc::new(seen));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let trace = Trace::of("caller", EntityType::Agent, &Arc::from("a"), TraceOrigin::New);
    let request = CallTool {
        user_id: Some("ann".to_owned()),
        trace: TraceOrigin::Within(trace.clone()),
        ..call("seen", json!({ "n": 1 }))
    };
    let scope = LogScope { request_id: Some(Arc::from("r1")), ..LogScope::default() };
    let calling = Arc::new(scope).during(world.runtime.call_tool(request));
    let seen = calling.await.unwrap();
    assert_eq!(seen["request_id"], "r1");
    assert_eq!(seen["user_id"], "ann");
    assert_eq!(seen["trace_id"], json!(trace.id));
}

#[actix::test]
async fn a_workflow_that_suspends_stays_suspended_after_the_call() {
    tokio::time::pause();
    let world = world().await;
    let output = world.runtime.call_tool(call("waits", json!({ "n": 1 }))).await.unwrap();
    let waiting = execution_of(&world, "waits").await;
    let state = world.runtime.describe(&waiting).await.unwrap();
    let id = state.suspension.unwrap().id.clone();
    let expected = json!({
        "status": "suspended", "executionId": waiting.execution_id.as_str(),
        "stepId": "manager", "reason": "Suspended at step manager",
        "suspensionId": id, "suspensions": [
            { "id": id, "path": "manager", "reason": "Suspended at step manager" },
        ],
    });
    assert_eq!(output, expected);

    let answer = resume(json!({ "approved": true }));
    let outcome = world.runtime.resume(&waiting, answer).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
}

#[actix::test]
async fn a_workflow_is_cancelled_with_the_call_that_waits_for_it() {
    tokio::time::pause();
    let world = world().await;

    // The caller disconnects.
    let mut waiting = Box::pin(world.runtime.call_tool(call("naps", json!({ "n": 1 }))));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut waiting).await.is_err());
    drop(waiting);
    // The timeout of the call.
    let late = world.runtime.call_tool(call("hangs", json!({ "n": 1 }))).await;
    assert!(late.is_err());
    pass(Duration::from_millis(10)).await;

    for workflow in ["naps", "hangs"] {
        let state = world.runtime.describe(&execution_of(&world, workflow).await).await.unwrap();
        assert_eq!(state.status, Status::Cancelled, "{workflow}");
    }
}

#[actix::test]
async fn a_workflow_cancelled_by_others_fails_the_call() {
    tokio::time::pause();
    let world = world().await;
    let mut waiting = Box::pin(world.runtime.call_tool(call("naps", json!({ "n": 1 }))));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut waiting).await.is_err());
    let napping = execution_of(&world, "naps").await;
    world.runtime.cancel(&napping, Some("not today".to_owned()), None).await.unwrap();
    let why = "workflow naps was cancelled: not today".to_owned();
    assert_eq!(waiting.await, Err(CallToolError::Failed(why)));
}

#[actix::test]
async fn an_agent_is_cancelled_with_the_call_that_waits_for_it() {
    tokio::time::pause();
    let model = ScriptedModel::local([ScriptedAnswer::Hang]);
    let world = world_with(&model).await;
    let asking = world.runtime.call_tool(call("asks-clerk", json!({ "prompt": "hi" })));
    assert!(tokio::time::timeout(Duration::from_millis(500), asking).await.is_err());
    pass(Duration::from_millis(10)).await;

    assert_eq!(model.abandoned(), 1);
    assert!(!world.runtime.activity().await.is_agent_working("clerk"));
    let page = world.store.generations("clerk", None, 0, PageSize::of(10)).await.unwrap();
    assert_eq!(page.entries[0].record.status, GenerationStatus::Cancelled);
}

#[actix::test]
async fn a_direct_call_has_a_user_and_a_context() {
    tokio::time::pause();
    let world = world().await;
    let context = Map::from_iter([("tier".to_owned(), json!("gold"))]);
    let user_id = Some("anna".to_owned());
    let shows = |input| CallTool { user_id: user_id.clone(), context: context.clone(), ..input };
    let shown = world.runtime.call_tool(shows(call("shows-context", json!({ "n": 1 })))).await;
    assert_eq!(shown, Ok(json!({ "tier": "gold", "userId": "anna" })));

    world.runtime.call_tool(shows(call("adds", json!({ "n": 1 })))).await.unwrap();
    let ran = world.runtime.describe(&execution_of(&world, "adds").await).await.unwrap();
    assert_eq!(ran.header.user_id.as_deref(), Some("anna"));
    assert_eq!(*ran.context, json!({ "tier": "gold", "userId": "anna" }));
}

#[actix::test]
async fn a_direct_call_that_needs_approval_is_that_of_one_who_may_give_it() {
    tokio::time::pause();
    let mut registry = registry(&ScriptedModel::local([]));
    for (name, to) in [("pays", &["role:support"][..]), ("lends", &["role:support", "!self"])] {
        let to = to.iter().map(|to| to.parse().unwrap());
        let approval = Approval::when("args.n > 1").unwrap().to(to);
        let tool = function_tool(name, |input, _| input);
        let tool = ToolDefinition { approval: Some(Arc::new(approval)), ..tool };
        registry.tools.insert(name.to_owned(), Arc::new(tool));
    }
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let refused = |name: &str, to: &str| {
        Err(CallToolError::NotApproved { name: name.to_owned(), to: to.to_owned() })
    };
    let rows = [
        ("pays", Some("olga"), &["support"][..], 2, Ok(json!({ "n": 2 }))),
        ("pays", Some("ann"), &[], 2, refused("pays", "role:support")),
        ("pays", None, &[], 2, refused("pays", "role:support")),
        ("pays", None, &[], 1, Ok(json!({ "n": 1 }))),
        // the one who calls it asks for it as well
        ("lends", Some("olga"), &["support"], 2, refused("lends", "role:support, !self")),
    ];
    for (name, user, roles, n, expected) in rows {
        let roles = roles.iter().map(|role| Arc::from(*role)).collect();
        let answerer = Some(Answerer { user: user.map(Arc::from), roles });
        let call = CallTool { answerer, ..call(name, json!({ "n": n })) };
        assert_eq!(world.runtime.call_tool(call).await, expected, "{name} {user:?} {n}");
    }
    let trusted = call("lends", json!({ "n": 2 }));
    assert_eq!(world.runtime.call_tool(trusted).await, Ok(json!({ "n": 2 })));
}

#[actix::test]
async fn a_shutdown_refuses_calls_and_cancels_no_workflow() {
    tokio::time::pause();
    let world = world().await;
    let runtime = world.runtime.clone();
    let waiting =
        actix::spawn(async move { runtime.call_tool(call("naps", json!({ "n": 1 }))).await });
    pass(Duration::from_millis(10)).await;
    let napping = execution_of(&world, "naps").await;

    // Shorter than the nap, so that the grace period ends first.
    world.runtime.drain(Duration::from_millis(100)).await;

    let ending = CallToolError::Unavailable(Unavailable::Draining { execution: None });
    let Err(CallToolError::Failed(interrupted)) = waiting.await.unwrap() else { panic!("refused") };
    assert!(interrupted.contains("may or may not"), "{interrupted}");
    assert_eq!(world.runtime.call_tool(call("adds", json!({ "n": 1 }))).await, Err(ending));
    let world = world.restart().await;
    pass(Duration::from_secs(2)).await;
    let state = world.runtime.describe(&napping).await.unwrap();
    assert_eq!(state.status, Status::Completed);
}

#[actix::test]
async fn tools_run_on_the_threads_of_the_runtime() {
    let here = std::thread::current().id();
    let elsewhere = move |_, _| Value::from(std::thread::current().id() != here);
    let mut registry = registry(&ScriptedModel::local([ScriptedAnswer::Text("hi".to_owned())]));
    registry.tools.insert("where".to_owned(), Arc::new(function_tool("where", elsewhere)));
    let limits = RuntimeLimits { placement: Placement::Threads(2), ..RuntimeLimits::default() };
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(TestClock::new()));
    let runtime = Runtime::launch(registry, RuntimePorts::new(store, clock), limits).await.unwrap();
    let rows = [
        ("where", json!({ "n": 1 }), json!(true)),
        ("adds", json!({ "n": 1 }), json!(2)),
        ("asks-clerk", json!({ "prompt": "hi" }), json!("hi")),
    ];
    for (name, input, output) in rows {
        assert_eq!(runtime.call_tool(call(name, input)).await, Ok(output), "{name}");
    }
    runtime.drain(Duration::ZERO).await;
    runtime.end();
}

#[actix::test]
async fn a_direct_call_is_made_again_with_the_answers_to_its_questions() {
    let mut registry = registry(&ScriptedModel::local([]));
    let schema = json!({ "type": "integer" });
    let own = schema.clone();
    let asks = function_tool_of("asks", move |_, context| {
        let ask = |question: &str| context.ask(ToolAsk::new(question).schema(own.clone()));
        let (first, second) = (ask("first?")?, ask("second?")?);
        Ok(json!([first, second, context.idempotency_key]))
    });
    registry.tools.insert("asks".to_owned(), Arc::new(asks));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let asking = |after: Option<AskedBefore>| {
        let call = CallTool { after, ..call("asks", json!({ "n": 1 })) };
        world.runtime.call_tool(call)
    };
    let waits = |result: Result<Value, CallToolError>| match result {
        Err(CallToolError::Waits { id, ask }) => (id, ask.question),
        other => panic!("does not wait: {other:?}"),
    };
    let after = |id: &str, answers: &[Value]| {
        let schema = Some(schema.clone()).filter(|_| !answers.is_empty());
        Some(AskedBefore {
            id: id.to_owned(),
            answers: answers.to_vec(),
            schema,
            ..AskedBefore::default()
        })
    };
    let (id, question) = waits(asking(None).await);
    assert_eq!(question, "first?");
    assert_eq!(waits(asking(after(&id, &[])).await), (id.clone(), "first?".to_owned()));
    let wrong = CallToolError::InvalidAnswer(r#""1" is not of type "integer""#.to_owned());
    assert_eq!(asking(after(&id, &[json!("1")])).await, Err(wrong));
    assert_eq!(waits(asking(after(&id, &[json!(1)])).await), (id.clone(), "second?".to_owned()));
    let done = asking(after(&id, &[json!(1), json!(2)])).await;
    assert_eq!(done, Ok(json!([1, 2, id])));
    let many = vec![json!(1); 16];
    assert!(asking(after(&id, &many)).await.is_ok());
    let more = CallToolError::InvalidAnswer("there are more than 16 answers".to_owned());
    assert_eq!(asking(after(&id, &[many, vec![json!(1)]].concat())).await, Err(more));
    // what only checks does not call
    let checked = world.runtime.check_tool_call(call("asks", json!({ "n": 1 }))).await;
    assert_eq!(checked, Ok(json!({ "n": 1 })));
    let refused = world.runtime.check_tool_call(call("asks", json!({}))).await;
    assert_eq!(refused, Err(CallToolError::InvalidInput("n: missing".to_owned())));
}
