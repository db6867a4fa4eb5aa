//! Start, suspend, resume and cancel, as callers see them.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{Executions as _, Status};
use greenroom_actors::requests::{
    ControlError, DescribeError, ExecutionOutcome, Halted, ResumeError, StartError, StartExecution,
    StepStatus, Unavailable,
};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::workflows::{
    Calls, ask, ask_until, child, for_each, map, race, resume, retried, run, sleep, with_functions,
    workflow,
};

async fn world(steps: Vec<StepDefinition>) -> (World, Calls) {
    let calls = Calls::default();
    let registry = with_functions(registry_of([workflow("w", steps)]), &calls);
    (World::launch(registry, RuntimeLimits::default()).await, calls)
}

#[actix::test]
async fn pure_steps_run_to_the_end() {
    tokio::time::pause();
    let add = json!({ "n": "data.n + 1" });
    let steps = vec![map("a", add.clone()), map("b", add.clone()), map("c", add)];
    let (world, _) = world(steps).await;

    let outcome = world.runtime.execute(start("w", "e", json!({ "n": 4 }))).await.unwrap();

    assert_eq!(outcome.status(), Status::Completed);
    assert_eq!(outcome.result(), Some(&json!({ "n": 7 })));
    assert!(!world.runtime.activity().await.is_workflow_running("w"));
    assert_eq!(world.live(), 0, "an ended execution leaves memory at once");
}

#[actix::test]
async fn a_step_suspends_and_a_resume_completes() {
    tokio::time::pause();
    let (world, _) = world(vec![ask("manager"), map("after", json!("data.approved"))]).await;

    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.status(), Status::Suspended);
    assert_eq!(&*outcome.suspension().unwrap().reason, "Suspended at step manager");

    let refused = world.runtime.resume(&target("w", "e"), resume(json!({}))).await;
    assert_eq!(refused, Err(ResumeError::InvalidData("approved: missing".to_owned())));

    let outcome =
        world.runtime.resume(&target("w", "e"), resume(json!({ "approved": true }))).await.unwrap();
    assert_eq!((outcome.status(), outcome.result()), (Status::Completed, Some(&json!(true))));

    let late = world.runtime.resume(&target("w", "e"), resume(json!({ "approved": true }))).await;
    assert_eq!(late, Err(ResumeError::NotSuspended));
}

#[actix::test]
async fn a_thousand_timers_or_children_at_once_all_arrive() {
    tokio::time::pause();
    for (items, inside) in
        [("range(1000) | list", sleep("nap", 100)), ("range(600) | list", child("part", "part"))]
    {
        let part = workflow("part", vec![sleep("nap", 100)]);
        let whole = workflow("w", vec![for_each("each", items, inside)]);
        let world = World::launch(registry_of([whole, part]), RuntimeLimits::default()).await;
        let begun = tokio::time::Instant::now();
        let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
        assert_eq!(outcome.status(), Status::Completed, "{items}");
        // A lost timer would fire at the next poll of the store, 20 seconds later.
        assert!(begun.elapsed() < Duration::from_secs(5), "{items}: {:?}", begun.elapsed());
    }
}

#[actix::test]
async fn a_disconnected_caller_keeps_nothing_in_memory() {
    tokio::time::pause();
    let (world, _) = world(vec![sleep("nap", 30 * 24 * 3_600_000)]).await;
    let waiting = world.runtime.execute(start("w", "e", json!({})));
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_err());
    assert_eq!(world.live(), 1, "a caller waited");
    pass(Duration::from_secs(40)).await;
    assert_eq!(world.live(), 0);
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Running);
}

#[actix::test]
async fn a_waiting_execution_leaves_memory_and_comes_back() {
    tokio::time::pause();
    let (world, _) = world(vec![ask("manager")]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(world.live(), 1);

    pass(Duration::from_secs(12)).await;
    assert_eq!(world.live(), 0);

    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Suspended);
    assert_eq!(world.live(), 0, "describing needs no actor");

    let outcome =
        world.runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
}

#[actix::test]
async fn one_of_many_resumes_wins() {
    tokio::time::pause();
    for _ in 0..20 {
        let (world, _) = world(vec![ask("manager"), run("slow", "slow")]).await;
        world.runtime.execute(start("w", "e", json!({}))).await.unwrap();

        let resumes = (0..50).map(|n| {
            let runtime = world.runtime.clone();
            async move { runtime.resume(&target("w", "e"), resume(json!({ "approved": n }))).await }
        });
        let answers = futures_util::future::join_all(resumes).await;

        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        let late = Err(ResumeError::NotSuspended);
        let lost = answers.iter().filter(|answer| **answer == late).count();
        assert_eq!((won, lost), (1, 49));
    }
}

#[actix::test]
async fn one_of_many_starts_with_an_id_wins() {
    tokio::time::pause();
    let (world, calls) = world(vec![run("slow", "slow")]).await;
    let starts = (0..50).map(|_| world.runtime.execute(start("w", "e", json!({}))));
    let answers = futures_util::future::join_all(starts).await;

    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    let exists = |answer: &&Result<_, StartError>| matches!(answer, Err(StartError::Exists(_)));
    assert_eq!((won, answers.iter().filter(exists).count()), (1, 49));
    assert_eq!(calls.count(), 1);
}

#[actix::test]
async fn a_suspend_answers_while_a_step_runs_and_the_step_is_recorded() {
    tokio::time::pause();
    let (world, _) = world(vec![run("slow", "slow"), map("after", json!("data"))]).await;
    let execute = world.runtime.execute(start("w", "e", json!({})));
    let suspend = async {
        pass(Duration::from_millis(10)).await;
        world.runtime.suspend(&target("w", "e"), Some("lunch".to_owned()), None).await.unwrap()
    };
    let (outcome, suspended) = tokio::join!(execute, suspend);
    assert_eq!(&*suspended.reason, "lunch");
    assert_eq!(outcome.unwrap().status(), Status::Suspended);
    let again = world.runtime.suspend(&target("w", "e"), None, None).await;
    assert_eq!(again, Err(ControlError::Already(Status::Suspended)));

    pass(Duration::from_millis(200)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Suspended);
    assert_eq!(state.steps.len(), 1, "no further step starts");
    assert_eq!(state.steps[0].status, StepStatus::Completed);

    let outcome = world.runtime.resume(&target("w", "e"), resume(Value::Null)).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!("slow")));
}

#[actix::test]
async fn cancel_drops_the_body_and_is_final() {
    tokio::time::pause();
    let (world, _) = world(vec![run("hang", "hang")]).await;
    let execute = world.runtime.execute(start("w", "e", json!({})));
    let cancel = async {
        pass(Duration::from_millis(10)).await;
        world.runtime.cancel(&target("w", "e"), None, None).await.unwrap()
    };
    let (outcome, _) = tokio::join!(execute, cancel);
    assert_eq!(outcome.unwrap().status(), Status::Cancelled);
    let again = world.runtime.cancel(&target("w", "e"), None, None).await;
    assert_eq!(again, Err(ControlError::Already(Status::Cancelled)));
    assert_eq!(world.live(), 0);
}

#[actix::test]
async fn a_panic_is_a_failed_step_of_that_execution() {
    tokio::time::pause();
    let (world, calls) = world(vec![run("boom", "boom")]).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let error = outcome.failure().unwrap();
    assert_eq!(outcome.status(), Status::Error);
    assert_eq!(&*error.message, "panicked: a defect in the step");
    assert_eq!(error.step_id.as_deref(), Some("boom"));
    assert_eq!(calls.count(), 1);
}

#[actix::test]
async fn a_failing_step_is_retried_after_its_delays() {
    tokio::time::pause();
    let (world, calls) = world(vec![retried(run("flaky", "flaky"), 3, 60_000)]).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!("done")));
    assert_eq!(calls.count(), 3);
    let Halted::Ended { at, .. } = outcome.halted else { panic!("{outcome:?}") };
    let passed = at.ms_since(outcome.started_at);
    assert!((180_000..182_000).contains(&passed), "60 s and 120 s, not {passed} ms");
}

#[actix::test]
async fn a_timeout_fails_the_attempt() {
    tokio::time::pause();
    let hang = StepDefinition { timeout_ms: Some(500), ..run("hang", "hang") };
    let (world, _) = world(vec![hang]).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(&*outcome.failure().unwrap().message, "timed out after 500 ms");
}

#[actix::test]
async fn a_function_can_suspend_and_is_called_again() {
    tokio::time::pause();
    let (world, calls) = world(vec![run("asks", "asks")]).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let suspension = outcome.suspension().unwrap();
    assert_eq!(&*suspension.reason, "Which one?");
    assert_eq!(suspension.payload.as_deref(), Some(&json!([1, 2])));

    let outcome = world.runtime.resume(&target("w", "e"), resume(json!(2))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(2)));
    assert_eq!(calls.count(), 2);
}

#[actix::test]
async fn rows_of_lists_are_stored_without_large_payloads() {
    tokio::time::pause();
    let (world, _) = world(vec![run("asks", "asks_much")]).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let shown = outcome.suspension().unwrap();
    assert!(shown.payload.is_some() && !shown.payload_omitted, "the caller sees it");
    let row = world.store.describe(&ExecutionId::trusted("e")).await.unwrap().unwrap();
    let stored = row.suspension.unwrap();
    assert_eq!((&stored.payload, stored.payload_omitted), (&None, true));
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.suspension.as_deref(), Some(shown));
}

#[actix::test]
async fn sleeps_and_deadlines_end_by_themselves() {
    tokio::time::pause();
    let steps = vec![sleep("nap", 3_600_000), ask_until("manager", 48 * 3_600_000)];
    let (world, _) = world(steps).await;
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.status(), Status::Suspended);
    let slept = outcome.suspension().unwrap().suspended_at.ms_since(outcome.started_at);
    assert!((3_600_000..3_600_010).contains(&slept), "an hour, not {slept} ms");

    pass(Duration::from_secs(47 * 3600)).await;
    let waiting = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(waiting.status, Status::Suspended);
    pass(Duration::from_secs(2 * 3600)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.result.as_deref(), Some(&json!({ "approved": false })));
}

#[actix::test]
async fn a_lost_race_drops_the_losers_body() {
    tokio::time::pause();
    let branches = vec![("fast", vec![sleep("nap", 10)]), ("slow", vec![run("hang", "hang")])];
    let (world, _) = world(vec![race("both", branches)]).await;
    let outcome = world.runtime.execute(start("w", "e", json!(1))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(1)));
    assert_eq!(world.live(), 0, "the hanging body is gone");
}

#[actix::test]
async fn an_unknown_execution_or_workflow_is_not_found() {
    tokio::time::pause();
    let (world, _) = world(vec![ask("manager")]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    for target in [target("w", "other"), target("foreign", "e")] {
        let runtime = &world.runtime;
        assert_eq!(runtime.suspend(&target, None, None).await, Err(ControlError::NotFound));
        assert_eq!(runtime.resume(&target, resume(json!({}))).await, Err(ResumeError::NotFound));
        assert_eq!(runtime.cancel(&target, None, None).await, Err(ControlError::NotFound));
        assert_eq!(runtime.describe(&target).await.unwrap_err(), DescribeError::NotFound);
    }
    let unknown = world.runtime.execute(start("nope", "x", json!({}))).await;
    assert_eq!(unknown, Err(StartError::UnknownWorkflow("nope".to_owned())));
}

#[actix::test]
async fn nothing_is_acknowledged_while_the_store_rejects_writes() {
    tokio::time::pause();
    let (world, _) = world(vec![ask("manager")]).await;
    world.runtime.execute(start("w", "old", json!({}))).await.unwrap();
    world.store.set_writable(false);

    let refused = world.runtime.execute(start("w", "new", json!({}))).await;
    assert_eq!(recorded_of(refused), None, "nothing is recorded: the call can be repeated");
    let refused = world.runtime.resume(&target("w", "old"), resume(json!({ "approved": 1 }))).await;
    assert!(matches!(refused, Err(ResumeError::Unavailable(_))), "{refused:?}");
    assert!(!world.runtime.is_ready());
    let state = world.runtime.describe(&target("w", "old")).await.unwrap();
    assert_eq!(state.status, Status::Suspended, "reads still work, and show what is recorded");

    world.store.set_writable(true);
    let outcome =
        world.runtime.resume(&target("w", "old"), resume(json!({ "approved": 1 }))).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
    world.runtime.execute(start("w", "new", json!({}))).await.unwrap();
}

/// Returns the execution that the refusal of a store names.
fn recorded_of(refused: Result<ExecutionOutcome, StartError>) -> Option<ExecutionId> {
    let Err(StartError::Unavailable(Unavailable::Store { execution, .. })) = refused else {
        panic!("not refused by the store: {refused:?}");
    };
    execution
}

#[actix::test]
async fn a_refusal_names_an_execution_that_has_started() {
    tokio::time::pause();
    let (world, _) = world(vec![sleep("nap", 1000), map("a", json!({ "n": "data.n" }))]).await;
    let request = StartExecution { execution_id: None, ..start("w", "e", json!({ "n": 4 })) };
    let full_disk = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.store.set_writable(false);
    };
    let (refused, ()) = tokio::join!(world.runtime.execute(request), full_disk);
    let id = recorded_of(refused).expect("the id, although the caller did not choose it");

    world.store.set_writable(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let state = world.runtime.describe(&target("w", id.as_str())).await.unwrap();
    assert_eq!(state.status, Status::Completed, "the start did not fail");
}
