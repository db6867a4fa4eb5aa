//! Rules of counts of executions.

use std::sync::Arc;

use super::bench::{Bench, completed, step_started};
use super::read;
use crate::domain::time::Timestamp;
use crate::ports::store::{AppendError, CountsOfUser, ExecutionCount, Status};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(counts_follow_every_change, bench().await);
    rule!(counts_of_a_user_are_bounded, bench().await);
}

fn shown(counts: Vec<ExecutionCount>) -> Vec<String> {
    let line =
        |it: ExecutionCount| format!("{} {} {}", it.workflow_id, it.status.as_str(), it.count);
    let mut lines: Vec<String> = counts.into_iter().map(line).collect();
    lines.sort_unstable();
    lines
}

async fn counts_follow_every_change(mut bench: Bench) {
    assert_eq!(read(bench.store.counts()).await, [], "of nothing");
    let mut drafts = Vec::new();
    for (id, workflow, status) in [
        ("a", "order", Status::Running),
        ("b", "order", Status::Suspended),
        ("c", "order", Status::Suspended),
        ("d", "refund", Status::Error),
    ] {
        let mut draft = bench.creation(id);
        draft.header.workflow_id = Arc::from(workflow);
        draft.status = status;
        bench.take(&draft).await;
        drafts.push(draft);
    }
    let expected = ["order running 1", "order suspended 2", "refund error 1"];
    assert_eq!(shown(read(bench.store.counts()).await), expected, "created");

    let again = bench.creation("a");
    assert_eq!(bench.append(&again).await, Err(AppendError::Exists));
    let mut stale = bench.continuation(&drafts[0], vec![completed(2)]);
    (stale.revision, stale.status) = (9, Status::Completed);
    assert_eq!(bench.append(&stale).await, Err(AppendError::Stale));
    assert_eq!(shown(read(bench.store.counts()).await), expected, "refusals change nothing");

    let mut resumed = bench.continuation(&drafts[1], vec![step_started(2)]);
    resumed.status = Status::Running;
    bench.take(&resumed).await;
    let next = bench.continuation(&resumed, vec![step_started(3)]);
    bench.take(&next).await;
    let mut ended = bench.continuation(&drafts[2], vec![completed(2)]);
    ended.status = Status::Completed;
    bench.take(&ended).await;
    let expected = ["order completed 1", "order running 2", "refund error 1"];
    assert_eq!(shown(read(bench.store.counts()).await), expected, "continued");

    let rows = drafts.iter().map(|draft| draft.row).collect();
    assert_eq!(bench.store.drop_executions(rows).await, Ok(2), "ended ones only");
    assert_eq!(shown(read(bench.store.counts()).await), ["order running 2"], "dropped");
}

async fn counts_of_a_user_are_bounded(mut bench: Bench) {
    for i in 0..10_i64 {
        let mut draft = bench.creation(&format!("e{i}"));
        draft.header.created_at = Timestamp(1000 + i);
        draft.header.user_id = [None, Some(Arc::from("ann"))][usize::from(i % 2 == 0)].clone();
        draft.header.workflow_id = Arc::from(["order", "refund"][usize::from(i < 4)]);
        bench.take(&draft).await;
    }
    let own = |user, limit| read(bench.store.counts_of_user(user, limit));
    for (limit, expected, is_complete) in [
        (9, &["order suspended 3", "refund suspended 2"][..], true),
        (5, &["order suspended 3", "refund suspended 2"], true),
        (4, &["order suspended 3", "refund suspended 1"], false),
        (0, &[], false),
    ] {
        let CountsOfUser { counts, is_complete: all } = own("ann", limit).await;
        assert_eq!(
            (shown(counts), all),
            (expected.iter().map(ToString::to_string).collect(), is_complete)
        );
    }
    let none = own("unknown", 0).await;
    assert_eq!(none, CountsOfUser { counts: Vec::new(), is_complete: true }, "of an unknown user");
}
