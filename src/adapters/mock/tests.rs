//! Answers of the mock model, rule by rule.

use std::sync::Arc;

use greenroom_actors::domain::message::{
    FileSource, Message, Part, Role, ToolCall, ToolOutcome, ToolResult,
};
use greenroom_actors::ports::model::{ModelErrorKind, ToolChoice, ToolSpec, Usage};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

fn rule(when: &str, action: MockAction) -> MockRule {
    MockRule { when: Some(when.to_owned()), delay: Duration::ZERO, action }
}

fn reply(template: &str) -> MockAction {
    MockAction::Reply(template.to_owned())
}

fn model(rules: Vec<MockRule>) -> MockModel {
    MockModel::new(MockConfig { pace: Duration::ZERO, rules }).unwrap()
}

fn message(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

fn result(output: Value) -> Message {
    let result = ToolResult {
        tool_call_id: "c".to_owned(),
        tool_name: "add".to_owned(),
        input: json!({}),
        outcome: ToolOutcome::Output(output),
    };
    Message { id: None, role: Role::Tool, parts: vec![Part::ToolResult(result)] }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let messages = Arc::new(messages);
    ModelRequest { messages, ..ModelRequest::default() }
}

fn prompted(text: &str) -> ModelRequest {
    request(vec![message(Role::User, text)])
}

fn with_schema(schema: Value) -> ModelRequest {
    ModelRequest { schema: Some(Arc::new(schema)), ..prompted("please") }
}

async fn text_of(model: &MockModel, request: ModelRequest) -> String {
    model.generate(request).await.unwrap().text
}

#[tokio::test]
async fn the_first_matching_rule_answers() {
    let model = model(vec![
        rule("'ECHO' in prompt", reply("you said {{ prompt }}")),
        rule("messages | length > 2", reply("{{ messages[0].role }}: {{ messages[0].content }}")),
        rule("tools", reply("{{ tools[0].name }}")),
        rule("tool_results", reply("{{ tool_results[0].output }}")),
        rule(
            "schema is not none",
            MockAction::Object(Mapping(json!({ "n": "1 + 1", "of": "prompt" }))),
        ),
        rule("prompt == 'none'", reply("{{ tool_results is none and schema is none }}")),
    ]);
    let tool =
        ToolSpec { name: "add".to_owned(), description: String::new(), parameters: json!({}) };
    let results = result(json!({ "sum": 3 }));
    let cases = [
        ("by the prompt", prompted("ECHO!"), "you said ECHO!"),
        (
            "by the messages",
            request(vec![
                message(Role::System, "be kind"),
                message(Role::User, "a"),
                message(Role::Assistant, "b"),
            ]),
            "system: be kind",
        ),
        ("by the tools", ModelRequest { tools: Arc::from([tool]), ..prompted("x") }, "add"),
        ("by results", request(vec![message(Role::User, "x"), results.clone()]), r#"{"sum":3}"#),
        (
            "results before the newest prompt do not count",
            request(vec![results, message(Role::User, "none")]),
            "true",
        ),
        ("by the schema", with_schema(json!({})), r#"{"n":2,"of":"please"}"#),
        ("by missing values", prompted("none"), "true"),
        ("no rule", prompted("hello"), "hello"),
        (
            "parts",
            request(vec![Message {
                parts: vec![
                    Part::Text { text: "a".to_owned() },
                    Part::File {
                        media_type: "text/plain".to_owned(),
                        source: FileSource::Base64("aGk=".to_owned()),
                        filename: None,
                    },
                    Part::Text { text: "b".to_owned() },
                ],
                ..message(Role::User, "")
            }]),
            "a\nb",
        ),
        ("no message", request(Vec::new()), ""),
    ];
    for (name, request, expected) in cases {
        assert_eq!(text_of(&model, request).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_tool_is_called_until_its_result_is_there() {
    let calls = vec![
        ("add".to_owned(), Mapping(json!({ "n": "4" }))),
        ("add".to_owned(), Mapping(json!({ "n": "prompt" }))),
    ];
    let when = "'TOOL' in prompt and not tool_results";
    let model = model(vec![rule(when, MockAction::ToolCalls(calls))]);

    let answer = model.generate(prompted("TOOL")).await.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    assert_eq!(answer.text, "");
    let [first, second] = answer.tool_calls.as_slice() else { panic!("{:?}", answer.tool_calls) };
    assert_eq!((first.tool_name.as_str(), &first.input), ("add", &json!({ "n": 4 })));
    assert_eq!(second.input, json!({ "n": "TOOL" }));
    assert_ne!(first.tool_call_id, second.tool_call_id);

    let mut again = prompted("TOOL");
    Arc::make_mut(&mut again.messages).push(result(json!(7)));
    let answer = model.generate(again).await.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::Stop);
    assert_eq!(answer.text, "TOOL");
}

#[tokio::test]
async fn errors_come_before_the_first_byte() {
    let failing = model(vec![
        rule("'FAIL' in prompt", MockAction::Error("{{ out of order }}".to_owned())),
        rule("'BROKEN' in prompt", reply("{{ prompt.missing }}")),
        rule("'ODD' in prompt", MockAction::Object(Mapping(json!("tools[9]")))),
        rule("prompt.missing.deeper", reply("never")),
    ]);
    let cases = [
        ("FAIL", "{{ out of order }}"),
        ("BROKEN", "mock rule 1: "),
        ("ODD", "mock rule 2: "),
        ("when", "mock rule 3: "),
    ];
    for (prompt, expected) in cases {
        let error = failing.generate(prompted(prompt)).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Other);
        assert!(error.message.starts_with(expected), "{prompt}: {}", error.message);
        let streamed: Vec<_> = failing.stream(prompted(prompt)).collect().await;
        assert_eq!(streamed, [Err(error)], "{prompt}");
    }
    let error = model(Vec::new()).generate(with_schema(json!(false))).await.unwrap_err();
    assert!(error.message.contains("no sample"), "{}", error.message);
}

#[tokio::test]
async fn a_schema_gives_a_sample_unless_a_rule_answers() {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    assert_eq!(text_of(&model(Vec::new()), with_schema(schema.clone())).await, r#"{"n":1}"#);

    let replying = model(vec![rule("true", reply("{\"n\": 7}"))]);
    assert_eq!(text_of(&replying, with_schema(schema.clone())).await, "{\"n\": 7}");

    let delaying = model(vec![rule("true", MockAction::Default)]);
    assert_eq!(text_of(&delaying, with_schema(schema)).await, r#"{"n":1}"#);
}

#[tokio::test]
async fn demanded_calls_are_made_with_sample_arguments() {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object", "properties": { "n": { "const": 7 } }, "required": ["n"] }),
    };
    let tools: Arc<[ToolSpec]> = Arc::from([tool("first"), tool("second")]);
    let calls = MockAction::ToolCalls(vec![("first".to_owned(), Mapping(json!({ "n": "1" })))]);
    let first = vec![rule("true", calls)];
    for (rules, tool_choice, expected) in [
        (Vec::new(), ToolChoice::Auto, None),
        (Vec::new(), ToolChoice::Required, Some(("first", json!({ "n": 7 })))),
        (Vec::new(), ToolChoice::Tool("second".into()), Some(("second", json!({ "n": 7 })))),
        (first.clone(), ToolChoice::Required, Some(("first", json!({ "n": 1 })))),
        (first, ToolChoice::Tool("second".into()), Some(("second", json!({ "n": 7 })))),
    ] {
        let request = ModelRequest { tools: Arc::clone(&tools), tool_choice, ..prompted("hi") };
        let answer = model(rules).generate(request).await.unwrap();
        let call = answer.tool_calls.first().map(|it| (it.tool_name.as_str(), it.input.clone()));
        assert_eq!(call, expected);
        assert_eq!(answer.text.is_empty(), call.is_some());
    }
}

#[tokio::test]
async fn tokens_are_words() {
    let messages = vec![
        message(Role::System, "be very kind"),
        message(Role::User, "two words"),
        result(json!("one two three")),
    ];
    let usage = model(Vec::new()).generate(request(messages)).await.unwrap().usage;
    let expected =
        Usage { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10, ..Usage::default() };
    assert_eq!(usage, expected);
}

#[tokio::test]
async fn the_same_prompt_gives_the_same_answer() {
    let schema = json!({ "type": "object", "properties": { "a": { "format": "uuid" }, "b": { "enum": [2, 1] } } });
    let calls = vec![("add".to_owned(), Mapping(json!({ "n": "4" })))];
    let rules = vec![rule("'TOOL' in prompt", MockAction::ToolCalls(calls))];
    for request in [prompted("TOOL"), prompted("x y z"), with_schema(schema)] {
        let first = model(rules.clone()).generate(request.clone()).await;
        let second = model(rules.clone()).generate(request).await;
        assert_eq!(first, second);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_a_delay_and_a_pace() {
    let rules =
        vec![MockRule { when: None, delay: Duration::from_secs(5), action: MockAction::Default }];
    let config = MockConfig { pace: Duration::from_millis(100), rules };
    let model = MockModel::new(config).unwrap();
    let start = Instant::now();
    let mut stream = model.stream(prompted("one two three"));
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.push((start.elapsed().as_millis(), event.unwrap()));
    }
    let delta = |text: &str| ModelEvent::TextDelta(text.to_owned());
    let usage =
        Usage { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6, ..Usage::default() };
    let expected = [
        (5000, delta("one ")),
        (5100, delta("two ")),
        (5200, delta("three")),
        (5200, ModelEvent::Finished { usage, finish_reason: FinishReason::Stop, served: None }),
    ];
    assert_eq!(seen, expected);

    let start = Instant::now();
    model.generate(prompted("one two three")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5), "a whole answer has no pace");
}

#[tokio::test]
async fn a_stream_and_a_whole_answer_have_the_same_content() {
    let calls = vec![("add".to_owned(), Mapping(json!({ "n": "4" })))];
    let model = model(vec![rule("'TOOL' in prompt", MockAction::ToolCalls(calls))]);
    let object = json!({ "properties": { "a": {}, "b": {}, "c": { "type": "object" } } });
    for request in [prompted("some words"), prompted("TOOL"), with_schema(object), prompted("")] {
        let whole = model.generate(request.clone()).await.unwrap();
        let mut text = String::new();
        let mut tool_calls: Vec<ToolCall> = Vec::new();
        let mut end = None;
        let mut stream = model.stream(request);
        while let Some(event) = stream.next().await {
            assert_eq!(end, None, "something follows the end");
            match event.unwrap() {
                ModelEvent::TextDelta(delta) => text.push_str(&delta),
                ModelEvent::ReasoningDelta(_)
                | ModelEvent::ToolInputStart { .. }
                | ModelEvent::ToolInputDelta { .. }
                | ModelEvent::ProviderState(_) => panic!("only text and calls are expected"),
                ModelEvent::ToolCall(call) => tool_calls.push(call),
                ModelEvent::Finished { usage, finish_reason, .. } => {
                    end = Some((usage, finish_reason))
                }
            }
        }
        assert_eq!(text, whole.text);
        assert_eq!(tool_calls, whole.tool_calls);
        assert_eq!(end, Some((whole.usage, whole.finish_reason)));
    }
}

#[test]
fn every_problem_of_the_rules_is_reported() {
    let rules = vec![
        rule("prompt ==", reply("{{ oops")),
        rule("true", reply("fine")),
        rule("true", MockAction::Object(Mapping(json!({ "a": "1 +" })))),
        rule("true", MockAction::ToolCalls(vec![("add".to_owned(), Mapping(json!("(")))])),
    ];
    let problems = MockModel::new(MockConfig { pace: Duration::ZERO, rules }).unwrap_err();
    let places: Vec<&str> = problems
        .0
        .iter()
        .filter_map(|problem| problem.split_once(": "))
        .map(|(at, _)| at)
        .collect();
    let expected =
        ["rules[0].when", "rules[0].reply", "rules[2].object", "rules[3].tool_calls.add"];
    assert_eq!(places, expected, "{problems:?}");
}
