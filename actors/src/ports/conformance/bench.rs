//! A store under test, its outcomes, and drafts of appends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::read;
use crate::domain::fact::{Fact, Others, Recorded, Start, Suspension, Trace};
use crate::domain::ids::ExecutionId;
use crate::domain::slot::SlotSet;
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, TraceOrigin};
use crate::ports::store::{
    Acknowledgement, Append, AppendError, AskChange, CommitSink, Failure, Header,
    IdempotencyRecord, Projection, Row, Status, Store, StoredExecution, Ticket, Timer, TimerChange,
};
use crate::ports::store::{FactCursor, Portion, ReplayedFrom};

/// A store under test, and its commits.
pub struct Bench {
    pub store: Arc<dyn Store>,
    sink: Arc<Sink>,
    pub(super) commits: UnboundedReceiver<Commit>,
    outcomes: VecDeque<Acknowledgement>,
    tickets: u64,
}

pub(super) enum Commit {
    Published(Vec<(Arc<Header>, Arc<[Recorded]>)>),
    Committed(usize, Vec<Acknowledgement>),
}

struct Sink {
    commits: UnboundedSender<Commit>,
    wants_facts: Mutex<bool>,
}

impl CommitSink for Sink {
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>) {
        // the bench may be gone
        let _ = self.commits.send(Commit::Committed(shard, outcomes));
    }

    fn wants_facts(&self) -> bool {
        *self.wants_facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>) {
        let _ = self.commits.send(Commit::Published(facts));
    }
}

impl Bench {
    /// Attaches to a store without a sink.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (sender, commits) = unbounded_channel();
        let sink = Arc::new(Sink { commits: sender, wants_facts: Mutex::new(false) });
        store.attach(sink.clone());
        Self { store, sink, commits, outcomes: VecDeque::new(), tickets: 0 }
    }

    /// Drafts the start of an execution of the workflow `order`, created and suspended at time
    /// 1000.
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
            row: self.row(),
            revision: 0,
            header,
            status: Status::Suspended,
            at: Timestamp(1000),
            last_seq: 1,
            suspension: None,
            error: None,
            replayed_from: None,
            others: None,
            facts: vec![started(1)],
            timers: Vec::new(),
            asks: Vec::new(),
            idempotency: None,
            snapshot: None,
        }
    }

    /// Drafts an append after another.
    pub fn continuation(&mut self, of: &Draft, facts: Vec<Recorded>) -> Draft {
        self.tickets += 1;
        let last_seq = facts.last().map_or(of.last_seq, |fact| fact.next_seq() - 1);
        Draft {
            ticket: Ticket { shard: 0, key: self.tickets },
            revision: of.revision + 1,
            at: of.at.plus_ms(1000),
            last_seq,
            suspension: None,
            error: None,
            others: None,
            facts,
            timers: Vec::new(),
            asks: Vec::new(),
            idempotency: None,
            snapshot: None,
            ..of.clone()
        }
    }

    /// Appends and waits for the outcome.
    pub async fn append(&mut self, draft: &Draft) -> Result<(), AppendError> {
        self.store.append(draft.append());
        let outcome = self.outcome().await;
        assert_eq!(outcome.ticket, draft.ticket, "the outcome has the append's ticket");
        assert_eq!(outcome.upto, draft.last_seq, "the outcome names the appended number");
        outcome.result
    }

    /// Appends, and asserts that it is accepted.
    pub async fn take(&mut self, draft: &Draft) {
        assert_eq!(self.append(draft).await, Ok(()), "append to {}", draft.header.id);
    }

    /// Waits for the next outcome.
    pub async fn outcome(&mut self) -> Acknowledgement {
        loop {
            if let Some(outcome) = self.outcomes.pop_front() {
                return outcome;
            }
            let commit = self.commits.recv().await.expect("the sink lives as long as the bench");
            self.add(commit);
        }
    }

    /// Returns the next outcome, if there is one.
    pub fn outcome_now(&mut self) -> Option<Acknowledgement> {
        while let Ok(commit) = self.commits.try_recv() {
            self.add(commit);
        }
        self.outcomes.pop_front()
    }

    /// Subscribes to facts.
    pub(super) fn want_facts(&self) {
        *self.sink.wants_facts.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn add(&mut self, commit: Commit) {
        match commit {
            Commit::Published(_) => {}
            Commit::Committed(shard, outcomes) => {
                let same = outcomes.iter().all(|outcome| outcome.ticket.shard == shard);
                assert!(same, "a shard gets only outcomes of its appends");
                self.outcomes.extend(outcomes);
            }
        }
    }

    pub(super) async fn load(&self, id: &str) -> StoredExecution {
        let id = ExecutionId::trusted(id);
        let found = read(self.store.load(&id)).await;
        found.expect("the execution is stored")
    }

    pub(super) async fn describe(&self, id: &str) -> Option<Projection> {
        let id = ExecutionId::trusted(id);
        read(self.store.describe(&id)).await
    }

    pub(super) async fn facts(&self, id: &str, after: u64, limit: usize) -> Vec<Recorded> {
        let id = ExecutionId::trusted(id);
        read(self.store.facts(&id, after, limit)).await
    }

    pub(super) async fn portion(&self, id: &str, from: FactCursor, bytes: usize) -> Portion {
        let id = ExecutionId::trusted(id);
        read(self.store.portion(&id, from, bytes)).await
    }

    pub(super) async fn timers(&self, until: i64, limit: usize) -> Vec<Timer> {
        self.timers_in(&SlotSet::all(), until, limit).await
    }

    pub(super) async fn timers_in(&self, slots: &SlotSet, until: i64, limit: usize) -> Vec<Timer> {
        read(self.store.timers_due(slots, Timestamp(until), limit)).await
    }

    /// Returns a new row number.
    pub fn row(&self) -> Row {
        self.store.next_row().expect("an open store has row numbers")
    }

    /// Returns a new row number of a generation.
    pub(super) fn generation_row(&self) -> Row {
        self.store.next_generation_row().expect("an open store has row numbers")
    }
}

/// Draft of an append.
#[derive(Debug, Clone)]
pub struct Draft {
    pub ticket: Ticket,
    pub row: Row,
    pub revision: u64,
    pub header: Header,
    pub status: Status,
    /// Time of the append.
    pub at: Timestamp,
    pub last_seq: u64,
    pub suspension: Option<Suspension>,
    pub error: Option<Failure>,
    pub replayed_from: Option<ReplayedFrom>,
    pub others: Option<Others>,
    pub facts: Vec<Recorded>,
    pub timers: Vec<TimerChange>,
    pub asks: Vec<AskChange>,
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
            error: self.error.clone().map(Arc::new),
            replayed_from: self.replayed_from.clone(),
            others: self.others.clone().map(Arc::new),
        }
    }

    pub fn append(&self) -> Append {
        Append {
            ticket: self.ticket,
            row: self.row,
            revision: self.revision,
            projection: self.projection(),
            facts: self.facts.as_slice().into(),
            timers: self.timers.clone(),
            asks: self.asks.clone(),
            idempotency: self.idempotency.clone(),
            snapshot: self.snapshot.clone(),
        }
    }
}

pub(super) fn trace() -> Trace {
    Trace::of("a", EntityType::Workflow, &Arc::from("order"), TraceOrigin::New)
}

pub(super) fn recorded(seq: u64, fact: Fact) -> Recorded {
    Recorded { seq, at: Timestamp(1000), fact, by: None }
}

/// Returns the first fact of an execution.
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
        replayed: None,
        reversal: None,
    };
    recorded(seq, Fact::WorkflowStarted(Box::new(start)))
}

/// Returns a fact with one event.
pub fn step_started(seq: u64) -> Recorded {
    recorded(
        seq,
        Fact::StepStarted { path: Arc::from("a"), attempt: 1, interrupted: false, opening: None },
    )
}

/// Returns a fact without events.
pub fn held(seq: u64) -> Recorded {
    recorded(seq, Fact::HoldPlaced { reason: Arc::from("wait"), id: None })
}

/// Returns the last fact of an execution, with two events.
pub fn completed(seq: u64) -> Recorded {
    let result = Arc::new(json!([1, "two", null]));
    recorded(seq, Fact::WorkflowCompleted { since: Timestamp(1000), result })
}

pub(super) fn steps(numbers: impl Iterator<Item = u64>) -> Vec<Recorded> {
    numbers.map(step_started).collect()
}

pub(super) fn numbers(facts: &[Recorded]) -> Vec<u64> {
    facts.iter().map(|fact| fact.seq).collect()
}
