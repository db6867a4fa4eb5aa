//! Work that is in progress in slots which are handed over by force: the next owner continues it.

use std::time::Duration;

use greenroom_actors::domain::fact::Fact;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::slot_of;
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::{pass, registry_of};
use serde_json::json;

use crate::processes::{Cluster, Process};
use crate::races::facts_of;
use crate::workflows::{function, run, workflow};

/// Time in which a process that leaves hands over slots although steps are in progress there.
const FORCED: Duration = Duration::from_secs(20);

/// Has the process that owns an execution hand it over although its step is in progress.
async fn moved_by_force(processes: &[Process], id: &ExecutionId) {
    let members = processes[0].store.members().unwrap();
    let owner = || members.views().borrow().as_ref().unwrap().owners.owner(slot_of(id));
    let before = owner();
    let process = processes.iter().find(|process| Some(process.node) == before).unwrap();
    process.store.members().unwrap().set_leaving().await.unwrap();
    pass(FORCED).await;
    assert_ne!(owner(), before);
}

#[actix::test]
async fn steps_that_are_interrupted_by_handovers_are_started_by_the_next_owner_alone() {
    let cluster = Cluster::linked_with(lasting(Duration::from_secs(120)));
    let processes = cluster.of(["a", "b", "c", "d"]).await;
    let id = processes[0].begin("lasts").await;
    for _ in 0..3 {
        moved_by_force(&processes, &id).await;
    }
    let kinds = async || {
        let facts = facts_of(&processes[0].runtime, id.as_str()).await;
        let kinds = facts.iter().filter_map(|recorded| match &recorded.fact {
            Fact::StepStarted { interrupted, .. } => {
                Some(if *interrupted { "again" } else { "starts" })
            }
            Fact::StepReleased { .. } => Some("is released"),
            fact => fact.end().map(|_| "ends"),
        });
        kinds.collect::<Vec<_>>()
    };
    let moved = ["starts", "is released"];
    assert_eq!(kinds().await, [&moved[..], &moved, &moved, &["starts"]].concat());
    pass(Duration::from_secs(120)).await;
    assert_eq!(cluster.status(&id).await, Status::Completed);
    assert_eq!(kinds().await.last(), Some(&"ends"));
}

/// Returns a registry whose workflow `lasts` has one step, which takes this time.
fn lasting(time: Duration) -> Registry {
    let mut registry = registry_of([workflow("lasts", vec![run("only", "lasting")])]);
    let lasting = function(move |_| async move {
        pass(time).await;
        Ok(json!("done").into())
    });
    registry.functions.insert("lasting".to_owned(), lasting);
    registry
}
