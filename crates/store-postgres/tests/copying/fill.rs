//! A store with records of every kind.

use std::sync::Arc;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::fact::{Fact, Recorded, ResumedBy};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::ports::conformance::{Bench, Draft, completed, held, step_started};
use greenroom_actors::ports::store::{
    ApprovedTools, AskAnswer, AskChange, AskKind, AskRevision, AskState, Claim, ContinuationChange,
    ConversationKey, ConversationWrite, GenerationRecord, GenerationStatus, GenerationStep,
    GenerationWrite, IdempotencyRecord, KnownTool, NewAsk, Status, Store, StoredMessage, Timer,
    TimerChange, TimerKey,
};
use serde_json::{Value, json};

/// Fills a new store, and closes it; returns the newest append of an execution that waits.
pub(super) async fn fill(store: Arc<dyn Store>) -> Draft {
    let mut bench = Bench::new(Arc::clone(&store));
    let waiting = executions(&mut bench).await;
    put_definition(&*store, "d1", &json!({ "id": "order", "text": "grün \u{0000}" })).await;
    let tool = KnownTool {
        server: Arc::from("files"),
        tool: Arc::from("read"),
        first_seen: Timestamp(1000),
        hash: Arc::from("h"),
        accepted_at: Timestamp(2000),
        body: Arc::from("{\"text\":\"grün \u{0000}\"}"),
    };
    store.see_tools(vec![tool], 10).await.unwrap();
    generations(&*store).await;
    logs(&*store).await;
    store.close();
    waiting
}

async fn executions(bench: &mut Bench) -> Draft {
    for number in 0..5 {
        let mut first = bench.creation(&format!("ended-{number}"));
        first.header.user_id = (number % 2 == 0).then(|| Arc::from("u1"));
        first.status = Status::Completed;
        first.facts.push(completed(2));
        first.last_seq = 3;
        bench.take(&first).await;
    }
    // an id with a character that PostgreSQL's texts cannot contain, and the one that escapes it
    let mut odd = bench.creation("odd \u{0000}\u{1a}0");
    odd.header.workflow_id = Arc::from("\u{1a}");
    bench.take(&odd).await;

    let mut first = bench.creation("waiting");
    let execution = first.header.id.clone();
    let timer = |key| Timer { execution: execution.clone(), key, due: Timestamp(7000) };
    first.timers = vec![
        TimerChange::Arm(timer(TimerKey::Node(Arc::from("a\u{0000}")))),
        TimerChange::Arm(timer(TimerKey::AskChild(ExecutionId::trusted("child")))),
    ];
    first.idempotency = Some(IdempotencyRecord {
        scope: Arc::from("start u1 key"),
        body_hash: Arc::from("hash"),
        execution: execution.clone(),
        after_seq: 1,
        expires_at: Timestamp(i64::MAX),
    });
    bench.take(&first).await;
    let mut second = bench.continuation(&first, vec![held(2), held(2), step_started(2)]);
    second.snapshot = Some(b"state".to_vec());
    let (state, at) = (AskState::Answered, Timestamp(2000));
    second.asks = vec![
        AskChange::Open(ask("first \u{0000}", Some(Timestamp(7000)))),
        AskChange::Open(ask("second", None)),
        AskChange::Close { id: Arc::from("first \u{0000}"), state, at, answer: None },
    ];
    bench.take(&second).await;
    let resumed = Recorded {
        seq: 3,
        at: Timestamp(1000),
        fact: Fact::StepResumed {
            path: Arc::from("a"),
            data: Arc::new(json!({ "note": "u1" })),
            by: ResumedBy::Caller,
            id: None,
        },
        by: Some(Arc::new(Principal::verified("u1"))),
    };
    let third = bench.continuation(&second, vec![resumed]);
    bench.take(&third).await;
    third
}

pub(super) fn ask(id: &str, deadline: Option<Timestamp>) -> NewAsk {
    NewAsk {
        id: Arc::from(id),
        kind: AskKind::Function,
        place: Arc::from("a"),
        tool_name: None,
        reason: Arc::from("may I \u{0000}?"),
        opened_at: Timestamp(1000),
        deadline,
        rules: AskRules::default(),
        next_due: None,
        details: None,
    }
}

async fn generations(store: &dyn Store) {
    for number in 0..6 {
        let id = format!("g{number}");
        let texts: &[&str] = match number {
            0 => &["one", "two grün"],
            1 => &["three"],
            2 => &["four \u{0000}", "five"],
            _ => &[],
        };
        let conversation = if number == 1 { "other" } else { "talk" };
        let messages = (!texts.is_empty()).then_some((conversation, texts));
        let row = store.next_generation_row().unwrap();
        let write = GenerationWrite { row, ..generation(&id, messages) };
        store.record_generation(write).await.unwrap();
    }
    // a turn that is no longer in the row
    let turn = Arc::new(GenerationStep { text: "later".to_owned(), ..GenerationStep::default() });
    let again = GenerationWrite { steps: vec![(1, turn)], ..generation("g0", None) };
    store.record_generation(again).await.unwrap();
    waiting_calls(store).await;
    // a hole in the history
    let row = store.next_generation_row().unwrap();
    let mut last = GenerationWrite { row, ..generation("g6", None) };
    last.record.user_id = None;
    store.record_generation(last).await.unwrap();
    assert_eq!(store.drop_generations(vec![row]).await, Ok(1));
}

/// Lets a generation wait for people: one has answered, and another is about to.
async fn waiting_calls(store: &dyn Store) {
    let call = |id: &str| NewAsk {
        kind: AskKind::Approval,
        place: Arc::from("call \u{0000}"),
        tool_name: Some(Arc::from("pay")),
        rules: AskRules { remind_ms: vec![500], ..AskRules::default() },
        next_due: Some(Timestamp(1500)),
        details: Some(Arc::new(json!({ "amount": 12.5, "text": "grün \u{0000}" }))),
        ..ask(id, None)
    };
    let by = Some(Arc::new(Principal::verified("u2")));
    let answer = AskAnswer { by, data: Arc::new(json!({ "approved": true })), key: None };
    let (id, state, at) = (Arc::from("answered"), AskState::Answered, Timestamp(2000));
    let asks = vec![
        AskChange::Open(call("answered")),
        AskChange::Open(call("claimed")),
        AskChange::Close { id, state, at, answer: Some(Arc::new(answer)) },
    ];
    let continuation = ContinuationChange::Put { body: Arc::from("{\"turn\":1}"), asks };
    let mut write = GenerationWrite { continuation, ..generation("g3", None) };
    write.record.status = GenerationStatus::Suspended;
    store.record_generation(write).await.unwrap();
    let claim = AskRevision {
        id: Arc::from("claimed"),
        revision: 0,
        rules: AskRules { to: vec!["role:support".parse().unwrap()], ..AskRules::default() },
        claim: Some(Claim { by: Arc::from("u2 \u{0000}"), until: Timestamp(9000) }),
        next_due: Some(Timestamp(1600)),
    };
    assert_eq!(store.revise_ask(claim).await, Ok(true));
}

pub(super) fn key(id: &str) -> ConversationKey {
    let (agent_id, user_id) = (Arc::from("clerk"), Some(Arc::from("u1")));
    ConversationKey { agent_id, user_id, conversation_id: Arc::from(id) }
}

/// Returns a generation that adds messages to a conversation, named by their texts.
pub(super) fn generation(id: &str, messages: Option<(&str, &[&str])>) -> GenerationWrite {
    let record = GenerationRecord {
        id: id.to_owned(),
        agent_id: "clerk".to_owned(),
        status: GenerationStatus::Completed,
        start_time: Timestamp(100),
        end_time: Some(Timestamp(150)),
        input: json!("hi \u{0000}"),
        output: Some(json!({ "text": "hello" })),
        usage: None,
        error: None,
        user_id: Some("u1".to_owned()),
        conversation_id: messages.map(|(conversation, _)| conversation.to_owned()),
        origin: None,
        trace: Trace::of(id, EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New),
    };
    let message = |text: &&str| StoredMessage {
        id: (*text).to_owned(),
        role: Role::User,
        parts: vec![Part::Text { text: (*text).to_owned() }],
        created_at: Timestamp(1000),
        generation_id: Some(id.to_owned()),
    };
    let messages = messages.map(|(conversation, texts)| ConversationWrite {
        key: key(conversation),
        cut_after: None,
        messages: texts.iter().map(message).collect(),
        approved_tools: ApprovedTools::from([(Arc::from("pay"), Arc::from("schema"))]),
        at: Timestamp(1000),
    });
    let turn = Arc::new(GenerationStep { text: "turn".to_owned(), ..GenerationStep::default() });
    GenerationWrite {
        row: 0,
        record,
        steps: vec![(0, turn)],
        messages,
        continuation: ContinuationChange::Keep,
    }
}

async fn logs(store: &dyn Store) {
    let log = |number: i64| {
        Arc::new(LogRecord {
            at: Timestamp(number),
            level: LogLevel::ALL[number as usize % LogLevel::ALL.len()],
            target: Arc::from("test"),
            message: format!("record {number} \u{0000}"),
            attributes: vec![("number".to_owned(), json!(number))],
            scope: Arc::new(LogScope {
                user_id: (number % 2 == 0).then(|| Arc::from("u1")),
                execution_id: Some(ExecutionId::trusted("waiting")),
                ..LogScope::default()
            }),
        })
    };
    store.write_logs((0..1500).map(log).collect()).await.unwrap();
    // the first numbers are gone
    assert_eq!(store.prune_logs(Timestamp(300), 10_000).await, Ok(300));
}

pub(super) async fn put_definition(store: &dyn Store, hash: &str, definition: &Value) {
    store.put_definition(hash, definition).await.unwrap();
}

pub(super) async fn definition(store: &dyn Store, hash: &str) -> Option<Value> {
    store.definition(hash).await.unwrap()
}
