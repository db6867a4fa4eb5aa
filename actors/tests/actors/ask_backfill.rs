//! Asks of executions that were written by versions without asks.

use std::time::Duration;

use greenroom_actors::domain::fact::Fact;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{Asks as _, Row, Status};
use greenroom_actors::testkit::{World, pass, start};
use serde_json::json;

use crate::ask_access::{asking, world};
use crate::asks::only_open;
use crate::processes::Cluster;
use crate::watchdog::append;
use crate::workflows::workflow;

/// Longest time to the next look, and some more.
const NEXT_LOOK: Duration = Duration::from_secs(61);

/// Two executions that wait and are not in the inbox; the record of `damaged` cannot be read.
async fn two_without_asks() -> World {
    let world = world(vec![workflow("w", vec![asking("a", &[])])]).await;
    for id in ["damaged", "sound"] {
        world.runtime.execute(start("w", id, json!({}))).await.unwrap();
    }
    let nowhere = Fact::StepSkipped { path: "nowhere".into() };
    append(&world.store, "damaged", Status::Suspended, vec![nowhere]).await;
    for id in ["damaged", "sound"] {
        world.store.forget_asks(&ExecutionId::trusted(id));
    }
    world
}

#[actix::test]
async fn the_inbox_is_complete_without_executions_that_cannot_be_read() {
    tokio::time::pause();
    let world = two_without_asks().await;
    assert!(world.runtime.is_inbox_incomplete().await.unwrap(), "before the next look");
    pass(NEXT_LOOK).await;
    only_open(&world).await;
    assert!(!world.runtime.is_inbox_incomplete().await.unwrap(), "what can be read is there");
    let missing = world.store.executions_without_asks(Row::MIN, 10).await.unwrap();
    assert_eq!(missing.len(), 1, "the next process tries again");

    // another one that is missing counts
    world.store.forget_asks(&ExecutionId::trusted("sound"));
    assert!(world.runtime.is_inbox_incomplete().await.unwrap());
    pass(NEXT_LOOK).await;
    only_open(&world).await;
    assert!(!world.runtime.is_inbox_incomplete().await.unwrap());
}

#[actix::test]
async fn the_next_process_looks_again_at_what_could_not_be_read() {
    tokio::time::pause();
    let world = two_without_asks().await;
    pass(NEXT_LOOK).await;
    let world = world.restart().await;
    pass(Duration::from_millis(1)).await;
    assert!(!world.runtime.is_inbox_incomplete().await.unwrap(), "it looks at its start");
    only_open(&world).await;
}

#[actix::test]
async fn every_process_of_a_cluster_notes_what_cannot_be_read() {
    let cluster = Cluster::linked();
    let processes = cluster.of(["a", "b"]).await;
    let id = processes[0].start("w").await;
    // the one that owns the execution appends
    for process in &processes {
        let nowhere = Fact::StepSkipped { path: "nowhere".into() };
        append(&process.store, id.as_str(), Status::Suspended, vec![nowhere]).await;
    }
    cluster.disk.forget_asks(&id);
    for process in &processes {
        assert!(process.runtime.is_inbox_incomplete().await.unwrap());
    }
    pass(2 * NEXT_LOOK).await;
    for process in &processes {
        assert!(!process.runtime.is_inbox_incomplete().await.unwrap());
    }
}
