//! Several processes over one store: each serves its slots, and takes those of others that are gone.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::slot_of;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{
    ControlError, IdempotencyKey, ResumeError, StartError, StartExecution, Unavailable,
};
use greenroom_actors::testkit::{pass, start};
use greenroom_actors::wait_report::Cause;
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::processes::{Cluster, LEASE, MOVED, Process, SHARED_OUT, TAKEN_OVER, target};

#[actix::test]
async fn the_first_process_serves_everything_until_another_joins() {
    let cluster = Cluster::new();
    let first = cluster.join("a").await;
    let request = start("w", "order-1", json!({}));
    assert_eq!(first.runtime.execute(request).await.unwrap().status(), Status::Suspended);
    let ids: Vec<_> = futures_util::future::join_all((0..40).map(|_| first.start("w"))).await;

    let second = cluster.join("b").await;
    pass(SHARED_OUT).await;
    let mut served = [0, 0];
    for id in &ids {
        let by_first = first.resume(id).await;
        let by_second = second.resume(id).await;
        match (by_first, by_second) {
            (Ok(Status::Completed), Err(ResumeError::Unavailable(MOVED))) => served[0] += 1,
            (Err(ResumeError::Unavailable(MOVED)), Ok(Status::Completed)) => served[1] += 1,
            other => panic!("{id}: {other:?}"),
        }
    }
    assert!(served.iter().all(|count| *count > 10), "{served:?}");
    let own = second.start("w").await;
    assert_eq!(second.resume(&own).await, Ok(Status::Completed), "it starts in its own slots");
}

#[actix::test]
async fn what_a_killed_process_was_doing_continues_elsewhere() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    let suspended = first.start("w").await;
    let napping = first.begin("naps").await;
    let working = first.begin("works").await;
    assert_eq!(cluster.calls.count(), 1);
    first.kill().await;

    pass(TAKEN_OVER).await;
    assert_eq!(cluster.status(&working).await, Status::Completed);
    assert_eq!(cluster.calls.count(), 3, "the step that was interrupted ran again");
    assert_eq!(second.resume(&suspended).await, Ok(Status::Completed));
    pass(Duration::from_secs(3600)).await;
    assert_eq!(cluster.status(&napping).await, Status::Completed, "its timer fired");
}

#[actix::test]
async fn a_silent_process_stores_nothing_once_it_was_taken_over() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    first.store.set_silent(true);
    pass(LEASE * 4 / 6).await;
    assert_eq!(first.resume(&first.start("w").await).await, Ok(Status::Completed));
    assert_eq!(second.resume(&id).await.err(), Some(ResumeError::Unavailable(MOVED)));

    // by now it knows that it may have been taken over, although it was not yet
    pass(LEASE * 2 / 6).await;
    let refused = first.resume(&id).await;
    assert!(
        matches!(refused, Err(ResumeError::Unavailable(Unavailable::Store { .. }))),
        "{refused:?}"
    );
    assert!(!first.runtime.is_ready());
    pass(TAKEN_OVER).await;
    assert_eq!(second.resume(&id).await, Ok(Status::Completed));
}

#[actix::test]
async fn a_process_that_may_have_been_taken_over_begins_no_step() {
    let cluster = Cluster::new();
    let [first, _second] = cluster.of(["a", "b"]).await;
    for is_taken_over in [false, true] {
        let calls = cluster.calls.count();
        let mut beats = first.store.members().unwrap().views();
        beats.mark_unchanged();
        beats.changed().await.unwrap();
        first.store.set_silent(true);
        let id = first.begin("toils").await;
        // the first step ends when the process knows that another one may serve the execution
        pass(LEASE * 11 / 12).await;
        assert_eq!(cluster.calls.count(), calls + 1, "the second step has begun");
        first.store.set_silent(is_taken_over);
        pass(TAKEN_OVER * 2).await;
        assert_eq!(cluster.status(&id).await, Status::Completed);
        assert_eq!(cluster.calls.count(), calls + 2, "the second step ran once");
    }
}

#[actix::test]
async fn a_restarted_process_does_not_wait_for_itself() {
    let cluster = Cluster::new();
    let first = cluster.join("a").await;
    let id = first.start("w").await;
    first.kill().await;
    let again = cluster.join("a").await;
    assert_eq!(again.resume(&id).await, Ok(Status::Completed));
}

#[actix::test]
async fn steps_that_run_are_not_interrupted_by_a_process_that_joins() {
    let cluster = Cluster::new();
    let first = cluster.join("a").await;
    let ids = futures_util::future::join_all((0..20).map(|_| first.start("toils")));
    let joins = async {
        let second = cluster.join("b").await;
        pass(SHARED_OUT).await;
        second
    };
    let (ids, second) = tokio::join!(ids, joins);
    assert_eq!(cluster.calls.count(), 40, "no step ran twice");
    for id in ids {
        assert_eq!(cluster.status(&id).await, Status::Completed);
    }
    drop(second);
}

#[actix::test]
async fn a_process_that_drains_hands_its_slots_over() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    let working = first.begin("works").await;
    let draining = first.runtime.clone();
    let drain = actix::spawn(async move { draining.drain(Duration::from_secs(30)).await });
    pass(LEASE / 2).await;
    assert_eq!(second.resume(&id).await, Ok(Status::Completed), "well before the lease is over");
    drain.await.unwrap();
    pass(LEASE / 2).await;
    assert_eq!(cluster.status(&working).await, Status::Completed);
    assert_eq!(cluster.calls.count(), 2, "its steps ended before it left");
    let refused = first.runtime.cancel(&target("w", &id), None, None).await;
    assert!(matches!(refused, Err(ControlError::Unavailable(Unavailable::Draining { .. }))));
}

pub(crate) fn keyed(request: StartExecution, scope: &str) -> StartExecution {
    StartExecution { idempotency: key(scope), ..request }
}

fn key(scope: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { scope: Arc::from(scope), body_hash: Arc::from("body") })
}

#[actix::test]
async fn any_process_takes_any_request() {
    let cluster = Cluster::linked();
    let processes = cluster.of(["a", "b", "c"]).await;
    for (round, process) in processes.iter().cycle().take(12).enumerate() {
        let id = format!("order-{round}");
        let runtime = &process.runtime;
        let started = runtime.execute(start("w", &id, json!({}))).await.unwrap();
        assert_eq!(started.status(), Status::Suspended, "{id}");
        let again = runtime.execute(start("w", &id, json!({}))).await.err();
        let id = ExecutionId::trusted(id.as_str());
        assert_eq!(again, Some(StartError::Exists(id.clone())));
        let report = runtime.why(&target("w", &id)).await.unwrap();
        assert_eq!(report.waits_for.len(), 1, "{report:?}");
        match round % 3 {
            0 => {
                let cancelled = runtime.cancel(&target("w", &id), None, None).await.unwrap();
                assert_eq!(cancelled.execution_id, id);
            }
            1 => assert_eq!(process.resume(&id).await, Ok(Status::Completed)),
            _ => {
                let other = target("naps", &id);
                let refused = runtime.suspend(&other, None, None).await;
                assert_eq!(refused, Err(ControlError::NotFound), "the subject travels with it");
                let refused = runtime.suspend(&target("w", &id), None, None).await;
                assert_eq!(refused, Err(ControlError::Already(Status::Suspended)));
            }
        }
    }
}

#[actix::test]
async fn why_names_a_process_that_does_not_answer() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let (suspended, working) = (first.start("w").await, first.begin("drags").await);
    cluster.cut(&first, &second);
    for (workflow, id, recorded) in [("w", &suspended, 1), ("drags", &working, 0)] {
        let asked = Instant::now();
        let report = second.runtime.why(&target(workflow, id)).await.unwrap();
        assert!((LEASE / 2..LEASE).contains(&asked.elapsed()), "{:?}", asked.elapsed());
        assert_eq!(report.server.as_deref(), Some("a"));
        let (elsewhere, others) = report.waits_for.split_last().unwrap();
        assert_eq!(elsewhere.cause, Cause::Elsewhere { server: Some("a".into()) });
        assert_eq!(others.len(), recorded, "{others:?}");
    }
    first.kill().await;
    pass(TAKEN_OVER).await;
    let report = second.runtime.why(&target("w", &suspended)).await.unwrap();
    assert_eq!((report.server.as_deref(), report.waits_for.len()), (Some("b"), 1));
}

#[actix::test]
async fn of_many_resumes_at_all_processes_one_wins() {
    let cluster = Cluster::linked();
    let processes = cluster.of(["a", "b", "c"]).await;
    let id = processes[0].start("w").await;
    let resumes = processes.iter().cycle().take(50).map(|process| process.resume(&id));
    let answers = futures_util::future::join_all(resumes).await;
    let won = answers.iter().filter(|answer| **answer == Ok(Status::Completed)).count();
    let late = answers.iter().filter(|answer| **answer == Err(ResumeError::NotSuspended)).count();
    assert_eq!((won, late), (1, 49), "{answers:?}");
}

#[actix::test]
async fn callers_keep_waiting_while_slots_are_handed_over() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    let waiting = keyed(start("toils", "", json!({})), "once");
    let waiting = StartExecution { execution_id: None, ..waiting };
    let (answer, ()) = tokio::join!(first.runtime.execute(waiting), async {
        pass(Duration::from_secs(1)).await;
        // its own executions would be the last to go
        let third = cluster.join("c").await;
        pass(SHARED_OUT).await;
        assert_eq!(third.resume(&id).await, Ok(Status::Completed));
    });
    assert_eq!(answer.unwrap().status(), Status::Completed);
    drop(second);
}

#[actix::test]
async fn a_caller_with_a_key_gets_its_answer_although_the_owner_is_killed() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    let of_first = owned_by_other(&second, "keyed");
    let plain = owned_by_other(&second, "plain");
    let (kept, told, resumed, ()) = tokio::join!(
        second.runtime.execute(keyed(start("toils", of_first.as_str(), json!({})), "k")),
        second.runtime.execute(start("toils", plain.as_str(), json!({}))),
        async {
            pass(Duration::from_secs(3)).await;
            second.resume(&id).await
        },
        async {
            pass(Duration::from_secs(2)).await;
            first.kill().await;
        }
    );
    assert_eq!(kept.unwrap().status(), Status::Completed, "asked again at the new owner");
    let moved = Unavailable::Moved { execution: Some(plain) };
    assert_eq!(told.err(), Some(StartError::Unavailable(moved)), "it may have been carried out");
    assert_eq!(resumed, Ok(Status::Completed), "it was not sent before there was a new owner");
}

#[actix::test]
async fn a_caller_with_a_key_gets_its_answer_although_the_owner_stops_before() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let of_first = owned_by_other(&second, "keyed");
    let plain = owned_by_other(&second, "plain");
    let (kept, told, ()) = tokio::join!(
        second.runtime.execute(keyed(start("toils", of_first.as_str(), json!({})), "k")),
        second.runtime.execute(start("toils", plain.as_str(), json!({}))),
        async {
            pass(Duration::from_secs(2)).await;
            // shorter than the steps
            first.runtime.drain(Duration::from_millis(10)).await;
            first.kill().await;
        }
    );
    assert_eq!(kept.unwrap().status(), Status::Completed, "asked again at the new owner");
    let moved = Unavailable::Moved { execution: Some(plain) };
    assert_eq!(told.err(), Some(StartError::Unavailable(moved)), "it is recorded");
}

#[actix::test]
async fn a_process_that_drains_waits_for_answers_of_others_and_refuses_what_takes_longer() {
    let cluster = Cluster::linked();
    let [first, second, _third] = cluster.of(["a", "b", "c"]).await;
    let long = owned_by_other(&first, "long");
    let drained = async |process: &Process, grace_s| {
        pass(Duration::from_secs(1)).await;
        let begun = Instant::now();
        process.runtime.drain(Duration::from_secs(grace_s)).await;
        begun.elapsed()
    };
    let (refused, took) = tokio::join!(
        first.runtime.execute(keyed(start("drags", long.as_str(), json!({})), "k")),
        drained(&first, 5)
    );
    let moved = Unavailable::Moved { execution: Some(long) };
    assert_eq!(refused.err(), Some(StartError::Unavailable(moved)), "it may be recorded");
    assert_eq!(took.as_secs(), 5, "its whole grace period");
    let short = owned_by_other(&second, "short");
    let (answered, took) = tokio::join!(
        second.runtime.execute(start("toils", short.as_str(), json!({}))),
        drained(&second, 60)
    );
    assert_eq!(answered.unwrap().status(), Status::Completed);
    assert!(took < Duration::from_secs(15), "until the answer: {took:?}");
}

#[actix::test]
async fn commands_whose_callers_have_gone_are_carried_out_and_not_waited_for() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = owned_by_other(&first, "left");
    let request = start("naps", id.as_str(), json!({}));
    let left = timeout(Duration::from_millis(1), first.runtime.execute(request)).await;
    assert!(left.is_err(), "its caller has gone");
    let waiting = || first.runtime.cluster_stats().unwrap().forwarding;
    pass(Duration::from_secs(1)).await;
    assert_eq!((waiting(), cluster.status(&id).await), (1, Status::Running));
    pass(LEASE * 2).await;
    assert_eq!(waiting(), 0, "the nap lasts an hour");
    drop(second);
}

/// Returns an id whose slot another process owns.
pub(crate) fn owned_by_other(process: &Process, name: &str) -> ExecutionId {
    let members = process.store.members().unwrap();
    let view = members.views().borrow().clone().unwrap();
    let mut ids = (0..).map(|number| ExecutionId::trusted(format!("{name}-{number}")));
    ids.find(|id| view.owners.owner(slot_of(id)) != Some(members.own())).unwrap()
}

#[actix::test]
async fn a_process_that_cannot_be_reached_takes_nothing() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    cluster.cut(&first, &second);
    let id = first.start("w").await;
    assert_eq!(second.resume(&id).await.err(), Some(ResumeError::Unavailable(MOVED)));
    let late = async {
        pass(Duration::from_secs(2)).await;
        cluster.heal(&first, &second);
    };
    let (resumed, ()) = tokio::join!(second.resume(&id), late);
    assert_eq!(resumed, Ok(Status::Completed), "it was sent when that was possible");
}

#[actix::test]
async fn a_process_looks_more_often_while_commands_wait() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids = [first.start("w").await, first.start("w").await];
    let mut views = second.store.members().unwrap().views();
    let mut looks = async || {
        let (begun, mut looks) = (Instant::now(), 0);
        while begun.elapsed() < LEASE / 2 {
            views.changed().await.unwrap();
            looks += 1;
        }
        looks
    };
    assert!(looks().await < 10, "beats alone");
    cluster.cut(&first, &second);
    let cut = async {
        let looks = looks().await;
        cluster.heal(&first, &second);
        looks
    };
    let (one, two, waiting) = tokio::join!(second.resume(&ids[0]), second.resume(&ids[1]), cut);
    assert_eq!([one, two], [Ok(Status::Completed), Ok(Status::Completed)]);
    assert!((20..=40).contains(&waiting), "{waiting}: ten for each beat, however many wait");
}
