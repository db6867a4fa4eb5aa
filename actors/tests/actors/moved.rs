//! A store that several processes share: executions that another process owns now, and a store that
//! has no numbers left.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::ports::store::{Executions, Status};
use greenroom_actors::requests::{ControlError, ResumeError, StartError, Unavailable};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::workflows::{ask, child, map, resume, sleep, workflow};

async fn world() -> World {
    let definitions = vec![
        workflow("w", vec![ask("manager"), map("z", json!(1))]),
        workflow("naps", vec![sleep("nap", 1000), map("z", json!(1))]),
        workflow("family", vec![sleep("nap", 1000), child("c", "w")]),
    ];
    World::launch(registry_of(definitions), RuntimeLimits::default()).await
}

fn slot(id: &str) -> SlotSet {
    [slot_of(&ExecutionId::trusted(id))].into_iter().collect()
}

fn moved(id: Option<&str>) -> Unavailable {
    Unavailable::Moved { execution: id.map(ExecutionId::trusted) }
}

#[actix::test]
async fn an_execution_of_another_process_ends_here_without_a_reload() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    world.runtime.execute(start("w", "other", json!({}))).await.unwrap();
    world.store.set_lost(slot("e"));
    let rebuilt = || world.runtime.stats().executions_rebuilt;
    let before = rebuilt();

    let refused = world.runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await;
    assert_eq!(refused, Err(ResumeError::Unavailable(moved(Some("e")))));
    pass(Duration::from_secs(600)).await;
    assert_eq!((world.live(), rebuilt()), (0, before), "nothing brings it back");
    let row = world.store.describe(&ExecutionId::trusted("e")).await.unwrap().unwrap();
    assert_eq!(row.status, Status::Suspended, "nothing was recorded");
    let refused = world.runtime.cancel(&target("w", "e"), None, None).await;
    assert_eq!(refused, Err(ControlError::Unavailable(moved(Some("e")))));
    let other = world
        .runtime
        .resume(&target("w", "other"), resume(json!({ "approved": 1 })))
        .await
        .unwrap();
    assert_eq!(other.status(), Status::Completed, "those of other slots continue");

    world.store.set_lost(SlotSet::new());
    let outcome =
        world.runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed, "it is loaded again when it is asked for");
}

#[actix::test]
async fn callers_of_a_moved_execution_are_refused() {
    tokio::time::pause();
    let world = world().await;
    let moves = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.store.set_lost(slot("e"));
    };
    let (refused, ()) = tokio::join!(world.runtime.execute(start("naps", "e", json!({}))), moves);
    assert_eq!(refused, Err(StartError::Unavailable(moved(Some("e")))), "it has started");
    world.store.set_lost(slot("new"));
    let refused = world.runtime.execute(start("w", "new", json!({}))).await;
    assert_eq!(refused, Err(StartError::Unavailable(moved(None))), "nothing was recorded");
}

#[actix::test]
async fn starts_are_refused_without_numbers_and_children_wait() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("w", "old", json!({}))).await.unwrap();
    world.store.set_rows_available(false);
    let refused = world.runtime.execute(start("w", "e", json!({}))).await;
    let Err(StartError::Unavailable(Unavailable::Store { execution: None, .. })) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!(world.store.describe(&ExecutionId::trusted("e")).await, Ok(None));
    let old =
        world.runtime.resume(&target("w", "old"), resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(old.status(), Status::Completed, "others continue");

    world.store.set_rows_available(true);
    let (outcome, ()) =
        tokio::join!(world.runtime.execute(start("family", "f", json!({}))), async {
            pass(Duration::from_millis(500)).await;
            world.store.set_rows_available(false);
            pass(Duration::from_secs(5)).await;
            world.store.set_rows_available(true);
        });
    assert_eq!(outcome.unwrap().status(), Status::Suspended, "the child has started, later");
}
