//! Survival of executions across crashes and orderly stops.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{
    IdempotencyKey, ResumeExecution, StartError, StartExecution, Unavailable,
};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::workflows::{
    Calls, ask, ask_until, child, map, resume, retried, run, sleep, spawn, with_functions, workflow,
};

fn key(scope: &str, body: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { scope: Arc::from(scope), body_hash: Arc::from(body) })
}

async fn world(definitions: Vec<WorkflowDefinition>) -> (World, Calls) {
    let calls = Calls::default();
    let registry = with_functions(registry_of(definitions), &calls);
    (World::launch(registry, RuntimeLimits::default()).await, calls)
}

#[actix::test]
async fn a_suspended_execution_is_resumed_after_a_kill() {
    tokio::time::pause();
    let steps = vec![map("a", json!("data.n + 1")), ask("manager"), map("b", json!("steps.a"))];
    let (world, _) = world(vec![workflow("w", steps)]).await;
    world.runtime.execute(start("w", "e", json!({ "n": 1 }))).await.unwrap();
    let before = world.runtime.describe(&target("w", "e")).await.unwrap();
    let world = world.restart().await;
    let after = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(before.steps, after.steps);
    assert_eq!(before.suspension, after.suspension);
    let outcome =
        world.runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(2)));
}

#[actix::test]
async fn an_interrupted_step_runs_again_and_a_finished_one_does_not() {
    tokio::time::pause();
    let steps = vec![run("first", "slow"), run("second", "slow")];
    let (world, calls) = world(vec![workflow("w", steps)]).await;
    let waiting = spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_millis(150)).await;
    assert_eq!(calls.count(), 2);
    let world = world.restart().await;
    assert!(waiting.await.unwrap().is_err(), "the caller's process is gone");

    pass(Duration::from_millis(200)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
    assert_eq!(calls.count(), 3, "the first step did not run again");
    let attempts: Vec<u32> = state.steps.iter().map(|step| step.attempts).collect();
    assert_eq!(attempts, [1, 2]);
}

#[actix::test]
async fn a_step_that_is_interrupted_each_time_finally_fails() {
    tokio::time::pause();
    let (mut world, calls) = world(vec![workflow("w", vec![run("hang", "hang")])]).await;
    spawn(&world, start("w", "e", json!({})));
    for _ in 0..3 {
        pass(Duration::from_millis(50)).await;
        world = world.restart().await;
    }
    pass(Duration::from_millis(50)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(&*state.error.unwrap().message, "interrupted 3 times");
    assert_eq!(calls.count(), 3);
}

#[actix::test]
async fn sleeps_and_deadlines_keep_their_time_across_a_restart() {
    tokio::time::pause();
    let steps = vec![sleep("nap", 3_600_000), ask_until("manager", 7_200_000)];
    let (world, _) = world(vec![workflow("w", steps)]).await;
    spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_secs(1800)).await;
    let world = world.restart().await;
    pass(Duration::from_secs(3600)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Suspended);
    let since = state.suspension.unwrap().suspended_at.ms_since(state.header.created_at);
    assert!((3_600_000..3_600_100).contains(&since), "an hour, not {since} ms");
    let world = world.restart().await;
    pass(Duration::from_secs(7200)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
}

#[actix::test]
async fn parent_and_child_continue_after_a_kill_at_any_moment() {
    tokio::time::pause();
    for moment in 0..12 {
        let (world, _) = world(vec![
            workflow("parent", vec![child("sub", "child"), map("after", json!("[data]"))]),
            workflow("child", vec![run("slow", "slow"), ask_until("manager", 60_000)]),
        ])
        .await;
        spawn(&world, start("parent", "p", json!(1)));
        pass(Duration::from_millis(moment * 20)).await;
        let world = world.restart().await;
        if world.runtime.describe(&target("parent", "p")).await.is_err() {
            assert_eq!(moment, 0, "the start was never acknowledged");
            continue;
        }
        pass(Duration::from_secs(30)).await;
        let world = world.restart().await;
        pass(Duration::from_secs(120)).await;
        let state = world.runtime.describe(&target("parent", "p")).await.unwrap();
        assert_eq!(state.status, Status::Completed, "killed after {} ms", moment * 20);
        assert_eq!(state.result.as_deref(), Some(&json!([{ "approved": false }])));
    }
}

#[actix::test]
async fn a_drain_lets_steps_finish_and_answers_waiting_callers() {
    tokio::time::pause();
    let (world, calls) = world(vec![
        workflow("quick", vec![run("slow", "slow")]),
        workflow("two", vec![run("slow", "slow"), run("next", "slow")]),
        workflow("endless", vec![run("hang", "hang")]),
    ])
    .await;
    let runtime = world.runtime.clone();
    let execute = |workflow: &str| spawn(&world, start(workflow, workflow, json!({})));
    let (quick, two, endless) = (execute("quick"), execute("two"), execute("endless"));
    pass(Duration::from_millis(10)).await;
    assert!(runtime.is_ready());
    let drain = actix::spawn({
        let runtime = runtime.clone();
        async move { runtime.drain(Duration::from_secs(10)).await }
    });
    pass(Duration::from_millis(10)).await;
    assert!(!runtime.is_ready());
    let refused = runtime.execute(start("quick", "late", json!({}))).await;
    assert_eq!(refused, Err(StartError::Unavailable(Unavailable::Draining { execution: None })));

    drain.await.unwrap();
    assert_eq!(quick.await.unwrap().unwrap().status(), Status::Completed);
    for (waiting, id) in [(two, "two"), (endless, "endless")] {
        let answer = waiting.await.unwrap();
        let Err(StartError::Unavailable(Unavailable::Draining { execution: Some(named) })) = answer
        else {
            panic!("{answer:?}")
        };
        assert_eq!(named.as_str(), id);
    }
    assert_eq!(calls.count(), 3, "no further step started");

    let world = world.restart().await;
    pass(Duration::from_secs(1)).await;
    let state = world.runtime.describe(&target("two", "two")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
    assert_eq!(state.steps[1].attempts, 1, "it had not begun before the restart");
}

#[actix::test]
async fn an_idempotency_key_returns_the_first_answer_again() {
    tokio::time::pause();
    let steps = vec![ask("manager"), run("slow", "slow")];
    let (mut world, calls) = world(vec![workflow("w", steps)]).await;
    let keyed = |body: &str| StartExecution {
        execution_id: None,
        idempotency: key("execute k", body),
        ..start("w", "-", json!({}))
    };
    let first = world.runtime.execute(keyed("one")).await.unwrap();
    let id = first.execution_id.to_string();
    let answer = |idempotency| ResumeExecution { idempotency, ..resume(json!({ "approved": 1 })) };
    let it = target("w", &id);
    let (one, two) = tokio::join!(
        world.runtime.resume(&it, answer(key("resume k", "b"))),
        world.runtime.resume(&it, answer(key("resume k", "b"))),
    );
    assert_eq!(one, two);
    assert_eq!(calls.count(), 1, "resumed once");

    for _ in 0..2 {
        assert_eq!(world.runtime.execute(keyed("one")).await.unwrap(), first);
        let again = world.runtime.resume(&it, answer(key("resume k", "b"))).await;
        assert_eq!(again, one);
        assert_eq!(world.runtime.execute(keyed("other")).await, Err(StartError::KeyReused));
        world = world.restart().await;
    }
    pass(Duration::from_secs(25 * 3600)).await;
    let new = world.runtime.execute(keyed("other")).await.unwrap();
    assert_ne!(new.execution_id, first.execution_id, "keys expire");
}

#[actix::test]
async fn a_long_history_is_rebuilt_unchanged() {
    tokio::time::pause();
    let mut flaky = retried(run("flaky", "boom"), 400, 1);
    flaky.retry.as_mut().unwrap().factor = 1.0;
    let (world, _) = world(vec![workflow("w", vec![flaky, ask("manager")])]).await;
    let flaky_forever = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(flaky_forever.status(), Status::Error);
    let before = world.runtime.describe(&target("w", "e")).await.unwrap();
    let world = world.restart().await;
    let after = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(before.last_seq, after.last_seq);
    assert_eq!(before.steps, after.steps);
    assert!(after.last_seq > 500, "{} events", after.last_seq);
}

#[actix::test]
async fn the_key_of_a_resume_that_a_parent_passes_on_is_recorded_with_the_decision() {
    tokio::time::pause();
    let (mut world, _) = world(vec![
        workflow("parent", vec![child("sub", "child"), ask("again")]),
        workflow("child", vec![ask("manager")]),
    ])
    .await;
    world.runtime.execute(start("parent", "p", json!(1))).await.unwrap();
    let answer = || ResumeExecution {
        idempotency: key("resume p k", "b"),
        ..resume(json!({ "approved": 1 }))
    };
    let first = world.runtime.resume(&target("parent", "p"), answer()).await.unwrap();
    assert_eq!(&*first.suspension().unwrap().step_id, "again");
    for _ in 0..3 {
        let again = world.runtime.resume(&target("parent", "p"), answer()).await.unwrap();
        assert_eq!(again, first, "the next question is not answered by a repeated call");
        world = world.restart().await;
    }
}

#[actix::test]
async fn an_orderly_stop_does_not_count_as_a_crash_of_the_running_step() {
    tokio::time::pause();
    let (mut world, calls) = world(vec![workflow("w", vec![run("hang", "hang")])]).await;
    spawn(&world, start("w", "e", json!({})));
    for stop in 1..=6 {
        pass(Duration::from_millis(50)).await;
        assert_eq!(calls.count(), stop, "the step began again after each restart");
        world.runtime.drain(Duration::from_millis(10)).await;
        world = world.restart().await;
    }
    pass(Duration::from_millis(50)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.steps[0].attempts), (Status::Running, 7));
}

/// The second call finds another question, and still returns the outcome of the first.
#[actix::test]
async fn two_concurrent_resumes_with_one_key_return_the_same_outcome() {
    tokio::time::pause();
    for step in [Some("manager"), None] {
        let (world, _) = world(vec![workflow("w", vec![ask("manager"), ask("again")])]).await;
        world.runtime.execute(start("w", "e", json!(1))).await.unwrap();
        let it = target("w", "e");
        let answer = || ResumeExecution {
            step_id: step.map(str::to_owned),
            idempotency: key("resume k", "b"),
            data: json!({ "approved": 1 }),
            ..Default::default()
        };
        let (one, two) =
            tokio::join!(world.runtime.resume(&it, answer()), world.runtime.resume(&it, answer()));
        assert_eq!(&*one.as_ref().unwrap().suspension().unwrap().step_id, "again");
        assert_eq!(one, two);
        let stats = world.runtime.stats();
        assert_eq!((stats.executions_live, stats.executions_rebuilt), (1, 0), "nothing was lost");
    }
}
