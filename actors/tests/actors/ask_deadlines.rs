//! Deadlines of asks of calls, and reminders, of more asks than are read at once.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::definition::{StepDefinition, SuspendRule};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{
    Ask, AskChange, AskFilter, AskKind, AskState, Asks as _, ContinuationChange, GenerationRecord,
    GenerationStatus, GenerationWrite, Generations as _, NewAsk, Status,
};
use greenroom_actors::requests::StepStatus;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::approvals::{
    Effects, ask, calls, denied, generate, guarded, over_100, recorded, registry, request, text,
    world,
};
use crate::ask_access;
use crate::workflows::{Calls, all, resume, run, spawn, with_functions, workflow};

/// More asks than are read at once.
const MANY: usize = 150;

/// Deadline of the asks.
const DEADLINE: Duration = Duration::from_secs(60);

/// Time from the start to behind the look that follows the deadline.
const PAST_DEADLINE: Duration = Duration::from_secs(70);

/// A world for generations with this number of calls each, which are refused after [`DEADLINE`].
async fn refusing(generations: usize, asks: usize) -> World {
    let ids: Vec<_> = (0..asks).map(|number| format!("c{number}")).collect();
    let call = |id| (id, "refund", json!({ "amount": 500 }));
    let turn = calls(&ids.iter().map(|id| call(id.as_str())).collect::<Vec<_>>());
    let first = vec![turn; generations];
    let script = first.into_iter().chain(vec![text("done"); generations]);
    let approval = over_100().deadline(DEADLINE);
    world(script, vec![guarded(&Effects::default(), approval)]).await.0
}

/// Stores asks of a generation whose continuation cannot be read: they stay open and due.
async fn add_damaged(world: &World, due: Timestamp) {
    let agent: Arc<str> = Arc::from("desk");
    let trace = Trace::of("damaged", EntityType::Agent, &agent, TraceOrigin::New);
    let record = GenerationRecord {
        id: "damaged".to_owned(),
        agent_id: agent.to_string(),
        status: GenerationStatus::Suspended,
        start_time: due,
        end_time: None,
        input: json!([]),
        output: None,
        usage: None,
        error: None,
        user_id: None,
        conversation_id: None,
        origin: None,
        trace,
    };
    let asks = (0..MANY).map(|number| {
        AskChange::Open(NewAsk {
            id: Arc::from(format!("ask_damaged{number}")),
            kind: AskKind::Approval,
            place: Arc::from(format!("call{number}")),
            tool_name: Some(Arc::from("refund")),
            reason: Arc::from("Refund?"),
            opened_at: due,
            deadline: Some(due),
            rules: AskRules::default(),
            next_due: Some(due),
            details: None,
        })
    });
    let write = GenerationWrite {
        row: world.store.next_generation_row().unwrap(),
        record,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Put { body: Arc::from("{"), asks: asks.collect() },
    };
    world.store.record_generation(write).await.unwrap();
}

/// Returns the open asks of this kind.
async fn open(world: &World, kind: AskKind) -> Vec<Ask> {
    let filter = AskFilter { is_open: true, kind: Some(kind), ..AskFilter::default() };
    world.store.asks(&filter, None, 2 * MANY).await.unwrap().asks
}

#[actix::test]
async fn a_deadline_passes_behind_more_asks_that_cannot_be_ended_than_are_read_at_once() {
    tokio::time::pause();
    let world = refusing(1, 1).await;
    let waiting = generate(&world).await;
    let id = &waiting.asks[0].ask_id;
    let deadline = ask(&world, id).await.deadline.unwrap();
    add_damaged(&world, Timestamp(deadline.0 - 1)).await;
    pass(PAST_DEADLINE).await;
    assert_eq!(ask(&world, id).await.state, AskState::Expired);
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Completed);
    assert_eq!(open(&world, AskKind::Approval).await.len(), MANY, "the others stay");
}

#[actix::test]
async fn deadlines_of_more_asks_than_are_read_at_once_pass_in_one_look() {
    tokio::time::pause();
    let world = refusing(3, MANY / 3).await;
    let mut all = Vec::new();
    for number in 0..3 {
        let conversation_id = Some(format!("talk {number}"));
        let request = GenerationRequest { conversation_id, ..request() };
        all.push(world.runtime.generate(request).await.unwrap());
    }
    assert_eq!(open(&world, AskKind::Approval).await.len(), MANY);
    pass(PAST_DEADLINE).await;
    assert_eq!(open(&world, AskKind::Approval).await, []);
    for waiting in all {
        let (status, _, outcomes) = recorded(&world, &waiting.id).await;
        assert_eq!(status, GenerationStatus::Completed);
        assert_eq!(outcomes, vec![denied("refused: it was not answered in time"); MANY / 3]);
    }
}

#[actix::test]
async fn a_deadline_of_the_agent_of_a_step_ends_no_pause() {
    tokio::time::pause();
    let call = calls(&[("c1", "refund", json!({ "amount": 500 }))]);
    let model = ScriptedModel::local([call, text("done")]);
    let tools = vec![guarded(&Effects::default(), over_100().deadline(DEADLINE))];
    let mut registry = registry(&model, tools);
    let asks = registry.workflows["w"].definition.steps.clone();
    let blocks = vec![("one", asks), ("two", vec![run("works", "hang")])];
    registry.workflows = registry_of([workflow("w", vec![all("both", blocks)])]).workflows;
    let registry = with_functions(registry, &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_secs(1)).await;
    let paused = world.runtime.suspend(&target("w", "e"), None, None).await;
    assert!(paused.is_ok(), "{paused:?}");
    let shown = async || {
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        (state.status, state.suspension.and_then(|it| it.id.clone()))
    };
    let before = shown().await;
    pass(PAST_DEADLINE).await;
    assert_eq!(open(&world, AskKind::Approval).await, []);
    assert_eq!(shown().await, before);
    let runtime = world.runtime.clone();
    actix::spawn(async move { drop(runtime.resume(&target("w", "e"), resume(json!({}))).await) });
    pass(Duration::from_secs(1)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    let asked = state.steps.iter().find(|step| step.path.ends_with("ask")).unwrap();
    assert_eq!((state.status, asked.status), (Status::Running, StepStatus::Completed));
}

#[actix::test]
async fn no_deadline_passes_once_the_process_drains() {
    tokio::time::pause();
    let world = refusing(1, 3).await;
    let waiting = generate(&world).await;
    // the look waits for the write of its first ask
    world.store.begin_outage();
    pass(PAST_DEADLINE).await;
    let runtime = world.runtime.clone();
    let draining = actix::spawn(async move { runtime.drain(Duration::ZERO).await });
    pass(Duration::from_millis(1)).await;
    world.store.end_outage();
    draining.await.unwrap();
    pass(PAST_DEADLINE).await;
    assert_eq!(open(&world, AskKind::Approval).await.len(), 2, "one was under way");

    let world = world.restart().await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Completed);
    assert_eq!(open(&world, AskKind::Approval).await, [], "the next process ends the others");
}

#[actix::test]
async fn a_reminder_comes_behind_more_asks_that_stay_due_than_are_read_at_once() {
    tokio::time::pause();
    let rule = SuspendRule { remind_ms: vec![60_000], ..SuspendRule::default() };
    let step = StepDefinition { suspend: Some(rule), ..ask_access::asking("a", &[]) };
    let world = ask_access::world(vec![workflow("w", vec![step])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let opened = open(&world, AskKind::Step).await.remove(0).opened_at;
    add_damaged(&world, Timestamp(opened.0 + 59_000)).await;
    pass(Duration::from_secs(76)).await;
    let reminded = open(&world, AskKind::Step).await.remove(0);
    assert_eq!((reminded.revision, reminded.rules.remind_ms.len()), (1, 0));
    assert_eq!(open(&world, AskKind::Approval).await.len(), MANY, "the others stay");
}
