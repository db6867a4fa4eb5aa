//! Turns with tools.

use crate::domain::message::{Part, ToolOutcome};
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use crate::ports::model::{FinishReason, ToolChoice};

use super::*;

fn world(script: impl IntoIterator<Item = ScriptedAnswer>) -> World {
    World::with(ScriptedModel::local(script), History::default(), with_tools)
}

#[actix::test]
async fn results_of_tools_go_to_the_model() {
    tokio::time::pause();
    let world = world([calls([call("c1", "add", 1), call("c2", "fail", 0)]), text("two")]);
    let generation = world.run(request(None)).await.unwrap();

    assert_eq!(generation.text, "two");
    assert_eq!(generation.finish_reason, FinishReason::Stop);
    assert_eq!(generation.usage.total_tokens, 4);
    assert_eq!(generation.tool_calls, [call("c1", "add", 1), call("c2", "fail", 0)]);
    let outcomes: Vec<_> = generation.tool_results.iter().map(|result| &result.outcome).collect();
    let failed = ToolOutcome::Error("no luck".to_owned());
    assert_eq!(outcomes, [&ToolOutcome::Output(json!(2)), &failed]);
    let asked = &world.model.requests()[1].messages;
    let [_, _, said, results] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(said.parts.len(), 2);
    assert_eq!((results.role, results.parts.len()), (Role::Tool, 2));
    let names: Vec<_> =
        world.model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(["add", "fail", "hang"].iter().all(|name| names.iter().any(|n| n == name)));
}

#[actix::test]
async fn tools_of_a_turn_run_concurrently() {
    tokio::time::pause();
    let asked = [call("c1", "add", 3), call("c2", "add", 2), call("c3", "add", 1)];
    let world = world([calls(asked), text("done")]);
    let begin = tokio::time::Instant::now();
    let generation = world.run(request(None)).await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 3);
    let ids: Vec<_> = generation.tool_results.iter().map(|r| r.tool_call_id.as_str()).collect();
    assert_eq!(ids, ["c1", "c2", "c3"], "results are in the order of the calls");
}

#[actix::test]
async fn questions_and_calls_wait_for_the_record() {
    tokio::time::pause();
    // steps written, calls made and questions asked after each commit
    let turn = "0: c1!";
    let result = "0: c1! c1={\"output\":1}";
    let last = "1:done";
    let local = vec![(vec![turn], 0, 1), (vec![turn, result, last], 1, 2)];
    let remote = vec![
        (vec![], 0, 0),
        (vec![turn], 0, 1),
        (vec![turn, result], 1, 1),
        (vec![turn, result, last], 1, 2),
    ];
    let script = || [calls([call("c1", "add", 0)]), text("done")];
    let rows = [
        ("a local model", ScriptedModel::local(script()), local),
        ("a remote model", ScriptedModel::remote(script()), remote),
    ];
    for (name, model, commits) in rows {
        let world = World::with(model, History::gated(), with_tools);
        let handle = world.spawn(request(None));
        for (steps, calls, questions) in commits {
            settle().await;
            assert_eq!(world.history.steps(), steps, "{name}");
            assert_eq!(world.calls.made(), calls, "{name}: {steps:?}");
            assert_eq!(world.model.requests().len(), questions, "{name}: {steps:?}");
            world.history.commit();
        }
        assert_eq!(handle.outcome().await.unwrap().text, "done", "{name}");
    }
}

#[actix::test]
async fn a_call_without_a_tool_is_an_error_for_the_model() {
    tokio::time::pause();
    let world = World::local([calls([call("c1", "nothing", 0)]), text("sorry")]);
    let generation = world.run(request(None)).await.unwrap();
    assert_eq!(generation.text, "sorry");
    assert!(matches!(generation.tool_results[0].outcome, ToolOutcome::Error(_)));
}

#[actix::test]
async fn an_unknown_tool_of_the_agent_fails_the_run() {
    tokio::time::pause();
    let world = World::with(ScriptedModel::local([]), History::default(), |agent| {
        agent.tools = Choice::Fixed(vec!["nothing".to_owned()]);
    });
    let refused = world.run(request(None)).await.unwrap_err();
    assert!(refused.to_string().contains("nothing"), "{refused}");
    assert_eq!(world.history.statuses(), [GenerationStatus::Error]);
}

#[actix::test]
async fn an_object_may_come_after_tools() {
    tokio::time::pause();
    let world = world([calls([call("c1", "add", 1)]), text("{"), text("{\"n\":2}")]);
    let schema = json!({ "type": "object", "required": ["n"] });
    let generation = world.run(request(Some(schema))).await.unwrap();
    assert_eq!(generation.object, Some(json!({ "n": 2 })));
    assert_eq!(generation.tool_results.len(), 1);
    assert_eq!(world.history.steps().len(), 4, "the turn, its results, the repair, the object");
}

#[actix::test]
async fn provider_state_is_sent_back() {
    tokio::time::pause();
    let state = crate::ports::model::ProviderState {
        provider: "p".to_owned(),
        state: json!({ "signature": "s" }),
    };
    let answer = crate::ports::model::ModelAnswer {
        reasoning: "hm".to_owned(),
        tool_calls: vec![call("c1", "add", 0)],
        provider_state: Some(state),
        ..Default::default()
    };
    let world = world([ScriptedAnswer::Answer(answer), text("done")]);
    world.run(request(None)).await.unwrap();
    let asked = &world.model.requests()[1].messages;
    let kinds: Vec<_> = asked[2].parts.iter().map(std::mem::discriminant).collect();
    let expected = [
        Part::Reasoning { text: String::new() },
        Part::ProviderState { provider: String::new(), state: Value::Null },
        Part::ToolCall(call("c1", "add", 0)),
    ];
    assert_eq!(kinds, expected.iter().map(std::mem::discriminant).collect::<Vec<_>>());
}

/// Returns the request with a tool of the caller's own.
fn with_own(name: &str) -> GenerationRequest {
    let tool = ToolSpec {
        name: name.to_owned(),
        description: "Shows a map".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    GenerationRequest { client_tools: Arc::from([tool]), ..request(None) }
}

#[actix::test]
async fn calls_of_the_callers_tools_end_the_run() {
    tokio::time::pause();
    let rows = [
        (vec![call("c1", "map", 0)], 0),
        // the agent's own are made nevertheless, before or behind
        (vec![call("c1", "map", 0), call("c2", "add", 1)], 1),
        (vec![call("c1", "add", 1), call("c2", "map", 0), call("c3", "map", 1)], 1),
    ];
    for (asked, made) in rows {
        let world = world([calls(asked.clone())]);
        let generation = world.run(with_own("map")).await.unwrap();
        assert_eq!(generation.finish_reason, FinishReason::ToolCalls);
        assert_eq!(generation.tool_calls, asked);
        let results: Vec<_> =
            generation.tool_results.iter().map(|result| result.tool_name.as_str()).collect();
        assert_eq!(results, vec!["add"; made]);
        assert_eq!(world.history.last().status, GenerationStatus::Completed);
        let names: Vec<_> =
            world.model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names.last().map(String::as_str), Some("map"), "{names:?}");
    }
}

#[actix::test]
async fn the_choice_of_tools_is_for_the_first_answer() {
    tokio::time::pause();
    let world = world([calls(vec![call("c1", "add", 1)]), text("done")]);
    let choice = ToolChoice::Tool("map".into());
    world.run(GenerationRequest { tool_choice: choice.clone(), ..with_own("map") }).await.unwrap();
    let choices: Vec<_> =
        world.model.requests().iter().map(|request| request.tool_choice.clone()).collect();
    assert_eq!(choices, [choice, ToolChoice::Auto]);
}

#[actix::test]
async fn names_of_the_callers_tools_must_be_free() {
    tokio::time::pause();
    let world = world([]);
    let refused = world.run(with_own("add")).await.unwrap_err();
    let text = "invalid request: tools[0]: add: the agent has a tool of this name";
    assert_eq!(refused.to_string(), text);
    let mut twice = with_own("map");
    twice.client_tools = [&*twice.client_tools, &*twice.client_tools].concat().into();
    let refused = world.run(twice).await.unwrap_err();
    assert_eq!(refused.to_string(), "invalid request: tools[1]: map: two tools have this name");
    assert_eq!(world.model.requests().len(), 0);
}
