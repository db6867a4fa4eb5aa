//! The memory limit of executions.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{ResumeError, ResumeExecution, StartError, Unavailable};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::workflows::{
    Calls, ask, child, map, resume, run, sleep, spawn, with_functions, workflow,
};

/// Returns a value that takes a little more than a megabyte in memory.
fn large() -> Value {
    json!(vec![1; 10_000])
}

fn answer() -> ResumeExecution {
    resume(json!({ "approved": 1 }))
}

async fn world(executions_memory_max: u64, passivate_after: Duration) -> World {
    let definitions = vec![
        workflow("asks", vec![ask("manager"), map("end", json!("'end'"))]),
        workflow("sleeps", vec![sleep("nap", 60_000), run("work", "slow")]),
        workflow("hangs", vec![run("hang", "hang")]),
        workflow("parent", vec![child("child", "grown")]),
        workflow("grown", vec![map("data", json!("'a child'"))]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let limits =
        RuntimeLimits { executions_memory_max, passivate_after, ..RuntimeLimits::default() };
    World::launch(registry, limits).await
}

#[actix::test]
async fn callers_are_refused_while_memory_is_used_up_and_executions_in_memory_continue() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::from_secs(3600)).await;
    let runtime = &world.runtime;
    runtime.execute(start("asks", "early", json!(1))).await.unwrap();
    let held = runtime.stats().executions_memory;
    assert!((8 * 1024..16 * 1024).contains(&held), "{held}");
    let refused = runtime.execute(start("asks", "large", large())).await;
    assert_eq!(refused, Err(StartError::Unavailable(Unavailable::NoMemory)), "not beside another");
    runtime.cancel(&target("asks", "early"), None, None).await.unwrap();
    pass(Duration::from_millis(1)).await;
    assert_eq!(runtime.stats().executions_memory, 0);

    runtime.execute(start("asks", "large", large())).await.unwrap();
    assert!(runtime.stats().executions_memory > 1024 * 1024, "alone it may be larger than all");
    let refused = runtime.execute(start("asks", "small", json!(1))).await;
    assert_eq!(refused, Err(StartError::Unavailable(Unavailable::NoMemory)));
    assert_eq!(runtime.stats().executions_refused, 2);
    let outcome = runtime.resume(&target("asks", "large"), answer()).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!("end")));
    pass(Duration::from_millis(1)).await;
    assert_eq!(runtime.stats().executions_memory, 0, "an ended execution holds nothing");
    runtime.execute(start("asks", "small", json!(1))).await.unwrap();
}

#[actix::test]
async fn idle_executions_are_unloaded_early_while_memory_is_used_up() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::from_secs(3600)).await;
    let runtime = world.runtime.clone();
    runtime.execute(start("asks", "large", large())).await.unwrap();
    pass(Duration::from_secs(1)).await;
    let stats = runtime.stats();
    assert_eq!((stats.executions_live, stats.executions_memory), (0, 0));

    spawn(&world, start("hangs", "busy", large()));
    pass(Duration::from_millis(1)).await;
    let it = target("asks", "large");
    let refused = runtime.resume(&it, answer()).await;
    assert_eq!(refused, Err(ResumeError::Unavailable(Unavailable::NoMemory)));
    let state = runtime.describe(&it).await.unwrap();
    assert_eq!(state.status, Status::Suspended, "it can be read");
    assert_eq!(runtime.stats().executions_live, 1, "reading does not load it");
    runtime.cancel(&it, None, None).await.unwrap();
    runtime.cancel(&target("hangs", "busy"), None, None).await.unwrap();
    pass(Duration::from_millis(1)).await;
    assert_eq!(runtime.stats().executions_memory, 0);
}

#[actix::test]
async fn idle_executions_are_unloaded_early_after_a_caller_was_refused() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::from_secs(3600)).await;
    let runtime = &world.runtime;
    runtime.execute(start("asks", "small", json!(1))).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(runtime.stats().executions_live, 1, "there is room");
    let refused = runtime.execute(start("asks", "large", large())).await;
    assert_eq!(refused, Err(StartError::Unavailable(Unavailable::NoMemory)));
    pass(Duration::from_secs(1)).await;
    assert_eq!(runtime.stats().executions_live, 0, "the idle one made room");
    runtime.execute(start("asks", "large", large())).await.unwrap();
}

#[actix::test]
async fn executions_with_due_timers_are_loaded_in_turn_without_room() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::ZERO).await;
    let ids: Vec<String> = (0..5).map(|number| format!("e{number}")).collect();
    for id in &ids {
        spawn(&world, start("sleeps", id, json!(1)));
    }
    pass(Duration::from_secs(1)).await;
    let world = world.restart().await;
    pass(Duration::from_secs(1)).await;
    let runtime = world.runtime.clone();
    spawn(&world, start("hangs", "busy", large()));
    pass(Duration::from_millis(57_500)).await;
    let mut most = (0, 0);
    for _ in 0..600 {
        pass(Duration::from_millis(10)).await;
        let stats = runtime.stats();
        most = (most.0.max(stats.executions_live), most.1.max(stats.executions_waiting));
    }
    assert_eq!(most, (2, 4), "one at a time beside the one that holds all memory");
    for id in &ids {
        let state = runtime.describe(&target("sleeps", id)).await.unwrap();
        assert_eq!(state.status, Status::Completed, "{id}");
    }
    let stats = runtime.stats();
    assert_eq!((stats.executions_live, stats.executions_waiting), (1, 0));
}

#[actix::test]
async fn sleeping_executions_are_unloaded_after_a_start() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::from_secs(3600)).await;
    for number in 0..20 {
        spawn(&world, start("sleeps", &format!("e{number}"), json!(1)));
    }
    pass(Duration::from_secs(1)).await;
    let world = world.restart().await;
    pass(Duration::from_secs(2)).await;
    let stats = world.runtime.stats();
    assert_eq!((stats.executions_rebuilt, stats.executions_live), (20, 0));
    pass(Duration::from_secs(60)).await;
    let state = world.runtime.describe(&target("sleeps", "e19")).await.unwrap();
    assert_eq!(state.status, Status::Completed, "their timers still fire");
}

#[actix::test]
async fn a_child_starts_even_when_memory_is_used_up() {
    tokio::time::pause();
    let world = world(1024 * 1024, Duration::from_secs(3600)).await;
    let outcome = world.runtime.execute(start("parent", "p", large())).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!("a child")));
}
