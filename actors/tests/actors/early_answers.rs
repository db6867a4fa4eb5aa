//! Moments between two records: answers that come as soon as an ask is seen, before it is recorded that
//! anything waits for it, and processes that end between the end of a run and that of its step.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{GenerationStatus, Status};
use greenroom_actors::testkit::{World, pass, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, calls, guarded, over_100, recorded, registry, request, text, world,
};
use crate::approved_runs::{slow, with_boss};

/// Time until a database says that it has stored something.
const DELAY: Duration = Duration::from_secs(30);

/// A world in which `desk` makes a slow call and one that waits, and stores the ask without being notified
/// that it has.
async fn asking(effects: &Effects) -> World {
    let script = [
        calls(&[("s1", "slow", json!({})), ("c1", "refund", json!({ "amount": 500 }))]),
        text("refunded"),
    ];
    let tools = vec![guarded(effects, over_100()), slow(&Effects::default())];
    world(script, tools).await.0
}

/// Approves what is asked before those who ask are notified of the record.
async fn approve_early(world: &World) {
    pass(Duration::from_millis(9_900)).await;
    world.store.hold_acknowledgements();
    pass(Duration::from_millis(200)).await;
    answer(world, json!({ "approved": true })).await;
    pass(DELAY).await;
    world.store.release_acknowledgements();
    pass(Duration::from_secs(10)).await;
}

#[actix::test]
async fn a_step_continues_whose_ask_was_answered_before_it_waited() {
    tokio::time::pause();
    let effects = Effects::default();
    let world = asking(&effects).await;
    world.runtime.begin(start("w", "e", json!({}))).await.unwrap();
    approve_early(&world).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
}

#[actix::test]
async fn a_run_continues_whose_ask_was_answered_before_it_had_left() {
    tokio::time::pause();
    let effects = Effects::default();
    let world = asking(&effects).await;
    let begun = world.runtime.begin_generation(request()).await.unwrap();
    let id = begun.id.to_string();
    approve_early(&world).await;
    let (status, said, _) = recorded(&world, &id).await;
    assert_eq!((status, &*said), (GenerationStatus::Completed, "refunded"));
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
}

#[actix::test]
async fn a_run_continues_whose_sub_agent_was_answered_while_other_calls_ran() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[
            ("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" })),
            ("s1", "slow", json!({})),
        ]),
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
        text("inner done"),
        text("outer done"),
    ];
    let model = ScriptedModel::local(script);
    let tools = vec![guarded(&effects, over_100()), slow(&Effects::default())];
    let mut registry = with_boss(registry(&model, tools));
    let boss = AgentDefinition::clone(&registry.agents["boss"]);
    let boss = AgentDefinition { tools: Choice::Fixed(vec!["slow".to_owned()]), ..boss };
    registry.agents.insert("boss".to_owned(), Arc::new(boss));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let begun = world.runtime.begin_generation(asked).await.unwrap();
    let id = begun.id.to_string();
    pass(Duration::from_secs(1)).await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_secs(20)).await;
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("boss", &id, all).await.unwrap().unwrap();
    assert_eq!((entry.record.status, entry.record.error), (GenerationStatus::Completed, None));
    assert_eq!(entry.record.output, Some(json!("outer done")));
    let outcomes: Vec<_> = entry.steps[0].tool_results.iter().map(|it| &it.outcome).collect();
    let inner = ToolOutcome::Output(json!("inner done"));
    assert_eq!(outcomes, [&inner, &ToolOutcome::Output(json!("done"))]);
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
}

#[actix::test]
async fn a_step_whose_run_had_completed_when_the_process_ended_is_not_asked_again() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
        calls(&[("s1", "slow", json!({}))]),
        text("refunded"),
    ];
    let tools = vec![guarded(&effects, over_100()), slow(&Effects::default())];
    let (world, model) = world(script, tools).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_secs(1)).await;
    // the run ends, and its step is not notified
    world.store.hold_acknowledgements();
    pass(Duration::from_secs(20)).await;
    let world = world.restart().await;
    world.store.release_acknowledgements();
    pass(Duration::from_secs(1)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(
        (state.status, &state.result.unwrap()["text"]),
        (Status::Completed, &json!("refunded"))
    );
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
    assert_eq!(model.requests().len(), 3, "the model is not asked again");
}
