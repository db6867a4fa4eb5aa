//! Bulk operations on executions that others have started.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{OnError, StepDefinition};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{ExecutionFilter, Projection, Status};
use greenroom_actors::runtime::{BulkAction, BulkOperation};
use greenroom_actors::testkit::{World, pass, registry_of};

use crate::bulk::{begin, done, of, of_workflow};
use crate::workflows::{Calls, child, retried, run, with_functions, workflow};

async fn failed(world: &World, workflow: &str) -> Vec<Projection> {
    let filter = ExecutionFilter { status: Some(Status::Error), ..of_workflow(workflow) };
    world.runtime.list(&filter, None, 99).await.unwrap().0
}

async fn counts(world: &World, operation: &BulkOperation) -> (u64, u64, u64) {
    let preview = world.runtime.preview_bulk(operation).await.unwrap();
    (preview.matched, preview.skipped, preview.replayed)
}

#[actix::test]
async fn what_a_replay_of_another_starts_anew_is_not_replayed_beside_it() {
    tokio::time::pause();
    let definitions = [
        workflow("part", vec![run("pay", "flaky")]),
        workflow("middle", vec![child("part", "part")]),
        workflow("order", vec![child("middle", "middle")]),
        workflow("patient", vec![retried(child("part", "part"), 2, 3_600_000)]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    for (workflow, id) in [("order", "o"), ("patient", "r"), ("part", "p")] {
        begin(&world, workflow, [id.to_owned()]).await;
    }
    pass(Duration::from_secs(1)).await;
    let parts = failed(&world, "part").await;
    let lists = [&parts, &failed(&world, "middle").await, &failed(&world, "order").await];
    assert_eq!(lists.map(Vec::len), [3, 1, 1], "the patient one waits for its second attempt");

    let replay = |filter| of(BulkAction::Replay, filter);
    let everything = replay(ExecutionFilter::default());
    assert_eq!(counts(&world, &everything).await, (2, 3, 0), "the order, and the part of no other");
    let of_parts = replay(of_workflow("part"));
    assert_eq!(counts(&world, &of_parts).await, (2, 1, 0), "no order is selected");
    let of_order = parts.iter().find(|it| {
        it.header.parent.as_ref().is_some_and(|parent| parent.execution.as_str() != "r")
    });
    let of_order = of_order.unwrap().header.id.clone();
    let mut named = replay(ExecutionFilter::default());
    for (ids, expected) in [
        (vec![of_order.clone()], (1, 0, 0)),
        (vec![of_order, ExecutionId::trusted("o")], (1, 1, 0)),
    ] {
        named.execution_ids = ids;
        assert_eq!(counts(&world, &named).await, expected, "{named:?}");
    }
    let mut visible = everything.clone();
    visible.visible_to = Some("ann".into());
    assert_eq!(counts(&world, &visible).await.0, 0);

    let result = done(&world, everything.clone(), "b").await;
    assert_eq!((&result["done"], &result["skipped"]), (&2.into(), &3.into()), "{result}");
    pass(Duration::from_secs(1)).await;
    // the order and the part are there once more, and the replay has started a middle and a part
    assert_eq!(counts(&world, &everything).await, (2, 7, 2));
}

#[actix::test]
async fn what_no_replay_starts_anew_is_replayed_itself() {
    tokio::time::pause();
    let ignored = StepDefinition { on_error: OnError::Ignore, ..child("part", "part") };
    let definitions = [
        workflow("part", vec![run("pay", "boom")]),
        workflow("later", vec![ignored.clone(), run("end", "boom")]),
        workflow("waiter", vec![ignored, run("end", "asks")]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    for workflow in ["later", "waiter"] {
        begin(&world, workflow, [workflow.to_owned()]).await;
    }
    pass(Duration::from_secs(1)).await;
    let everything = of(BulkAction::Replay, ExecutionFilter::default());
    // the replay of the later one begins behind its part; the waiter has not ended
    assert_eq!(counts(&world, &everything).await, (2, 1, 0));
    let parts = failed(&world, "part").await;
    let execution_ids = parts.iter().map(|part| part.header.id.clone()).collect();
    let named = BulkOperation { execution_ids, ..everything };
    assert_eq!(counts(&world, &named).await, (2, 0, 0), "both parts are named");
}
