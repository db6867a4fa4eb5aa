//! Rules of runs that wait: budgets of time, and approvals that are remembered.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::agent::{AgentDefinition, Remember};
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::store::GenerationStatus;
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, calls, generate, guarded, key, over_100, recorded, registry, request, text,
    world,
};
use crate::approved_runs::slow;

/// A run with a budget of this time, of which the calls of `slow` need ten seconds each.
async fn budgeted(seconds: u64, script: Vec<ScriptedAnswer>, tools: Vec<ToolDefinition>) -> World {
    let model = ScriptedModel::local(script);
    let mut registry = registry(&model, tools);
    let mut desk = AgentDefinition::clone(&registry.agents["desk"]);
    desk.budget.time = Some(Duration::from_secs(seconds));
    registry.agents.insert("desk".to_owned(), Arc::new(desk));
    World::launch(registry, RuntimeLimits::default()).await
}

#[actix::test]
async fn a_budget_of_time_counts_work_and_not_what_people_need() {
    tokio::time::pause();
    let too_long = |seconds: u64| format!("the run took longer than {seconds}s");
    for (seconds, expected) in [(15, Some(too_long(15))), (25, None)] {
        let effects = Effects::default();
        let script = vec![
            calls(&[("c1", "slow", json!({}))]),
            calls(&[("c2", "refund", json!({ "amount": 500 }))]),
            calls(&[("c3", "slow", json!({}))]),
            text("done"),
        ];
        let tools = vec![slow(&effects), guarded(&effects, over_100())];
        let world = budgeted(seconds, script, tools).await;
        let waiting = generate(&world).await;
        pass(Duration::from_secs(3600)).await;
        let world = world.restart().await;
        answer(&world, json!({ "approved": true })).await;
        pass(Duration::from_secs(20)).await;
        let all = &Visibility::Everything;
        let entry = world.runtime.generation("desk", &waiting.id, all).await.unwrap().unwrap();
        assert_eq!(entry.record.error, expected, "{seconds} s");
    }
}

#[actix::test]
async fn a_budget_of_time_counts_the_work_before_an_interruption() {
    tokio::time::pause();
    let effects = Effects::default();
    let script =
        vec![calls(&[("c1", "slow", json!({}))]), calls(&[("c2", "slow", json!({}))]), text("x")];
    let world = budgeted(15, script, vec![slow(&effects)]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(12)).await;
    assert_eq!(effects.all().len(), 2);
    let world = world.restart().await;
    pass(Duration::from_secs(4)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Working);
    pass(Duration::from_secs(2)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Error);
}

#[actix::test]
async fn a_remembered_approval_outlives_the_messages_that_are_read() {
    tokio::time::pause();
    let effects = Effects::default();
    let ask = |id| calls(&[(id, "refund", json!({ "amount": 500 }))]);
    let script = [ask("c1"), text("done"), ask("c2"), text("done"), ask("c3"), text("done")];
    let tool = guarded(&effects, over_100().remember(Remember::Chat));
    let (world, _) = world(script, vec![tool]).await;
    generate(&world).await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let unread = GenerationRequest { context_limit: Some(0), ..request() };
    let next = world.runtime.generate(unread).await.unwrap();
    assert_eq!((next.asks.len(), effects.all().len()), (0, 2));
    assert_eq!(world.runtime.conversations().delete_conversation(key()).await, Ok(true));
    assert_eq!(generate(&world).await.asks.len(), 1, "the conversation has ended");
}

#[actix::test]
async fn a_remembered_approval_ends_with_the_schema_of_the_tool() {
    tokio::time::pause();
    let effects = Effects::default();
    let ask = |id| calls(&[(id, "refund", json!({ "amount": 500 }))]);
    let tool = guarded(&effects, over_100().remember(Remember::Chat));
    let (world, model) = world([ask("c1"), text("done"), ask("c2")], vec![tool.clone()]).await;
    generate(&world).await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let mut changed = tool.spec.clone();
    changed.parameters["properties"]["currency"] = json!({ "type": "string" });
    let changed = ToolDefinition::new(changed, tool.body.clone()).unwrap();
    let changed = ToolDefinition { approval: tool.approval.clone(), ..changed };
    world.runtime.exchange(registry(&model, vec![changed])).await.unwrap();
    assert_eq!(generate(&world).await.asks.len(), 1);
}
