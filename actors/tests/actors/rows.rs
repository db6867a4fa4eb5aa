//! Executions that are read from their rows, without an actor.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::crash_marks::MarkedWork;
use greenroom_actors::ports::store::{ReplayedFrom, Status};
use greenroom_actors::requests::{DescribeError, IdempotencyKey, TraceOrigin, Unavailable};
use greenroom_actors::runtime::{ReplayDefinition, ReplayExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::wait_report::Cause;
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::json;

use crate::processes::{self, Cluster, LEASE};
use crate::workflows::{ask, map, workflow};

pub(crate) fn replay_from(step: &str) -> ReplayExecution {
    ReplayExecution {
        step_id: Some(step.to_owned()),
        resume_data: None,
        input: None,
        definition: ReplayDefinition::Original,
        execution_id: None,
        by: None,
        answerer: None,
        idempotency: None,
        trace: TraceOrigin::New,
    }
}

async fn status(runtime: &Runtime, id: &ExecutionId) -> Status {
    runtime.describe(&processes::target("w", id)).await.unwrap().status
}

/// The processes have no connections to each other.
#[actix::test]
async fn executions_of_other_processes_are_read_from_their_rows() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    assert_eq!(status(&second.runtime, &id).await, Status::Suspended);
    let target = processes::target("w", &id);
    let report = second.runtime.why(&target).await.unwrap();
    let waits_for: Vec<_> = report.waits_for.into_iter().map(|awaited| awaited.cause).collect();
    let elsewhere = Cause::Elsewhere { server: Some("a".into()) };
    assert!(
        waits_for.len() == 2 && waits_for[1] == elsewhere,
        "its owner knows more: {waits_for:?}"
    );

    assert_eq!(first.resume(&id).await, Ok(Status::Completed));
    assert_eq!(status(&second.runtime, &id).await, Status::Completed, "what was acknowledged");
    let report = second.runtime.why(&target).await.unwrap();
    assert!(report.waits_for.is_empty() && report.ending.is_some(), "{report:?}");
    let replayed = second.runtime.replay(&target, replay_from("z")).await.unwrap().new;
    assert_eq!(replayed.status(), Status::Completed);
    assert_eq!(status(&first.runtime, &replayed.execution_id).await, Status::Completed);

    let of_another_workflow = processes::target("naps", &id);
    for process in [&first, &second] {
        let found = process.runtime.describe(&of_another_workflow).await;
        assert_eq!(found.err(), Some(DescribeError::NotFound));
        let unknown = processes::target("w", &ExecutionId::trusted("unknown"));
        let found = process.runtime.describe(&unknown).await;
        assert_eq!(found.err(), Some(DescribeError::NotFound));
    }
}

#[actix::test]
async fn a_process_that_may_have_been_taken_over_reads_what_is_recorded() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    first.store.set_silent(true);
    pass(3 * LEASE).await;
    assert_eq!(second.resume(&id).await, Ok(Status::Completed));
    assert_eq!(status(&first.runtime, &id).await, Status::Completed, "not what it remembers");
}

/// Readers of one execution that is not in memory: those that fit into the queue of its supervisor,
/// and some more.
const READERS: usize = 140;

async fn world() -> World {
    let definitions = [
        workflow("w", vec![ask("manager"), map("z", json!(1))]),
        workflow("quick", vec![map("z", json!(1))]),
    ];
    World::launch(registry_of(definitions), RuntimeLimits::default()).await
}

/// Describes an execution as often at the same time; returns the refusals.
async fn refusals(world: &World, workflow: &str, readers: usize) -> Vec<DescribeError> {
    let target = target(workflow, "e");
    let reads = (0..readers).map(|_| world.runtime.describe(&target));
    let answers = join_all(reads).await;
    answers.into_iter().filter_map(Result::err).collect()
}

#[actix::test]
async fn an_ended_execution_is_read_although_its_supervisor_is_busy() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("quick", "e", json!({}))).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(refusals(&world, "quick", READERS).await, []);
    let marks = world.crash_marks.seen();
    let loads = marks.iter().filter(|mark| mark.work == MarkedWork::Load).count();
    assert!(loads > 1, "each of them is marked: {marks:?}");
    assert!(world.crash_marks.is_clear());
}

#[actix::test]
async fn a_replay_says_where_it_began_without_reading_what_it_has_started() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("quick", "e", json!({}))).await.unwrap();
    pass(Duration::from_secs(60)).await;
    let target = target("quick", "e");
    let keyed = |key: &str| {
        let key = IdempotencyKey { scope: key.into(), body_hash: "b".into() };
        ReplayExecution { idempotency: Some(key), ..replay_from("z") }
    };
    let replayed = world.runtime.replay(&target, keyed("k1")).await.unwrap();
    let begun = world.runtime.begin_replay(&target, keyed("k2")).await.unwrap();
    let from = ReplayedFrom { execution: ExecutionId::trusted("e"), step_id: "z".into() };
    assert_eq!([&replayed.from, &begun.from], [&Some(from.clone()), &Some(from)]);
    let marks = world.crash_marks.seen();
    let loads = marks.iter().filter(|mark| mark.work == MarkedWork::Load);
    let loaded: Vec<_> = loads.map(|mark| mark.execution.as_str()).collect();
    assert_eq!(loaded, ["e", "e"], "only the original");

    pass(Duration::from_secs(60)).await;
    let again = world.runtime.replay(&target, keyed("k2")).await.unwrap();
    assert_eq!((&again.new.execution_id, again.from), (&begun.new, begun.from));
    let again = world.runtime.begin_replay(&target, keyed("k1")).await.unwrap();
    assert_eq!((again.new, again.from), (replayed.new.execution_id, replayed.from));
}

#[actix::test]
async fn an_execution_that_goes_on_is_not_read_behind_its_busy_supervisor() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.live(), 0);
    let refused = refusals(&world, "w", READERS).await;
    let busy = DescribeError::Unavailable(Unavailable::Busy { execution: None });
    assert!(!refused.is_empty() && refused.iter().all(|error| *error == busy), "{refused:?}");
}
