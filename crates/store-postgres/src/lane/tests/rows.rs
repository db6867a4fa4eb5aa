//! Rows that commits write.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Conversations as _, Journal as _, Snapshot, Status, Timer, TimerChange, TimerKey,
};

use super::*;

const EXECUTION: &str = "SELECT concat_ws(' ', n, id, status, revision, last_seq, updated, ended,
    events IS NOT NULL) FROM executions ORDER BY n";
const CHUNKS: &str =
    "SELECT concat_ws(' ', execution, last, revision) FROM chunks ORDER BY execution, revision";
const TIMERS: &str =
    "SELECT concat_ws(' ', execution, key, due) FROM timers ORDER BY execution, key";
const COUNTS: &str = "SELECT concat_ws(' ', workflow, status, sum(count)) FROM execution_counts
    GROUP BY workflow, status HAVING sum(count) <> 0 ORDER BY workflow, status";
const SNAPSHOTS: &str = "SELECT concat_ws(' ', execution, last_seq, last, revision,
    convert_from(state, 'utf8')) FROM snapshots ORDER BY execution";

fn timer(execution: &str, key: TimerKey, due: i64) -> Timer {
    Timer { execution: ExecutionId::trusted(execution), key, due: Timestamp(due) }
}

fn node(path: &str) -> TimerKey {
    TimerKey::Node(Arc::from(path))
}

#[tokio::test]
async fn an_execution_is_created_and_moved() {
    let Some(mut lab) = Lab::open().await else { return };
    let row = lab.store.next_row().unwrap();
    assert_eq!(lab.append(lab.draft(row, 0)).await, Ok(()));
    assert_eq!(lab.ask(EXECUTION).await, format!("{row} e{row} 1 0 1 1000 t"));
    assert_eq!(lab.append(lab.draft(row, 1)).await, Ok(()));
    assert_eq!(lab.append(ending(lab.draft(row, 2))).await, Ok(()));
    assert_eq!(lab.ask(EXECUTION).await, format!("{row} e{row} 4 2 3 1002 1002 t"));
    assert_eq!(lab.ask(CHUNKS).await, format!("{row} 2 1\n{row} 3 2"));
    assert_eq!(lab.ask(COUNTS).await, "order 4 1");
    let next = lab.store.next_row().unwrap();
    assert_eq!(lab.append(ending(lab.draft(next, 0))).await, Ok(()));
    assert_eq!(lab.ask(COUNTS).await, "order 4 2");
}

#[tokio::test]
async fn appends_of_one_execution_in_a_batch_are_one_row() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let lock = lab.hold(&url).await;
    lab.store.append(lab.draft(2, 0));
    lab.until("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NULL", "1").await;
    let before = lab.ask("SELECT batch FROM lanes WHERE lane = 0").await;
    for append in [
        lab.draft(3, 0),
        lab.draft(1, 1),
        lab.draft(3, 1),
        lab.draft(1, 2),
        ending(lab.draft(3, 2)),
    ] {
        lab.store.append(append);
    }
    drop(lock);
    assert!(lab.outcomes(6).await.into_iter().all(|(.., result)| result == Ok(())));
    let batches: i64 = lab.ask("SELECT batch FROM lanes WHERE lane = 0").await.parse().unwrap();
    assert_eq!(batches - before.parse::<i64>().unwrap(), 2, "two statements");
    let executions = lab.ask(EXECUTION).await;
    assert_eq!(executions, "1 e1 1 2 3 1002 t\n2 e2 1 0 1 1000 t\n3 e3 4 2 3 1002 1002 t");
    assert_eq!(lab.ask(CHUNKS).await, "1 2 1\n1 3 2\n3 2 1\n3 3 2");
    assert_eq!(lab.ask(COUNTS).await, "order 1 2\norder 4 1");
}

#[tokio::test]
async fn large_first_facts_of_a_row_that_will_change_go_to_a_chunk() {
    let Some(mut lab) = Lab::open().await else { return };
    let large = |row| {
        let mut append = draft(&format!("e{row}"), row, 0);
        append.facts = (1..20).map(step_started).collect();
        append.projection.last_seq = 19;
        append
    };
    assert_eq!(lab.append(large(1)).await, Ok(()));
    assert_eq!(lab.append(ending(large(2))).await, Ok(()));
    let events = "SELECT concat_ws(' ', n, events IS NULL) FROM executions ORDER BY n";
    assert_eq!(lab.ask(events).await, "1 t\n2 f");
    assert_eq!(lab.ask(CHUNKS).await, "1 19 0");
}

#[tokio::test]
async fn timers_follow_their_changes() {
    let Some(mut lab) = Lab::open().await else { return };
    let ask = TimerKey::AskChild(ExecutionId::trusted("c"));
    let mut first = lab.draft(1, 0);
    first.timers = vec![
        TimerChange::Arm(timer("e1", node("x"), 1)),
        TimerChange::Arm(timer("e1", node("x"), 2)),
        TimerChange::Arm(timer("e1", ask.clone(), 3)),
        TimerChange::Arm(timer("other", node("y"), 4)),
        TimerChange::Arm(timer("other", TimerKey::Abandoned, 5)),
    ];
    assert_eq!(lab.append(first).await, Ok(()));
    let armed = "e1 ask:c 3\ne1 node:x 2\nother abandoned 5\nother node:y 4";
    assert_eq!(lab.ask(TIMERS).await, armed);
    let gone = ExecutionId::trusted("other");
    let disarm = TimerChange::Disarm { execution: gone, key: TimerKey::Abandoned };
    lab.store.change_timers(0, vec![disarm, TimerChange::Arm(timer("e1", ask, 7))]);
    assert_eq!(lab.append(ending(lab.draft(1, 1))).await, Ok(()));
    assert_eq!(lab.ask(TIMERS).await, "e1 ask:c 7\nother node:y 4");
    let slots = "SELECT count(*) FROM timers WHERE slot BETWEEN 0 AND 4095";
    assert_eq!(lab.ask(slots).await, "2");
}

#[tokio::test]
async fn snapshots_follow_their_revision() {
    let Some(mut lab) = Lab::open().await else { return };
    let unload = |lab: &Lab, revision, state: &str| {
        let (execution, state) = (ExecutionId::trusted("e1"), state.as_bytes().to_vec());
        lab.store.store_snapshot(0, Snapshot { execution, row: 1, revision, state });
    };
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    unload(&lab, 0, "zero");
    assert_eq!(lab.append(lab.draft(2, 0)).await, Ok(()));
    assert_eq!(lab.ask(SNAPSHOTS).await, "1 1 0 0 zero");
    let mut second = lab.draft(1, 1);
    second.snapshot = Some(b"one".to_vec());
    assert_eq!(lab.append(second).await, Ok(()));
    assert_eq!(lab.ask(SNAPSHOTS).await, "1 2 2 1 one");
    unload(&lab, 0, "late");
    assert_eq!(lab.append(lab.draft(1, 2)).await, Ok(()));
    assert_eq!(lab.ask(SNAPSHOTS).await, "1 2 2 1 one", "an outdated one");
    unload(&lab, 2, "two");
    assert_eq!(lab.append(lab.draft(3, 0)).await, Ok(()));
    assert_eq!(lab.ask(SNAPSHOTS).await, "1 3 3 2 two");
}

#[tokio::test]
async fn users_of_facts_are_indexed() {
    let Some(mut lab) = Lab::open().await else { return };
    for row in [1, 2] {
        let mut append = lab.draft(row, 0);
        let mut fact = started(1);
        fact.by = Some(Arc::new(Principal::verified("ann\0")));
        append.facts = vec![fact.clone(), fact].into();
        assert_eq!(lab.append(append).await, Ok(()));
    }
    let acted = "SELECT concat_ws(' ', encode(convert_to(user_id, 'utf8'), 'hex'), execution)
        FROM acted ORDER BY execution";
    assert_eq!(lab.ask(acted).await, "616e6e1a30 1\n616e6e1a30 2");
}

#[tokio::test]
async fn facts_are_published_before_they_are_acknowledged() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let store = PostgresStore::open(settings(&url, 1), Arc::new(Tally::default())).unwrap();
    let (outcomes, mut acknowledged) = unbounded_channel();
    let (published, mut facts) = unbounded_channel();
    store.attach(Arc::new(Sink { outcomes, published: OnceLock::from(published) }));
    store.append(draft("a", 1, 0));
    assert_eq!(acknowledged.recv().await.unwrap().result, Ok(()));
    let (header, published) = facts.try_recv().expect("published before");
    assert_eq!((header.id.as_str(), published.len()), ("a", 1));
    store.append(draft("a", 2, 0));
    assert_eq!(acknowledged.recv().await.unwrap().result, Err(AppendError::Exists));
    assert!(facts.try_recv().is_err(), "refused facts are not published");
}

#[tokio::test]
async fn a_closed_store_has_written_what_was_queued_and_leaves_no_lane() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 2).await;
    let shards = [0, 1, 2, 3];
    for (row, shard) in (1..=200).zip(shards.into_iter().cycle()) {
        let mut append = lab.draft(row, 0);
        append.ticket.shard = shard;
        if row % 2 == 0 {
            append.projection.status = Status::Running;
        }
        lab.store.append(append);
    }
    lab.store.close();
    let all = lab.outcomes(200).await;
    assert!(all.into_iter().all(|(.., result)| result == Ok(())));
    assert_eq!(lab.ask("SELECT count(*) FROM executions").await, "200");
    assert_eq!(lab.ask("SELECT count(*) FROM lanes").await, "0");
    lab.store.append(lab.draft(201, 0));
    assert!(matches!(lab.outcome().await.2, Err(AppendError::Unavailable(_))));
    lab.store.close();

    let lab = Lab::open_at(&url, &url, 2).await;
    let counts = "SELECT concat_ws(' ', status, node, lane, count) FROM execution_counts
        ORDER BY status";
    assert_eq!(lab.ask(counts).await, "0 0 0 100\n1 0 0 100", "counts of all lanes are merged");
    assert_eq!(lab.ask("SELECT count(*) FROM lanes").await, "3");
}

#[tokio::test]
async fn a_user_is_removed_from_facts_that_were_queued_before() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 2).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let lock = lab.hold(&url).await;
    let mut append = lab.draft(1, 1);
    let by = Some(Arc::new(Principal::verified("lea")));
    append.facts =
        append.facts.iter().map(|it| Recorded { by: by.clone(), ..it.clone() }).collect();
    lab.store.append(append);
    let mut settled = lab.store.settled();
    let mut forgetting = lab.store.forget_user("lea".to_owned());
    for _ in 0..50 {
        lab.ask("SELECT 1").await;
    }
    assert_eq!((&mut forgetting).now_or_never(), None, "the append comes first");
    assert_eq!((&mut settled).now_or_never(), None, "the append has no outcome");
    drop(lock);
    assert_eq!(lab.outcome().await, (1, 2, Ok(())));
    assert_eq!(settled.await, Ok(()));
    assert_eq!(forgetting.await, Ok(0));
    let named = "SELECT count(*) FROM chunks WHERE position('\"lea\"'::bytea IN events) > 0";
    assert_eq!(lab.ask(named).await, "0");
    assert_eq!(lab.ask("SELECT count(*) FROM chunks").await, "1");
    assert_eq!(lab.ask("SELECT count(*) FROM acted").await, "0");
}
