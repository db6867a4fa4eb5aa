//! The steps of a completed child are compensated when its parent fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::domain::definition::{
    Body, Compensation, RetryPolicy, StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::step_state::StepStatus;
use greenroom_actors::ports::store::{Executions, Retention, Status};
use greenroom_actors::requests::ExecutionState;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{RetentionRules, RuntimeLimits};
use serde_json::{Value, json};

use crate::workflows::{ask, child, for_each, function, map, resume, run, workflow};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Calls of the function `undo`: the idempotency key, and the message of `error`.
type Undone = Arc<Mutex<Vec<(String, Option<String>)>>>;

pub(crate) fn undone(step: StepDefinition) -> StepDefinition {
    let body = Body::Run { function: "undo".to_owned(), version: None };
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let rule = Compensation { retry, ..Compensation::new(StepKind::Then { body }) };
    StepDefinition { compensate: Some(Box::new(rule)), ..step }
}

/// An order runs a part with a part inside, and fails in its last step.
fn order() -> Vec<WorkflowDefinition> {
    let act = |id: &str| undone(run(id, "act"));
    let inner = workflow("inner", vec![act("deep")]);
    let part = workflow("part", vec![act("first"), child("within", "inner"), act("last")]);
    let order = vec![act("pay"), child("part", "part"), act("pack"), run("fail", "fail")];
    vec![inner, part, workflow("order", order)]
}

async fn world(definitions: Vec<WorkflowDefinition>, limits: RuntimeLimits) -> (World, Undone) {
    let undone = Undone::default();
    let mut registry = registry_of(definitions);
    let act = function(|_| async { Ok(json!("acted").into()) });
    let fail = function(|_| async { Err("sold out".into()) });
    let seen = Arc::clone(&undone);
    let undo = function(move |step| {
        // effects may be known by the id of the execution that made them
        let of_execution = format!("{}/", step.execution_id);
        assert!(step.idempotency_key.starts_with(&of_execution), "{of_execution}");
        let called = (step.idempotency_key.clone(), step.error_message().map(str::to_owned));
        seen.lock().unwrap().push(called);
        async { Ok(Value::Null.into()) }
    });
    for (name, body) in [("act", act), ("fail", fail), ("undo", undo)] {
        registry.functions.insert(name.to_owned(), body);
    }
    (World::launch(registry, limits).await, undone)
}

pub(crate) async fn state_of(world: &World, workflow: &str, id: &str) -> ExecutionState {
    world.runtime.describe(&target(workflow, id)).await.unwrap()
}

pub(crate) fn child_at(state: &ExecutionState, path: &str) -> String {
    let step = state.steps.iter().find(|step| &*step.path == path).expect("the step has begun");
    step.child.as_ref().expect("it has a child").to_string()
}

fn keys(undone: &Undone) -> Vec<String> {
    undone.lock().unwrap().iter().map(|(key, _)| key.clone()).collect()
}

/// Returns the keys of the compensations of an order in which everything is undone.
async fn expected(world: &World, id: &str) -> Vec<String> {
    let order = state_of(world, "order", id).await;
    let part = child_at(&order, "part");
    let inner = child_at(&state_of(world, "part", &part).await, "within");
    let key = |execution: &str, step: &str| format!("{execution}/{step}:compensate");
    vec![
        key(id, "pack"),
        key(&part, "last"),
        key(&inner, "deep"),
        key(&part, "first"),
        key(id, "pay"),
    ]
}

#[actix::test]
async fn children_and_grandchildren_are_reversed_in_their_turn() {
    tokio::time::pause();
    let (world, undone) = world(order(), RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("order", "o", json!(1))).await.unwrap();
    assert_eq!(outcome.status(), Status::Error);
    assert_eq!(keys(&undone), expected(&world, "o").await);
    let whys: Vec<_> = undone.lock().unwrap().iter().map(|(_, why)| why.clone()).collect();
    assert_eq!(whys, vec![Some("sold out".to_owned()); 5], "all know why");

    let order = state_of(&world, "order", "o").await;
    let part = state_of(&world, "part", &child_at(&order, "part")).await;
    assert_eq!((part.status, part.compensation), (Status::Completed, None), "it has not changed");
    let reversal = state_of(&world, "part", &child_at(&order, "part:compensate")).await;
    assert_eq!(reversal.status, Status::Completed);
    assert_eq!(reversal.reversal_of, Some(part.header.id.clone()));
    assert_eq!(reversal.header.parent.as_ref().unwrap().execution.as_str(), "o");
    assert_eq!((reversal.input, &*part.input), (Arc::clone(&part.input), &json!("acted")));
    let compensation = reversal.compensation.unwrap();
    assert_eq!((&*compensation.reason, compensation.completed), ("sold out", 3));
}

#[actix::test]
async fn a_kill_at_any_time_leaves_the_same_keys_in_the_same_order() {
    tokio::time::pause();
    for kills in 0..12 {
        let mut slow = order();
        slow.last_mut().unwrap().steps.insert(3, crate::workflows::sleep("nap", 5));
        let (mut world, undone) = world(slow, RuntimeLimits::default()).await;
        let running = crate::workflows::spawn(&world, start("order", "o", json!(1)));
        pass(Duration::from_millis(6)).await;
        for _ in 0..kills {
            tokio::task::yield_now().await;
        }
        world = world.restart().await;
        drop(running);
        pass(Duration::from_secs(60)).await;
        assert_eq!(state_of(&world, "order", "o").await.status, Status::Error);
        let mut keys = keys(&undone);
        keys.dedup();
        assert_eq!(keys, expected(&world, "o").await, "killed after {kills}");
    }
}

#[actix::test]
async fn children_of_iterations_are_reversed() {
    tokio::time::pause();
    let mut definitions = order();
    let lines = for_each("lines", "range(3) | list", child("line", "inner"));
    definitions.push(workflow("lines", vec![lines, run("fail", "fail")]));
    let (world, undone) = world(definitions, RuntimeLimits::default()).await;
    world.runtime.execute(start("lines", "l", json!(1))).await.unwrap();
    let state = state_of(&world, "lines", "l").await;
    let key = |index: usize| {
        format!("{}/deep:compensate", child_at(&state, &format!("lines[{index}]/line")))
    };
    let mut undone = keys(&undone);
    undone.sort();
    let mut expected = [key(0), key(1), key(2)];
    expected.sort();
    assert_eq!(undone, expected);
}

#[actix::test]
async fn a_child_that_is_no_longer_stored_asks_and_can_be_skipped() {
    tokio::time::pause();
    let retention = RetentionRules { executions: None, batch: 2, ..RetentionRules::default() };
    let limits = RuntimeLimits { retention, ..RuntimeLimits::default() };
    let mut definitions = order();
    let steps = vec![child("part", "inner"), ask("manager"), run("fail", "fail")];
    definitions.push(workflow("waits", steps));
    let (world, undone) = world(definitions, limits).await;
    world.runtime.execute(start("waits", "w", json!(1))).await.unwrap();
    pass(DAY).await;
    let child = child_at(&state_of(&world, "waits", "w").await, "part");
    let stored = world.store.load(&ExecutionId::trusted(child.as_str())).await.unwrap().unwrap();
    world.store.drop_executions(vec![stored.row]).await.unwrap();

    let outcome =
        world.runtime.resume(&target("waits", "w"), resume(json!({ "approved": 1 }))).await;
    let outcome = outcome.unwrap();
    let asked = outcome.suspension().expect("it asks");
    assert_eq!(&*asked.path, "part:compensate");
    let expected = format!(
        "the compensation of part failed: execution {child} cannot be reversed: it is no longer \
         stored. Undo its effects by hand and answer `skip`. [retention] should keep it until the \
         executions that need it have ended"
    );
    assert_eq!(*asked.reason, *expected);
    let skip = resume(json!({ "action": "skip" }));
    let outcome = world.runtime.resume(&target("waits", "w"), skip).await.unwrap();
    assert_eq!(outcome.status(), Status::Error);
    assert_eq!(keys(&undone), Vec::<String>::new());
}

/// A person skips a compensation of a grandchild.
#[actix::test]
async fn what_is_skipped_in_a_reversal_is_skipped_above() {
    tokio::time::pause();
    let mut definitions = order();
    let body = Body::Run { function: "fail".to_owned(), version: None };
    let rule = definitions[0].steps[0].compensate.as_mut().unwrap();
    rule.kind = StepKind::Then { body };
    let (world, undone) = world(definitions, RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("order", "o", json!(1))).await.unwrap();
    assert!(outcome.suspension().is_some(), "{outcome:?}");
    let skip = resume(json!({ "action": "skip" }));
    let outcome = world.runtime.resume(&target("order", "o"), skip).await.unwrap();
    assert_eq!(outcome.status(), Status::Error);
    let all = expected(&world, "o").await;
    let without_the_skipped = [0, 1, 3, 4].map(|n| all[n].clone());
    assert_eq!(keys(&undone), without_the_skipped);

    let counts = |state: &ExecutionState| {
        let compensation = state.compensation.as_ref().unwrap();
        (compensation.completed, compensation.skipped, compensation.remaining)
    };
    let order = state_of(&world, "order", "o").await;
    let part = state_of(&world, "part", &child_at(&order, "part:compensate")).await;
    assert_eq!([counts(&order), counts(&part)], [(2, 1, 0); 2]);
    for (state, path) in [(&order, "part:compensate"), (&part, "within:compensate")] {
        let step = state.steps.iter().find(|step| &*step.path == path).unwrap();
        assert_eq!(step.status, StepStatus::Skipped, "{path}");
    }
    let why = world.runtime.why(&target("order", "o")).await.unwrap();
    let skipped: Vec<_> = why.ending.unwrap().skipped.into_iter().map(|it| it.path).collect();
    assert_eq!(skipped, ["part".into()]);
}

#[actix::test]
async fn a_child_runs_the_compensations_of_the_version_that_it_was_started_with() {
    tokio::time::pause();
    let mut definitions = order();
    definitions.push(workflow("waits", vec![child("part", "inner"), ask("m"), run("f", "fail")]));
    let (mut world, undone) = world(definitions, RuntimeLimits::default()).await;
    world.runtime.execute(start("waits", "w", json!(1))).await.unwrap();
    let mut registry = registry_of([
        workflow("inner", vec![map("other", json!("1"))]),
        workflow("waits", vec![map("other", json!("1"))]),
    ]);
    registry.functions = world.runtime.registry().functions.clone();
    world.exchange(registry).await.unwrap();
    let approved = resume(json!({ "approved": 1 }));
    let outcome = world.runtime.resume(&target("waits", "w"), approved).await.unwrap();
    assert_eq!(outcome.status(), Status::Error);
    let child = child_at(&state_of(&world, "waits", "w").await, "part");
    assert_eq!(keys(&undone), [format!("{child}/deep:compensate")]);
}
