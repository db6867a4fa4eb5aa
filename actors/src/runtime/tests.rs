//! Stops of executions, whose actors have something under way.

use futures_util::FutureExt as _;
use serde_json::json;

use super::*;
use crate::domain::definition::{
    Block, Body, Mapping, StepDefinition, StepKind, SuspendRule, WorkflowDefinition,
};
use crate::domain::slot::SlotSet;
use crate::requests::ResumeExecution;
use crate::shard::messages::LeaveSlots;
use crate::testkit::{World, pass, registry_of, start, target};

#[actix::test]
async fn executions_that_are_stopped_twice_are_waited_for_twice() {
    tokio::time::pause();
    let nap = StepDefinition::new("nap", StepKind::Sleep { duration_ms: 2000 });
    let registry = registry_of([WorkflowDefinition::new("w", vec![nap])]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let runtime = world.runtime.clone();
    actix::spawn(async move { drop(runtime.execute(start("w", "e", json!({}))).await) });
    pass(Duration::from_secs(1)).await;
    world.store.begin_outage();
    // the end of the step waits for the store
    pass(Duration::from_secs(3)).await;
    let shards = &world.runtime.system.shards;
    let all = Arc::new(SlotSet::all());
    let left = join_all(shards.iter().map(|shard| shard.send(LeaveSlots(Arc::clone(&all)))));
    let ended = join_all(shards.iter().map(|shard| shard.send(StopAll)));
    let mut stopped = Box::pin(async { tokio::join!(left, ended) });
    assert!(timeout(Duration::from_secs(1), &mut stopped).await.is_err());
    assert_eq!(world.live(), 1, "it has something to record");
    world.store.end_outage();
    stopped.await;
    assert_eq!(world.live(), 0);
}

/// An append of the same execution is under way, and may be refused.
#[actix::test]
async fn a_caller_whose_command_is_not_decided_before_a_handover_knows_it() {
    tokio::time::pause();
    let picky = json!({ "properties": { "text": { "pattern": "^([a-z]{1,20}){1,20}$" } } });
    let body = || Body::Map(Mapping(json!("resume")));
    let ask = |id| StepDefinition {
        suspend: Some(SuspendRule::default()),
        resume_schema: Some(picky.clone()),
        ..StepDefinition::new(id, StepKind::Then { body: body() })
    };
    let block = |id| Block { name: String::from(id), steps: vec![ask(id)] };
    let all = StepKind::All { blocks: vec![block("cheap"), block("costly")] };
    let registry =
        registry_of([WorkflowDefinition::new("w", vec![StepDefinition::new("all", all)])]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    world.workers.hold();
    let resumes = |step: &str, data| {
        let (runtime, step_id) = (world.runtime.clone(), Some(step.to_owned()));
        let request = ResumeExecution { step_id, data, ..Default::default() };
        let mut resumed = Box::pin(async move { runtime.resume(&target("w", "e"), request).await });
        assert!(resumed.as_mut().now_or_never().is_none());
        actix::spawn(resumed)
    };
    let _recorded = resumes("cheap", json!({}));
    let undecided = resumes("costly", json!({ "text": "a".repeat(300) }));
    world.store.begin_outage();
    pass(Duration::from_millis(1)).await;
    assert_eq!(world.workers.held(), 1);
    let all = Arc::new(SlotSet::all());
    let shards = world.runtime.system.shards.clone();
    let left = actix::spawn(async move {
        join_all(shards.iter().map(|shard| shard.send(LeaveSlots(Arc::clone(&all))))).await;
    });
    let moved = Unavailable::Moved { execution: None };
    assert_eq!(undecided.await.unwrap(), Err(moved.into()));
    world.store.end_outage();
    left.await.unwrap();
}
