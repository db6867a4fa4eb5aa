//! Log records carry the ids of the execution that they are about.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::definition::{
    Compensation, RetryPolicy, StepDefinition, SuspendRule, WorkflowDefinition,
};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::observe::log_record::LogScope;
use greenroom_actors::ports::store::ExecutionFilter;
use greenroom_actors::requests::StartExecution;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::agents::{Model, agent, text};
use crate::workflows::{
    Calls, add_agent, ask, child, function, map, resume, run, with_functions, workflow,
};

/// Collects everything that this process logs, with the scope of each record.
struct Listener(Mutex<Vec<Heard>>);

struct Heard {
    level: log::Level,
    message: String,
    scope: Option<Arc<LogScope>>,
}

static LISTENER: Listener = Listener(Mutex::new(Vec::new()));

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let (level, message) = (record.level(), record.args().to_string());
        self.0.lock().unwrap().push(Heard { level, message, scope: LogScope::current() });
    }

    fn flush(&self) {}
}

fn listen() {
    // an error: another test has set it
    let _ = log::set_logger(&LISTENER);
    log::set_max_level(log::LevelFilter::Debug);
}

/// Returns a part of the first record that contains this text.
fn heard<T>(text: &str, part: impl FnOnce(&Heard) -> T) -> T {
    let records = LISTENER.0.lock().unwrap();
    part(records.iter().find(|heard| heard.message.contains(text)).unwrap())
}

/// Returns the scope of the first record that contains this text.
fn scope_of(text: &str) -> Arc<LogScope> {
    heard(text, |it| it.scope.clone()).unwrap_or_else(|| panic!("without a scope: {text}"))
}

/// Covers an execution, its steps and the agents that they call.
#[actix::test]
async fn log_records_carry_the_ids_of_their_execution() {
    tokio::time::pause();
    listen();
    let steps = vec![run("says", "says"), agent("ask"), run("late", "boom")];
    let mut registry = with_functions(registry_of([workflow("logged", steps)]), &Calls::default());
    let says = function(|_| async {
        log::info!("a function of a step begins");
        tokio::task::yield_now().await;
        log::info!("a function of a step continues");
        Ok(json!({}).into())
    });
    registry.functions.insert("says".to_owned(), says);
    let model = Model::new([text("hi")]);
    add_agent(&mut registry, "helper", model, AgentDefinition::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;

    let request = StartExecution {
        user_id: Some("ann".to_owned()),
        conversation_id: Some("c1".to_owned()),
        ..start("logged", "logged-1", json!({}))
    };
    world.runtime.execute(request).await.unwrap();

    let course = ["execution logged-1 started", "step late failed", "logged-1 failed at step late"];
    let bodies = ["a function of a step begins", "a function of a step continues"];
    let agents = ["agent helper: generation"];
    for part in course.iter().chain(&bodies).chain(&agents) {
        let scope = scope_of(part);
        let execution = scope.execution_id.as_ref().map(|id| id.as_str());
        assert_eq!(execution, Some("logged-1"), "{part}");
        let ids = [&scope.workflow_id, &scope.user_id, &scope.conversation_id];
        assert_eq!(ids.map(|id| id.as_deref().unwrap()), ["logged", "ann", "c1"], "{part}");
        assert!(scope.trace_id.as_deref().is_some_and(is_trace_id), "{part}");
    }
    let (course, body) = (scope_of(course[0]), scope_of(bodies[1]));
    assert_eq!(scope_of(bodies[0]), body);
    assert!(course.span_id.is_some() && body.span_id != course.span_id, "a step has another span");
    let generation = scope_of(agents[0]);
    assert_eq!(generation.agent_id.as_deref(), Some("helper"));
    assert!(generation.generation_id.is_some() && generation.span_id != course.span_id);
    assert_eq!(LogScope::current(), None);
}

/// Without a user, `!self` excludes none.
#[actix::test]
async fn an_ask_that_cannot_exclude_its_starter_is_warned_of() {
    tokio::time::pause();
    listen();
    let rule = SuspendRule { to: vec!["!self".to_owned()], ..SuspendRule::default() };
    let asks = StepDefinition { suspend: Some(rule), ..run("review", "slow") };
    let registry =
        with_functions(registry_of([workflow("reviewed", vec![asks])]), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let request = |id, user: Option<&str>| StartExecution {
        user_id: user.map(str::to_owned),
        ..start("reviewed", id, json!({}))
    };

    world.runtime.execute(request("reviewed-1", Some("ann"))).await.unwrap();
    world.runtime.execute(request("reviewed-2", None)).await.unwrap();

    assert_eq!(heard("reviewed-2: step review asks with !self", |it| it.level), log::Level::Warn);
    let records = LISTENER.0.lock().unwrap();
    let warned = records.iter().any(|it| it.message.contains("reviewed-1: step review asks"));
    drop(records);
    assert!(!warned);
}

#[actix::test]
async fn a_compensation_that_waits_for_a_person_is_warned_of() {
    tokio::time::pause();
    listen();
    let undo = |function: &str| {
        let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        Compensation { retry, ..Compensation::new(run("undo", function).kind) }
    };
    let hold = |function| StepDefinition {
        compensate: Some(Box::new(undo(function))),
        ..map("hold", json!(1))
    };
    let definitions = [
        workflow("unbooked", vec![hold("flaky"), run("charge", "flaky")]),
        WorkflowDefinition {
            compensate_on_cancel: true,
            ..workflow("called-off", vec![hold("slow"), ask("manager")])
        },
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("unbooked", "unbooked-1", json!({}))).await.unwrap();
    let skip = resume(json!({ "action": "skip" }));
    world.runtime.resume(&target("unbooked", "unbooked-1"), skip).await.unwrap();
    world.runtime.execute(start("called-off", "called-off-1", json!({}))).await.unwrap();
    let why = Some("rain".to_owned());
    world.runtime.cancel(&target("called-off", "called-off-1"), why, None).await.unwrap();

    for (level, message) in [
        (log::Level::Warn, "execution unbooked-1 compensates its completed steps: not yet"),
        (
            log::Level::Warn,
            "execution unbooked-1: the compensation of hold failed: not yet; it waits for an answer, \
             retry or skip: greenroom inbox list --kind compensation",
        ),
        (log::Level::Info, "execution unbooked-1: hold:compensate was skipped; not all is undone"),
        (log::Level::Info, "execution called-off-1 compensates its completed steps: rain"),
    ] {
        assert_eq!(heard(message, |it| it.level), level, "{message}");
        assert!(scope_of(message).execution_id.is_some(), "{message}");
    }
}

#[actix::test]
async fn who_cancelled_an_execution_is_logged() {
    tokio::time::pause();
    listen();
    let definitions =
        [workflow("waits", vec![ask("manager")]), workflow("around", vec![child("in", "waits")])];
    let world = World::launch(registry_of(definitions), RuntimeLimits::default()).await;
    for (workflow, id, by) in
        [("around", "ended-1", Some(Principal::claimed("eve"))), ("waits", "ended-2", None)]
    {
        let user_id = Some("ann".to_owned());
        let request = StartExecution { user_id, ..start(workflow, id, json!({})) };
        world.runtime.execute(request).await.unwrap();
        world.runtime.cancel(&target(workflow, id), None, by).await.unwrap();
    }
    pass(Duration::from_secs(60)).await;

    for (message, user) in
        [("execution ended-1 cancelled by eve", "eve"), ("execution ended-2 cancelled", "ann")]
    {
        assert_eq!(heard(message, |it| it.level), log::Level::Info, "{message}");
        let scope = scope_of(message);
        assert_eq!(scope.user_id.as_deref(), Some(user), "it is deleted with this user");
        let execution = scope.execution_id.as_ref().map(|id| id.as_str());
        assert_eq!(execution, message.split(' ').nth(1));
    }
    let children = ExecutionFilter { parent_id: Some("ended-1".to_owned()), ..Default::default() };
    let (children, _) = world.runtime.list(&children, None, 9).await.unwrap();
    let of_child = format!("execution {} cancelled", children[0].header.id);
    assert_eq!(heard(&of_child, |it| it.level), log::Level::Debug);
}

#[actix::test]
async fn failed_loads_are_errors_unless_an_outage_is_known() {
    tokio::time::pause();
    listen();
    let world = World::launch(registry_of([]), RuntimeLimits::default()).await;
    world.store.set_readable(false);
    for (id, is_writable, level) in
        [("unread-1", true, log::Level::Error), ("unread-2", false, log::Level::Debug)]
    {
        world.store.set_writable(is_writable);
        world.runtime.describe(&target("logged", id)).await.unwrap_err();
        assert_eq!(heard(&format!("{id} cannot be loaded"), |it| it.level), level);
    }
}
