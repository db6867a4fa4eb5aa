//! Scripted servers of models, and calls to the agents that use them.

use serde_json::{Value, json};

use super::site::Site;
use support::client::{Reply, Wire};
use support::provider::{Deed, Provider, piece, stream_end, stream_head};

/// The three wire formats.
pub(super) const FORMATS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// The routes that run an agent.
pub(super) const ROUTES: [&str; 5] = ["text", "stream", "chat", "object", "stream-object"];

/// Returns the configuration of a model at a scripted server, without retries.
pub(super) fn model(id: &str, format: &str, server: &Provider) -> String {
    let base_url = server.base_url();
    format!(
        "[models.{id}]\nprovider = \"{format}\"\nmodel = \"m-1\"\nbase_url = \"{base_url}\"\n\
         retry = {{ attempts = 1 }}\n"
    )
}

/// Returns the configuration of such a model and of an agent `clerk` with these keys.
pub(super) fn clerk(server: &Provider, keys: &str) -> String {
    format!("{}[agents.clerk]\nmodel = \"remote\"\n{keys}\n", model("remote", "openai", server))
}

/// Returns an event of the server.
pub(crate) fn event(frame: &Value) -> Deed {
    piece(format!("data: {frame}\n\n").as_bytes())
}

/// Returns the beginning of an answer with a text.
pub(crate) fn begins(format: &str, text: &str) -> Vec<Deed> {
    let frames = match format {
        "openai" => vec![json!({ "choices": [{ "delta": { "content": text } }] })],
        "anthropic" => vec![
            json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": text } }),
        ],
        _ => vec![json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] })],
    };
    [stream_head()].into_iter().chain(frames.iter().map(event)).collect()
}

/// Returns a complete answer in OpenAI's format.
pub(crate) fn says(text: &str) -> Vec<Deed> {
    ended(begins("openai", text), "stop")
}

/// Returns an answer with a tool call; the arguments are sent literally.
pub(crate) fn calls(tool: &str, arguments: &str) -> Vec<Deed> {
    let function = json!({ "name": tool, "arguments": arguments });
    let calls = json!([{ "index": 0, "id": "call-1", "function": function }]);
    let frame = json!({ "choices": [{ "delta": { "tool_calls": calls } }] });
    ended(vec![stream_head(), event(&frame)], "tool_calls")
}

fn ended(mut begun: Vec<Deed>, reason: &str) -> Vec<Deed> {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    begun.push(event(&json!({ "choices": [{ "delta": {}, "finish_reason": reason }],
                              "usage": usage })));
    begun.push(stream_end());
    begun
}

/// Returns a prompt for any route, with a schema for those that need one.
pub(super) fn question() -> Value {
    json!({ "input": "hi", "schema": { "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string" } } } })
}

/// Sends a request to an agent, without reading the answer.
pub(super) fn begin(site: &Site, agent: &str, route: &str, body: &Value) -> Wire {
    let mut wire = Wire::open(site.address).unwrap();
    let path = format!("/agents/{agent}/{route}");
    wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
    wire
}

/// Sends a request to an agent and reads the answer to its proper end.
pub(super) fn ask(site: &Site, agent: &str, route: &str, body: &Value) -> Reply {
    let reply = begin(site, agent, route, body).reply();
    reply.unwrap_or_else(|error| panic!("{agent}/{route}: {error}"))
}

/// Returns the events of a complete stream. The last frame of a chat is checked and left out.
pub(super) fn events(reply: &Reply) -> Vec<Value> {
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let text = reply.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut data: Vec<_> = data.collect();
    if reply.header("x-vercel-ai-ui-message-stream").is_some() {
        assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    }
    data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Returns the code and the text of a failure, from a refusal or from a stream that had begun. A
/// chat has no field for the code.
pub(super) fn failure(route: &str, reply: &Reply) -> (Option<String>, String) {
    if matches!(route, "text" | "object") {
        assert_eq!(reply.status, 500, "{route}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"), "{route}");
        let product = format!("Failed to generate {route}: ");
        let error = reply.error();
        let said = error.strip_prefix(&product).unwrap_or_else(|| panic!("{route}: {error}"));
        return (reply.header("x-error-code").map(str::to_owned), said.to_owned());
    }
    let last = events(reply).pop().unwrap();
    assert_eq!(last["type"], "error", "{route}: {last}");
    let said = if route == "chat" { &last["errorText"] } else { &last["error"] };
    assert_eq!(last["code"].is_null(), route == "chat", "{route}: {last}");
    (last["code"].as_str().map(str::to_owned), said.as_str().unwrap().to_owned())
}

/// Returns the only event of a type.
pub(super) fn only<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = events.iter().filter(|event| event["type"] == kind).collect();
    let [event] = found[..] else { panic!("not one {kind}: {events:#?}") };
    event
}

/// The newest entry of an agent's history.
pub(super) fn newest(site: &Site, agent: &str) -> Value {
    site.get(&format!("/agents/{agent}/history")).data()["entries"][0].take()
}
