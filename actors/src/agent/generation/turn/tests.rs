//! Rules of turns, without an actor.

use serde_json::json;

use crate::domain::message::ToolOutcome;
use crate::domain::time::Timestamp;
use crate::ports::model::Usage;

use super::*;
use crate::agent::generation::object::read_object;

fn turns(schema: Option<Value>, bounds: Bounds) -> Turns {
    let schema = schema.map(|schema| compile_schema(schema).unwrap());
    let messages = vec![Message::text(Role::User, "hello")];
    Turns::new(Question { messages, schema, ..Question::default() }, bounds)
}

fn bounds(steps: u32, object_repairs: u32) -> Bounds {
    Bounds { steps, object_repairs, ..Bounds::default() }
}

fn answer(text: &str) -> ModelAnswer {
    let usage =
        Usage { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5, ..Usage::default() };
    let finish_reason = FinishReason::Length;
    ModelAnswer { text: text.to_owned(), usage, finish_reason, ..ModelAnswer::default() }
}

fn asking(ids: &[&str]) -> ModelAnswer {
    let tool_calls = ids.iter().map(|id| ToolCall {
        tool_call_id: (*id).to_owned(),
        tool_name: "add".to_owned(),
        input: json!({}),
    });
    ModelAnswer { tool_calls: tool_calls.collect(), ..answer("") }
}

fn done(finish_reason: FinishReason, object: Option<Value>) -> Next {
    Next::Done(Ended { finish_reason, object })
}

/// Passes the answer, read as [`Turns::reads`] demands.
fn answer_with(
    turns: &mut Turns,
    answer: ModelAnswer,
    transcript: &mut Transcript,
) -> Result<Next, GenerateError> {
    let read = turns.reads(&answer).map(|schema| read_object(&answer.text, schema, 100));
    turns.answered(answer, read, transcript)
}

/// Passes the answer, and lets every call return 1.
fn answered(
    turns: &mut Turns,
    transcript: &mut Transcript,
    answer: ModelAnswer,
) -> Result<Next, GenerateError> {
    let Next::Call(planned) = answer_with(turns, answer, transcript)? else {
        panic!("no tool is asked for")
    };
    let results = planned.iter().enumerate().filter_map(|(number, _)| {
        transcript.returned(number, ToolOutcome::Output(json!(1)), Usage::default(), Timestamp(0))
    });
    let results = results.collect();
    turns.tools_returned(results, transcript)
}

#[test]
fn a_schema_that_cannot_be_used_is_refused() {
    let remote = json!({ "$ref": "https://example.com/schema.json" });
    for schema in [remote, json!({ "type": "nonsense" })] {
        let refused = compile_schema(schema).unwrap_err();
        assert!(matches!(refused, GenerateError::InvalidSchema(_)), "{refused:?}");
    }
}

#[test]
fn a_text_ends_the_run_with_the_models_finish_reason() {
    let mut transcript = Transcript::default();
    let next = answer_with(&mut turns(None, bounds(1, 1)), answer("hi"), &mut transcript);
    assert_eq!(next, Ok(done(FinishReason::Length, None)));
    assert_eq!(transcript.last().unwrap().text, "hi");
    assert_eq!(transcript.usage().total_tokens, 5);
}

#[test]
fn results_are_in_the_next_question() {
    let mut turns = turns(None, bounds(2, 0));
    let mut transcript = Transcript::default();
    let next = answered(&mut turns, &mut transcript, asking(&["c1", "c2"]));
    assert_eq!(next, Ok(Next::Ask));
    let request = turns.request();
    let shape: Vec<_> = request.messages.iter().map(|m| (m.role, m.parts.len())).collect();
    assert_eq!(shape, [(Role::User, 1), (Role::Assistant, 2), (Role::Tool, 2)]);

    let next = answered(&mut turns, &mut transcript, asking(&["c3"]));
    assert_eq!(next, Ok(done(FinishReason::ToolCalls, None)), "two steps are all");
    assert_eq!(transcript.tool_results().count(), 3);
}

#[test]
fn an_object_that_misses_its_schema_is_asked_for_again() {
    let schema = json!({ "type": "object", "required": ["n"] });
    // repairs are not steps
    let mut turns = turns(Some(schema), bounds(1, 1));
    let mut transcript = Transcript::default();
    let next = answer_with(&mut turns, answer("{}"), &mut transcript).unwrap();
    assert!(matches!(next, Next::Repair { .. }), "{next:?}");

    let request = turns.request();
    let [_, said, complaint] = request.messages.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert_eq!((said.role, said.plain_text().as_str()), (Role::Assistant, "{}"));
    assert_eq!(complaint.role, Role::User);
    let words = complaint.plain_text();
    assert!(words.contains("n: missing"), "{words}");

    let next = answer_with(&mut turns, answer(r#"{"n":1}"#), &mut transcript);
    assert_eq!(next, Ok(done(FinishReason::Length, Some(json!({ "n": 1 })))));
    assert_eq!(transcript.usage().total_tokens, 10, "both turns count");
    let said = Message { id: None, role: Role::Assistant, parts: transcript.parts(&[], &[]) };
    assert_eq!(said.plain_text(), r#"{"n":1}"#, "rejected answers are left out");
}

#[test]
fn repairs_are_bounded() {
    for repairs in [0, 1, 3] {
        let mut turns = turns(Some(json!({ "type": "object" })), bounds(1, repairs));
        let mut transcript = Transcript::default();
        for _ in 0..repairs {
            let next = answer_with(&mut turns, answer("no"), &mut transcript);
            assert!(matches!(next, Ok(Next::Repair { .. })), "{next:?}");
        }
        let refused = answer_with(&mut turns, answer("no"), &mut transcript);
        assert!(matches!(refused, Err(GenerateError::Failed(_))), "{repairs}: {refused:?}");
    }
}

#[test]
fn tokens_that_are_used_up_end_the_run() {
    let schema = || Some(json!({ "type": "object" }));
    let spent = |tokens| Bounds { tokens: Some(tokens), ..bounds(9, 9) };
    let mut transcript = Transcript::default();
    let next = answer_with(&mut turns(None, spent(4)), asking(&["c1"]), &mut transcript);
    assert_eq!(next, Ok(done(FinishReason::Length, None)), "no tool is called");

    let mut within = turns(None, spent(5));
    let next = answered(&mut within, &mut Transcript::default(), asking(&["c1"]));
    assert_eq!(next, Ok(Next::Ask));

    let mut transcript = Transcript::default();
    let refused =
        answer_with(&mut turns(schema(), spent(4)), answer("no"), &mut transcript).unwrap_err();
    assert!(refused.to_string().contains("not JSON"), "{refused}");
    let mut transcript = Transcript::default();
    let refused =
        answer_with(&mut turns(schema(), spent(4)), asking(&["c1"]), &mut transcript).unwrap_err();
    assert_eq!(refused.to_string(), "the model gave no object: the run's token budget is used up");
}
