//! Accepted and refused messages.

use greenroom_actors::domain::message::ToolApproval;
use serde_json::json;

use super::*;

fn read(input: &Value) -> Result<Vec<Message>, ApiError> {
    messages_of("input", input, false)
}

fn refusal(input: &Value) -> String {
    read(input).unwrap_err().to_string()
}

#[test]
fn files_are_addresses_of_any_scheme_or_base64() {
    let url = |url: &str| FileSource::Url(url.to_owned());
    let rows = [
        ("https://a.example/a.png", url("https://a.example/a.png")),
        ("HTTPS://a.example/a.png", url("HTTPS://a.example/a.png")),
        ("gs://bucket/a.png", url("gs://bucket/a.png")),
        ("data:image/png;base64,aGk=", url("data:image/png;base64,aGk=")),
        ("aGk_-+/=", FileSource::Base64("aGk_-+/=".to_owned())),
    ];
    for (data, expected) in rows {
        let part = json!({ "type": "file", "url": data, "mediaType": "image/png" });
        let messages = read(&json!([{ "role": "user", "parts": [part] }])).unwrap();
        let [Part::File { source, .. }] = &*messages[0].parts else { panic!("{data}") };
        assert_eq!(source, &expected);
    }
}

#[test]
fn a_text_is_one_user_message() {
    let messages = read(&json!("hi")).unwrap();
    assert_eq!(messages, [Message::text(Role::User, "hi")]);
}

#[test]
fn ui_messages_become_model_messages() {
    let input = json!([
        { "id": "1", "role": "user", "parts": [
            { "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
        { "role": "assistant", "parts": [
            { "type": "step-start" },
            { "type": "tool-add", "toolCallId": "t", "state": "output-available",
              "input": { "n": 1 }, "output": 2 },
            { "type": "text", "text": "done" }] }
    ]);
    let call =
        ToolCall { tool_call_id: "t".into(), tool_name: "add".into(), input: json!({ "n": 1 }) };
    let text = |text: &str| Part::Text { text: text.to_owned() };
    let expected = [
        Message { id: Some("1".into()), role: Role::User, parts: vec![text("a"), text("b")] },
        Message {
            id: None,
            role: Role::Assistant,
            parts: vec![
                Part::ToolCall(call.clone()),
                Part::ToolResult(result_of(call, ToolOutcome::Output(json!(2)))),
                text("done"),
            ],
        },
    ];
    assert_eq!(read(&input).unwrap(), expected);
}

#[test]
fn model_messages_are_read() {
    let input = json!([
        { "role": "system", "content": "be kind" },
        { "role": "user", "content": [
            { "type": "text", "text": "hi" },
            { "type": "image", "image": "aGk=", "mediaType": "image/png" }] },
        { "role": "assistant", "content": [
            { "type": "tool-call", "toolCallId": "t", "toolName": "add", "input": {} }] },
        { "role": "tool", "content": [
            { "type": "tool-result", "toolCallId": "t", "toolName": "add", "output": 2 }] }
    ]);
    let messages = read(&input).unwrap();
    assert_eq!(messages[0], Message::text(Role::System, "be kind"));
    let image = Part::File {
        media_type: "image/png".into(),
        source: FileSource::Base64("aGk=".into()),
        filename: None,
    };
    assert_eq!(messages[1].parts[1], image);
    assert_eq!(messages[3].role, Role::Tool);
}

#[test]
fn a_call_without_a_result_is_dropped() {
    let input = json!([
        { "role": "user", "parts": [{ "type": "text", "text": "a" }] },
        { "role": "assistant", "parts": [
            { "type": "tool-add", "toolCallId": "t", "state": "input-available",
              "input": {} }] }
    ]);
    assert!(read(&input).unwrap()[1].parts.is_empty());
}

#[test]
fn an_empty_id_is_ignored() {
    let message = |id: &str| json!([{ "id": id, "role": "user", "parts": [{ "type": "text", "text": "a" }] }]);
    let rows = [("", None), ("m1", Some("m1"))];
    for (id, expected) in rows {
        assert_eq!(read(&message(id)).unwrap()[0].id.as_deref(), expected);
    }
}

#[test]
fn outputs_may_have_a_type() {
    let output = |value: Value| {
        let part = json!({ "output": value });
        read_output(part.as_object().unwrap()).unwrap()
    };
    let rows = [
        (json!(2), ToolOutcome::Output(json!(2))),
        (json!({ "type": "json", "value": { "n": 2 } }), ToolOutcome::Output(json!({ "n": 2 }))),
        (json!({ "type": "text", "value": "two" }), ToolOutcome::Output(json!("two"))),
        (json!({ "type": "error-text", "value": "no" }), ToolOutcome::Error("no".into())),
        (json!({ "type": "error-json", "value": [1] }), ToolOutcome::Error("[1]".into())),
        (
            json!({ "type": "car", "value": 1 }),
            ToolOutcome::Output(json!({ "type": "car", "value": 1 })),
        ),
    ];
    for (value, expected) in rows {
        assert_eq!(output(value), expected);
    }
}

#[test]
fn refusals_name_the_index() {
    let ui = json!({ "role": "user", "parts": [{ "type": "text", "text": "a" }] });
    let model = json!({ "role": "user", "content": "a" });
    let rows = [
        (json!(5), "input: must be a string or an array of messages"),
        (json!([]), "input: must not be empty"),
        (json!([model, 7]), "input[1]: must be an object"),
        (json!([ui, model]), "input[1]: UI messages and model messages are mixed"),
        (json!([{ "role": "user" }]), "input[0]: must have parts or content"),
        (json!([{ "role": "boss", "content": "a" }]), "input[0].role: unknown role"),
        (json!([{ "content": "a" }]), "input[0].role: missing"),
        (json!([{ "role": "tool", "parts": [] }]), "input[0].role: unknown role"),
        (
            json!([{ "id": "a\nb", "role": "user", "parts": [] }]),
            "input[0].id: must be 1 to 200 characters, no control characters",
        ),
        (
            json!([model, { "role": "user", "content": [{ "type": "smell" }] }]),
            "input[1].content[0].type: unknown type of part",
        ),
        (
            json!([{ "role": "user", "parts": [{ "type": "text" }] }]),
            "input[0].parts[0].text: missing",
        ),
        (json!([{ "role": "system", "content": [] }]), "input[0].content: must be a string"),
        (json!([{ "role": "user", "parts": [] }]), "input: must not be empty"),
        (json!([{ "role": "user", "content": [] }]), "input: must not be empty"),
        (
            json!([{ "role": "user", "parts": [{ "type": "reasoning", "text": "a" }] }]),
            "input[0].parts[0].type: not a part for a message of this role",
        ),
        (
            json!([model, { "role": "tool", "content": [{ "type": "text", "text": "a" }] }]),
            "input[1].content[0].type: not a part for a message of this role",
        ),
    ];
    for (input, what) in rows {
        assert_eq!(refusal(&input), format!("Invalid request body: {what}"));
    }
}

#[test]
fn approvals_of_a_chat_are_kept_and_those_passed_over_are_refused() {
    let went_on = "not approved: the user went on";
    let rows = [
        (json!({ "id": "a" }), Value::Null, Some(false), Some(went_on), Some(went_on)),
        (json!({ "id": "a", "approved": true }), Value::Null, Some(true), None, None),
        (json!({ "id": "a", "approved": false }), Value::Null, Some(false), None, Some("refused")),
        (
            json!({ "id": "a", "approved": false, "reason": "dear" }),
            Value::Null,
            Some(false),
            Some("dear"),
            Some("refused: dear"),
        ),
        (json!({ "id": "a", "approved": true }), json!(2), Some(true), None, None),
    ];
    for (approval, output, approved, reason, denied) in rows {
        let mut part =
            json!({ "type": "tool-add", "toolCallId": "t", "input": {}, "approval": approval });
        if !output.is_null() {
            part["output"] = output.clone();
        }
        let messages = read(&json!([{ "role": "assistant", "parts": [part] }])).unwrap();
        let call = ToolCall { tool_call_id: "t".into(), tool_name: "add".into(), input: json!({}) };
        let kept = Part::ToolApproval(ToolApproval {
            approval_id: "a".into(),
            tool_call_id: "t".into(),
            approved,
            reason: reason.map(str::to_owned),
        });
        let mut expected = vec![Part::ToolCall(call.clone()), kept];
        let denied = denied.map(|why| ToolOutcome::Denied(why.to_owned()));
        let outcome = denied.or((!output.is_null()).then_some(ToolOutcome::Output(output)));
        expected.extend(outcome.map(|outcome| Part::ToolResult(result_of(call, outcome))));
        assert_eq!(messages[0].parts, expected, "{approval}");
    }
}
