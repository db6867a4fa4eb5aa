//! Commands with large values for executions of other processes.

use std::time::Duration;

use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{ExecutionOutcome, ResumeError, Unavailable};
use greenroom_actors::testkit::pass;
use serde_json::json;
use tokio::time::Instant;

use crate::processes::{Cluster, LEASE, target};
use crate::workflows::resume;

const VALUE_BYTES: usize = 400_000;

#[actix::test]
async fn a_command_that_no_connection_carries_is_refused_at_once() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    cluster.network.as_ref().unwrap().limit_requests(VALUE_BYTES);
    let id = first.start("w").await;
    let began = Instant::now();
    let large = resume(json!({ "approved": "x".repeat(VALUE_BYTES) }));
    let refused = second.runtime.resume(&target("w", &id), large).await;
    assert_eq!(refused.err(), Some(ResumeError::Unavailable(Unavailable::TooLarge)));
    assert_eq!(began.elapsed(), Duration::ZERO, "another attempt would be refused as well");
    assert_eq!(second.resume(&id).await, Ok(Status::Completed), "small ones are carried");
}

#[actix::test]
async fn commands_that_wait_for_another_process_need_memory() {
    let mut cluster = Cluster::linked();
    cluster.limits.executions_memory_max = 1_000_000;
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids = [first.start("w").await, first.start("w").await, first.start("w").await];
    cluster.cut(&first, &second);
    let resumed = |id| {
        let (runtime, target) = (second.runtime.clone(), target("w", id));
        let large = resume(json!({ "approved": "x".repeat(VALUE_BYTES) }));
        actix::spawn(async move { runtime.resume(&target, large).await })
    };
    let (one, two) = (resumed(&ids[0]), resumed(&ids[1]));
    pass(Duration::from_millis(10)).await;
    let refused = resumed(&ids[2]).await.unwrap();
    assert_eq!(refused.err(), Some(ResumeError::Unavailable(Unavailable::NoMemory)));

    let heals = async {
        pass(LEASE / 2).await;
        cluster.heal(&first, &second);
    };
    let (small, ()) = tokio::join!(second.resume(&ids[2]), heals);
    assert_eq!(small, Ok(Status::Completed), "small ones wait");
    let status = |outcome: ExecutionOutcome| outcome.status();
    for waiting in [one, two] {
        assert_eq!(waiting.await.unwrap().map(status), Ok(Status::Completed));
    }
}
