//! Ended executions are deleted after their retention time, and nothing else is.

use std::collections::HashMap;
use std::time::Duration;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::Executions;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{RetentionRules, RuntimeLimits};
use serde_json::json;

use crate::workflows::{self, ask, child, map, workflow};

const HOUR: Duration = Duration::from_secs(3600);

fn limits(executions: Option<Duration>, own: Option<(&str, Option<Duration>)>) -> RuntimeLimits {
    let workflows: HashMap<_, _> =
        own.into_iter().map(|(id, keep)| (id.to_owned(), keep)).collect();
    let retention = RetentionRules { executions, workflows, batch: 2, ..RetentionRules::default() };
    RuntimeLimits { retention, idempotency_ttl: HOUR, ..RuntimeLimits::default() }
}

async fn world(limits: RuntimeLimits) -> World {
    let quick = workflow("quick", vec![map("a", json!("data"))]);
    let asks = workflow("asks", vec![ask("manager")]);
    let family = workflow("family", vec![child("days", "quick"), ask("manager")]);
    World::launch(registry_of([quick, asks, family]), limits).await
}

async fn run(world: &World, workflow: &str, id: &str) {
    world.runtime.execute(start(workflow, id, json!({}))).await.unwrap();
}

async fn resume(world: &World, workflow: &str, id: &str) {
    let answer = workflows::resume(json!({ "approved": true }));
    world.runtime.resume(&target(workflow, id), answer).await.unwrap();
}

async fn is_kept(world: &World, id: &str) -> bool {
    let id = ExecutionId::trusted(id);
    world.store.describe(&id).await.unwrap().is_some()
}

#[actix::test]
async fn executions_are_deleted_after_their_retention_time() {
    tokio::time::pause();
    let world = world(limits(Some(3 * HOUR), None)).await;
    for n in 0..7 {
        run(&world, "quick", &format!("q{n}")).await;
    }
    run(&world, "asks", "a").await;
    pass(2 * HOUR).await;
    run(&world, "quick", "late").await;
    pass(HOUR - Duration::from_secs(60)).await;
    assert!(is_kept(&world, "q0").await, "not yet");
    pass(Duration::from_secs(180)).await;
    for n in 0..7 {
        assert!(!is_kept(&world, &format!("q{n}")).await, "q{n} ended three hours ago");
    }
    assert!(is_kept(&world, "late").await, "ended one hour ago");
    assert!(is_kept(&world, "a").await, "not ended");
    resume(&world, "asks", "a").await;
    pass(2 * HOUR).await;
    assert!(!is_kept(&world, "late").await);
    assert!(is_kept(&world, "a").await, "the time counts from the end, not from the start");
    pass(HOUR + Duration::from_secs(180)).await;
    assert!(!is_kept(&world, "a").await);
}

#[actix::test]
async fn a_workflow_can_have_its_own_retention_rule() {
    tokio::time::pause();
    for (all, own, is_quick_kept, is_other_kept) in [
        (None, Some(("quick", Some(2 * HOUR))), false, true),
        (Some(2 * HOUR), Some(("quick", None)), true, false),
        (Some(2 * HOUR), None, false, false),
        (None, None, true, true),
        // Kept at least as long as an idempotency key can refer to it.
        (Some(Duration::from_millis(1)), None, false, false),
    ] {
        let world = world(limits(all, own)).await;
        run(&world, "quick", "q").await;
        run(&world, "asks", "a").await;
        resume(&world, "asks", "a").await;
        pass(HOUR - Duration::from_secs(60)).await;
        assert!(is_kept(&world, "q").await && is_kept(&world, "a").await, "{all:?} {own:?}");
        pass(2 * HOUR).await;
        assert_eq!(is_kept(&world, "q").await, is_quick_kept, "{all:?} {own:?}");
        assert_eq!(is_kept(&world, "a").await, is_other_kept, "{all:?} {own:?}");
    }
}

#[actix::test]
async fn a_child_is_kept_while_its_parent_has_not_ended() {
    tokio::time::pause();
    let world = world(limits(None, Some(("quick", Some(2 * HOUR))))).await;
    run(&world, "family", "f").await;
    let state = world.runtime.describe(&target("family", "f")).await.unwrap();
    let children: Vec<_> = state.steps.iter().filter_map(|step| step.child.clone()).collect();
    let [child] = children.as_slice() else { panic!("one child: {children:?}") };
    pass(5 * HOUR).await;
    assert!(is_kept(&world, child.as_str()).await, "the parent may query it");
    resume(&world, "family", "f").await;
    pass(Duration::from_secs(120)).await;
    assert!(!is_kept(&world, child.as_str()).await);
    assert!(is_kept(&world, "f").await, "the parent has no rule");
}

#[actix::test]
async fn the_sweep_is_repeated_after_the_store_rejected_writes() {
    tokio::time::pause();
    let world = world(limits(Some(HOUR), None)).await;
    run(&world, "quick", "q").await;
    world.store.set_writable(false);
    pass(2 * HOUR).await;
    assert!(is_kept(&world, "q").await);
    world.store.set_writable(true);
    pass(Duration::from_secs(120)).await;
    assert!(!is_kept(&world, "q").await);
}
