//! Compensations that are executions do not run beside each other, and undo once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{
    Compensation, RetryPolicy, StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::slot_of;
use greenroom_actors::ports::crash_marks::{CrashMark, CrashMarks as _, MarkedWork};
use greenroom_actors::ports::store::{ExecutionFilter, Executions, Status};
use greenroom_actors::requests::{ExecutionState, TraceOrigin};
use greenroom_actors::runtime::{ReplayDefinition, ReplayExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::processes::{Cluster, TAKEN_OVER};
use crate::reversals::{child_at, state_of, undone};
use crate::workflows::{ask, child, function, race, run, sleep, spawn, workflow};

/// Beginnings and ends of calls of the functions `act` and `undo`, with their idempotency keys.
type Calls = Arc<Mutex<Vec<String>>>;

/// Launches a world in which `act` takes a moment and `undo` takes ten seconds.
async fn world(definitions: Vec<WorkflowDefinition>, limits: RuntimeLimits) -> (World, Calls) {
    let calls = Calls::default();
    let mut registry = registry_of(definitions);
    let fail = function(|_| async { Err("sold out".into()) });
    registry.functions.insert("fail".to_owned(), fail);
    for (name, seconds) in [("act", 0), ("undo", 10)] {
        let calls = Arc::clone(&calls);
        let body = function(move |step| {
            let (calls, key) = (Arc::clone(&calls), step.idempotency_key);
            async move {
                calls.lock().unwrap().push(format!("begin {key}"));
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                calls.lock().unwrap().push(format!("end {key}"));
                Ok(json!("acted").into())
            }
        });
        registry.functions.insert(name.to_owned(), body);
    }
    (World::launch(registry, limits).await, calls)
}

/// Returns the keys of all calls, none of which began before another had ended.
fn one_by_one(calls: &Calls) -> Vec<String> {
    let calls = calls.lock().unwrap();
    let calls: Vec<_> = calls.iter().map(|call| call.split_once(' ').unwrap()).collect();
    let pairs = calls.chunks(2).map(|pair| match pair {
        [("begin", began), ("end", ended)] if began == ended => (*began).to_owned(),
        _ => panic!("{pair:?} in {calls:?}"),
    });
    pairs.collect()
}

fn by_workflow(step: StepDefinition, workflow: &str, timeout_ms: Option<u64>) -> StepDefinition {
    let retry = RetryPolicy { attempts: 2, delay_ms: 100, ..RetryPolicy::default() };
    let kind = StepKind::Workflow { workflow: workflow.to_owned(), input: None };
    let rule = Compensation { retry, timeout_ms, ..Compensation::new(kind) };
    StepDefinition { compensate: Some(Box::new(rule)), ..step }
}

fn act(id: &str) -> StepDefinition {
    undone(run(id, "act"))
}

/// Starts another process, after one that died with this execution, which fails then.
async fn set_aside(world: World, state: &ExecutionState) -> World {
    let (execution, last_seq) = (state.header.id.clone(), state.last_seq);
    world.crash_marks.set(7, &CrashMark { execution, last_seq, work: MarkedWork::Decide });
    world.restart().await
}

#[actix::test]
async fn a_reversal_waits_for_what_an_aborted_one_left_behind() {
    tokio::time::pause();
    let definitions = vec![
        workflow("inner", vec![act("deep")]),
        workflow("part", vec![act("first"), child("within", "inner"), act("last")]),
        workflow("order", vec![child("part", "part"), run("fail", "fail")]),
    ];
    let limits = RuntimeLimits { quarantine_after: 1, ..RuntimeLimits::default() };
    let (world, calls) = world(definitions, limits).await;
    let running = spawn(&world, start("order", "o", json!(1)));
    pass(Duration::from_secs(15)).await;
    let order = state_of(&world, "order", "o").await;
    let reversal = state_of(&world, "part", &child_at(&order, "part:compensate")).await;
    let inner = child_at(&reversal, "within:compensate");
    calls.lock().unwrap().clear();
    let world = set_aside(world, &reversal).await;
    drop(running);
    pass(Duration::from_secs(120)).await;

    let aborted = state_of(&world, "part", reversal.header.id.as_str()).await;
    assert_eq!(aborted.status, Status::Error);
    let order = state_of(&world, "order", "o").await;
    assert_eq!(order.status, Status::Error);
    let again = state_of(&world, "part", &child_at(&order, "part:compensate")).await;
    assert_ne!(again.header.id, reversal.header.id);
    assert_eq!(child_at(&again, "within:compensate"), inner, "it is not reversed again");
    let part = child_at(&order, "part");
    let deep = child_at(&state_of(&world, "part", &part).await, "within");
    let key = |execution: &str, step: &str| format!("{execution}/{step}:compensate");
    let expected = [key(&deep, "deep"), key(&part, "last"), key(&part, "first")];
    assert_eq!(one_by_one(&calls), expected);
}

#[actix::test]
async fn an_attempt_waits_for_what_the_attempt_before_undoes() {
    tokio::time::pause();
    let book = by_workflow(run("book", "act"), "cleaning", Some(5_000));
    let definitions = vec![
        workflow("cleaning", vec![act("begin"), sleep("long", 60_000)]),
        workflow("order", vec![book, run("fail", "fail")]),
    ];
    let (world, calls) = world(definitions, RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("order", "o", json!(1))).await.unwrap();
    let asked = outcome.suspension().expect("both attempts took too long");
    assert!(asked.reason.contains("timed out"), "{}", asked.reason);
    pass(Duration::from_secs(60)).await;
    let keys = one_by_one(&calls);
    let steps: Vec<_> = keys.iter().map(|key| key.split_once('/').unwrap().1).collect();
    assert_eq!(steps, ["book", "begin", "begin:compensate", "begin", "begin:compensate"]);
}

fn from_manager(execution_id: Option<ExecutionId>) -> ReplayExecution {
    ReplayExecution {
        step_id: Some("manager".to_owned()),
        resume_data: Some(json!({ "approved": 1 })),
        input: None,
        definition: ReplayDefinition::Original,
        execution_id,
        by: None,
        answerer: None,
        idempotency: None,
        trace: TraceOrigin::New,
    }
}

#[actix::test]
async fn a_replay_is_near_the_children_that_it_copies() {
    let process = Cluster::linked().join("a").await;
    pass(TAKEN_OVER).await;
    process.runtime.execute(start("w", "o", json!(1))).await.unwrap();
    let outcome = process.runtime.replay(&target("w", "o"), from_manager(None)).await.unwrap().new;
    assert_eq!(slot_of(&outcome.execution_id), slot_of(&ExecutionId::trusted("o")));
}

/// Returns the reversals of an execution.
async fn reversals_of(world: &World, workflow: &str, id: &str) -> Vec<ExecutionState> {
    let filter = ExecutionFilter::default();
    let (listed, _) = Executions::list(&*world.store, &filter, None, 100).await.unwrap();
    let mut found = Vec::new();
    for row in listed.into_iter().filter(|row| &*row.header.workflow_id == workflow) {
        let state = state_of(world, workflow, row.header.id.as_str()).await;
        let is_it = state.reversal_of.as_ref().is_some_and(|of| of.as_str() == id);
        found.extend(is_it.then_some(state));
    }
    found
}

#[actix::test]
async fn replays_that_share_a_child_undo_it_once() {
    tokio::time::pause();
    let definitions = vec![
        workflow("cleaning", vec![run("clean", "undo")]),
        workflow("part", vec![by_workflow(run("first", "act"), "cleaning", None)]),
        workflow("order", vec![child("part", "part"), ask("manager"), run("fail", "fail")]),
    ];
    let (world, calls) = world(definitions, RuntimeLimits::default()).await;
    world.runtime.execute(start("order", "o", json!(1))).await.unwrap();
    let part = child_at(&state_of(&world, "order", "o").await, "part");
    calls.lock().unwrap().clear();
    let replay = |number: u8| {
        // in one slot, as those that the runtime chooses are
        let id = format!("00000000-0000-7000-8000-00000000{number}123");
        let request = from_manager(Some(ExecutionId::trusted(id)));
        let runtime = world.runtime.clone();
        async move { runtime.replay(&target("order", "o"), request).await.unwrap().new.status() }
    };
    let (first, second) = futures_util::future::join(replay(1), replay(2)).await;
    // nor does one that fails later
    assert_eq!([first, second, replay(3).await], [Status::Error; 3]);
    let reversals = reversals_of(&world, "part", &part).await;
    let [reversal] = reversals.as_slice() else { panic!("it is reversed once: {reversals:?}") };
    let cleaning = child_at(reversal, "first:compensate");
    assert_eq!(one_by_one(&calls), [format!("{cleaning}/clean")]);
}

/// Returns the keys of what a child below two others has done and undone, although it was in its
/// second step.
async fn keys_of_inner(
    part: WorkflowDefinition,
    order: StepDefinition,
    cancels: bool,
) -> Vec<String> {
    let definitions = vec![
        workflow("inner", vec![act("charge"), sleep("nap", 60_000)]),
        part,
        workflow("order", vec![order]),
    ];
    let (world, calls) = world(definitions, RuntimeLimits::default()).await;
    let running = spawn(&world, start("order", "o", json!(1)));
    pass(Duration::from_millis(400)).await;
    let path = if cancels { "part" } else { "r/slow/part" };
    let part = child_at(&state_of(&world, "order", "o").await, path);
    let inner = child_at(&state_of(&world, "part", &part).await, "within");
    if cancels {
        world.runtime.cancel(&target("part", &part), None, None).await.unwrap();
    }
    pass(Duration::from_secs(30)).await;
    drop(running);
    assert_eq!(state_of(&world, "part", &part).await.status, Status::Cancelled);
    assert_eq!(state_of(&world, "inner", &inner).await.status, Status::Cancelled);
    let keys = one_by_one(&calls);
    keys.iter().map(|key| key.replace(&inner, "inner")).collect()
}

#[actix::test]
async fn a_child_that_is_no_longer_needed_undoes_what_its_own_children_did() {
    tokio::time::pause();
    let part = |compensate_on_cancel| {
        let steps = vec![child("within", "inner")];
        WorkflowDefinition { compensate_on_cancel, ..workflow("part", steps) }
    };
    let fast = ("fast", vec![sleep("nap", 500)]);
    let raced = race("r", vec![("slow", vec![child("part", "part")]), fast]);
    let (done, undone) = ("inner/charge", "inner/charge:compensate");
    let alone = child("part", "part");
    assert_eq!(keys_of_inner(part(false), raced, false).await, [done, undone]);
    assert_eq!(keys_of_inner(part(true), alone.clone(), true).await, [done, undone]);
    assert_eq!(keys_of_inner(part(false), alone, true).await, [done], "a caller left it so");
}

#[actix::test]
async fn a_child_that_completes_although_its_step_has_ended_undoes_what_it_did() {
    tokio::time::pause();
    let refusing = StepDefinition {
        output_schema: Some(json!({ "type": "object" })),
        ..child("part", "part")
    };
    let raced =
        race("r", vec![("slow", vec![child("part", "part")]), ("fast", vec![sleep("nap", 500)])]);
    for (step, path, status) in
        [(refusing, "part", Status::Error), (raced, "r/slow/part", Status::Completed)]
    {
        for kills in 0..10 {
            let definitions = vec![
                workflow("part", vec![act("first"), sleep("nap", 500)]),
                workflow("order", vec![step.clone()]),
            ];
            let (mut world, calls) = world(definitions, RuntimeLimits::default()).await;
            let running = spawn(&world, start("order", "o", json!(1)));
            pass(Duration::from_millis(499)).await;
            tokio::time::advance(Duration::from_millis(1)).await;
            if kills > 0 {
                for _ in 0..kills {
                    tokio::task::yield_now().await;
                }
                world = world.restart().await;
            }
            drop(running);
            pass(Duration::from_secs(60)).await;
            let order = state_of(&world, "order", "o").await;
            assert_eq!(order.status, status, "{path} {kills}");
            let part = child_at(&order, path);
            let state = state_of(&world, "part", &part).await;
            if kills == 0 {
                assert_eq!(state.status, Status::Completed, "it was in time, {path}");
            }
            let reversed = reversals_of(&world, "part", &part).await;
            let is_completed = state.status == Status::Completed;
            assert_eq!(reversed.len(), usize::from(is_completed), "{path} {kills}");
            let calls = calls.lock().unwrap().clone();
            let ends = calls.iter().filter_map(|call| call.strip_prefix("end "));
            let mut keys: Vec<_> = ends.map(str::to_owned).collect();
            keys.dedup();
            let expected = [format!("{part}/first"), format!("{part}/first:compensate")];
            assert_eq!(keys, expected, "{path} {kills}");
        }
    }
}
