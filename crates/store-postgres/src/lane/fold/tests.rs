//! The law of folding: batches leave the tables as their requests do one by one.

mod tables;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::ports::conformance::{held, step_started};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{
    AppendError, Ask, AskChange, AskFilter, AskKind, AskState, Asks, CommitSink, Executions as _,
    Journal as _, NewAsk, Read, Status, Timer,
};
use proptest::prelude::*;

use self::tables::Tables;
use super::*;
use crate::lane::tests::draft;

pub(crate) const EXECUTIONS: usize = 4;
pub(crate) const SCOPES: [&str; 3] = ["k0", "k1", "k2"];

/// One request, relative to what is stored when it is made.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// Appends to an execution, or creates it.
    Append(usize, Change),
    /// Creates an execution in a new row, whether its id exists or not.
    Create(usize, Change),
    Timers(Vec<TimerRequest>),
    /// A snapshot of a revision, or of the one before it.
    Snapshot(usize, u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Added to the revision that would follow.
    skew: u64,
    status: Status,
    /// True for each fact that has an event.
    facts: Vec<bool>,
    user: Option<u8>,
    /// Number of an ask that opens, or is closed in a state.
    asks: Vec<(u8, AskState)>,
    key: Option<usize>,
    timers: Vec<TimerRequest>,
    has_snapshot: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct TimerRequest {
    execution: usize,
    key: TimerKey,
    is_armed: bool,
}

fn timers() -> impl Strategy<Value = Vec<TimerRequest>> {
    let keys = [
        TimerKey::Node(Arc::from("a")),
        TimerKey::Node(Arc::from("b")),
        TimerKey::AskChild(ExecutionId::trusted("e0")),
        TimerKey::Abandoned,
    ];
    let timer = (0..EXECUTIONS, prop::sample::select(keys.to_vec()), any::<bool>());
    let timer =
        timer.prop_map(|(execution, key, is_armed)| TimerRequest { execution, key, is_armed });
    prop::collection::vec(timer, 0..4)
}

fn asks() -> impl Strategy<Value = Vec<(u8, AskState)>> {
    let state = prop::sample::select(vec![
        AskState::Open,
        AskState::Open,
        AskState::Answered,
        AskState::Withdrawn,
    ]);
    prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((0..5_u8, state), 1..4),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    (
        prop_oneof![9 => Just(0), 1 => Just(1)],
        prop::sample::select(vec![
            Status::Running,
            Status::Suspended,
            Status::Suspended,
            Status::Completed,
            Status::Error,
        ]),
        // many facts do not fit into a row that will change
        prop_oneof![
            6 => prop::collection::vec(any::<bool>(), 1..3),
            1 => Just(vec![true; 20]),
        ],
        prop::option::weighted(0.2, 0..2_u8),
        asks(),
        prop::option::weighted(0.3, 0..SCOPES.len()),
        timers(),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(skew, status, facts, user, asks, key, timers, has_snapshot)| Change {
            skew,
            status,
            facts,
            user,
            asks,
            key,
            timers,
            has_snapshot,
        })
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        12 => (0..EXECUTIONS, change()).prop_map(|(of, change)| Request::Append(of, change)),
        1 => (0..EXECUTIONS, change()).prop_map(|(of, change)| Request::Create(of, change)),
        2 => timers().prop_map(Request::Timers),
        2 => (0..EXECUTIONS, 0..2_u64).prop_map(|(of, back)| Request::Snapshot(of, back)),
    ]
}

/// Collects results of appends.
#[derive(Default)]
struct Results(Mutex<Vec<Result<(), AppendError>>>);

impl CommitSink for Results {
    fn committed(&self, _: usize, outcomes: Vec<Acknowledgement>) {
        self.0.lock().unwrap().extend(outcomes.into_iter().map(|outcome| outcome.result));
    }

    fn wants_facts(&self) -> bool {
        false
    }

    fn publish(&self, _: Vec<(Arc<Header>, Arc<[Recorded]>)>) {}
}

/// Takes requests one by one.
pub(crate) struct OneByOne {
    pub(crate) store: MemoryStore,
    results: Arc<Results>,
    time: i64,
}

fn now<T>(reading: Read<'_, T>) -> T {
    reading.now_or_never().unwrap().unwrap()
}

/// Returns all asks, by id.
pub(crate) async fn asks_of(store: &impl Asks) -> Vec<Ask> {
    let mut asks = Vec::new();
    for is_open in [true, false] {
        let filter = AskFilter { is_open, ..AskFilter::default() };
        asks.extend(store.asks(&filter, None, 1_000).await.unwrap().asks);
    }
    asks.sort_by(|a, b| a.id.cmp(&b.id));
    asks
}

pub(crate) fn id(of: usize) -> ExecutionId {
    ExecutionId::trusted(format!("e{of}"))
}

impl OneByOne {
    pub(crate) fn new() -> Self {
        let (store, results) = (MemoryStore::new(), Arc::new(Results::default()));
        store.attach(Arc::clone(&results) as _);
        Self { store, results, time: 0 }
    }

    /// Returns the results of the appends since the last call.
    pub(crate) fn results(&self) -> Vec<Result<(), AppendError>> {
        std::mem::take(&mut *self.results.0.lock().unwrap())
    }

    /// Takes a request; returns the job that a lane would get.
    pub(crate) fn take(&mut self, request: &Request) -> Job {
        match request {
            Request::Append(of, change) => {
                let stored = now(self.store.load(&id(*of)));
                let (row, revision) = match stored {
                    Some(stored) => (stored.row, stored.revision + 1 + change.skew),
                    None => (self.store.next_row().unwrap(), change.skew),
                };
                self.append(*of, row, revision, change)
            }
            Request::Create(of, change) => {
                let row = self.store.next_row().unwrap();
                self.append(*of, row, 0, change)
            }
            Request::Timers(requests) => {
                let changes = self.timers(requests, None);
                self.store.change_timers(0, changes.clone());
                Job::Timers(changes)
            }
            Request::Snapshot(of, back) => {
                let stored = now(self.store.load(&id(*of)));
                let (row, revision) = stored.map_or((0, 0), |it| (it.row, it.revision));
                let (execution, revision) = (id(*of), revision.saturating_sub(*back));
                let state = format!("unloaded at {revision}").into_bytes();
                let snapshot = Snapshot { execution, row, revision, state };
                self.store.store_snapshot(0, snapshot.clone());
                Job::Snapshot(snapshot)
            }
        }
    }

    fn append(&mut self, of: usize, row: Row, revision: u64, change: &Change) -> Job {
        self.time += 1;
        let last_seq = now(self.store.describe(&id(of))).map_or(0, |it| it.last_seq);
        let make = || {
            let mut append = draft(id(of).as_str(), row, revision);
            let mut seq = last_seq + 1;
            let facts = change.facts.iter().map(|has_event| {
                let mut fact = if *has_event { step_started(seq) } else { held(seq) };
                fact.by = change.user.map(|user| Principal::verified(format!("u{user}")).into());
                seq = fact.next_seq();
                fact
            });
            append.facts = facts.collect();
            let projection = &mut append.projection;
            projection.status = change.status;
            projection.updated_at = Timestamp(self.time);
            projection.ended_at = change.status.is_terminal().then_some(projection.updated_at);
            projection.last_seq = seq - 1;
            append.timers = self.timers(&change.timers, Some(of));
            append.asks = change.asks.iter().map(|(ask, state)| self.ask(*ask, *state)).collect();
            append.snapshot =
                change.has_snapshot.then(|| format!("appended at {revision}").into_bytes());
            append.idempotency = change.key.map(|key| IdempotencyRecord {
                scope: Arc::from(SCOPES[key]),
                body_hash: Arc::from("h"),
                execution: id(of),
                after_seq: seq - 1,
                expires_at: Timestamp(self.time + 6),
            });
            append
        };
        self.store.append(make());
        Job::Append(Box::new(PreparedAppend::new(make()).unwrap()))
    }

    /// Makes a change of an ask.
    fn ask(&self, number: u8, state: AskState) -> AskChange {
        let (id, at) = (Arc::from(format!("ask {number}")), Timestamp(self.time));
        if state != AskState::Open {
            return AskChange::Close { id, state, at, answer: None };
        }
        let remind_ms = number.is_multiple_of(3).then_some(5).into_iter().collect();
        AskChange::Open(NewAsk {
            id,
            kind: AskKind::Step,
            place: Arc::from("a"),
            tool_name: None,
            reason: Arc::from(format!("opened at {}", at.0)),
            opened_at: at,
            deadline: number.is_multiple_of(2).then_some(at),
            rules: AskRules { remind_ms, ..AskRules::default() },
            next_due: number.is_multiple_of(3).then_some(at.plus_ms(5)),
            details: None,
        })
    }

    /// Makes changes of timers. Nodes have some only where their execution exists.
    fn timers(&self, requests: &[TimerRequest], own: Option<usize>) -> Vec<TimerChange> {
        let fits = |request: &&TimerRequest| {
            own == Some(request.execution)
                || !matches!(request.key, TimerKey::Node(_))
                || now(self.store.describe(&id(request.execution))).is_some()
        };
        let change = |request: &TimerRequest| {
            let (execution, key) = (id(request.execution), request.key.clone());
            if request.is_armed {
                TimerChange::Arm(Timer { execution, key, due: Timestamp(self.time) })
            } else {
                TimerChange::Disarm { execution, key }
            }
        };
        requests.iter().filter(fits).map(change).collect()
    }

    /// Asserts that the tables have what is stored here.
    fn assert_equals(&self, tables: &Tables) {
        let mut counts = BTreeMap::new();
        let mut users = BTreeSet::new();
        for of in 0..EXECUTIONS {
            let stored = now(self.store.load(&id(of)));
            let all = now(self.store.facts(&id(of), 0, 1_000));
            let found = tables.load(id(of).as_str());
            let expected = stored.map(|it| {
                let status = status_code(it.projection.status);
                *counts
                    .entry((it.projection.header.workflow_id.to_string(), status))
                    .or_default() += 1;
                let named = all.iter().filter_map(|fact| fact.by.as_ref());
                users.extend(named.map(|by| (by.id.to_string(), it.row)));
                (it.row, it.revision, it.projection, it.snapshot, it.facts, all)
            });
            assert_eq!(found, expected, "e{of}");
        }
        assert_eq!(tables.counts(), counts);
        assert_eq!(tables.users, users);
        let asks = asks_of(&self.store).now_or_never().unwrap();
        assert_eq!(tables.asks.values().cloned().collect::<Vec<_>>(), asks);
        let due = now(self.store.timers_due(&SlotSet::all(), Timestamp(i64::MAX), 1_000));
        let timers: BTreeMap<_, _> =
            due.into_iter().map(|it| ((it.execution, it.key), it.due)).collect();
        assert_eq!(tables.timers, timers);
        for scope in SCOPES {
            let kept = now(self.store.idempotency(scope, Timestamp(i64::MIN)));
            assert_eq!(tables.keys.get(scope), kept.as_ref(), "{scope}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn batches_are_folded_as_one_by_one(
        batches in prop::collection::vec(prop::collection::vec(request(), 1..24), 1..6),
    ) {
        let (mut one_by_one, mut tables) = (OneByOne::new(), Tables::default());
        for batch in &batches {
            let jobs: Vec<_> = batch.iter().map(|request| one_by_one.take(request)).collect();
            let results = tables.commit(jobs);
            prop_assert_eq!(results, one_by_one.results());
            one_by_one.assert_equals(&tables);
        }
    }
}

fn append(of: usize, revision: u64) -> Job {
    let append = draft(id(of).as_str(), of as Row, revision);
    Job::Append(Box::new(PreparedAppend::new(append).unwrap()))
}

#[test]
fn appends_that_follow_one_another_are_one_row() {
    let jobs = [append(1, 3), append(2, 0), append(1, 4), append(2, 1), append(3, 0)];
    let (folded, count) = Folded::of(&jobs);
    assert_eq!((count, folded.executions.len()), (5, 3));
    let revisions = |row: Row| {
        let folding = &folded.executions[&row];
        (folding.creates(), folding.first().append.revision, folding.last().append.revision)
    };
    assert_eq!(revisions(1), (false, 3, 4));
    assert_eq!(revisions(2), (true, 0, 1));
    let counted: Vec<_> = folded.counted().into_values().collect();
    assert_eq!(counted, [3]);
    assert_eq!(folded.shape(), Shape::Progress);
}

#[test]
fn an_append_that_does_not_follow_ends_the_batch() {
    let jobs = [append(1, 3), append(1, 5), append(2, 0)];
    assert_eq!(Folded::of(&jobs).1, 1);
    assert_eq!(Folded::of(&jobs[1..]).1, 2);
}

#[test]
fn a_batch_has_the_smallest_shape_that_fits() {
    let shape = |jobs: &[Job]| Folded::of(jobs).0.shape();
    assert_eq!(shape(&[append(1, 0), append(2, 0)]), Shape::Creations);
    assert_eq!(shape(&[append(1, 0), append(1, 1)]), Shape::Progress);
    let disarm = TimerChange::Disarm { execution: id(1), key: TimerKey::Abandoned };
    assert_eq!(shape(&[append(1, 0), Job::Timers(vec![disarm])]), Shape::Everything);
    let mut asking = draft("e1", 1, 0);
    let (id, state, at) = (Arc::from("ask"), AskState::Answered, Timestamp(1));
    asking.asks = vec![AskChange::Close { id, state, at, answer: None }];
    let asking = Job::Append(Box::new(PreparedAppend::new(asking).unwrap()));
    assert_eq!(shape(&[asking]), Shape::Everything);
}
