//! Limits of runs.

use std::time::Duration;

use crate::agent::Budget;
use crate::domain::message::ToolOutcome;
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use crate::ports::model::{FinishReason, ModelEvent, Usage};

use super::*;

fn endless() -> impl Iterator<Item = ScriptedAnswer> {
    (0..100).map(|turn| calls([call(&format!("c{turn}"), "add", 0)]))
}

#[actix::test]
async fn steps_are_bounded() {
    tokio::time::pause();
    let rows = [
        ("by the caller", Some(2), Some(4), 2),
        ("by the agent", None, Some(3), 3),
        ("by the server", Some(1000), None, 5),
        ("by the server by default", None, None, 5),
        ("to one at least", Some(0), None, 1),
    ];
    for (name, of_caller, of_agent, expected) in rows {
        let model = ScriptedModel::local(endless());
        let world = World::with(model, History::default(), |agent| {
            with_tools(agent);
            agent.max_steps = of_agent;
        });
        let request = GenerationRequest { max_steps: of_caller, ..request(None) };
        let generation = world.run(request).await.unwrap();
        assert_eq!(world.model.requests().len(), expected, "{name}");
        assert_eq!(generation.finish_reason, FinishReason::ToolCalls, "{name}");
        assert_eq!(generation.tool_results.len(), expected, "{name}: the last tools have run");
    }
}

#[actix::test]
async fn a_missing_object_is_an_error() {
    tokio::time::pause();
    let model = ScriptedModel::local(endless());
    let world = World::with(model, History::default(), with_tools);
    let request = GenerationRequest { max_steps: Some(2), ..request(Some(json!(true))) };
    let error = world.run(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the model gave no object: the run reached its limit of 2 steps");
}

#[actix::test]
async fn repairs_follow_the_request_before_the_server() {
    tokio::time::pause();
    for (of_request, asked) in [(None, 2), (Some(0), 1), (Some(3), 4)] {
        let world = World::local((0..9).map(|_| text("no object")));
        let schema = Some(json!({ "type": "object" }));
        let request = GenerationRequest { object_repairs: of_request, ..request(schema) };
        world.run(request).await.unwrap_err();
        assert_eq!(world.model.requests().len(), asked);
    }
}

#[actix::test]
async fn tokens_are_bounded() {
    tokio::time::pause();
    // each turn uses two
    for (tokens, asked, called) in [(0, 1, 0), (2, 2, 1), (5, 3, 2)] {
        let world = World::with(ScriptedModel::local(endless()), History::default(), |agent| {
            with_tools(agent);
            agent.budget = Budget { tokens: Some(tokens), ..Budget::default() };
        });
        let generation = world.run(request(None)).await.unwrap();
        assert_eq!(generation.finish_reason, FinishReason::Length, "{tokens}");
        assert_eq!(world.model.requests().len(), asked, "{tokens}");
        assert_eq!(world.calls.made(), called, "{tokens}");
    }
}

#[actix::test]
async fn tool_calls_are_bounded() {
    tokio::time::pause();
    let many = |count: usize| calls((0..count).map(|n| call(&format!("c{n}"), "add", 0)));
    for (budget, asked, made) in [(Some(3), 5, 3), (Some(0), 2, 0), (None, 70, 64)] {
        let model = ScriptedModel::local([many(asked), text("done")]);
        let world = World::with(model, History::default(), |agent| {
            with_tools(agent);
            agent.budget = Budget { tool_calls: budget, ..Budget::default() };
        });
        let mut deps = world.deps.clone();
        deps.bytes_max = 1 << 20;
        let generation = World { deps, ..world }.run(request(None)).await.unwrap();
        assert_eq!(generation.text, "done", "the run continues");
        let outputs = generation
            .tool_results
            .iter()
            .filter(|result| matches!(result.outcome, ToolOutcome::Output(_)));
        assert_eq!(outputs.count(), made);
        assert_eq!(generation.tool_results.len(), asked);
    }
}

#[actix::test]
async fn tool_results_of_a_run_are_bounded_together() {
    tokio::time::pause();
    let said = calls((0..3).map(|n| call(&format!("c{n}"), "say", 2000)));
    let world =
        World::with(ScriptedModel::local([said, text("done")]), History::default(), with_tools);
    let generation = world.run(request(None)).await.unwrap();
    assert_eq!(generation.text, "done", "the run continues");
    let errors: Vec<_> = generation
        .tool_results
        .iter()
        .filter_map(|result| match &result.outcome {
            ToolOutcome::Output(_) | ToolOutcome::Denied(_) => None,
            ToolOutcome::Error(error) => Some(error.as_str()),
        })
        .collect();
    assert_eq!(errors, ["the results of this run exceed 4096 bytes in total"]);
}

#[actix::test]
async fn time_is_bounded() {
    tokio::time::pause();
    let rows = [
        ("the model", [ScriptedAnswer::Hang, text("-")]),
        ("a tool", [calls([call("c1", "hang", 0)]), text("-")]),
    ];
    for (name, script) in rows {
        let world = World::with(ScriptedModel::local(script), History::default(), |agent| {
            with_tools(agent);
            agent.budget = Budget { time: Some(Duration::from_secs(5)), ..Budget::default() };
        });
        let begin = tokio::time::Instant::now();
        let error = world.run(request(None)).await.unwrap_err();
        assert_eq!(begin.elapsed().as_secs(), 5, "{name}");
        assert_eq!(error.to_string(), "the run took longer than 5s", "{name}");
        assert_eq!(world.history.last().error.as_deref(), Some("the run took longer than 5s"));
        assert_eq!(world.calls.running(), 0, "{name}: tools are cancelled");
    }
}

#[actix::test]
async fn output_of_a_model_is_bounded() {
    tokio::time::pause();
    let word = ScriptedPiece::Say(ModelEvent::TextDelta("blah ".to_owned()));
    let endless = || {
        let finished = ModelEvent::Finished {
            usage: Usage::default(),
            finish_reason: FinishReason::Stop,
            served: None,
        };
        let mut pieces = vec![word.clone(); 10_000];
        pieces.push(finished.into());
        ScriptedAnswer::Pieces(pieces)
    };
    let whole = ScriptedAnswer::Text("blah ".repeat(10_000));
    for (name, answer, has_subscriber) in
        [("a stream", endless(), true), ("an answer", whole, false), ("pieces", endless(), false)]
    {
        let world = World::local([answer]);
        let recorder = Recorder::default();
        let (subscriber, _actor) = recorder.subscribe();
        let handle = world.spawn_for(request(None), has_subscriber.then_some(subscriber));
        let error = handle.outcome().await.unwrap_err();
        assert_eq!(error.to_string(), "the model's output exceeds 4096 bytes", "{name}");
        settle().await;
        assert!(recorder.text().len() <= 4096, "{name}");
    }
}
