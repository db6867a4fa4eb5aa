//! Parents and children.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::definition::{StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{ExecutionFilter, Executions, Status};
use greenroom_actors::requests::{ResumeError, StartExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::workflows::{
    Calls, ask, child, map, race, resume, run, sleep, spawn, with_functions, workflow,
};

fn family() -> Vec<WorkflowDefinition> {
    vec![
        workflow("parent", vec![child("sub", "child"), map("after", json!("[data]"))]),
        workflow("child", vec![ask("manager")]),
        workflow("grand", vec![child("mid", "parent")]),
        workflow("quick", vec![child("sub", "adds")]),
        workflow("adds", vec![map("add", json!("data + 1"))]),
        workflow("fails", vec![child("sub", "broken")]),
        workflow("broken", vec![run("boom", "boom")]),
        workflow(
            "racing",
            vec![race(
                "both",
                vec![("nap", vec![sleep("rest", 1000)]), ("child", vec![child("sub", "child")])],
            )],
        ),
    ]
}

async fn world() -> World {
    let registry = with_functions(registry_of(family()), &Calls::default());
    World::launch(registry, RuntimeLimits::default()).await
}

async fn child_of(world: &World, workflow: &str, id: &str) -> String {
    let state = world.runtime.describe(&target(workflow, id)).await.unwrap();
    state.steps.iter().find_map(|step| step.child.clone()).unwrap().to_string()
}

#[actix::test]
async fn the_timeout_of_a_child_goes_on_after_a_restart() {
    tokio::time::pause();
    let bounded = StepDefinition { timeout_ms: Some(100_000), ..child("sub", "naps") };
    let naps = workflow("naps", vec![sleep("nap", 3_600_000)]);
    let registry = registry_of([workflow("bounded", vec![bounded]), naps]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    spawn(&world, start("bounded", "p", json!(1)));
    pass(Duration::from_secs(60)).await;
    let world = world.restart().await;
    let state = async || world.runtime.describe(&target("bounded", "p")).await.unwrap();
    pass(Duration::from_secs(39)).await;
    assert_eq!(state().await.status, Status::Running);
    pass(Duration::from_secs(2)).await;
    assert_eq!(&*state().await.error.unwrap().message, "timed out after 100000 ms");
}

#[actix::test]
async fn a_child_gives_its_result_to_the_parent() {
    tokio::time::pause();
    let world = world().await;
    let outcome = world.runtime.execute(start("quick", "p", json!(1))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(2)));
    let child = child_of(&world, "quick", "p").await;
    let state = world.runtime.describe(&target("adds", &child)).await.unwrap();
    let parent = state.header.parent.as_ref().unwrap();
    assert_eq!((parent.execution.as_str(), &*parent.path), ("p", "sub"));
}

#[actix::test]
async fn a_family_is_in_one_slot() {
    let registry = with_functions(registry_of(family()), &Calls::default());
    let store = Arc::new(MemoryStore::new());
    let ports = RuntimePorts::new(Arc::clone(&store) as _, Arc::new(SystemClock));
    let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
    let runtime = Runtime::launch(registry, ports, limits).await.unwrap();
    for chosen in [Some(ExecutionId::trusted("order-1")), None] {
        let request = StartExecution { execution_id: chosen, ..start("grand", "", json!({})) };
        let mut id = runtime.execute(request).await.unwrap().execution_id;
        let slot = slot_of(&id);
        for workflow in ["grand", "parent"] {
            let state = runtime.describe(&target(workflow, id.as_str())).await.unwrap();
            id = state.steps[0].child.clone().unwrap();
            assert_eq!(slot_of(&id), slot, "{id}, begun by {workflow}");
        }
    }
}

#[actix::test]
async fn a_resume_of_the_parent_resumes_the_child() {
    tokio::time::pause();
    for idle_seconds in [0, 30] {
        let world = world().await;
        let outcome = world.runtime.execute(start("parent", "p", json!(1))).await.unwrap();
        assert_eq!(outcome.status(), Status::Suspended);
        assert_eq!(&*outcome.suspension().unwrap().step_id, "sub");
        // After 30 s both have left memory before the resume.
        pass(Duration::from_secs(idle_seconds)).await;
        assert_eq!(world.live(), if idle_seconds == 0 { 2 } else { 0 });

        let bad = world.runtime.resume(&target("parent", "p"), resume(json!({}))).await;
        assert_eq!(bad, Err(ResumeError::InvalidData("approved: missing".to_owned())));
        let data = json!({ "approved": true });
        let outcome = world.runtime.resume(&target("parent", "p"), resume(data)).await.unwrap();
        assert_eq!(outcome.result(), Some(&json!([{ "approved": true }])));
        let child = child_of(&world, "parent", "p").await;
        let late = world.runtime.resume(&target("child", &child), resume(json!(1))).await;
        assert_eq!(late, Err(ResumeError::NotSuspended));
    }
}

/// Starts a parent whose child suspends; returns the child's id.
async fn asking_child() -> (World, String) {
    let world = world().await;
    world.runtime.execute(start("parent", "p", json!(1))).await.unwrap();
    let child = child_of(&world, "parent", "p").await;
    (world, child)
}

#[actix::test]
async fn a_resume_of_the_child_resumes_the_parent() {
    tokio::time::pause();
    let (world, child) = asking_child().await;
    pass(Duration::from_secs(30)).await;

    let data = json!({ "approved": 5 });
    let outcome = world.runtime.resume(&target("child", &child), resume(data)).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
    pass(Duration::from_millis(1)).await;
    let parent = world.runtime.describe(&target("parent", "p")).await.unwrap();
    assert_eq!(parent.result.as_deref(), Some(&json!([{ "approved": 5 }])));
    let late = world.runtime.resume(&target("parent", "p"), resume(json!(1))).await;
    assert_eq!(late, Err(ResumeError::NotSuspended));
}

#[actix::test]
async fn concurrent_resumes_of_parent_and_child_have_one_winner() {
    tokio::time::pause();
    let (world, child) = asking_child().await;
    let (parent, child) = (target("parent", "p"), target("child", &child));
    let (a, b) = tokio::join!(
        world.runtime.resume(&parent, resume(json!({ "approved": 1 }))),
        world.runtime.resume(&child, resume(json!({ "approved": 2 }))),
    );
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
}

#[actix::test]
async fn a_resume_reaches_a_grandchild() {
    tokio::time::pause();
    let world = world().await;
    let outcome = world.runtime.execute(start("grand", "g", json!(1))).await.unwrap();
    assert_eq!(outcome.status(), Status::Suspended);
    pass(Duration::from_secs(30)).await;
    let data = json!({ "approved": 1 });
    let outcome = world.runtime.resume(&target("grand", "g"), resume(data)).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!([{ "approved": 1 }])));
}

#[actix::test]
async fn a_failed_child_fails_the_step() {
    tokio::time::pause();
    let world = world().await;
    let outcome = world.runtime.execute(start("fails", "p", json!(1))).await.unwrap();
    let error = outcome.failure().unwrap();
    assert!(error.message.contains("panicked: a defect in the step"), "{}", error.message);
    assert_eq!(error.step_id.as_deref(), Some("sub"));
}

#[actix::test]
async fn a_child_that_is_no_longer_needed_is_cancelled() {
    tokio::time::pause();
    let world = world().await;
    let outcome = world.runtime.execute(start("racing", "r", json!(1))).await.unwrap();
    // The child is suspended, so the parent is, until the nap ends.
    assert_eq!(outcome.status(), Status::Suspended);
    let child = child_of(&world, "racing", "r").await;
    pass(Duration::from_secs(2)).await;
    let parent = world.runtime.describe(&target("racing", "r")).await.unwrap();
    assert_eq!(parent.status, Status::Completed);
    let state = world.runtime.describe(&target("child", &child)).await.unwrap();
    assert_eq!(state.status, Status::Cancelled);

    world.runtime.execute(start("parent", "p", json!(1))).await.unwrap();
    let child = child_of(&world, "parent", "p").await;
    world.runtime.cancel(&target("parent", "p"), None, None).await.unwrap();
    pass(Duration::from_millis(1)).await;
    let state = world.runtime.describe(&target("child", &child)).await.unwrap();
    assert_eq!(state.status, Status::Cancelled);
    let open = ExecutionFilter { status: Some(Status::Suspended), ..Default::default() };
    assert_eq!(world.runtime.list(&open, None, 10).await.unwrap().0.len(), 0);
}

#[actix::test]
async fn a_family_of_three_completes_whichever_member_is_resumed() {
    tokio::time::pause();
    for round in 0..24 {
        let world = world().await;
        world.runtime.execute(start("grand", "g", json!(1))).await.unwrap();
        let middle = child_of(&world, "grand", "g").await;
        let child = child_of(&world, "parent", &middle).await;
        let targets = [target("grand", "g"), target("parent", &middle), target("child", &child)];
        let resumes = (0..24).map(|n| {
            let (runtime, targets) = (world.runtime.clone(), targets.clone());
            async move {
                let target = &targets[(n + round) % 3];
                runtime.resume(target, resume(json!({ "approved": n }))).await
            }
        });
        let answers = futures_util::future::join_all(resumes).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
        for target in &targets {
            let state = world.runtime.describe(target).await.unwrap();
            assert_eq!(state.status, Status::Completed, "{target:?}");
        }
    }
}

#[actix::test]
async fn a_workflow_that_runs_itself_ends() {
    tokio::time::pause();
    let own = workflow("own", vec![child("again", "own")]);
    let world = World::launch(registry_of([own]), RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("own", "o", json!(1))).await.unwrap();
    let message = outcome.failure().unwrap().message;
    assert!(message.contains("workflows are nested deeper than 16"), "{message}");
    let all = world.runtime.list(&ExecutionFilter::default(), None, 100).await.unwrap().0;
    assert_eq!(all.len(), 17);
}

#[actix::test]
async fn a_child_that_never_began_leaves_no_timer() {
    tokio::time::pause();
    let branches = vec![("child", vec![child("sub", "child")]), ("now", vec![map("x", json!(1))])];
    let definitions =
        vec![workflow("w", vec![race("r", branches)]), workflow("child", vec![ask("a")])];
    let world = World::launch(registry_of(definitions), RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("w", "e", json!(1))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(1)));
    let far = Timestamp(i64::MAX);
    assert_eq!(world.store.timers_due(&SlotSet::all(), far, 10).await.unwrap(), []);
}
