//! Reads of large executions, and of pages whose cost is limited.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::conformance::{Bench, Draft, step_started};
use greenroom_actors::ports::store::{
    AskFilter, AskKind, Asks as _, Cursor, ExecutionFilter, Executions as _, FactCursor, Mark,
    Portion, RootFilter, Status, Traces as _,
};

use super::Fresh;

/// Returns a fact of about so many bytes.
fn large(seq: u64, bytes: usize) -> Recorded {
    let output = Arc::new(serde_json::json!("größer ".repeat(bytes / 9)));
    let (path, since) = (Arc::from("a"), Timestamp(1000));
    let fact = Fact::StepCompleted {
        path,
        attempt: 1,
        since,
        output,
        usage: None,
        compensable: false,
        skipped: false,
        mcp: None,
    };
    Recorded { seq, at: Timestamp(1000), fact, by: None }
}

/// Adds an execution with facts of these sizes: those of a first append, which ends it if it is the
/// only one, and of later ones.
async fn add(bench: &mut Bench, id: &str, appends: &[&[usize]]) -> Vec<Recorded> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut all = Vec::new();
    for sizes in appends {
        let mut draft = match drafts.last() {
            None => bench.creation(id),
            Some(last) => bench.continuation(last, vec![]),
        };
        let first = all.len() as u64 + 1;
        draft.facts = (first..).zip(*sizes).map(|(seq, bytes)| large(seq, *bytes)).collect();
        draft.last_seq = draft.facts.last().unwrap().next_seq() - 1;
        if appends.len() == 1 {
            draft.status = Status::Completed;
        }
        bench.take(&draft).await;
        all.extend(draft.facts.clone());
        drafts.push(draft);
    }
    all
}

#[tokio::test]
async fn large_facts_are_read_in_portions_and_whole() {
    let Some(fresh) = Fresh::open() else { return };
    let mut bench = Bench::new(fresh.store.clone());
    let many: Vec<&[usize]> = vec![&[50]; 150];
    let cases: [(&str, &[&[usize]]); 5] = [
        ("in the row", &[&[200_000; 20]]),
        ("one fact", &[&[3_000_000]]),
        ("in a chunk", &[&[50], &[100_000; 30], &[50]]),
        ("many chunks", &many),
        ("mixed", &[&[50], &[10, 900_000, 10], &[70_000], &[5; 2000], &[300_000]]),
    ];
    for (id, appends) in cases {
        let all = add(&mut bench, id, appends).await;
        let execution = ExecutionId::trusted(id);
        let stored = fresh.store.load(&execution).await.unwrap().unwrap();
        assert!(stored.facts == all, "{id} is loaded");
        assert!(fresh.store.facts(&execution, 0, usize::MAX).await.unwrap() == all, "{id}");
        for bytes in [1, 64 * 1024, 10_000_000] {
            // with marks, and by number alone
            for has_mark in [true, false] {
                let (mut read, mut cursor) = (Vec::new(), FactCursor::default());
                loop {
                    let portion = fresh.store.portion(&execution, cursor, bytes).await.unwrap();
                    if portion.facts.is_empty() {
                        break;
                    }
                    read.extend(portion.facts);
                    cursor =
                        FactCursor { mark: portion.next.mark.filter(|_| has_mark), ..portion.next };
                    if !has_mark && read.len() > 40 {
                        break;
                    }
                }
                assert!(all.starts_with(&read), "{id} in {bytes} bytes");
                assert!(!has_mark || read.len() == all.len(), "{id} in {bytes} bytes");
            }
        }
    }
}

#[tokio::test]
async fn a_large_chunk_takes_a_limited_number_of_portions() {
    let Some(fresh) = Fresh::open() else { return };
    let mut bench = Bench::new(fresh.store.clone());
    add(&mut bench, "a", &[&[50], &[10_000; 500]]).await;
    let (mut cursor, mut portions) = (FactCursor::default(), 0);
    loop {
        let id = ExecutionId::trusted("a");
        let Portion { facts, next } = fresh.store.portion(&id, cursor, 1).await.unwrap();
        if facts.is_empty() {
            break;
        }
        (cursor, portions) = (next, portions + 1);
    }
    assert!((60..=80).contains(&portions), "{portions}");
}

#[tokio::test]
async fn marks_of_other_content_are_ignored() {
    let Some(fresh) = Fresh::open() else { return };
    let mut bench = Bench::new(fresh.store.clone());
    let first = bench.creation("a");
    bench.take(&first).await;
    let second = bench.continuation(&first, vec![step_started(2), step_started(3)]);
    bench.take(&second).await;
    for (piece, offset) in [
        (Some((3, 1)), 3),
        (Some((3, 1)), 1_000_000),
        (Some((77, 1)), 1),
        (Some((3, 7)), 1),
        (None, 5),
        (None, 1_000_000),
    ] {
        let from = FactCursor { above: 1, mark: Some(Mark { piece, offset }) };
        let id = ExecutionId::trusted("a");
        let read = fresh.store.portion(&id, from, 10_000).await.unwrap().facts;
        let is_at_end = piece == Some((3, 1)) && offset > 1000;
        let expected = if is_at_end { 0 } else { 2 };
        assert_eq!(read.len(), expected, "{piece:?} at {offset}");
    }
}

/// Adds ended executions of the workflow `order` that are below a span, numbered from 1.
fn add_children(fresh: &Fresh, count: usize) {
    fresh.sql(&format!(
        "INSERT INTO executions (n, created, updated, ended, last_seq, revision, status, slot,
            joined, id, workflow, definition, trace, parent_span, root_workflow)
        SELECT n, n, n, n, 1, 0, 4, 0, 1, 'e' || n, 'order', 'd', 't', 'b7ad6b7169203331', 'order'
        FROM generate_series(1, {count}) n"
    ));
}

#[tokio::test]
async fn a_page_of_ends_scans_a_limited_number_of_rows() {
    let Some(fresh) = Fresh::open() else { return };
    add_children(&fresh, 5_001);
    let page = async |workflow: &str, after| {
        let workflow_id = Some(workflow.to_owned());
        let ended_from = Some(Timestamp(0));
        let filter = ExecutionFilter { workflow_id, ended_from, ..ExecutionFilter::default() };
        let (page, next) = fresh.store.list(&filter, after, 10).await.unwrap();
        (page.len(), next)
    };
    let second = Cursor { at: Timestamp(2), row: 2 };
    assert_eq!(page("refund", None).await, (0, Some(second)), "one row is left");
    assert_eq!(page("refund", Some(second)).await, (0, None));
    let tenth = Cursor { at: Timestamp(4_992), row: 4_992 };
    assert_eq!(page("order", None).await, (10, Some(tenth)));
    assert_eq!(page("order", Some(second)).await, (1, None));
}

#[tokio::test]
async fn a_page_of_roots_scans_a_limited_number_of_rows() {
    let Some(fresh) = Fresh::open() else { return };
    add_children(&fresh, 12_000);
    fresh.sql("UPDATE executions SET joined = NULL, parent_span = NULL WHERE n = 1");
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = fresh.store.roots(&RootFilter::default(), after, 10).await.unwrap();
        pages.push(page.roots.len());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [0, 0, 1], "pages advance, however many rows are skipped");
}

/// Lists asks by pages; returns their ids.
async fn asks_in_pages(fresh: &Fresh, filter: &AskFilter, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = fresh.store.asks(filter, after, limit).await.unwrap();
        ids.extend(page.asks.iter().map(|ask| ask.id.to_string()));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

#[tokio::test]
async fn asks_behind_those_that_are_left_over_are_listed() {
    let Some(fresh) = Fresh::open() else { return };
    let mut bench = Bench::new(fresh.store.clone());
    let first = bench.creation("e");
    bench.take(&first).await;
    // a server that knows no asks has deleted the executions and generations of some
    fresh.sql(
        "INSERT INTO asks (execution, generation, workflow, agent, opened, due, closed, kind, state,
            path, id, reason)
        SELECT CASE WHEN n IN (2, 5) THEN e.last WHEN n IN (1, 6) THEN 99999 END,
            CASE WHEN n IN (3, 4) THEN 99999 END, 'order', CASE WHEN n IN (3, 4) THEN 'clerk' END,
            n, n, CASE WHEN state = 1 THEN n END, 0, state, 'a', state || '-' || n, ''
        FROM (SELECT max(n) AS last FROM executions) e, generate_series(1, 6) AS n,
            generate_series(0, 1) AS state",
    );
    let all = AskFilter { is_open: true, ..AskFilter::default() };
    let of_order = AskFilter { workflow_id: Some("order".to_owned()), ..all.clone() };
    let scanned = AskFilter { kind: Some(AskKind::Step), ..all.clone() };
    for filter in [all, of_order, scanned] {
        for limit in [1, 2, 3, 10] {
            let open = asks_in_pages(&fresh, &filter, limit).await;
            assert_eq!(open, ["0-2", "0-5"], "pages of {limit}");
            let closed = AskFilter { is_open: false, ..filter.clone() };
            let closed = asks_in_pages(&fresh, &closed, limit).await;
            assert_eq!(closed, ["1-5", "1-2"], "pages of {limit}");
        }
    }
    assert!(fresh.store.ask("0-1").await.unwrap().is_none());
    assert_eq!(fresh.tally.0.load(Ordering::SeqCst), 0, "they are not damaged");
}
