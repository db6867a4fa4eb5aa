//! Rules of timers, idempotency keys, definitions and commits.

use std::sync::Arc;

use serde_json::json;

use super::bench::{Bench, Commit, completed, step_started};
use super::read;
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{AppendError, IdempotencyRecord, Status, Timer, TimerChange, TimerKey};

fn timer(execution: &str, key: &TimerKey, due: i64) -> Timer {
    Timer { execution: ExecutionId::trusted(execution), key: key.clone(), due: Timestamp(due) }
}

fn arm(timer: &Timer) -> TimerChange {
    TimerChange::Arm(timer.clone())
}

fn disarm(timer: &Timer) -> TimerChange {
    TimerChange::Disarm { execution: timer.execution.clone(), key: timer.key.clone() }
}

pub(super) async fn timers_are_armed_moved_and_disarmed(mut bench: Bench) {
    let node = TimerKey::Node(Arc::from("checks/ask"));
    let ask = TimerKey::AskChild(ExecutionId::trusted("b"));
    let (of_node, of_ask) = (timer("a", &node, 30), timer("a", &ask, 20));
    let abandoned = timer("b", &TimerKey::Abandoned, 10);
    let mut first = bench.creation("a");
    first.timers = vec![arm(&of_node), arm(&of_ask), arm(&abandoned)];
    bench.take(&first).await;
    let soonest_first = [abandoned.clone(), of_ask.clone(), of_node.clone()];
    assert_eq!(bench.timers(31, 10).await, soonest_first, "soonest first");
    assert_eq!(bench.timers(31, 2).await, soonest_first[..2], "at most the limit");
    assert_eq!(bench.timers(30, 10).await, soonest_first[..2], "due before, not at, a time");

    let mut of_a = read(bench.store.timers_of(&ExecutionId::trusted("a"))).await;
    of_a.sort_by_key(|timer| timer.due);
    assert_eq!(of_a, [of_ask.clone(), of_node.clone()], "those of one execution");
    assert_eq!(read(bench.store.timers_of(&ExecutionId::trusted("c"))).await, []);

    let moved = timer("a", &node, 5);
    let mut second = bench.continuation(&first, vec![step_started(2)]);
    second.timers = vec![arm(&moved), disarm(&of_ask)];
    bench.take(&second).await;
    assert_eq!(bench.timers(100, 10).await, [moved.clone(), abandoned.clone()], "moved");

    bench.store.change_timers(0, vec![disarm(&abandoned), arm(&of_ask)]);
    // once this later append is acknowledged, the change is made
    let third = bench.continuation(&second, vec![step_started(3)]);
    bench.take(&third).await;
    assert_eq!(bench.timers(100, 10).await, [moved, of_ask], "changed without an append");
}

pub(super) async fn timers_of_one_time_have_an_order(mut bench: Bench) {
    let node = |path: &str| TimerKey::Node(Arc::from(path));
    let ask = TimerKey::AskChild(ExecutionId::trusted("c"));
    let ordered = [
        timer("z", &node("x"), 6),
        timer("B", &node("x"), 7),
        timer("a", &TimerKey::Abandoned, 7),
        timer("a", &ask, 7),
        timer("a", &node("x"), 7),
        timer("a", &node("x/y"), 7),
        timer("aa", &TimerKey::Abandoned, 7),
        timer("b", &node("a"), 7),
    ];
    let mut first = bench.creation("a");
    first.timers = ordered.iter().rev().map(arm).collect();
    bench.take(&first).await;
    for limit in 1..=ordered.len() {
        assert_eq!(bench.timers(8, limit).await, ordered[..limit], "the first {limit}");
    }
}

pub(super) async fn an_end_drops_timers_of_nodes(mut bench: Bench) {
    let node = |path: &str| TimerKey::Node(Arc::from(path));
    let ask = timer("a", &TimerKey::AskChild(ExecutionId::trusted("c")), 7);
    let other = timer("b", &node("x"), 8);
    let kept_of_other = timer("aa", &node("x"), 9);
    let mut first = bench.creation("a");
    first.timers = vec![
        arm(&timer("a", &node("x"), 1)),
        arm(&timer("a", &node("y/z"), 2)),
        arm(&ask),
        arm(&other),
        arm(&kept_of_other),
    ];
    bench.take(&first).await;
    let mut last = bench.continuation(&first, vec![completed(2)]);
    last.status = Status::Completed;
    last.timers = vec![arm(&timer("a", &node("late"), 3))];
    bench.take(&last).await;
    let left = bench.timers(100, 10).await;
    assert_eq!(left, [ask, other, kept_of_other], "node timers of the ended execution are gone");
}

pub(super) fn key(scope: &str, after_seq: u64, expires: i64) -> IdempotencyRecord {
    IdempotencyRecord {
        scope: Arc::from(scope),
        body_hash: Arc::from("h"),
        execution: ExecutionId::trusted("a"),
        after_seq,
        expires_at: Timestamp(expires),
    }
}

pub(super) async fn idempotency_keys_are_taken_until_they_expire(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.idempotency = Some(key("k", 1, 5000));
    bench.take(&first).await;
    let kept = |scope, now| read(bench.store.idempotency(scope, Timestamp(now)));
    assert_eq!(kept("k", 4999).await, Some(key("k", 1, 5000)), "kept until it expires");
    assert_eq!(kept("k", 5000).await, None, "not found once it has expired");
    assert_eq!(kept("other", 0).await, None, "an unused key");

    let mut second = bench.creation("b");
    second.at = Timestamp(4999);
    second.idempotency = Some(key("k", 2, 9000));
    assert_eq!(bench.append(&second).await, Err(AppendError::KeyTaken), "taken");
    assert_eq!(bench.describe("b").await, None, "the whole append is refused");
    let mut again = bench.creation("a");
    again.idempotency = Some(key("k", 2, 9000));
    let refusal = bench.append(&again).await;
    assert_eq!(refusal, Err(AppendError::KeyTaken), "a taken key is reported first");

    second.at = Timestamp(5000);
    bench.take(&second).await;
    let kept = read(bench.store.idempotency("k", Timestamp(5000))).await;
    assert_eq!(kept, Some(key("k", 2, 9000)), "an expired key can be used again");
}

pub(super) async fn definitions_are_put_once(bench: Bench) {
    let (one, two) = (json!({ "id": "order", "steps": [1, 2.5] }), json!({ "id": "other" }));
    assert_eq!(read(bench.store.definition("h1")).await, None, "not there yet");
    read(bench.store.put_definition("h1", &one)).await;
    read(bench.store.put_definition("h1", &two)).await;
    assert_eq!(read(bench.store.definition("h1")).await, Some(one), "the first one stays");
    assert_eq!(read(bench.store.definition("h2")).await, None, "another hash");
}

pub(super) async fn facts_are_published_before_they_are_acknowledged(mut bench: Bench) {
    let unpublished = bench.creation("a");
    bench.take(&unpublished).await;
    bench.want_facts();
    let (taken, refused) = (bench.creation("b"), bench.creation("a"));
    bench.store.append(taken.append());
    bench.store.append(refused.append());
    let (mut published, mut results) = (Vec::new(), Vec::new());
    while results.len() < 2 {
        match bench.commits.recv().await.expect("the sink lives as long as the bench") {
            Commit::Published(facts) => {
                assert!(results.is_empty(), "published before acknowledged");
                published.extend(facts);
            }
            Commit::Committed(_, outcomes) => {
                results.extend(outcomes.into_iter().map(|outcome| outcome.result));
            }
        }
    }
    assert_eq!(results, [Ok(()), Err(AppendError::Exists)], "one taken, one refused");
    let (header, facts) = published.pop().expect("the facts were published");
    assert_eq!((&*header, &facts[..]), (&taken.header, &taken.facts[..]), "what was published");
    assert!(published.is_empty(), "refused facts are not published");
}
