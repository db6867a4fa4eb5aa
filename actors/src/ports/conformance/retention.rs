//! Rules of retention.

use std::sync::Arc;

use super::bench::{Bench, Draft, completed, step_started, steps};
use super::generations;
use super::timers::key;
use super::{pages, read};
use crate::domain::fact::Parent;
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    ContinuationChange, Cursor, Ended, EndedExecutions, EndedGenerations, ExecutionFilter,
    GenerationStatus, GenerationWrite, PageSize, Row, Status, Timer, TimerChange, TimerKey,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(ended_executions_are_found_in_bounded_searches, bench().await);
    rule!(children_wait_for_their_parents, bench().await);
    rule!(an_execution_is_deleted_whole, bench().await);
    rule!(executions_that_have_not_ended_are_kept, bench().await);
    rule!(old_generations_are_deleted_and_pages_move_up, bench().await);
    rule!(generations_behind_one_of_a_clock_that_was_ahead_are_found, bench().await);
}

/// Creates an execution that was created and ended at these times.
async fn ended(bench: &mut Bench, id: &str, created: i64, ended: i64) -> Draft {
    let mut first = bench.creation(id);
    first.header.created_at = Timestamp(created);
    first.at = Timestamp(created);
    bench.take(&first).await;
    let mut last = bench.continuation(&first, vec![completed(2)]);
    last.at = Timestamp(ended);
    last.status = Status::Completed;
    bench.take(&last).await;
    last
}

fn of_order(before: i64, after: Option<Cursor>) -> EndedExecutions {
    let (workflow_id, status) = (Arc::from("order"), Status::Completed);
    EndedExecutions { workflow_id, status, before: Timestamp(before), after }
}

/// Searches with a limit per search; returns the rows found and the number of searches.
async fn found(bench: &Bench, before: i64, limit: usize) -> (Vec<Row>, usize) {
    let pages = pages::every("ended executions", async |after| {
        let page = read(bench.store.ended_executions(&of_order(before, after), limit)).await;
        (page.rows, page.next)
    });
    let pages = pages.await;
    let searches = pages.len();
    (pages.into_iter().flatten().collect(), searches)
}

async fn ended_executions_are_found_in_bounded_searches(mut bench: Bench) {
    assert_eq!(read(bench.store.workflow_after("")).await, None, "nothing is stored");
    let mut old = Vec::new();
    for n in 0..5 {
        old.push(ended(&mut bench, &format!("old-{n}"), 1000, 2000 + n).await.row);
    }
    // created with the others, and ended later
    ended(&mut bench, "long", 1000, 9000).await;
    ended(&mut bench, "new", 5000, 5001).await;
    let open = bench.creation("open");
    bench.take(&open).await;
    let mut other = bench.creation("other");
    other.header.workflow_id = Arc::from("return");
    bench.take(&other).await;

    for (limit, searches) in [(2, 3), (3, 2), (6, 1), (100, 1)] {
        assert_eq!(
            found(&bench, 5000, limit).await,
            (old.clone(), searches),
            "searches of {limit}"
        );
    }
    assert_eq!(found(&bench, 2002, 100).await.0, old[..2], "ended before, not at");
    assert!(found(&bench, 1000, 100).await.0.is_empty(), "nothing is that old");
    let names = ["", "order", "return"].map(|name| bench.store.workflow_after(name));
    let [first, second, third] = names;
    assert_eq!(read(first).await.as_deref(), Some("order"), "the first workflow");
    assert_eq!(read(second).await.as_deref(), Some("return"), "the next one");
    assert_eq!(read(third).await, None, "there is no third");

    assert_eq!(bench.store.drop_executions(old.clone()).await, Ok(5), "dropped");
    assert_eq!(bench.store.drop_executions(old).await, Ok(0), "they are gone");
    assert!(found(&bench, 5000, 100).await.0.is_empty(), "and no longer found");
    let filter = ExecutionFilter::default();
    let (listed, _) = read(bench.store.list(&filter, None, 100)).await;
    let ids: Vec<_> = listed.iter().map(|it| it.header.id.as_str()).collect();
    assert_eq!(ids, ["new", "other", "open", "long"], "the others are listed as before");
}

async fn children_wait_for_their_parents(mut bench: Bench) {
    let parent = bench.creation("parent");
    bench.take(&parent).await;
    let mut rows = Vec::new();
    for (id, parent) in [("child", "parent"), ("orphan", "gone")] {
        let mut first = bench.creation(id);
        let execution = ExecutionId::trusted(parent);
        first.header.parent = Some(Parent { execution, path: Arc::from("ask") });
        bench.take(&first).await;
        let mut last = bench.continuation(&first, vec![completed(2)]);
        last.status = Status::Completed;
        bench.take(&last).await;
        rows.push(last.row);
    }
    assert_eq!(found(&bench, 9000, 100).await.0, rows[1..], "the child of an open parent is kept");
    let mut last = bench.continuation(&parent, vec![completed(2)]);
    last.status = Status::Completed;
    last.at = Timestamp(9000);
    bench.take(&last).await;
    assert_eq!(found(&bench, 9000, 100).await.0, rows, "the child of an ended one is not");
}

async fn an_execution_is_deleted_whole(mut bench: Bench) {
    let timer = |key| Timer { execution: ExecutionId::trusted("a"), key, due: Timestamp(7) };
    let mut first = bench.creation("a");
    first.idempotency = Some(key("k", 1, 5000));
    bench.take(&first).await;
    let mut second = bench.continuation(&first, steps(2..400));
    second.snapshot = Some(b"state".to_vec());
    bench.take(&second).await;
    let mut last = bench.continuation(&second, vec![completed(400)]);
    last.status = Status::Completed;
    last.timers = vec![
        TimerChange::Arm(timer(TimerKey::AskChild(ExecutionId::trusted("child")))),
        TimerChange::Arm(timer(TimerKey::Abandoned)),
    ];
    bench.take(&last).await;
    ended(&mut bench, "b", 1000, 2000).await;

    assert_eq!(bench.store.drop_executions(vec![last.row]).await, Ok(1), "dropped");
    assert_eq!(bench.describe("a").await, None, "the row");
    assert!(read(bench.store.load(&ExecutionId::trusted("a"))).await.is_none(), "all of it");
    assert!(bench.facts("a", 0, 1000).await.is_empty(), "the facts");
    assert!(bench.timers(i64::MAX, 10).await.is_empty(), "the timers");
    assert!(bench.describe("b").await.is_some(), "another one stays");

    // the id is free again, and no data of the old execution is left
    let again = bench.creation("a");
    bench.take(&again).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, None, "no snapshot");
    assert_eq!(stored.facts, again.facts, "its own facts");
    let next = bench.continuation(&again, vec![step_started(2)]);
    bench.take(&next).await;
    assert_eq!(bench.load("a").await.facts.len(), 2, "it continues");
}

async fn executions_that_have_not_ended_are_kept(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let mut running = bench.creation("b");
    running.status = Status::Running;
    bench.take(&running).await;
    let rows = vec![first.row, running.row, 999];
    assert_eq!(bench.store.drop_executions(rows).await, Ok(0), "nothing has ended");
    assert!(bench.describe("a").await.is_some(), "the suspended one");
    assert!(bench.describe("b").await.is_some(), "the running one");
}

async fn record(bench: &Bench, agent: &str, n: i64, status: GenerationStatus) -> Row {
    let end = status.is_final().then_some(n * 1000 + 1);
    record_at(bench, &format!("{agent}-{n}"), status, n * 1000, end).await
}

/// Records a generation of the agent in its id that began and ended at these times.
async fn record_at(
    bench: &Bench,
    id: &str,
    status: GenerationStatus,
    start: i64,
    end: Option<i64>,
) -> Row {
    let mut record = generations::completed(id);
    id.split('-').next().unwrap_or_default().clone_into(&mut record.agent_id);
    record.start_time = Timestamp(start);
    record.status = status;
    record.end_time = end.map(Timestamp);
    let row = bench.generation_row();
    let write = GenerationWrite {
        row,
        record,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Keep,
    };
    assert_eq!(bench.store.record_generation(write).await, Ok(()), "{id}");
    row
}

/// Searches generations of `clerk` by pages of two; returns the rows found and the number of searches.
async fn found_of_clerk(bench: &Bench, before: i64) -> (Vec<Row>, usize) {
    let pages = pages::every("ended generations", async |after: Option<_>| {
        let (agent_id, after) = (Arc::from("clerk"), after.unwrap_or_default());
        let sought = EndedGenerations { agent_id, before: Timestamp(before), after };
        let Ended { rows, next } = read(bench.store.ended_generations(&sought, 2)).await;
        (rows, next)
    });
    let pages = pages.await;
    let searches = pages.len();
    (pages.into_iter().flatten().collect(), searches)
}

async fn generations_behind_one_of_a_clock_that_was_ahead_are_found(bench: Bench) {
    const AHEAD: i64 = 9_999_999;
    let mut rows = Vec::new();
    for (start, end) in [
        (10, 12),
        (AHEAD, AHEAD + 1),
        (AHEAD, 12),
        (AHEAD, AHEAD + 1),
        (11, 12),
        (200, 201),
        (201, 202),
        (202, 203),
        (203, 204),
    ] {
        let id = format!("clerk-{}", rows.len());
        let status = GenerationStatus::Completed;
        rows.push(record_at(&bench, &id, status, start, Some(end)).await);
    }
    let (found, searches) = found_of_clerk(&bench, 100).await;
    assert_eq!(found, [rows[0], rows[2], rows[4]], "those that ended before");
    assert_eq!(searches, 4, "the fourth finds only later ones");
}

async fn old_generations_are_deleted_and_pages_move_up(bench: Bench) {
    let mut rows = Vec::new();
    for n in 1..=9 {
        let status = match n {
            3 => GenerationStatus::Working,
            5 => GenerationStatus::Suspended,
            _ => GenerationStatus::Completed,
        };
        rows.push(record(&bench, "clerk", n, status).await);
    }
    record(&bench, "porter", 1, GenerationStatus::Completed).await;
    assert_eq!(read(bench.store.agent_after("")).await.as_deref(), Some("clerk"));
    assert_eq!(read(bench.store.agent_after("clerk")).await.as_deref(), Some("porter"));
    assert_eq!(read(bench.store.agent_after("porter")).await, None);

    let (mut old, searches) = found_of_clerk(&bench, 6001).await;
    let wanted = [&rows[..2], &rows[3..4]].concat();
    assert_eq!(
        (&old, searches),
        (&wanted, 4),
        "six started before; one is working, one waits and one ended at it"
    );
    old.extend([rows[2], rows[4]]);
    assert_eq!(bench.store.drop_generations(old.clone()).await, Ok(3), "those two are kept");
    assert_eq!(bench.store.drop_generations(old).await, Ok(0), "they are gone");

    let left: Vec<String> = [9, 8, 7, 6, 5, 3].iter().map(|n| format!("clerk-{n}")).collect();
    for offset in 0..7 {
        for limit in [1, 2, 10] {
            let page =
                read(bench.store.generations("clerk", None, offset, PageSize::of(limit))).await;
            let ids: Vec<_> = page.entries.iter().map(|it| it.record.id.clone()).collect();
            let from = usize::try_from(offset).expect("small");
            let wanted: Vec<_> = left.iter().skip(from).take(limit).cloned().collect();
            assert_eq!(ids, wanted, "{limit} from {offset} on");
            assert_eq!(page.total, 6, "{limit} from {offset} on");
        }
    }
    assert!(read(bench.store.generation("clerk-1")).await.is_none(), "gone by its id, too");
    let other = read(bench.store.generations("porter", None, 0, PageSize::of(10))).await;
    assert_eq!(other.total, 1, "another agent's history stays");
}
