//! Snapshots, by which loading a long execution costs no more than loading a short one.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{Executions, Journal, Snapshot, Status};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::workflows::{ask, map, resume, workflow};

/// Steps between two questions, each of two events.
const STEPS: usize = 60;
const QUESTIONS: usize = 20;

/// Returns a workflow of many questions, with many steps before each.
fn long() -> WorkflowDefinition {
    let questions = (0..QUESTIONS).flat_map(|question| {
        let steps = (0..STEPS).map(move |step| map(&format!("q{question}s{step}"), json!("data")));
        steps.chain([ask(&format!("q{question}"))])
    });
    workflow("long", questions.collect())
}

async fn world(definition: WorkflowDefinition) -> World {
    let world = World::launch(registry_of([definition]), RuntimeLimits::default()).await;
    world.runtime.execute(start("long", "e", json!({ "approved": 0 }))).await.unwrap();
    world
}

async fn answer(world: &World, times: usize) -> Status {
    let mut status = Status::Suspended;
    for _ in 0..times {
        let answer = resume(json!({ "approved": true }));
        status = world.runtime.resume(&target("long", "e"), answer).await.unwrap().status();
    }
    status
}

fn id() -> ExecutionId {
    ExecutionId::trusted("e")
}

#[actix::test]
async fn only_facts_after_the_newest_snapshot_are_read() {
    tokio::time::pause();
    let mut world = world(long()).await;
    for _ in 0..QUESTIONS - 1 {
        // Each time in another process: the snapshots of earlier ones count.
        world = world.restart().await;
        answer(&world, 1).await;
    }
    let before = world.runtime.describe(&target("long", "e")).await.unwrap();
    let world = world.restart().await;
    let stored = world.store.load(&id()).await.unwrap().unwrap();
    assert!(stored.projection.last_seq > 2000, "{}", stored.projection.last_seq);
    let (upto, state) = stored.snapshot.unwrap();
    let batch = 2 * STEPS + 10;
    // Another snapshot is due when there are 500 facts after the newest, and they outweigh it.
    let facts = serde_json::to_vec(&stored.facts).unwrap();
    let of_batch = facts.len() * batch / stored.facts.len();
    assert!(upto > 500, "{upto}");
    assert!(facts.len() < 2 * state.len() + of_batch, "{} for {}", facts.len(), state.len());

    let after = world.runtime.describe(&target("long", "e")).await.unwrap();
    assert_eq!(before.steps, after.steps);
    assert_eq!(before.suspension, after.suspension);
    assert_eq!(answer(&world, 1).await, Status::Completed);
}

#[actix::test]
async fn an_execution_that_leaves_memory_is_rebuilt_from_its_snapshot_alone() {
    tokio::time::pause();
    let world = world(long()).await;
    assert!(world.store.load(&id()).await.unwrap().unwrap().snapshot.is_none(), "nothing yet");
    let before = world.runtime.describe(&target("long", "e")).await.unwrap();
    pass(Duration::from_secs(11)).await;
    assert_eq!(world.live(), 0, "it was unloaded");
    let stored = world.store.load(&id()).await.unwrap().unwrap();
    assert_eq!(stored.snapshot.map(|(upto, _)| upto), Some(stored.projection.last_seq));
    assert!(stored.facts.is_empty(), "{} facts", stored.facts.len());
    let after = world.runtime.describe(&target("long", "e")).await.unwrap();
    assert_eq!(before.steps, after.steps);
    assert_eq!(answer(&world, QUESTIONS).await, Status::Completed);
}

#[actix::test]
async fn a_short_history_takes_no_snapshot() {
    tokio::time::pause();
    let world = world(workflow("long", vec![map("a", json!("data")), ask("manager")])).await;
    pass(Duration::from_secs(11)).await;
    assert_eq!(world.live(), 0, "it was unloaded");
    assert!(world.store.load(&id()).await.unwrap().unwrap().snapshot.is_none());
}

#[actix::test]
async fn a_snapshot_that_cannot_be_used_is_ignored() {
    let states: [(&str, &[u8]); 4] = [
        ("no JSON", b"not a snapshot"),
        ("another version", br#"{"form":4294967295,"state":{}}"#),
        ("no version", br#"{"id":"e","next_seq":2}"#),
        ("empty", b""),
    ];
    tokio::time::pause();
    for (name, state) in states {
        let world = world(long()).await;
        answer(&world, 3).await;
        let before = world.runtime.describe(&target("long", "e")).await.unwrap();
        let stored = world.store.load(&id()).await.unwrap().unwrap();
        let (row, revision, state) = (stored.row, stored.revision, state.to_vec());
        world.store.store_snapshot(0, Snapshot { execution: id(), row, revision, state });
        let world = world.restart().await;
        let after = world.runtime.describe(&target("long", "e")).await.unwrap();
        assert_eq!(before.steps, after.steps, "{name}");
        assert_eq!(answer(&world, QUESTIONS - 3).await, Status::Completed, "{name}");
    }
}

#[actix::test]
async fn executions_leave_memory_even_while_the_store_rejects_snapshots() {
    tokio::time::pause();
    let world = world(long()).await;
    world.store.set_writable(false);
    pass(Duration::from_secs(11)).await;
    assert_eq!(world.live(), 0, "it was unloaded");
    assert!(world.store.load(&id()).await.unwrap().unwrap().snapshot.is_none());
    world.store.set_writable(true);
    assert_eq!(answer(&world, QUESTIONS).await, Status::Completed);
}
