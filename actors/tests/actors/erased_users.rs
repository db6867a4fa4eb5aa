//! Users who are erased while their generations run or are answered: nothing of theirs is stored
//! afterwards, and no step waits for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::store::{
    ContinuationChange, ConversationKey, Conversations as _, GenerationStatus, GenerationWrite,
    Generations as _, PageSize, Status,
};
use greenroom_actors::requests::StartExecution;
use greenroom_actors::testkit::{World, pass, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, ask, calls, decision, guarded, key, open_asks, over_100, registry, request,
    text,
};
use crate::generations::slowly;
use crate::workflows::spawn;

const AGENTS: [&str; 2] = ["desk", "clerk"];

/// Starts a world of `desk`, whose sub-agent `clerk` asks before it refunds.
async fn world(script: impl IntoIterator<Item = ScriptedAnswer>, effects: &Effects) -> World {
    let model = ScriptedModel::local(script);
    let mut registry = registry(&model, vec![guarded(effects, over_100())]);
    let clerk = AgentDefinition { id: "clerk".to_owned(), ..(*registry.agents["desk"]).clone() };
    let desk = AgentDefinition {
        sub_agents: vec!["clerk".to_owned()],
        tools: Choice::default(),
        ..(*registry.agents["desk"]).clone()
    };
    registry.agents.insert("clerk".to_owned(), Arc::new(clerk));
    registry.agents.insert("desk".to_owned(), Arc::new(desk));
    World::launch(registry, RuntimeLimits::default()).await
}

fn delegates() -> ScriptedAnswer {
    calls(&[("d1", "delegate_task", json!({ "agent": "clerk", "task": "refund" }))])
}

fn refunds() -> ScriptedAnswer {
    calls(&[("c1", "refund", json!({ "amount": 500 }))])
}

/// An execution of `ann`, whose step asks `desk` in the conversation of [`key`].
fn of_ann() -> StartExecution {
    StartExecution {
        user_id: Some("ann".to_owned()),
        conversation_id: Some(key().conversation_id.to_string()),
        ..start("w", "e", json!({}))
    }
}

/// Asserts that no generation and no conversation is stored for `ann`.
async fn assert_erased(world: &World, when: &str) {
    for agent in AGENTS {
        let history =
            world.store.generations(agent, Some("ann"), 0, PageSize::of(10)).await.unwrap();
        assert_eq!(history.entries, [], "{when}");
        let all = world.store.generations(agent, None, 0, PageSize::of(10)).await.unwrap();
        for entry in all.entries {
            let record = entry.record;
            assert_eq!(record.conversation_id, None, "{when}: {}", record.id);
            let kept = world.store.continuation(&record.id).await.unwrap();
            let body = kept.map(|kept| kept.body.to_string()).unwrap_or_default();
            assert!(!body.contains("ann"), "{when}: {body}");
        }
        let key = ConversationKey { agent_id: Arc::from(agent), ..key() };
        let conversation = world.store.conversation(&key).await.unwrap();
        assert!(conversation.is_none(), "{when}, of {agent}: {conversation:?}");
    }
}

/// Erases `ann` some moments after something began.
async fn erase_after(world: &World, moments: usize) {
    for _ in 0..moments {
        tokio::task::yield_now().await;
    }
    world.runtime.forget_user("ann").await.unwrap();
}

#[actix::test]
async fn a_step_waits_on_when_its_user_is_erased() {
    tokio::time::pause();
    let effects = Effects::default();
    let (inner, outer) = (text("inner done"), text("outer done"));
    let world = world([delegates(), refunds(), refunds(), inner, outer], &effects).await;
    drop(world.runtime.execute(of_ann()).await.unwrap());
    let of_step = open_asks(&world).await.remove(0);
    let chat = GenerationRequest { agent_id: "clerk".to_owned(), ..request() };
    let chat = world.runtime.generate(chat).await.unwrap();
    assert_eq!(open_asks(&world).await.len(), 2);

    world.runtime.forget_user("ann").await.unwrap();
    let open = open_asks(&world).await;
    assert_eq!(open.iter().map(|ask| &ask.id).collect::<Vec<_>>(), [&of_step.id]);
    let everything = Visibility::Everything;
    assert!(world.runtime.generation("clerk", &chat.id, &everything).await.unwrap().is_none());
    let world = world.restart().await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, effects.all().len()), (Status::Completed, 1));
    assert_erased(&world, "while it waited").await;
}

#[actix::test]
async fn a_step_continues_whenever_its_user_is_erased_beside_an_answer() {
    tokio::time::pause();
    for moments in 0..40 {
        let when = format!("after {moments}");
        let effects = Effects::default();
        let script = [delegates(), refunds(), text("inner done"), text("outer done")];
        let world = world(script, &effects).await;
        let halted = world.runtime.execute(of_ann()).await.unwrap();
        assert_eq!(halted.status(), Status::Suspended);
        let open = open_asks(&world).await.remove(0);
        let open = ask(&world, &open.id).await;
        let answering = world.runtime.answer_ask(open, decision(json!({ "approved": true })));
        let (answered, ()) = tokio::join!(answering, erase_after(&world, moments));
        answered.unwrap_or_else(|why| panic!("{when}: {why:?}"));
        pass(Duration::from_secs(120)).await;
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        assert_eq!((state.status, effects.all().len()), (Status::Completed, 1), "{when}");
        assert_erased(&world, &when).await;
    }
}

#[actix::test]
async fn a_chat_is_gone_whenever_its_user_is_erased_beside_an_answer() {
    tokio::time::pause();
    for moments in 0..40 {
        let when = format!("after {moments}");
        let script = [delegates(), refunds(), text("inner done"), text("outer done")];
        let world = world(script, &Effects::default()).await;
        let waiting = world.runtime.generate(request()).await.unwrap();
        let open = ask(&world, &waiting.asks[0].ask_id).await;
        let answering = world.runtime.answer_ask(open, decision(json!({ "approved": true })));
        // too late, or not
        let (_, ()) = tokio::join!(answering, erase_after(&world, moments));
        pass(Duration::from_secs(120)).await;
        assert_erased(&world, &when).await;
        assert_eq!(open_asks(&world).await, [], "{when}");
        for agent in AGENTS {
            let left = world.runtime.history(agent, &Visibility::Everything, 0, 10).await.unwrap();
            assert_eq!(left.entries, [], "{when}, of {agent}");
        }
    }
}

#[actix::test]
async fn the_agent_of_a_step_works_on_without_its_erased_user() {
    tokio::time::pause();
    let effects = Effects::default();
    let world = world([slowly()], &effects).await;
    spawn(&world, of_ann());
    pass(Duration::from_secs(1)).await;

    world.runtime.forget_user("ann").await.unwrap();
    pass(Duration::from_secs(12)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.steps[0].attempts), (Status::Completed, 1));
    let left = world.runtime.history("desk", &Visibility::Everything, 0, 10).await.unwrap();
    let left: Vec<_> = left.entries.iter().map(|entry| entry.record.status).collect();
    assert_eq!(left, [GenerationStatus::Completed]);
    assert_erased(&world, "while it worked").await;
}

#[actix::test]
async fn a_sub_agent_at_work_is_deleted_with_the_chat_of_its_erased_user() {
    tokio::time::pause();
    let world = world([delegates(), slowly(), text("outer done")], &Effects::default()).await;
    let runtime = world.runtime.clone();
    let chat = actix::spawn(async move { runtime.generate(request()).await });
    pass(Duration::from_secs(1)).await;
    world.runtime.forget_user("ann").await.unwrap();
    pass(Duration::from_secs(30)).await;
    assert!(chat.await.unwrap().is_err(), "it is cancelled");
    assert_erased(&world, "while the sub-agent worked").await;
    for agent in AGENTS {
        let left = world.runtime.history(agent, &Visibility::Everything, 0, 10).await.unwrap();
        assert_eq!(left.entries, [], "of {agent}");
    }
}

/// The user is erased while runs that another process began are being taken up.
#[actix::test]
async fn of_interrupted_runs_only_those_of_steps_continue() {
    tokio::time::pause();
    for is_step in [true, false] {
        let when = format!("of a step: {is_step}");
        let effects = Effects::default();
        let script = [delegates(), refunds(), slowly(), slowly(), text("outer done")];
        let world = world(script, &effects).await;
        match is_step {
            true => drop(world.runtime.execute(of_ann()).await.unwrap()),
            false => drop(world.runtime.generate(request()).await.unwrap()),
        }
        let open = open_asks(&world).await.remove(0);
        let open = ask(&world, &open.id).await;
        // the tool is called, and the process ends while the model answers
        world.runtime.answer_ask(open, decision(json!({ "approved": true }))).await.unwrap();
        pass(Duration::from_secs(1)).await;
        let world = world.restart().await;
        world.runtime.forget_user("ann").await.unwrap();
        pass(Duration::from_secs(120)).await;
        assert_erased(&world, &when).await;
        for agent in AGENTS {
            let left = world.runtime.history(agent, &Visibility::Everything, 0, 10).await.unwrap();
            assert_eq!(left.entries.len(), usize::from(is_step), "{when}, of {agent}");
        }
        if is_step {
            let state = world.runtime.describe(&target("w", "e")).await.unwrap();
            assert_eq!(state.status, Status::Completed);
            let keys: BTreeSet<_> = effects.keys().into_iter().collect();
            assert_eq!(keys.len(), 1, "{keys:?}");
        }
    }
}

#[actix::test]
async fn a_generation_whose_continuation_is_damaged_is_deleted_with_its_user() {
    tokio::time::pause();
    let world = world([refunds()], &Effects::default()).await;
    let chat = GenerationRequest { agent_id: "clerk".to_owned(), ..request() };
    let waiting = world.runtime.generate(chat).await.unwrap();
    let entry = world.store.generation(&waiting.id).await.unwrap().unwrap();
    let damaged = GenerationWrite {
        row: 0,
        record: entry.record,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Put { body: Arc::from("damaged"), asks: Vec::new() },
    };
    world.store.record_generation(damaged).await.unwrap();
    world.runtime.forget_user("ann").await.unwrap();
    assert_eq!(world.store.generation(&waiting.id).await.unwrap(), None);
    assert_eq!(open_asks(&world).await, []);
    assert_erased(&world, "after damage").await;
}
