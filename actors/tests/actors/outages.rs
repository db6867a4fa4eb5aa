//! A store whose writes wait until it answers again.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{
    ControlError, DescribeError, ExecutionOutcome, ResumeError, StartError, TraceOrigin,
    Unavailable,
};
use greenroom_actors::runtime::{ReplayDefinition, ReplayError, ReplayExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::workflows::{ask, child, map, resume, sleep, workflow};

/// Shorter than the patience of [`world`].
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(60);

async fn world() -> World {
    let definitions = vec![
        workflow("quick", vec![map("z", json!(1))]),
        workflow("w", vec![ask("manager"), map("z", json!(1))]),
        workflow("naps", vec![sleep("nap", 1000), child("c", "quick"), map("z", json!(1))]),
    ];
    let limits = RuntimeLimits { store_patience: 10 * SHORT / 4, ..RuntimeLimits::default() };
    World::launch(registry_of(definitions), limits).await
}

/// Returns the execution that the refusal names, if it is that of an outage.
fn named(refusal: &Unavailable) -> Option<&str> {
    match refusal {
        Unavailable::Store { execution, .. } => execution.as_ref().map(ExecutionId::as_str),
        other => panic!("not refused for the store: {other:?}"),
    }
}

fn refused(outcome: Result<ExecutionOutcome, StartError>) -> Unavailable {
    match outcome {
        Err(StartError::Unavailable(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[actix::test]
async fn a_short_outage_delays_callers_who_wait() {
    tokio::time::pause();
    let world = world().await;
    let outage = async {
        pass(Duration::from_millis(500)).await;
        world.store.begin_outage();
        pass(SHORT).await;
        world.store.end_outage();
    };
    let (outcome, ()) = tokio::join!(world.runtime.execute(start("naps", "e", json!({}))), outage);
    assert_eq!(outcome.unwrap().status(), Status::Completed, "its child started after it");
}

#[actix::test]
async fn a_timer_that_fell_due_while_writes_were_refused_counts_soon_afterwards() {
    tokio::time::pause();
    let world = world().await;
    let outage = async {
        pass(Duration::from_millis(900)).await;
        world.store.set_writable(false);
        pass(Duration::from_millis(500)).await;
        world.store.set_writable(true);
    };
    let (outcome, ()) = tokio::join!(world.runtime.execute(start("naps", "e", json!({}))), outage);
    assert_eq!(named(&refused(outcome)), Some("e"));
    pass(SHORT).await;
    let state = world.runtime.describe(&target("naps", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
}

#[actix::test]
async fn callers_who_wait_for_longer_than_the_patience_learn_the_execution() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("w", "asks", json!({}))).await.unwrap();
    let outage = async {
        pass(Duration::from_millis(500)).await;
        world.store.begin_outage();
    };
    let begun = tokio::time::Instant::now();
    let naps = world.runtime.execute(start("naps", "e", json!({})));
    let (outcome, ()) = tokio::join!(naps, outage);
    assert_eq!(named(&refused(outcome)), Some("e"));
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < Duration::from_secs(7), "{waited:?}");

    world.store.end_outage();
    pass(LONG).await;
    let state = world.runtime.describe(&target("naps", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed, "it continued without its caller");
    let asks = target("w", "asks");
    let answered = world.runtime.resume(&asks, resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(answered.status(), Status::Completed);
}

#[actix::test]
async fn changes_whose_writes_wait_are_made_after_the_outage() {
    tokio::time::pause();
    let world = world().await;
    for id in ["resumed", "cancelled"] {
        world.runtime.execute(start("w", id, json!({}))).await.unwrap();
    }
    // accepted just before the outage, and written in it
    let begin = async { world.store.begin_outage() };
    let (to_resume, to_cancel) = (target("w", "resumed"), target("w", "cancelled"));
    let resumed = world.runtime.resume(&to_resume, resume(json!({ "approved": 1 })));
    let cancelled = world.runtime.cancel(&to_cancel, None, None);
    let new = world.runtime.execute(start("quick", "new", json!({})));
    let (resumed, cancelled, new, ()) = tokio::join!(resumed, cancelled, new, begin);
    let Err(ResumeError::Unavailable(refusal)) = &resumed else { panic!("{resumed:?}") };
    assert_eq!(named(refusal), Some("resumed"));
    let Err(ControlError::Unavailable(refusal)) = &cancelled else { panic!("{cancelled:?}") };
    assert_eq!(named(refusal), Some("cancelled"));
    assert_eq!(named(&refused(new)), Some("new"));
    let unknown = world.runtime.describe(&target("quick", "new")).await;
    let Err(DescribeError::Unavailable(refusal)) = &unknown else { panic!("{unknown:?}") };
    assert_eq!(named(refusal), Some("new"), "what is shown is recorded first");
    let why = world.runtime.why(&target("quick", "new")).await;
    let Err(DescribeError::Unavailable(refusal)) = &why else { panic!("{why:?}") };
    assert_eq!(named(refusal), Some("new"));

    world.store.end_outage();
    pass(LONG).await;
    for (target, status) in [
        (to_resume, Status::Completed),
        (to_cancel, Status::Cancelled),
        (target("quick", "new"), Status::Completed),
    ] {
        let state = world.runtime.describe(&target).await.unwrap();
        assert_eq!(state.status, status, "{target:?}");
    }
}

#[actix::test]
async fn new_commands_are_refused_at_once_during_an_outage() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("quick", "ended", json!({}))).await.unwrap();
    world.runtime.execute(start("w", "asks", json!({}))).await.unwrap();
    world.store.begin_outage();
    let begun = tokio::time::Instant::now();

    let new = world.runtime.execute(start("quick", "new", json!({}))).await;
    assert_eq!(named(&refused(new)), None, "nothing is or will be recorded");
    let replay = ReplayExecution {
        step_id: Some("z".to_owned()),
        resume_data: None,
        input: None,
        definition: ReplayDefinition::Original,
        execution_id: None,
        by: None,
        answerer: None,
        idempotency: None,
        trace: TraceOrigin::New,
    };
    let replayed = world.runtime.replay(&target("quick", "ended"), replay).await;
    let Err(ReplayError::Start(StartError::Unavailable(refusal))) = &replayed else {
        panic!("{replayed:?}");
    };
    assert_eq!(named(refusal), None);
    let asks = target("w", "asks");
    let resumed = world.runtime.resume(&asks, resume(json!({ "approved": 1 }))).await;
    let Err(ResumeError::Unavailable(refusal)) = &resumed else { panic!("{resumed:?}") };
    assert_eq!(named(refusal), None);
    for refused in [
        world.runtime.suspend(&asks, None, None).await.map(drop),
        world.runtime.cancel(&asks, None, None).await.map(drop),
    ] {
        let Err(ControlError::Unavailable(refusal)) = &refused else { panic!("{refused:?}") };
        assert_eq!(named(refusal), None);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let state = world.runtime.describe(&asks).await.unwrap();
    assert_eq!(state.status, Status::Suspended, "reads are answered");

    world.store.end_outage();
    pass(LONG).await;
    let new = world.runtime.describe(&target("quick", "new")).await;
    assert_eq!(new.unwrap_err(), DescribeError::NotFound);
    let state = world.runtime.describe(&asks).await.unwrap();
    assert_eq!(state.status, Status::Suspended, "no refused command came through");
}

#[actix::test]
async fn a_drain_does_not_wait_for_the_end_of_an_outage() {
    tokio::time::pause();
    let world = world().await;
    let outage = async {
        pass(Duration::from_millis(500)).await;
        world.store.begin_outage();
        pass(Duration::from_millis(600)).await;
        world.runtime.drain(SHORT).await;
    };
    let naps = world.runtime.execute(start("naps", "e", json!({})));
    let (outcome, ()) = tokio::join!(naps, outage);
    let refusal = refused(outcome);
    let Unavailable::Draining { execution: Some(id) } = &refusal else { panic!("{refusal:?}") };
    assert_eq!(id.as_str(), "e");
}

#[actix::test]
async fn a_drain_in_a_long_outage_does_not_wait_for_the_patience_again() {
    tokio::time::pause();
    let world = world().await;
    let outage = async {
        pass(Duration::from_millis(500)).await;
        world.store.begin_outage();
        pass(LONG).await;
        let begun = tokio::time::Instant::now();
        world.runtime.drain(SHORT).await;
        begun.elapsed()
    };
    let naps = world.runtime.execute(start("naps", "e", json!({})));
    let (outcome, waited) = tokio::join!(naps, outage);
    assert_eq!(named(&refused(outcome)), Some("e"));
    assert!(waited < SHORT, "{waited:?}");
}
