//! Turns without an actor: what is asked, and what an answer leads to.

use serde_json::json;

use crate::ports::model::{ModelAnswer, ToolCall};

use super::*;

fn agent(instructions: Option<&str>) -> AgentDefinition {
    AgentDefinition {
        id: "writer".to_owned(),
        name: "Writer".to_owned(),
        description: String::new(),
        instructions: instructions.map(Choice::from),
        model: "scripted".into(),
        memory: false,
        max_steps: None,
        options: ModelOptions { seed: Some(1), ..ModelOptions::default() },
        ..AgentDefinition::default()
    }
}

fn question(schema: Option<Value>, context: Value) -> Question {
    let Value::Object(context) = context else { panic!("a context is an object") };
    let messages = vec![Message::text(Role::User, "hello")];
    Question { messages, options: ModelOptions::default(), schema, context }
}

fn turns(schema: Option<Value>, object_repairs: u32) -> Turns {
    let question = question(schema, json!({}));
    Turns::prepare("g1".to_owned(), &agent(None), question, object_repairs).unwrap()
}

fn answer(text: &str) -> ModelAnswer {
    let usage =
        Usage { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5, ..Usage::default() };
    ModelAnswer {
        text: text.to_owned(),
        tool_calls: Vec::new(),
        usage,
        finish_reason: FinishReason::Length,
        ..ModelAnswer::default()
    }
}

fn ended(next: Next) -> Result<Generation, GenerateError> {
    match next {
        Next::Break(outcome) => outcome,
        Next::Continue(()) => panic!("the model is asked again"),
    }
}

#[test]
fn instructions_come_first_and_know_the_context() {
    let anna = json!({ "tone": "dry", "user": { "name": "Anna" } });
    let cases = [
        ("none", None, anna.clone(), None),
        ("blank", Some("{{ '' }} "), anna.clone(), None),
        (
            "a template",
            Some("Be {{ context.tone }} to {{ user.name }}."),
            anna,
            Some("Be dry to Anna."),
        ),
        ("without a user", Some("{{ user is none }}"), json!({}), Some("true")),
    ];
    for (name, source, context, expected) in cases {
        let turns =
            Turns::prepare("g1".to_owned(), &agent(source), question(None, context), 1).unwrap();
        let request = turns.request();
        let said: Vec<_> =
            request.messages.iter().map(|m| (m.role, json!(m.plain_text()))).collect();
        let system = expected.map(|text| (Role::System, json!(text)));
        let expected: Vec<_> = system.into_iter().chain([(Role::User, json!("hello"))]).collect();
        assert_eq!(said, expected, "{name}");
        assert_eq!(request.options.seed, Some(1), "{name}");
        assert_eq!(request.options.temperature, Some(0.7), "{name}");
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let remote = json!({ "$ref": "https://example.com/schema.json" });
    let prepared = |instructions, schema| {
        let question = question(schema, json!({}));
        Turns::prepare("g1".to_owned(), &agent(instructions), question, 1).unwrap_err()
    };
    let refused = prepared(None, Some(remote));
    assert!(matches!(refused, GenerateError::InvalidSchema(_)), "{refused:?}");
    let refused = prepared(None, Some(json!({ "type": "nonsense" })));
    assert!(matches!(refused, GenerateError::InvalidSchema(_)), "{refused:?}");
    let refused = prepared(Some("{{ context.missing }}"), None);
    assert!(matches!(refused, GenerateError::Failed(_)), "{refused:?}");
}

#[test]
fn a_text_ends_the_run_as_the_model_said() {
    let generation = ended(turns(None, 1).answered(answer("hi"))).unwrap();
    assert_eq!(generation.id, "g1");
    assert_eq!(generation.text, "hi");
    assert_eq!(generation.object, None);
    assert_eq!(generation.finish_reason, FinishReason::Length);
    assert_eq!(generation.usage.total_tokens, 5);
}

#[test]
fn a_tool_call_ends_the_run() {
    let call = ToolCall {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input: json!({ "n": 1 }),
    };
    let asking = ModelAnswer { tool_calls: vec![call.clone()], ..answer("") };

    let generation = ended(turns(None, 1).answered(asking.clone())).unwrap();
    assert_eq!(generation.finish_reason, FinishReason::ToolCalls);
    assert_eq!(generation.tool_calls, [call]);

    let refused = ended(turns(Some(json!(true)), 1).answered(asking)).unwrap_err();
    assert!(matches!(refused, GenerateError::Failed(_)), "{refused:?}");
}

#[test]
fn an_object_that_misses_its_schema_is_asked_for_again() {
    let schema = json!({ "type": "object", "required": ["n"] });
    let mut turns = turns(Some(schema), 1);
    assert!(matches!(turns.answered(answer("{}")), Next::Continue(())));

    let request = turns.request();
    let [_, said, complaint] = request.messages.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert_eq!((said.role, said.plain_text().as_str()), (Role::Assistant, "{}"));
    assert_eq!(complaint.role, Role::User);
    let words = complaint.plain_text();
    assert!(words.contains("n: missing"), "{words}");

    let generation = ended(turns.answered(answer(r#"{"n":1}"#))).unwrap();
    assert_eq!(generation.object, Some(json!({ "n": 1 })));
    assert_eq!(generation.text, r#"{"n":1}"#);
    assert_eq!(generation.usage.total_tokens, 10, "both turns count");
}

#[test]
fn repairs_are_bounded() {
    for repairs in [0, 1, 3] {
        let mut turns = turns(Some(json!({ "type": "object" })), repairs);
        for _ in 0..repairs {
            assert!(matches!(turns.answered(answer("no")), Next::Continue(())));
        }
        let failed = ended(turns.answered(answer("no"))).unwrap_err();
        let GenerateError::Failed(detail) = failed else { panic!("{failed:?}") };
        assert!(detail.contains("not JSON"), "{detail}");
    }
}
