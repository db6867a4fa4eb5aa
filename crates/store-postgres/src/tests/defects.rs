//! Damaged rows among sound ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::own_trace_id;
use greenroom_actors::ports::conformance::{Bench, completed, step_started};
use greenroom_actors::ports::store::{
    Definitions as _, ExecutionFilter, Executions as _, FactCursor, Generations as _, Journal as _,
    PageSize, ReadError, Root, RootFilter, Status, TimerKey, TraceQuery, TraceSize, Traces as _,
};
use serde_json::json;

use super::Fresh;
use super::generations::{turn, working};

impl Fresh {
    /// Opens a store with the executions a, which has a chunk, b and c, and the generations g1, g2
    /// and g3, and runs SQL.
    async fn damaged(sql: &str) -> Option<Self> {
        let fresh = Self::open()?;
        let mut bench = Bench::new(fresh.store.clone());
        let drafts = ["a", "b", "c"].map(|id| bench.creation(id));
        for draft in &drafts {
            bench.take(draft).await;
        }
        let mut last = bench.continuation(&drafts[0], vec![step_started(2), completed(3)]);
        last.status = Status::Completed;
        bench.take(&last).await;
        for id in ["g1", "g2", "g3"] {
            let row = fresh.store.next_generation_row().unwrap();
            let mut write = working(id);
            (write.row, write.steps) = (row, vec![turn(0, "one")]);
            fresh.store.record_generation(write).await.unwrap();
        }
        fresh.sql(sql);
        Some(fresh)
    }

    /// Returns how many damaged records were met since the last time.
    fn met(&self) -> u64 {
        self.tally.0.swap(0, Ordering::SeqCst)
    }
}

fn corrupt<T: std::fmt::Debug>(record: &str) -> impl Fn(Result<T, ReadError>) {
    let expected = ReadError::Corrupt(Arc::from(record));
    move |read| assert_eq!(read.unwrap_err(), expected)
}

fn id(text: &str) -> ExecutionId {
    ExecutionId::trusted(text)
}

fn query(trace_id: &str) -> TraceQuery {
    TraceQuery {
        trace_id: trace_id.to_owned(),
        most: TraceSize::of_facts(100),
        ..TraceQuery::default()
    }
}

#[tokio::test]
async fn a_damaged_execution_affects_no_other() {
    for damage in [
        "UPDATE executions SET suspension = '{' WHERE id = 'b'",
        "UPDATE executions SET around = '{' WHERE id = 'b'",
        "UPDATE executions SET status = 17 WHERE id = 'b'",
        "UPDATE executions SET last_seq = -4 WHERE id = 'b'",
    ] {
        let Some(fresh) = Fresh::damaged(damage).await else { return };
        let store = &fresh.store;
        corrupt("execution b")(store.describe(&id("b")).await);
        corrupt("execution b")(store.load(&id("b")).await.map(|it| it.map(|it| it.row)));
        assert_eq!(fresh.met(), 2, "{damage}");
        assert!(store.load(&id("a")).await.unwrap().is_some(), "{damage}");
        let (page, _) = store.list(&ExecutionFilter::default(), None, 10).await.unwrap();
        let ids: Vec<&str> = page.iter().map(|row| row.header.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"], "{damage}");
        let roots = store.roots(&RootFilter::default(), None, 10).await.unwrap().roots;
        let executions = roots.iter().filter(|root| matches!(root, Root::Execution(_))).count();
        assert_eq!((executions, roots.len()), (2, 5), "{damage}");
        assert!(store.running(&SlotSet::all(), 0, 10).await.is_ok(), "{damage}");
        assert!(store.is_writable(), "{damage}");
    }
}

#[tokio::test]
async fn pages_continue_after_damaged_rows() {
    let Some(fresh) =
        Fresh::damaged("UPDATE executions SET around = '{', ended = 1, status = 4").await
    else {
        return;
    };
    let of_ends = ExecutionFilter { ended_from: Some(Timestamp(0)), ..ExecutionFilter::default() };
    for filter in [ExecutionFilter::default(), of_ends] {
        let (mut after, mut pages) = (None, 0);
        loop {
            let (page, next) = fresh.store.list(&filter, after, 1).await.unwrap();
            assert!(page.is_empty());
            pages += 1;
            let Some(next) = next else { break };
            after = Some(next);
        }
        assert!((1..=3).contains(&pages), "{pages} pages of {filter:?}");
    }
    assert_eq!(fresh.met(), 6);
}

#[tokio::test]
async fn damaged_facts_affect_their_execution_and_truncate_its_trace() {
    for (damage, record) in [
        ("UPDATE executions SET events = '[{' WHERE id = 'b'", "execution b"),
        ("UPDATE chunks SET events = '[{\"n\":1}]'", "execution a"),
    ] {
        let Some(fresh) = Fresh::damaged(damage).await else { return };
        let store = &fresh.store;
        let bad = id(record.trim_start_matches("execution "));
        corrupt(record)(store.load(&bad).await.map(|it| it.map(|it| it.row)));
        corrupt(record)(store.facts(&bad, 0, 100).await);
        corrupt(record)(store.portion(&bad, FactCursor::default(), 1000).await);
        let trace_id = store.describe(&bad).await.unwrap().unwrap().header.trace.id.clone();
        let trace = store.trace(&query(&trace_id)).await.unwrap();
        assert!(trace.is_cut, "{damage}");
        assert!(trace.executions.iter().all(|(header, _)| header.id != bad), "{damage}");
        let (page, _) = store.list(&ExecutionFilter::default(), None, 10).await.unwrap();
        assert_eq!(page.len(), 3, "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_ignored() {
    let put = "INSERT INTO snapshots (execution, last_seq, last, revision, state)
        SELECT n, -4, 9, 9, '{' FROM executions WHERE id = 'b'";
    let Some(fresh) = Fresh::damaged(put).await else { return };
    let stored = fresh.store.load(&id("b")).await.unwrap().unwrap();
    assert!(stored.snapshot.is_none() && !stored.facts.is_empty());
    assert_eq!(fresh.met(), 1);
}

#[tokio::test]
async fn a_damaged_timer_does_not_delay_others() {
    let put = "INSERT INTO timers (execution, key, slot, due) VALUES
        ('a', 'nonsense', 1, 5), ('b', 'node:x', 2, 6)";
    let Some(fresh) = Fresh::damaged(put).await else { return };
    let due = fresh.store.timers_due(&SlotSet::all(), Timestamp(10), 10).await.unwrap();
    let keys: Vec<_> = due.iter().map(|timer| (timer.execution.as_str(), &timer.key)).collect();
    assert_eq!(keys, [("b", &TimerKey::Node(Arc::from("x")))]);
    assert!(fresh.store.timers_of(&id("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_damaged_generation_is_omitted_from_histories_and_traces() {
    for damage in [
        "UPDATE generations SET usage = '[]' WHERE id = 'g2'",
        "UPDATE generations SET around = '{' WHERE id = 'g2'",
        "UPDATE steps SET body = '{' WHERE generation = (SELECT n FROM generations WHERE id = 'g2')",
    ] {
        let Some(fresh) = Fresh::damaged(damage).await else { return };
        let store = &fresh.store;
        corrupt("generation g2")(store.generation("g2").await);
        let page = store.generations("clerk", None, 0, PageSize::of(10)).await.unwrap();
        let ids: Vec<&str> = page.entries.iter().map(|it| it.record.id.as_str()).collect();
        assert_eq!((ids.as_slice(), page.total), (&["g3", "g1"][..], 3), "{damage}");
        let trace = store.trace(&query(&own_trace_id("g2"))).await.unwrap();
        assert!(trace.is_cut && trace.generations.is_empty(), "{damage}");
        assert!(store.roots(&RootFilter::default(), None, 10).await.is_ok(), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_definition_is_replaced_by_the_next_start() {
    let damage = "INSERT INTO definitions (hash, body) VALUES ('h1', '{')";
    let Some(fresh) = Fresh::damaged(damage).await else { return };
    corrupt("definition h1")(fresh.store.definition("h1").await);
    fresh.store.put_definition("h1", &json!({ "id": "w" })).await.unwrap();
    assert_eq!(fresh.store.definition("h1").await, Ok(Some(json!({ "id": "w" }))));
}
