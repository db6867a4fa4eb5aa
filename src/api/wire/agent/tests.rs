//! Agents and their answers on the wire.

use greenroom_actors::agent::tool::ToolBody;
use greenroom_actors::agent::{Choice, PendingAsk};
use greenroom_actors::ports::model::Served;
use greenroom_actors::ports::store::AskKind;
use serde_json::{json, to_value};

use super::*;

fn registry() -> Registry {
    let spec = ToolSpec {
        name: "add".into(),
        description: "Adds".into(),
        parameters: json!({ "type": "object" }),
    };
    let tool = ToolDefinition::new(spec, ToolBody::Workflow("sum".into())).unwrap();
    let clerk = AgentDefinition {
        id: "clerk".into(),
        name: "Clerk".into(),
        description: "Files".into(),
        ..AgentDefinition::default()
    };
    Registry {
        tools: [("add".to_owned(), Arc::new(tool))].into(),
        agents: [("clerk".to_owned(), Arc::new(clerk))].into(),
        ..Registry::default()
    }
}

#[test]
fn an_agent_has_the_fields_of_the_specification() {
    let agent = AgentDefinition {
        id: "assistant".into(),
        name: "Assistant".into(),
        description: "Helps".into(),
        instructions: Some("be kind".into()),
        model: "offline".into(),
        tools: Choice::Fixed(vec!["add".into()]),
        sub_agents: vec!["clerk".into()],
        memory: true,
        ..AgentDefinition::default()
    };
    let add = json!({ "name": "add", "description": "Adds", "parameters": { "type": "object" } });
    let registry = registry();
    let tools = registry.tools_of(&agent).unwrap();
    let ToolSpec { name, description, parameters } = &tools[1].spec;
    assert!(description.ends_with("- clerk: Files"), "{description}");
    let delegate =
        json!({ "name": "delegate_task", "description": description, "parameters": parameters });
    assert_eq!(delegate["name"], json!(name));
    let mut expected = json!({
        "id": "assistant", "name": "Assistant", "description": "Helps", "status": "working",
        "model": "offline", "tools": [add, delegate],
        "subAgents": [{ "id": "clerk", "name": "Clerk", "description": "Files" }],
        "memory": { "config": { "contextLimit": 10 } }, "isTelemetryEnabled": true
    });
    let now = AgentStatus { is_working: true, is_telemetry_enabled: true };
    assert_eq!(to_value(AgentView::of(&agent, &registry, now)).unwrap(), expected);
    expected["tools"] = json!(["add", "delegate_task"]);
    expected["toolDetails"] = json!([add, delegate]);
    assert_eq!(to_value(AgentDetailView::of(&agent, &registry, now)).unwrap(), expected);
}

#[test]
fn a_model_and_tools_from_the_context_are_not_shown() {
    let agent = AgentDefinition {
        model: Choice::Source("{{ context.model }}".into()),
        tools: Choice::Source("context.tools".into()),
        ..AgentDefinition::default()
    };
    let shown = to_value(AgentView::of(&agent, &registry(), AgentStatus::default())).unwrap();
    assert_eq!((&shown["model"], &shown["tools"]), (&json!("dynamic"), &json!([])));
    assert_eq!((&shown["status"], &shown["memory"]), (&json!("idle"), &Value::Null));
}

#[test]
fn a_text_has_the_fields_of_the_specification() {
    let generation = Generation {
        id: "g1".into(),
        text: "hello".into(),
        usage: Usage {
            prompt_tokens: 1,
            completion_tokens: 1,
            total_tokens: 2,
            ..Usage::default()
        },
        ..Generation::default()
    };
    let expected = json!({
        "text": "hello",
        "usage": { "promptTokens": 1, "completionTokens": 1, "totalTokens": 2,
                   "cachedInputTokens": 0, "reasoningTokens": 0 },
        "finishReason": "stop", "toolCalls": [], "toolResults": []
    });
    assert_eq!(to_value(TextView::of(&generation)).unwrap(), expected);

    let ask = PendingAsk {
        ask_id: "ask_1".into(),
        kind: AskKind::Approval,
        tool_call_id: "c1".into(),
        tool_name: "refund".into(),
        input: json!({ "amount": 500 }),
        reason: "Refund 500".to_owned(),
        schema: None,
        deadline: None,
        shown_at: None,
        refused: None,
    };
    let waits = Generation { asks: vec![ask], ..generation.clone() };
    let asks = json!([{ "askId": "ask_1", "kind": "approval", "toolCallId": "c1",
        "toolName": "refund", "input": { "amount": 500 }, "reason": "Refund 500" }]);
    let shown = to_value(WaitingObjectView::of(&waits)).unwrap();
    assert_eq!(
        (&shown["generationId"], &shown["status"], &shown["asks"], &shown["object"]),
        (&json!("g1"), &json!("suspended"), &asks, &Value::Null)
    );

    let served = Served { instead_of: Some("large".into()), ..Served::of("small") };
    let generation = Generation { stand_in: Some(Box::new(served)), ..generation };
    let shown = to_value(TextView::of(&generation)).unwrap();
    assert_eq!(shown["answeredBy"], json!({ "model": "small", "insteadOf": "large" }));
}
