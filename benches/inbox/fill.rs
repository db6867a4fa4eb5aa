//! Fills a store through its port, with many writes at once.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actors::domain::fact::{Fact, Recorded, Start};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, AskAnswer, AskChange, AskKind, AskRevision, AskState,
    CommitSink, ContinuationChange, GenerationRecord, GenerationStatus, GenerationWrite, Header,
    NewAsk, Projection, Row, Status, Store, Ticket,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::Outcome;
use crate::asked::{Asked, Spread};
use crate::place::Place;

/// Maximum number of writes that are not yet committed.
const WRITES: u32 = 4_096;
/// Pause until the store has numbers of rows again.
const PAUSE: Duration = Duration::from_millis(1);

/// Stores the asks, each with its execution or generation.
pub(crate) fn fill(place: &Place, spread: Spread) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let store = place.open()?;
    let filled: Outcome<u64> = runtime.block_on(async {
        let (filler, mut claims) = (Filler::new(Arc::clone(&store)), Vec::new());
        for ask in spread.asks() {
            filler.write(&ask).await?;
            claims.extend(claimed(ask));
        }
        filler.finish().await?;
        for claim in claims {
            if !store.revise_ask(claim).await? {
                return Err("an ask cannot be claimed".into());
            }
        }
        Ok(store.open_ask_counts().await?.by_kind.iter().map(|(_, count)| count).sum())
    });
    store.close();
    drop(store);
    match filled {
        Ok(count) if count == spread.open => place.tidy(),
        Ok(count) => Err(format!("{count} asks are open").into()),
        Err(error) => Err(error),
    }
}

/// Room for writes, which committed ones leave, and the first failure.
struct Room {
    left: Semaphore,
    failure: OnceLock<AppendError>,
}

impl Room {
    fn leave(&self, outcome: Result<(), AppendError>) {
        if let Err(error) = outcome {
            // the first one is enough
            let _ = self.failure.set(error);
        }
        self.left.add_permits(1);
    }
}

impl CommitSink for Room {
    fn committed(&self, _: usize, outcomes: Vec<Acknowledgement>) {
        outcomes.into_iter().for_each(|outcome| self.leave(outcome.result));
    }

    fn wants_facts(&self) -> bool {
        false
    }

    fn publish(&self, _: Vec<(Arc<Header>, Arc<[Recorded]>)>) {}
}

struct Filler {
    store: Arc<dyn Store>,
    room: Arc<Room>,
}

impl Filler {
    fn new(store: Arc<dyn Store>) -> Self {
        let left = Semaphore::new(WRITES as usize);
        let room = Arc::new(Room { left, failure: OnceLock::new() });
        store.attach(Arc::clone(&room) as Arc<dyn CommitSink>);
        Self { store, room }
    }

    /// Queues the write of an ask.
    async fn write(&self, ask: &Asked) -> Outcome<()> {
        self.enter(1).await?;
        if is_call(ask.kind) {
            let row = some(|| self.store.next_generation_row()).await;
            let written = self.store.record_generation(generation(ask, row));
            let room = Arc::clone(&self.room);
            tokio::spawn(async move { room.leave(written.await) });
        } else {
            let row = some(|| self.store.next_row()).await;
            self.store.append(append(ask, row));
        }
        Ok(())
    }

    /// Waits until everything is committed.
    async fn finish(&self) -> Outcome<()> {
        self.enter(WRITES).await?;
        self.room.left.add_permits(WRITES as usize);
        Ok(())
    }

    async fn enter(&self, writes: u32) -> Outcome<()> {
        self.room.left.acquire_many(writes).await?.forget();
        self.room.failure.get().map_or(Ok(()), |error| Err(error.clone().into()))
    }
}

async fn some(next: impl Fn() -> Option<Row>) -> Row {
    loop {
        if let Some(row) = next() {
            return row;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the only append of the execution. Of its facts, it has the first and the last: lists read
/// none.
fn append(ask: &Asked, row: Row) -> Append {
    let (id, workflow_id) = (ask.owner_id(), Arc::clone(&ask.of));
    let trace = Trace::of(&id, EntityType::Workflow, &workflow_id, TraceOrigin::New);
    let start = Start {
        workflow_id: Arc::clone(&workflow_id),
        definition_hash: Arc::from("inbox"),
        input: Arc::new(input()),
        user_id: Some(Arc::clone(&ask.user)),
        conversation_id: None,
        context: Arc::new(json!({ "userId": ask.user })),
        parent: None,
        depth: 0,
        trace: trace.clone(),
        replayed: None,
        reversal: None,
    };
    let header = Header {
        id: ExecutionId::trusted(id),
        workflow_id,
        definition_hash: Arc::clone(&start.definition_hash),
        user_id: start.user_id.clone(),
        conversation_id: None,
        parent: None,
        trace,
        created_at: ask.opened,
    };
    let start = Fact::WorkflowStarted(Box::new(start));
    let mut facts = vec![Recorded { seq: 1, at: ask.opened, fact: start, by: None }];
    let end = ask.closed.map(|(_, at)| at);
    facts.extend(end.map(|at| {
        let fact = Fact::WorkflowCompleted { since: ask.opened, result: Arc::new(Value::Null) };
        Recorded { seq: 2, at, fact, by: None }
    }));
    let projection = Projection {
        header: Arc::new(header),
        status: if end.is_some() { Status::Completed } else { Status::Suspended },
        updated_at: end.unwrap_or(ask.opened),
        ended_at: end,
        last_seq: facts.last().map_or(0, |last| last.next_seq() - 1),
        suspension: None,
        others: None,
        error: None,
        replayed_from: None,
    };
    Append {
        ticket: Ticket { shard: 0, key: ask.number },
        row,
        revision: 0,
        projection,
        facts: facts.into(),
        timers: Vec::new(),
        asks: changes(ask),
        idempotency: None,
        snapshot: None,
    }
}

fn generation(ask: &Asked, row: Row) -> GenerationWrite {
    let (id, asks) = (ask.owner_id(), changes(ask));
    let record = GenerationRecord {
        agent_id: ask.of.to_string(),
        status: match ask.closed {
            Some(_) => GenerationStatus::Completed,
            None => GenerationStatus::Suspended,
        },
        start_time: ask.opened,
        end_time: ask.closed.map(|(_, at)| at),
        input: input(),
        output: None,
        usage: None,
        error: None,
        user_id: Some(ask.user.to_string()),
        conversation_id: None,
        origin: None,
        trace: Trace::of(&id, EntityType::Agent, &ask.of, TraceOrigin::New),
        id,
    };
    let continuation = match ask.closed {
        Some(_) => ContinuationChange::Remove { asks },
        None => ContinuationChange::Put { body: Arc::from("{}"), asks },
    };
    GenerationWrite { row, record, steps: Vec::new(), messages: None, continuation }
}

fn input() -> Value {
    json!({ "order": "2026-1174", "amount": 1200, "currency": "EUR" })
}

/// Opens the ask, and closes it if it is closed.
fn changes(ask: &Asked) -> Vec<AskChange> {
    let Asked { number, kind, rules, opened, deadline, closed, .. } = ask;
    let is_call = is_call(*kind);
    let opens = NewAsk {
        id: ask.id(),
        kind: *kind,
        place: Arc::from(if is_call { "call-1" } else { "manager" }),
        tool_name: is_call.then(|| Arc::from("refund")),
        reason: Arc::from(format!("Refund 1200 EUR of the order {number}")),
        opened_at: *opened,
        deadline: *deadline,
        rules: rules.clone(),
        next_due: next_due(ask),
        details: is_call.then(|| Arc::new(input())),
    };
    let closes = closed.map(|(state, at)| {
        let is_answered = is_call && state == AskState::Answered;
        let data = Arc::new(json!({ "approved": true }));
        let answer = is_answered.then(|| Arc::new(AskAnswer { by: None, data, key: None }));
        AskChange::Close { id: ask.id(), state, at, answer }
    });
    [Some(AskChange::Open(opens)), closes].into_iter().flatten().collect()
}

/// Returns the change of an open ask that is claimed.
fn claimed(ask: Asked) -> Option<AskRevision> {
    let (id, next_due) = (ask.id(), next_due(&ask));
    ask.claim.map(|claim| AskRevision {
        id,
        revision: 0,
        rules: ask.rules,
        claim: Some(claim),
        next_due,
    })
}

/// The deadline of a call is due; that of a step has a timer.
fn next_due(ask: &Asked) -> Option<Timestamp> {
    ask.deadline.filter(|_| is_call(ask.kind))
}

fn is_call(kind: AskKind) -> bool {
    match kind {
        AskKind::Approval | AskKind::Input => true,
        AskKind::Step | AskKind::Function | AskKind::Compensation => false,
    }
}
