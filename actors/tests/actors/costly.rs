//! Evaluations above the cost of a turn run on another thread, and the actor answers in between.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{StepDefinition, SuspendRule};
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{StartExecution, TraceOrigin};
use greenroom_actors::runtime::{ReplayDefinition, ReplayError, ReplayExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::wait_report::Cause;
use serde_json::{Value, json};

use crate::workflows::{Calls, child, map, run, spawn, with_functions, workflow};

/// Compares n * n / 2 numbers for `n` numbers.
pub(crate) const SQUARE: &str = "input.ids | select('in', input.ids) | list | length";

fn numbers(count: usize) -> Value {
    json!({ "ids": (0..count).collect::<Vec<_>>() })
}

async fn world() -> World {
    let steps = vec![map("a", json!(SQUARE)), run("b", "slow"), map("c", json!("steps.a"))];
    let definitions =
        vec![workflow("square", steps), workflow("parent", vec![child("sub", "square")])];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    World::launch(registry, RuntimeLimits::default()).await
}

#[actix::test]
async fn a_costly_evaluation_gives_the_result_of_a_cheap_one() {
    tokio::time::pause();
    let world = world().await;
    for (id, workflow, count, moved) in
        [("e1", "square", 10, 0), ("e2", "square", 2000, 1), ("e3", "parent", 2000, 2)]
    {
        let outcome = world.runtime.execute(start(workflow, id, numbers(count))).await.unwrap();
        assert_eq!(outcome.status(), Status::Completed, "{id}: {:?}", outcome.failure());
        assert_eq!(outcome.result(), Some(&json!(count)), "{id}");
        assert_eq!(world.runtime.stats().evaluations_moved, moved, "{id}");
    }
}

#[actix::test]
async fn an_evaluation_over_the_limit_fails_and_is_not_repeated() {
    tokio::time::pause();
    let world = world().await;
    let outcome = world.runtime.execute(start("square", "e", numbers(40_000))).await.unwrap();
    assert_eq!(outcome.status(), Status::Error);
    let said = format!("{:?}", outcome.failure());
    assert!(said.contains("takes more than 30000000 steps"), "{said}");
    assert_eq!(world.runtime.stats().evaluations_exceeded, 1);
    let world = world.restart().await;
    pass(Duration::from_secs(10)).await;
    let state = world.runtime.describe(&target("square", "e")).await.unwrap();
    assert_eq!(state.status, Status::Error);
    assert_eq!(world.runtime.stats().evaluations_moved, 0, "it is not evaluated again");
}

/// The order in which executions end is the order in which the workers take jobs.
#[actix::test]
async fn many_evaluations_of_one_user_do_not_delay_those_of_another() {
    tokio::time::pause();
    let definition = workflow("square", vec![map("a", json!(SQUARE))]);
    let world = World::launch(registry_of([definition]), RuntimeLimits::default()).await;
    world.workers.hold();
    let mut executing = Vec::new();
    for (user, id) in [("lea", "e1"), ("lea", "e2"), ("lea", "e3"), ("lea", "e4"), ("kim", "e5")] {
        let user_id = Some(user.to_owned());
        let request = StartExecution { user_id, ..start("square", id, numbers(2000)) };
        executing.push(spawn(&world, request));
        pass(Duration::from_millis(10)).await;
    }
    assert_eq!(world.workers.held(), 5);
    for ended in [["e1"].as_slice(), &["e1", "e5"], &["e1", "e2", "e5"]] {
        world.workers.do_one();
        pass(Duration::from_millis(10)).await;
        let ids = ["e1", "e2", "e3", "e4", "e5"];
        let done: Vec<_> = ids.iter().zip(&executing).filter(|(_, it)| it.is_finished()).collect();
        assert!(done.iter().map(|(id, _)| **id).eq(ended.iter().copied()), "{ended:?}");
    }
    world.workers.release();
    for execution in executing {
        assert_eq!(execution.await.unwrap().unwrap().status(), Status::Completed);
    }
}

/// The watchdog continues executions with the cause `Turn`; one that is being evaluated has
/// another.
#[actix::test]
async fn an_execution_being_evaluated_is_reported_as_deciding() {
    tokio::time::pause();
    let definition = workflow("square", vec![map("a", json!(SQUARE))]);
    let world = World::launch(registry_of([definition]), RuntimeLimits::default()).await;
    let executing = spawn(&world, start("square", "e", numbers(2000)));
    let mut queries = Vec::new();
    while !executing.is_finished() {
        let runtime = world.runtime.clone();
        queries.push(actix::spawn(async move { runtime.why(&target("square", "e")).await }));
        tokio::task::yield_now().await;
    }
    let mut causes = Vec::new();
    for answer in queries {
        if let Ok(wait_report) = answer.await.unwrap() {
            assert!(wait_report.status.is_terminal() != wait_report.ending.is_none());
            causes.extend(wait_report.waits_for.into_iter().map(|awaited| awaited.cause));
        }
    }
    assert!(!causes.is_empty() && causes.iter().all(|it| *it == Cause::Deciding), "{causes:?}");
    assert_eq!(executing.await.unwrap().unwrap().status(), Status::Completed);
    assert_eq!(world.runtime.stats().evaluations_moved, 1);
}

#[actix::test]
async fn the_answer_of_a_replay_is_checked_like_that_of_a_resume() {
    tokio::time::pause();
    let schema = json!({ "pattern": "^([a-z]{1,20}){1,20}$" });
    let ask = StepDefinition {
        suspend: Some(SuspendRule::default()),
        resume_schema: Some(schema),
        ..map("a", json!("resume | length"))
    };
    let registry = with_functions(registry_of(vec![workflow("ask", vec![ask])]), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let outcome = world.runtime.execute(start("ask", "e", json!(1))).await.unwrap();
    assert_eq!(outcome.status(), Status::Suspended);
    let replay = |data: Value| ReplayExecution {
        step_id: Some("a".to_owned()),
        resume_data: Some(data),
        input: None,
        definition: ReplayDefinition::Original,
        execution_id: None,
        by: None,
        answerer: None,
        idempotency: None,
        trace: TraceOrigin::New,
    };
    let rows = [
        (json!("a".repeat(30)), 0, Ok(json!(30))),
        (json!("a".repeat(300)), 1, Ok(json!(300))),
        (json!("A"), 1, Err("\"A\" does not match")),
        (json!("a".repeat(100_000)), 2, Err("the check takes more than 30000000 steps")),
    ];
    for (data, moved, expected) in rows {
        let outcome = world.runtime.replay(&target("ask", "e"), replay(data)).await;
        let outcome = outcome.map(|replay| replay.new);
        match (outcome, expected) {
            (Ok(outcome), Ok(result)) => assert_eq!(outcome.result(), Some(&result)),
            (Err(ReplayError::InvalidData(why)), Err(said)) => {
                assert!(why.starts_with(said), "{why}");
            }
            (outcome, _) => panic!("{outcome:?}"),
        }
        assert_eq!(world.runtime.stats().evaluations_moved, moved);
    }
}
