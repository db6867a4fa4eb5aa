//! What every store must do, told once: each adapter runs it over fresh stores of its own.
//!
//! Panics with the name of the rule that was broken. Waits for acknowledgements only, so it runs
//! on any executor and needs no clock.

mod agents;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::domain::fact::{Fact, Parent, Recorded, ResumedBy, Start, Suspension, Trace};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Cursor, ExecutionFilter, Header,
    IdempotencyRecord, Projection, Read, Row, Status, Store, StoredExecution, Ticket, Timer,
    TimerChange, TimerKey,
};

/// Runs every rule, each over a fresh store.
pub async fn run(fresh: impl Fn() -> Arc<dyn Store>) {
    let bench = || Bench::new(fresh());
    creation_and_continuation(bench()).await;
    every_column_comes_back(bench()).await;
    refusals_store_nothing(bench()).await;
    snapshots_cut_the_history(bench()).await;
    facts_come_in_pages(bench()).await;
    facts_without_events_keep_their_place(bench()).await;
    large_facts_survive_changes_of_the_row(bench()).await;
    lists_are_filtered_and_paged(bench()).await;
    running_ones_are_found(bench()).await;
    timers_are_armed_moved_and_disarmed(bench()).await;
    an_end_drops_timers_of_nodes(bench()).await;
    idempotency_keys_are_taken_until_they_expire(bench()).await;
    definitions_are_put_once(bench()).await;
    agents::generations_are_recorded(bench()).await;
    facts_are_published_before_they_are_acknowledged(bench()).await;
}

/// A store under test, and what it said.
pub struct Bench {
    pub store: Arc<dyn Store>,
    listener: Arc<Listener>,
    heard: UnboundedReceiver<Heard>,
    outcomes: VecDeque<Acknowledgement>,
    tickets: u64,
}

enum Heard {
    Published(Vec<(Arc<Header>, Arc<[Recorded]>)>),
    Committed(usize, Vec<Acknowledgement>),
}

struct Listener {
    heard: UnboundedSender<Heard>,
    wants_facts: Mutex<bool>,
}

impl CommitSink for Listener {
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>) {
        // A bench that is gone wants to hear nothing.
        let _ = self.heard.send(Heard::Committed(shard, outcomes));
    }

    fn wants_facts(&self) -> bool {
        *self.wants_facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>) {
        let _ = self.heard.send(Heard::Published(facts));
    }
}

impl Bench {
    /// Attaches itself to a store that has no sink yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (sender, heard) = unbounded_channel();
        let listener = Arc::new(Listener { heard: sender, wants_facts: Mutex::new(false) });
        store.attach(listener.clone());
        Self { store, listener, heard, outcomes: VecDeque::new(), tickets: 0 }
    }

    /// The start of an execution of the workflow `order`, created and suspended at time 1000.
    pub fn creation(&mut self, id: &str) -> Draft {
        let header = Header {
            id: ExecutionId::trusted(id),
            workflow_id: Arc::from("order"),
            definition_hash: Arc::from("d1"),
            user_id: None,
            conversation_id: None,
            parent: None,
            trace: trace(),
            created_at: Timestamp(1000),
        };
        self.tickets += 1;
        Draft {
            ticket: Ticket { shard: 0, key: self.tickets },
            row: self.store.next_row(),
            header,
            expected: None,
            status: Status::Suspended,
            at: Timestamp(1000),
            last_seq: 1,
            suspension: None,
            facts: vec![started(1)],
            timers: Vec::new(),
            idempotency: None,
            snapshot: None,
        }
    }

    /// What follows a draft that was taken.
    pub fn continuation(&mut self, of: &Draft, facts: Vec<Recorded>) -> Draft {
        self.tickets += 1;
        let last_seq = facts.last().map_or(of.last_seq, |fact| fact.next_seq() - 1);
        Draft {
            ticket: Ticket { shard: 0, key: self.tickets },
            expected: Some(of.last_seq),
            at: of.at.plus_ms(1000),
            last_seq,
            suspension: None,
            facts,
            timers: Vec::new(),
            idempotency: None,
            snapshot: None,
            ..of.clone()
        }
    }

    /// Appends and waits for the outcome.
    pub async fn append(&mut self, draft: &Draft) -> Result<(), AppendError> {
        self.store.append(draft.append());
        let heard = self.outcome().await;
        assert_eq!(heard.ticket, draft.ticket, "the outcome names who asked");
        assert_eq!(heard.upto, draft.last_seq, "the outcome names the appended number");
        heard.result
    }

    /// Appends what must be taken.
    pub async fn take(&mut self, draft: &Draft) {
        assert_eq!(self.append(draft).await, Ok(()), "append to {}", draft.header.id);
    }

    /// The next outcome, waited for.
    pub async fn outcome(&mut self) -> Acknowledgement {
        loop {
            if let Some(outcome) = self.outcomes.pop_front() {
                return outcome;
            }
            let heard = self.heard.recv().await.expect("the listener lives as long as the bench");
            self.take_in(heard);
        }
    }

    /// The next outcome, if it has come.
    pub fn heard_already(&mut self) -> Option<Acknowledgement> {
        while let Ok(heard) = self.heard.try_recv() {
            self.take_in(heard);
        }
        self.outcomes.pop_front()
    }

    fn take_in(&mut self, heard: Heard) {
        match heard {
            Heard::Published(_) => {}
            Heard::Committed(shard, outcomes) => {
                let same = outcomes.iter().all(|outcome| outcome.ticket.shard == shard);
                assert!(same, "a shard hears of its own appends alone");
                self.outcomes.extend(outcomes);
            }
        }
    }

    async fn load(&self, id: &str) -> StoredExecution {
        let id = ExecutionId::trusted(id);
        let found = read(self.store.load(&id)).await;
        found.expect("the execution is stored")
    }

    async fn describe(&self, id: &str) -> Option<Projection> {
        let id = ExecutionId::trusted(id);
        read(self.store.describe(&id)).await
    }

    async fn facts(&self, id: &str, after: u64, limit: usize) -> Vec<Recorded> {
        let id = ExecutionId::trusted(id);
        read(self.store.facts(&id, after, limit)).await
    }

    async fn timers(&self, until: i64, limit: usize) -> Vec<Timer> {
        read(self.store.timers_due(Timestamp(until), limit)).await
    }
}

/// An append in the making.
#[derive(Debug, Clone)]
pub struct Draft {
    pub ticket: Ticket,
    pub row: Row,
    pub header: Header,
    pub expected: Option<u64>,
    pub status: Status,
    /// When it is appended.
    pub at: Timestamp,
    pub last_seq: u64,
    pub suspension: Option<Suspension>,
    pub facts: Vec<Recorded>,
    pub timers: Vec<TimerChange>,
    pub idempotency: Option<IdempotencyRecord>,
    pub snapshot: Option<Vec<u8>>,
}

impl Draft {
    pub fn projection(&self) -> Projection {
        Projection {
            header: Arc::new(self.header.clone()),
            status: self.status,
            updated_at: self.at,
            ended_at: self.status.is_terminal().then_some(self.at),
            last_seq: self.last_seq,
            suspension: self.suspension.clone().map(Arc::new),
        }
    }

    pub fn append(&self) -> Append {
        Append {
            ticket: self.ticket,
            row: self.row,
            expected: self.expected,
            projection: self.projection(),
            facts: self.facts.as_slice().into(),
            timers: self.timers.clone(),
            idempotency: self.idempotency.clone(),
            snapshot: self.snapshot.clone(),
        }
    }
}

fn trace() -> Trace {
    Trace {
        id: Arc::from("0af7651916cd43dd8448eb211c80319c"),
        parent_span: None,
        root_workflow: Arc::from("order"),
    }
}

fn recorded(seq: u64, fact: Fact) -> Recorded {
    Recorded { seq, at: Timestamp(1000), fact }
}

/// The first fact of an execution.
pub fn started(seq: u64) -> Recorded {
    let start = Start {
        workflow_id: Arc::from("order"),
        definition_hash: Arc::from("d1"),
        input: Arc::new(json!({ "amount": 12.5, "text": "grün \u{0000} \"quoted\"" })),
        user_id: None,
        conversation_id: None,
        context: Arc::new(json!({})),
        parent: None,
        depth: 0,
        trace: trace(),
    };
    recorded(seq, Fact::WorkflowStarted(Box::new(start)))
}

/// A fact that gives one event.
pub fn step_started(seq: u64) -> Recorded {
    recorded(seq, Fact::StepStarted { path: Arc::from("a"), attempt: 1, interrupted: false })
}

/// A fact that gives no event.
pub fn held(seq: u64) -> Recorded {
    recorded(seq, Fact::HoldPlaced { reason: Arc::from("wait") })
}

/// The last fact of an execution: two events.
pub fn completed(seq: u64) -> Recorded {
    let result = Arc::new(json!([1, "two", null]));
    recorded(seq, Fact::WorkflowCompleted { since: Timestamp(1000), result })
}

fn steps(numbers: impl Iterator<Item = u64>) -> Vec<Recorded> {
    numbers.map(step_started).collect()
}

fn numbers(facts: &[Recorded]) -> Vec<u64> {
    facts.iter().map(|fact| fact.seq).collect()
}

async fn read<T>(reading: Read<'_, T>) -> T {
    reading.await.expect("the store can be read")
}

async fn creation_and_continuation(mut bench: Bench) {
    assert_eq!(bench.describe("a").await, None, "nothing is stored at first");
    assert!(bench.facts("a", 0, 10).await.is_empty(), "no facts of what is not stored");
    let first = bench.creation("a");
    bench.take(&first).await;
    assert_eq!(bench.describe("a").await, Some(first.projection()), "creation");
    let mut second = bench.continuation(&first, vec![step_started(2), completed(3)]);
    second.status = Status::Completed;
    bench.take(&second).await;
    assert_eq!(second.last_seq, 4, "a completion gives two events");
    let stored = bench.load("a").await;
    assert_eq!(stored.row, first.row, "an execution keeps its row");
    assert_eq!(stored.projection, second.projection(), "continuation");
    assert_eq!(stored.snapshot, None, "no snapshot was given");
    assert_eq!(stored.facts, [started(1), step_started(2), completed(3)], "all facts, in order");
    let (one, two) = (bench.store.next_row(), bench.store.next_row());
    assert!(two > one && one > first.row, "row numbers grow");
}

async fn every_column_comes_back(mut bench: Bench) {
    let mut first = bench.creation("child");
    first.header.user_id = Some(Arc::from("u1"));
    first.header.conversation_id = Some(Arc::from("c1"));
    first.header.parent =
        Some(Parent { execution: ExecutionId::trusted("parent"), path: Arc::from("checks/ask") });
    first.header.trace.parent_span = Some(Arc::from("b7ad6b7169203331"));
    first.header.trace.root_workflow = Arc::from("family");
    first.suspension = Some(Suspension {
        reason: Arc::from("approve"),
        suspended_at: Timestamp(1000),
        step_id: Arc::from("ask"),
        path: Arc::from("checks/ask"),
        step_index: 3,
        payload: Some(Arc::new(json!({ "who": ["a", "b"] }))),
        deadline: Some(Timestamp(9000)),
    });
    bench.take(&first).await;
    assert_eq!(bench.describe("child").await, Some(first.projection()), "describe");
    assert_eq!(bench.load("child").await.projection, first.projection(), "load");
    let mut second = bench.continuation(&first, vec![step_started(2)]);
    second.status = Status::Running;
    bench.take(&second).await;
    assert_eq!(bench.describe("child").await, Some(second.projection()), "the suspension is gone");
}

async fn refusals_store_nothing(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let timer =
        Timer { execution: ExecutionId::trusted("a"), key: TimerKey::Abandoned, due: Timestamp(1) };
    let record = key("k", 1, 5000);

    let mut again = bench.creation("a");
    let mut stale = bench.continuation(&first, vec![step_started(2)]);
    stale.expected = Some(7);
    let mut unknown = bench.creation("never");
    unknown.expected = Some(1);
    for (draft, refusal) in [
        (&mut again, AppendError::Exists),
        (&mut stale, AppendError::Stale),
        (&mut unknown, AppendError::Stale),
    ] {
        draft.timers = vec![TimerChange::Arm(timer.clone())];
        draft.idempotency = Some(record.clone());
        draft.snapshot = Some(b"state".to_vec());
        assert_eq!(bench.append(draft).await, Err(refusal), "append to {}", draft.header.id);
    }

    let stored = bench.load("a").await;
    assert_eq!(stored.projection, first.projection(), "a refused append changes no row");
    assert_eq!(stored.facts, [started(1)], "nor facts");
    assert_eq!(stored.snapshot, None, "nor the snapshot");
    assert_eq!(bench.describe("never").await, None, "nor creates anything");
    assert!(bench.timers(i64::MAX, 10).await.is_empty(), "nor arms timers");
    let kept = read(bench.store.idempotency("k", Timestamp(0))).await;
    assert_eq!(kept, None, "nor takes a key");
    assert!(bench.store.is_writable(), "a refusal is no failure of the store");
}

async fn snapshots_cut_the_history(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.snapshot = Some(b"one".to_vec());
    bench.take(&first).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "a snapshot of the creation");
    assert!(stored.facts.is_empty(), "it includes the facts it came with");

    let second = bench.continuation(&first, steps(2..5));
    bench.take(&second).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "kept while there is no newer one");
    assert_eq!(numbers(&stored.facts), [2, 3, 4], "only facts after it");

    // A snapshot that ends with facts without events: they are in it, whatever their number.
    let mut third = bench.continuation(&second, vec![step_started(5), held(6)]);
    third.snapshot = Some(b"two".to_vec());
    bench.take(&third).await;
    let fourth = bench.continuation(&third, vec![held(6), step_started(6)]);
    bench.take(&fourth).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((5, b"two".to_vec())), "the newest snapshot");
    assert_eq!(stored.facts, [held(6), step_started(6)], "what was appended after the snapshot");
    let all = bench.facts("a", 0, 100).await;
    assert_eq!(numbers(&all), [1, 2, 3, 4, 5, 6, 6, 6], "readers still find the whole history");
}

async fn facts_come_in_pages(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let second = bench.continuation(&first, steps(2..6));
    bench.take(&second).await;
    let third = bench.continuation(&second, steps(6..9));
    bench.take(&third).await;
    let cases: [(u64, usize, &[u64]); 8] = [
        (0, 100, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (0, 1, &[1]),
        (0, 3, &[1, 2, 3]),
        (1, 2, &[2, 3]),
        (3, 4, &[4, 5, 6, 7]),
        (5, 100, &[6, 7, 8]),
        (8, 100, &[]),
        (2, 0, &[]),
    ];
    for (after, limit, expected) in cases {
        let page = bench.facts("a", after, limit).await;
        assert_eq!(numbers(&page), expected, "facts after {after}, at most {limit}");
    }
}

async fn facts_without_events_keep_their_place(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let mut draft = bench.continuation(&first, vec![held(2)]);
    bench.take(&draft).await;
    assert_eq!(draft.last_seq, 1, "no event went out");
    draft = bench.continuation(&draft, vec![held(2), held(2)]);
    bench.take(&draft).await;
    let resumed = Fact::StepResumed {
        path: Arc::from("a"),
        data: Arc::new(json!(null)),
        by: ResumedBy::Caller,
    };
    draft = bench.continuation(&draft, vec![recorded(2, resumed.clone()), step_started(3)]);
    bench.take(&draft).await;
    let stored = bench.load("a").await;
    let expected = [started(1), held(2), held(2), held(2), recorded(2, resumed), step_started(3)];
    assert_eq!(stored.facts, expected, "facts of one number keep their order");
    let page = bench.facts("a", 1, 1).await;
    assert_eq!(page, expected[1..5], "facts without events do not use up a page");
    assert_eq!(numbers(&bench.facts("a", 2, 1).await), [3], "the next page");
}

async fn large_facts_survive_changes_of_the_row(mut bench: Bench) {
    let mut first = bench.creation("a");
    let output = Arc::new(Value::String("x".repeat(100_000)));
    let large = Fact::StepCompleted {
        path: Arc::from("a"),
        attempt: 1,
        since: Timestamp(1),
        output,
        usage: None,
    };
    first.facts.push(recorded(2, large));
    first.last_seq = 2;
    first.status = Status::Running;
    bench.take(&first).await;
    let mut second = bench.continuation(&first, vec![completed(3)]);
    second.status = Status::Completed;
    bench.take(&second).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.facts[..2], first.facts[..], "the large facts");
    assert_eq!(stored.facts[2..], second.facts[..], "and what followed");
    assert_eq!(numbers(&bench.facts("a", 1, 10).await), [2, 3], "read in pages too");
}

async fn lists_are_filtered_and_paged(mut bench: Bench) {
    // Three statuses, two workflows, two users and nobody, pairs created at the same time.
    let mut drafts = Vec::new();
    for i in 0..60_i64 {
        let mut draft = bench.creation(&format!("e{i:02}"));
        draft.header.workflow_id = Arc::from(["order", "refund"][usize::from(i % 4 == 0)]);
        draft.header.created_at = Timestamp(1000 + i / 2);
        draft.header.user_id = match i % 3 {
            0 => None,
            1 => Some(Arc::from("u1")),
            _ => Some(Arc::from("u2")),
        };
        draft.status = match i % 5 {
            0 => Status::Running,
            1 => Status::Suspended,
            2 => Status::Error,
            _ => Status::Completed,
        };
        bench.take(&draft).await;
        drafts.push(draft);
    }
    // Some move on, so that no list shows where they once were.
    for draft in drafts.iter_mut().filter(|draft| draft.status == Status::Suspended).step_by(2) {
        let mut next = bench.continuation(draft, vec![completed(2)]);
        next.status = Status::Cancelled;
        bench.take(&next).await;
        *draft = next;
    }

    for filter in every_filter() {
        let mut expected: Vec<&Draft> = drafts.iter().filter(|d| wanted(&filter, d)).collect();
        expected.sort_by_key(|draft| std::cmp::Reverse((draft.header.created_at, draft.row)));
        let expected: Vec<Projection> = expected.into_iter().map(Draft::projection).collect();
        for limit in [1, 7, 60] {
            let listed = list_all(&bench, &filter, limit).await;
            assert_eq!(listed, expected, "{filter:?} in pages of {limit}");
        }
    }
    let none = read(bench.store.list(&ExecutionFilter::default(), None, 0)).await;
    assert_eq!(none, (Vec::new(), None), "a page of none");
}

fn every_filter() -> Vec<ExecutionFilter> {
    let mut filters = Vec::new();
    for workflow in [None, Some("order"), Some("nope")] {
        for status in Status::ALL.into_iter().map(Some).chain([None]) {
            for user in [None, Some("u1")] {
                for (from, to) in
                    [(None, None), (Some(1005), None), (None, Some(1020)), (Some(1005), Some(1006))]
                {
                    filters.push(ExecutionFilter {
                        workflow_id: workflow.map(str::to_owned),
                        status,
                        user_id: user.map(str::to_owned),
                        from: from.map(Timestamp),
                        to: to.map(Timestamp),
                    });
                }
            }
        }
    }
    filters
}

fn wanted(filter: &ExecutionFilter, draft: &Draft) -> bool {
    let header = &draft.header;
    filter.workflow_id.as_deref().is_none_or(|id| *id == *header.workflow_id)
        && filter.status.is_none_or(|status| status == draft.status)
        && filter.user_id.as_deref().is_none_or(|id| header.user_id.as_deref() == Some(id))
        && filter.from.is_none_or(|from| from <= header.created_at)
        && filter.to.is_none_or(|to| header.created_at < to)
}

async fn list_all(bench: &Bench, filter: &ExecutionFilter, limit: usize) -> Vec<Projection> {
    let mut all = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let (page, next) = read(bench.store.list(filter, after, limit)).await;
        assert!(page.len() <= limit, "a page has at most {limit} rows");
        all.extend(page);
        match next {
            Some(cursor) => after = Some(cursor),
            None => return all,
        }
    }
}

async fn running_ones_are_found(mut bench: Bench) {
    let mut rows = Vec::new();
    for (id, status) in [
        ("a", Status::Running),
        ("b", Status::Suspended),
        ("c", Status::Running),
        ("d", Status::Running),
        ("e", Status::Completed),
    ] {
        let mut draft = bench.creation(id);
        draft.status = status;
        bench.take(&draft).await;
        rows.push(draft);
    }
    for (place, status) in [(1, Status::Running), (2, Status::Cancelled)] {
        let mut next = bench.continuation(&rows[place], vec![step_started(2)]);
        next.status = status;
        bench.take(&next).await;
    }
    let found = |place: usize| (rows[place].row, rows[place].header.id.clone());
    let all = read(bench.store.running(0, 10)).await;
    assert_eq!(all, [found(0), found(1), found(3)], "running now, oldest first");
    let first = read(bench.store.running(0, 2)).await;
    assert_eq!(first, [found(0), found(1)], "the first page");
    let rest = read(bench.store.running(rows[1].row, 2)).await;
    assert_eq!(rest, [found(3)], "the page after it");
}

fn timer(execution: &str, key: &TimerKey, due: i64) -> Timer {
    Timer { execution: ExecutionId::trusted(execution), key: key.clone(), due: Timestamp(due) }
}

fn arm(timer: &Timer) -> TimerChange {
    TimerChange::Arm(timer.clone())
}

fn disarm(timer: &Timer) -> TimerChange {
    TimerChange::Disarm { execution: timer.execution.clone(), key: timer.key.clone() }
}

async fn timers_are_armed_moved_and_disarmed(mut bench: Bench) {
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

    let moved = timer("a", &node, 5);
    let mut second = bench.continuation(&first, vec![step_started(2)]);
    second.timers = vec![arm(&moved), disarm(&of_ask)];
    bench.take(&second).await;
    assert_eq!(bench.timers(100, 10).await, [moved.clone(), abandoned.clone()], "moved");

    bench.store.change_timers(vec![disarm(&abandoned), arm(&of_ask)]);
    // The append behind it tells that the change was made.
    let third = bench.continuation(&second, vec![step_started(3)]);
    bench.take(&third).await;
    assert_eq!(bench.timers(100, 10).await, [moved, of_ask], "changed without an append");
}

async fn an_end_drops_timers_of_nodes(mut bench: Bench) {
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

fn key(scope: &str, after_seq: u64, expires: i64) -> IdempotencyRecord {
    IdempotencyRecord {
        scope: Arc::from(scope),
        body_hash: Arc::from("h"),
        execution: ExecutionId::trusted("a"),
        after_seq,
        expires_at: Timestamp(expires),
    }
}

async fn idempotency_keys_are_taken_until_they_expire(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.idempotency = Some(key("k", 1, 5000));
    bench.take(&first).await;
    let kept = |scope, now| read(bench.store.idempotency(scope, Timestamp(now)));
    assert_eq!(kept("k", 4999).await, Some(key("k", 1, 5000)), "kept until it expires");
    assert_eq!(kept("k", 5000).await, None, "not found once it has expired");
    assert_eq!(kept("other", 0).await, None, "a key that nobody took");

    let mut second = bench.creation("b");
    second.at = Timestamp(4999);
    second.idempotency = Some(key("k", 2, 9000));
    assert_eq!(bench.append(&second).await, Err(AppendError::KeyTaken), "taken");
    assert_eq!(bench.describe("b").await, None, "the whole append is refused");
    let mut again = bench.creation("a");
    again.idempotency = Some(key("k", 2, 9000));
    let refusal = bench.append(&again).await;
    assert_eq!(refusal, Err(AppendError::KeyTaken), "a repeated request hears of its key first");

    second.at = Timestamp(5000);
    bench.take(&second).await;
    let kept = read(bench.store.idempotency("k", Timestamp(5000))).await;
    assert_eq!(kept, Some(key("k", 2, 9000)), "an expired key is used anew");
}

async fn definitions_are_put_once(bench: Bench) {
    let (one, two) = (json!({ "id": "order", "steps": [1, 2.5] }), json!({ "id": "other" }));
    assert_eq!(read(bench.store.definition("h1")).await, None, "not there yet");
    read(bench.store.put_definition("h1", &one)).await;
    read(bench.store.put_definition("h1", &two)).await;
    assert_eq!(read(bench.store.definition("h1")).await, Some(one), "the first one stays");
    assert_eq!(read(bench.store.definition("h2")).await, None, "another hash");
}

async fn facts_are_published_before_they_are_acknowledged(mut bench: Bench) {
    let unheard = bench.creation("a");
    bench.take(&unheard).await;
    *bench.listener.wants_facts.lock().unwrap_or_else(PoisonError::into_inner) = true;
    let (taken, refused) = (bench.creation("b"), bench.creation("a"));
    bench.store.append(taken.append());
    bench.store.append(refused.append());
    let (mut published, mut results) = (Vec::new(), Vec::new());
    while results.len() < 2 {
        match bench.heard.recv().await.expect("the listener lives as long as the bench") {
            Heard::Published(facts) => {
                assert!(results.is_empty(), "published before acknowledged");
                published.extend(facts);
            }
            Heard::Committed(_, outcomes) => {
                results.extend(outcomes.into_iter().map(|outcome| outcome.result));
            }
        }
    }
    assert_eq!(results, [Ok(()), Err(AppendError::Exists)], "one taken, one refused");
    let (header, facts) = published.pop().expect("the facts were published");
    assert_eq!((&*header, &facts[..]), (&taken.header, &taken.facts[..]), "what was published");
    assert!(published.is_empty(), "refused facts are not published");
}
