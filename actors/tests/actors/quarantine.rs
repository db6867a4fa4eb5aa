//! Executions that repeatedly kill the process are set aside; all others continue.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{
    Body, Compensation, RetryPolicy, StepDefinition, StepKind,
};
use greenroom_actors::domain::failure::ErrorKind;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::crash_marks::{CrashMark, CrashMarks as _, MarkedWork};
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{DescribeError, ExecutionState, Unavailable};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::workflows::{
    Calls, ask, function, map, resume, run, sleep, spawn, with_functions, workflow,
};

/// Workflows that wait for a person, for a timer, and for a running step.
const WAITING: [&str; 3] = ["asks", "sleeps", "works"];

async fn world(limits: RuntimeLimits) -> World {
    let definitions = vec![
        workflow("asks", vec![ask("a"), map("b", json!("1"))]),
        workflow("sleeps", vec![sleep("a", 3_600_000), map("b", json!("1"))]),
        workflow("works", vec![run("a", "slow"), map("b", json!("1"))]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, limits).await;
    for workflow in WAITING {
        spawn(&world, start(workflow, workflow, json!({})));
    }
    pass(Duration::from_millis(50)).await;
    world
}

async fn state(world: &World, id: &str) -> Result<ExecutionState, DescribeError> {
    world.runtime.describe(&target(id, id)).await
}

/// Starts another process, after one that died during this work for an execution.
async fn crash(world: World, id: &str, work: MarkedWork) -> World {
    let last_seq = match state(&world, id).await {
        Ok(state) => state.last_seq,
        // it cannot be read any longer: its mark has no effect
        Err(_) => 0,
    };
    let mark = CrashMark { execution: ExecutionId::trusted(id), last_seq, work };
    world.crash_marks.set(7, &mark);
    world.restart().await
}

#[actix::test]
async fn an_execution_fails_after_two_crashes_at_the_same_point_and_others_continue() {
    tokio::time::pause();
    for pill in ["asks", "sleeps"] {
        let mut world = world(RuntimeLimits::default()).await;
        for crashes in [1, 2] {
            assert_eq!(world.runtime.stats().executions_set_aside, 0, "{pill} {crashes}");
            let alive = state(&world, pill).await.unwrap();
            assert!(!alive.status.is_terminal(), "{pill} {crashes}");
            world = crash(world, pill, MarkedWork::Decide).await;
        }
        let ended = state(&world, pill).await.unwrap();
        assert_eq!(ended.status, Status::Error, "{pill}");
        let error = ended.error.clone().unwrap();
        let expected =
            "set aside: the process died 2 times while it was being evaluated, at the same point";
        assert_eq!(&*error.message, expected, "{pill}");
        assert_eq!(error.class.unwrap().kind, ErrorKind::Interrupted, "{pill}");
        assert_eq!(world.runtime.stats().executions_set_aside, 1, "{pill}");
        for other in WAITING.into_iter().filter(|other| *other != pill) {
            assert!(state(&world, other).await.unwrap().error.is_none(), "{pill} {other}");
        }
        // an ended execution no longer counts
        let world = world.restart().await;
        assert_eq!(world.runtime.stats().executions_set_aside, 0, "{pill}");
        assert_eq!(state(&world, pill).await.unwrap().last_seq, ended.last_seq, "{pill}");
    }
}

#[actix::test]
async fn an_execution_that_was_set_aside_compensates_however_often_it_is_loaded() {
    tokio::time::pause();
    let body = Body::Run { function: "undo".to_owned(), version: None };
    let retry = RetryPolicy { attempts: 2, delay_ms: 60_000, ..RetryPolicy::default() };
    let rule = Compensation { retry, ..Compensation::new(StepKind::Then { body }) };
    let acts = StepDefinition { compensate: Some(Box::new(rule)), ..map("act", json!("1")) };
    let undone = Calls::default();
    let counted = undone.clone();
    let undo = function(move |context| {
        counted.add_one();
        async move {
            match context.attempt {
                1 => Err("not now".into()),
                _ => Ok(json!("undone").into()),
            }
        }
    });
    let mut registry = registry_of([workflow("acts", vec![acts, ask("a")])]);
    registry.functions.insert("undo".to_owned(), undo);
    let mut world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("acts", "acts", json!({}))).await.unwrap();
    for _ in 0..2 {
        world = crash(world, "acts", MarkedWork::Decide).await;
    }
    pass(Duration::from_secs(30)).await;
    let state_of = async || state(&world, "acts").await.unwrap();
    assert_eq!((undone.count(), world.live(), state_of().await.status), (1, 0, Status::Running));
    pass(Duration::from_secs(60)).await;
    let ended = state_of().await;
    assert_eq!((undone.count(), ended.status), (2, Status::Error));
    let compensation = ended.compensation.unwrap();
    assert_eq!((compensation.completed, compensation.remaining), (1, 0));
}

#[actix::test]
async fn an_execution_that_makes_progress_is_not_set_aside() {
    tokio::time::pause();
    let mut world = world(RuntimeLimits::default()).await;
    for _ in 0..2 {
        world = crash(world, "works", MarkedWork::Decide).await;
        // its step begins again, which is progress
        assert_eq!(state(&world, "works").await.unwrap().status, Status::Running);
    }
    world = crash(world, "asks", MarkedWork::Decide).await;
    let answer = resume(json!({ "approved": 1 }));
    world.runtime.resume(&target("asks", "asks"), answer).await.unwrap();
    let world = crash(world, "asks", MarkedWork::Decide).await;
    assert_eq!(world.runtime.stats().executions_set_aside, 0);
    assert_eq!(state(&world, "asks").await.unwrap().status, Status::Completed);
}

#[actix::test]
async fn the_number_of_crashes_is_configurable() {
    tokio::time::pause();
    for (quarantine_after, expected) in [(1, 1), (2, 2), (4, 4), (0, 6)] {
        let mut world = world(RuntimeLimits { quarantine_after, ..RuntimeLimits::default() }).await;
        let mut crashes = 0;
        while crashes < 6 && world.runtime.stats().executions_set_aside == 0 {
            world = crash(world, "asks", MarkedWork::Decide).await;
            crashes += 1;
        }
        assert_eq!(crashes, expected, "after {quarantine_after}");
    }
}

#[actix::test]
async fn an_execution_that_crashes_while_being_read_is_not_read_again() {
    tokio::time::pause();
    let mut world = world(RuntimeLimits::default()).await;
    for _ in 0..2 {
        world = crash(world, "sleeps", MarkedWork::Load).await;
    }
    let refused = state(&world, "sleeps").await.unwrap_err();
    let DescribeError::Unavailable(Unavailable::Corrupt(record)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(&*record, "execution sleeps (earlier processes died while reading it)");
    assert_eq!(world.runtime.stats().executions_set_aside, 1);
    assert_eq!(state(&world, "asks").await.unwrap().status, Status::Suspended);
    // the next process still has the marks
    let world = world.restart().await;
    assert!(state(&world, "sleeps").await.is_err());
}

#[actix::test]
async fn only_loads_and_costly_evaluations_are_marked() {
    tokio::time::pause();
    let square = json!("input.ids | select('in', input.ids) | list | length");
    let definitions = vec![
        workflow("square", vec![map("a", square)]),
        workflow("asks", vec![ask("a"), map("b", json!("1"))]),
    ];
    let world = World::launch(registry_of(definitions), RuntimeLimits::default()).await;
    let numbers = |count: usize| json!({ "ids": (0..count).collect::<Vec<_>>() });
    let marks = |world: &World| -> Vec<(Value, u64)> {
        assert!(world.crash_marks.is_clear(), "nothing is left behind");
        let seen = world.crash_marks.seen().into_iter();
        seen.map(|mark| (json!(mark.work), mark.last_seq)).collect()
    };
    world.runtime.execute(start("square", "cheap", numbers(10))).await.unwrap();
    world.runtime.execute(start("asks", "asks", json!({}))).await.unwrap();
    assert_eq!(marks(&world), []);
    world.runtime.execute(start("square", "costly", numbers(2000))).await.unwrap();
    let began = json!("Decide");
    assert_eq!(marks(&world), [(began.clone(), 2)]);

    let world = world.restart().await;
    let last_seq = state(&world, "asks").await.unwrap().last_seq;
    let refused = world.runtime.resume(&target("asks", "asks"), resume(json!({}))).await;
    assert!(refused.is_err());
    world.runtime.resume(&target("asks", "asks"), resume(json!({ "approved": 1 }))).await.unwrap();
    pass(Duration::from_secs(1)).await;
    let read = (json!("Load"), last_seq);
    let decided = (began, last_seq);
    assert_eq!(marks(&world), [read.clone(), read, decided.clone(), decided]);
}
