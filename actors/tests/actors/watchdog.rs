//! The watchdog continues forgotten executions and reports stuck ones.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::fact::{Fact, Recorded, ResumedBy};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{
    Append, Executions, Journal, Projection, Status, StoredExecution, Ticket, TimerChange, TimerKey,
};
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::wait_report::Cause;
use serde_json::json;

use crate::workflows::{
    Calls, ask, ask_until, child, map, race, run, sleep, spawn, with_functions, workflow,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR_MS: u64 = 3_600_000;

fn registry(definitions: Vec<WorkflowDefinition>) -> Registry {
    with_functions(registry_of(definitions), &Calls::default())
}

/// Starts an execution that does not settle.
async fn begin(world: &World, workflow: &str, id: &str) {
    let waiting = spawn(world, start(workflow, id, json!({ "n": 1 })));
    pass(Duration::from_secs(1)).await;
    waiting.abort();
}

async fn status(world: &World, workflow: &str, id: &str) -> Status {
    world.runtime.describe(&target(workflow, id)).await.unwrap().status
}

async fn stuck(world: &World) -> Vec<(String, String)> {
    let stuck = world.runtime.stuck().await;
    stuck.iter().map(|it| (it.execution_id.to_string(), it.cause.to_string())).collect()
}

fn lose_timer(world: &World, id: &str, path: &str) {
    let (execution, key) = (ExecutionId::trusted(id), TimerKey::Node(path.into()));
    world.store.change_timers(0, vec![TimerChange::Disarm { execution, key }]);
}

#[actix::test]
async fn healthy_executions_are_left_alone() {
    tokio::time::pause();
    let definitions = vec![
        workflow("nap", vec![sleep("nap", 24 * HOUR_MS)]),
        workflow("ask", vec![ask("a")]),
        workflow("parent", vec![child("c", "ask")]),
        workflow("until", vec![ask_until("u", 24 * HOUR_MS)]),
        workflow("napping-child", vec![child("c", "nap")]),
    ];
    let world = World::launch(registry(definitions), RuntimeLimits::default()).await;
    for n in 0..20 {
        for name in ["nap", "napping-child"] {
            begin(&world, name, &format!("{name}-{n}")).await;
        }
        for name in ["ask", "parent", "until"] {
            let start = start(name, &format!("{name}-{n}"), json!({ "n": 1 }));
            world.runtime.execute(start).await.unwrap();
        }
    }
    pass(MINUTE).await;
    let before = world.runtime.stats();
    let timers = world.store.timers_due(&SlotSet::all(), Timestamp(i64::MAX), 1000).await.unwrap();
    pass(5 * MINUTE).await;
    assert_eq!(stuck(&world).await, []);
    let after = world.runtime.stats();
    assert_eq!(after.executions_rebuilt, before.executions_rebuilt, "none was loaded");
    assert_eq!(
        world.store.timers_due(&SlotSet::all(), Timestamp(i64::MAX), 1000).await.unwrap(),
        timers
    );
}

#[actix::test]
async fn a_lost_timer_is_armed_again_and_fires() {
    tokio::time::pause();
    let steps = vec![sleep("nap", HOUR_MS), map("z", json!(1))];
    let world = World::launch(registry(vec![workflow("w", steps)]), RuntimeLimits::default()).await;
    begin(&world, "w", "e").await;
    // a waiting caller would keep it in memory
    let world = world.restart().await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(world.live(), 0);
    let due = world.store.timers_of(&ExecutionId::trusted("e")).await.unwrap();
    lose_timer(&world, "e", "nap");
    assert_eq!(world.store.timers_of(&ExecutionId::trusted("e")).await.unwrap(), []);
    pass(MINUTE).await;
    assert_eq!(world.store.timers_of(&ExecutionId::trusted("e")).await.unwrap(), due);
    assert_eq!((stuck(&world).await, status(&world, "w", "e").await), (vec![], Status::Running));
    pass(Duration::from_secs(3600)).await;
    assert_eq!(status(&world, "w", "e").await, Status::Completed);
}

#[actix::test]
async fn a_disabled_watchdog_checks_nothing() {
    tokio::time::pause();
    let limits = RuntimeLimits { watchdog_every: Duration::ZERO, ..RuntimeLimits::default() };
    let world = World::launch(registry(vec![workflow("w", vec![sleep("nap", HOUR_MS)])]), limits);
    let world = world.await;
    begin(&world, "w", "e").await;
    pass(Duration::from_secs(20)).await;
    lose_timer(&world, "e", "nap");
    pass(10 * MINUTE).await;
    assert_eq!(world.store.timers_of(&ExecutionId::trusted("e")).await.unwrap(), []);
}

#[actix::test]
async fn an_execution_with_a_missing_name_is_stuck_until_it_ends() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![run("a", "nothing")])];
    let world = World::launch(registry(definitions), RuntimeLimits::default()).await;
    begin(&world, "w", "e").await;
    // a waiting caller would keep it in memory
    let world = world.restart().await;
    assert_eq!(stuck(&world).await, [], "no check yet");
    pass(2 * MINUTE).await;
    let cause = "function nothing is not registered".to_owned();
    assert_eq!(stuck(&world).await, [("e".to_owned(), cause)]);
    assert_eq!(world.runtime.stats().executions_stuck, 1);
    assert_eq!(world.live(), 0, "the check does not keep it in memory");
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(2 * MINUTE).await;
    assert_eq!(stuck(&world).await, []);
}

#[actix::test]
async fn an_execution_that_can_continue_is_not_stuck_even_if_a_name_is_missing() {
    tokio::time::pause();
    let blocks = vec![("l", vec![run("a", "nothing")]), ("r", vec![sleep("nap", HOUR_MS)])];
    let steps = vec![race("both", blocks)];
    let world = World::launch(registry(vec![workflow("w", steps)]), RuntimeLimits::default()).await;
    begin(&world, "w", "e").await;
    pass(3 * MINUTE).await;
    assert_eq!(stuck(&world).await, []);
}

/// Appends to the store without the actors' knowledge.
pub(crate) async fn append(store: &MemoryStore, id: &str, status: Status, facts: Vec<Fact>) {
    let id = ExecutionId::trusted(id);
    let StoredExecution { row, revision, projection, .. } = store.load(&id).await.unwrap().unwrap();
    let mut seq = projection.last_seq + 1;
    let at = projection.updated_at;
    let numbered = facts.into_iter().map(|fact| {
        let recorded = Recorded { seq, at, fact, by: None };
        seq = recorded.next_seq();
        recorded
    });
    let facts: Vec<Recorded> = numbered.collect();
    let ended_at = status.is_terminal().then_some(at);
    let projection = Projection { status, ended_at, last_seq: seq - 1, ..projection };
    store.append(Append {
        ticket: Ticket { shard: 0, key: u64::MAX },
        row,
        revision: revision + 1,
        projection,
        facts: facts.into(),
        timers: Vec::new(),
        asks: Vec::new(),
        idempotency: None,
        snapshot: None,
    });
}

#[actix::test]
async fn a_parent_that_missed_the_end_of_its_child_queries_it() {
    tokio::time::pause();
    let definitions = vec![
        workflow("part", vec![sleep("nap", 24 * HOUR_MS)]),
        workflow("w", vec![child("c", "part")]),
    ];
    let world = World::launch(registry(definitions), RuntimeLimits::default()).await;
    begin(&world, "w", "e").await;
    pass(Duration::from_secs(20)).await;
    let found = world.runtime.describe(&target("w", "e")).await.unwrap();
    let part = found.steps[0].child.clone().unwrap();
    let (since, result) = (Timestamp(0), json!(7).into());
    let end = vec![Fact::WorkflowCompleted { since, result }];
    append(&world.store, part.as_str(), Status::Completed, end).await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(status(&world, "w", "e").await, Status::Running);
    pass(3 * MINUTE).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.result), (Status::Completed, Some(json!(7).into())));
    assert_eq!(stuck(&world).await, []);
}

#[actix::test]
async fn a_running_execution_without_work_in_progress_is_continued() {
    tokio::time::pause();
    let steps = vec![ask("a"), map("z", json!(1))];
    let world = World::launch(registry(vec![workflow("w", steps)]), RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    pass(Duration::from_secs(20)).await;
    assert_eq!(world.live(), 0);
    let (path, data) = ("a".into(), json!({ "approved": true }).into());
    let answered = Fact::StepResumed { path, data, by: ResumedBy::Caller, id: None };
    append(&world.store, "e", Status::Running, vec![Fact::WorkflowResumed, answered]).await;
    let wait_report = world.runtime.why(&target("w", "e")).await.unwrap();
    let causes: Vec<_> = wait_report.waits_for.iter().map(|it| &it.cause).collect();
    assert_eq!(causes, [&Cause::Turn]);
    pass(2 * MINUTE).await;
    assert_eq!(status(&world, "w", "e").await, Status::Completed);
    assert_eq!(stuck(&world).await, []);
}

#[actix::test]
async fn an_execution_with_a_corrupt_record_is_stuck() {
    tokio::time::pause();
    let steps = vec![sleep("nap", 24 * HOUR_MS)];
    let world = World::launch(registry(vec![workflow("w", steps)]), RuntimeLimits::default()).await;
    begin(&world, "w", "e").await;
    // a waiting caller would keep it in memory
    let world = world.restart().await;
    pass(Duration::from_secs(20)).await;
    append(&world.store, "e", Status::Running, vec![Fact::StepSkipped { path: "nowhere".into() }])
        .await;
    pass(2 * MINUTE).await;
    let [(id, cause)] = &stuck(&world).await[..] else { panic!("one is stuck") };
    assert_eq!(id, "e");
    assert!(cause.contains("the record of execution e is corrupt"), "{cause}");
}
