//! Lanes over a real database.

mod databases;
mod internal;
mod law;
mod outages;
mod ownership;
mod plans;
mod refusals;
mod replication;
mod rows;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::conformance::{started, step_started};
use greenroom_actors::ports::meter::{JournalMeter, SettledOutcome};
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Header, IdempotencyRecord, Journal as _,
    Projection, Row, Status, Ticket,
};
use support::PATIENCE;
use support::postgres::Server;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::{Client, NoTls};

use crate::settings::PostgresSettings;
use crate::store::PostgresStore;

/// A store in a new schema, and its outcomes.
struct Lab {
    store: Arc<PostgresStore>,
    tally: Arc<Tally>,
    outcomes: UnboundedReceiver<Acknowledgement>,
    /// A connection beside the store.
    client: Client,
}

/// Counts what happens to the connections of a store.
#[derive(Default)]
struct Tally {
    reconnects: AtomicU64,
    committed: AtomicU64,
    not_committed: AtomicU64,
    losses: AtomicU64,
    /// Makes the lane that connects again panic.
    is_poisoned: AtomicBool,
}

impl JournalMeter for Tally {
    fn committed(&self, _: usize, _: Duration) {}

    fn failed(&self) {}

    fn met_defect(&self) {}

    fn reconnected(&self) {
        assert!(!self.is_poisoned.load(Ordering::SeqCst), "poisoned");
        self.reconnects.fetch_add(1, Ordering::SeqCst);
    }

    fn settled(&self, outcome: SettledOutcome) {
        let count = match outcome {
            SettledOutcome::Committed => &self.committed,
            SettledOutcome::NotCommitted => &self.not_committed,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }

    fn lost_history(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }
}

impl Tally {
    /// Returns the counts of commits that had happened and had not, when they were unknown at first.
    fn settled(&self) -> (u64, u64) {
        (self.committed.load(Ordering::SeqCst), self.not_committed.load(Ordering::SeqCst))
    }
}

/// Facts of an execution.
type Published = (Arc<Header>, Arc<[Recorded]>);

struct Sink {
    outcomes: UnboundedSender<Acknowledgement>,
    published: OnceLock<UnboundedSender<Published>>,
}

impl CommitSink for Sink {
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>) {
        for outcome in outcomes {
            assert_eq!(outcome.ticket.shard, shard);
            // the lab may be gone
            let _ = self.outcomes.send(outcome);
        }
    }

    fn wants_facts(&self) -> bool {
        self.published.get().is_some()
    }

    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>) {
        let published = self.published.get().unwrap();
        facts.into_iter().for_each(|it| drop(published.send(it)));
    }
}

fn settings(url: &str, writers: usize) -> PostgresSettings {
    let address = url.parse().unwrap();
    PostgresSettings { writers, connections: 2, ..PostgresSettings::new(address, "test") }
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

impl Lab {
    /// Opens a store with one lane in a new schema of the shared server.
    async fn open() -> Option<Self> {
        let url = Server::shared()?.fresh_url();
        Some(Self::open_at(&url, &url, 1).await)
    }

    /// Opens a store at a URL; `direct` is that of the same schema without a proxy.
    async fn open_at(url: &str, direct: &str, writers: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let store = PostgresStore::open(settings(url, writers), Arc::clone(&tally) as _).unwrap();
        let (sender, outcomes) = unbounded_channel();
        store.attach(Arc::new(Sink { outcomes: sender, published: OnceLock::new() }));
        Self { store: Arc::new(store), tally, outcomes, client: client(direct).await }
    }

    /// Drafts an append to the execution in a row; revision 0 creates it, suspended.
    fn draft(&self, row: Row, revision: u64) -> Append {
        draft(&format!("e{row}"), row, revision)
    }

    /// Returns the outcome of the next append; its ticket has the row.
    async fn outcome(&mut self) -> (Row, u64, Result<(), AppendError>) {
        let outcome = tokio::time::timeout(PATIENCE, self.outcomes.recv()).await;
        let Acknowledgement { ticket, upto, result } = outcome.expect("an outcome").unwrap();
        (ticket.key as Row, upto, result)
    }

    async fn outcomes(&mut self, count: usize) -> Vec<(Row, u64, Result<(), AppendError>)> {
        let mut outcomes = Vec::with_capacity(count);
        for _ in 0..count {
            outcomes.push(self.outcome().await);
        }
        outcomes
    }

    /// Appends, and returns the result.
    async fn append(&mut self, append: Append) -> Result<(), AppendError> {
        let row = append.row;
        self.store.append(append);
        let (of, _, result) = self.outcome().await;
        assert_eq!(of, row);
        result
    }

    /// Returns the first column of the rows of a query as one text, a line for each row.
    async fn ask(&self, sql: &str) -> String {
        let rows = self.client.query(&format!("SELECT x::text FROM ({sql}) AS t (x)"), &[]).await;
        let texts = rows.unwrap().into_iter().map(|row| row.get::<_, String>(0));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Waits until a query gives a text.
    async fn until(&self, sql: &str, expected: &str) {
        let waiting = async {
            while self.ask(sql).await != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "never {expected:?}: {sql}: {}", self.ask(sql).await);
    }

    /// Makes the lane wait inside its next statement, until the lock is dropped.
    async fn hold(&self, url: &str) -> Client {
        let lock = client(url).await;
        lock.batch_execute("BEGIN; SELECT FROM lanes WHERE lane = 0 FOR UPDATE").await.unwrap();
        lock
    }
}

pub(super) fn draft(id: &str, row: Row, revision: u64) -> Append {
    let seq = revision + 1;
    let facts = if revision == 0 { started(seq) } else { step_started(seq) };
    let trace = Trace::of(id, EntityType::Workflow, &Arc::from("order"), TraceOrigin::New);
    let header = Header {
        id: ExecutionId::trusted(id),
        workflow_id: Arc::from("order"),
        definition_hash: Arc::from("d1"),
        user_id: None,
        conversation_id: None,
        parent: None,
        trace,
        created_at: Timestamp(1000),
    };
    let projection = Projection {
        header: Arc::new(header),
        status: Status::Suspended,
        updated_at: Timestamp(1000 + revision as i64),
        ended_at: None,
        last_seq: seq,
        suspension: None,
        others: None,
        error: None,
        replayed_from: None,
    };
    Append {
        ticket: Ticket { shard: 0, key: row as u64 },
        row,
        revision,
        projection,
        facts: vec![facts].into(),
        timers: Vec::new(),
        asks: Vec::new(),
        idempotency: None,
        snapshot: None,
    }
}

/// Ends an execution with this append.
fn ending(append: Append) -> Append {
    let mut append = append;
    append.projection.status = Status::Completed;
    append.projection.ended_at = Some(append.projection.updated_at);
    append
}

/// Takes a key with this append, which expires at the time 5000.
fn keyed(append: Append, scope: &str) -> Append {
    let mut append = append;
    append.idempotency = Some(IdempotencyRecord {
        scope: Arc::from(scope),
        body_hash: Arc::from("h"),
        execution: append.projection.header.id.clone(),
        after_seq: append.projection.last_seq,
        expires_at: Timestamp(5000),
    });
    append
}
