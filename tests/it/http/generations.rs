//! Agents over HTTP: streams, chats, objects, and clients that disconnect.

use serde_json::{Value, json};

use super::site::Site;
use support::client::{Event, Events, Reply, Wire};
use support::eventually;

/// An agent whose model fails, waits or fences its JSON on request, and one that never returns an
/// object.
const MOODY: &str = r#"
[agents.moody]
model = "moody"

[models.moody]
provider = "rehearsal"
rules = [
    { when = "'fail' in prompt", error = "not in the mood" },
    { when = "'wait' in prompt", delay = "1h" },
    { when = "'fence' in prompt", reply = "```json\n{\"name\":\"Ada\"}\n```" },
]

[agents.stubborn]
model = "stubborn"

[models.stubborn]
provider = "rehearsal"
rules = [{ reply = "no idea" }]
"#;

/// The routes that run an agent, each with the noun of its failures.
const ROUTES: [(&str, &str); 5] = [
    ("text", "text"),
    ("stream", "text"),
    ("chat", "text"),
    ("object", "object"),
    ("stream-object", "object"),
];

fn ask(site: &Site, agent: &str, route: &str, headers: &[(&str, &str)], body: &Value) -> Wire {
    let mut wire = Wire::open(site.address).unwrap();
    let path = format!("/agents/{agent}/{route}");
    wire.send("POST", &path, headers, Some(body.to_string().as_bytes())).unwrap();
    wire
}

fn person() -> Value {
    json!({ "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": { "name": { "type": "string" } } })
}

fn asked(input: &str) -> Value {
    json!({ "input": input, "schema": person() })
}

fn events(wire: Wire) -> (Reply, Vec<Event>) {
    let mut events = Events::read(wire).unwrap();
    let head = events.head.clone();
    (head, std::iter::from_fn(|| events.next().unwrap()).collect())
}

fn kinds(events: &[Event]) -> Vec<String> {
    events.iter().map(Event::kind).collect()
}

fn assert_named(head: &Reply) {
    assert!(head.header("x-generation-id").is_some_and(|id| !id.is_empty()), "{head:?}");
}

#[test]
fn a_raw_stream_has_numbered_events() {
    let site = Site::start();
    let (head, events) = events(ask(&site, "assistant", "stream", &[], &asked("say a b")));
    assert_named(&head);
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let numbers: Vec<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let mut order = kinds(&events);
    order.dedup();
    let whole = ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step"];
    assert_eq!(order, [&whole[..], &["finish"]].concat());
    assert_eq!(events[0].json()["generationId"].as_str(), head.header("x-generation-id"));
    for key in ["delta", "text"] {
        let deltas = events.iter().filter(|event| event.kind() == "text-delta");
        let text: String =
            deltas.map(|event| event.json()[key].as_str().unwrap().to_owned()).collect();
        assert_eq!(text, "say a b");
    }
    let finish = events.last().unwrap().json();
    assert_eq!(finish["finishReason"], "stop");
    assert_eq!(finish["usage"]["totalTokens"], finish["totalUsage"]["totalTokens"]);
    assert_eq!(finish["usage"]["promptTokens"], finish["totalUsage"]["inputTokens"]);
}

#[test]
fn a_long_text_at_full_pace_arrives_whole() {
    let site = Site::start();
    // three times the events that one subscriber may have pending
    let input = "word ".repeat(25_000);
    let (_, events) = events(ask(&site, "assistant", "stream", &[], &asked(&input)));
    let words = events.iter().filter(|event| event.kind() == "text-delta").count();
    assert_eq!(words, 25_000);
    assert_eq!(events.last().unwrap().kind(), "finish");
}

#[test]
fn a_chat_accepts_the_bodies_of_the_ai_sdk_and_sends_its_stream() {
    let site = Site::start();
    let message =
        json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
    let bodies = [
        json!({ "input": "hi" }),
        json!({ "input": [message], "options": { "conversationId": "c1", "userId": "u1" } }),
        json!({ "input": [message], "options": { "memory": { "conversationId": "c2" } } }),
        json!({ "messages": [message], "id": "c3", "trigger": "submit-message",
                "messageId": null }),
    ];
    for body in bodies {
        let reply = ask(&site, "assistant", "chat", &[], &body).reply().unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_named(&reply);
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
            ("x-vercel-ai-ui-message-stream", "v1"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{name}");
        }
        let text = reply.text();
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        let mut frames: Vec<_> = text.split_terminator("\n\n").collect();
        frames.pop();
        let chunk = |frame: &&str| -> Value {
            serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap()
        };
        let chunks: Vec<_> = frames.iter().map(chunk).collect();
        let said: String = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
        assert_eq!(said, "hi");
        assert_eq!(chunks[0]["type"], "start");
        assert!(chunks[0]["messageId"].is_string(), "{text}");
        assert_eq!(chunks.last().unwrap()["type"], "finish");
    }
}

#[test]
fn an_object_meets_its_schema() {
    let site = Site::with(MOODY);
    let reply = ask(&site, "assistant", "object", &[], &asked("make one")).reply().unwrap();
    assert_named(&reply);
    assert!(reply.data()["name"].is_string(), "{}", reply.text());
    let fenced = ask(&site, "moody", "object", &[], &asked("fence")).reply().unwrap();
    assert_eq!(fenced.data(), json!({ "name": "Ada" }));
    let list = json!({ "input": "some", "schema": { "type": "array", "minItems": 2,
                       "items": { "type": "integer" } } });
    let list = ask(&site, "assistant", "object", &[], &list).reply().unwrap().data();
    assert!(list.as_array().is_some_and(|list| list.len() >= 2), "{list}");
}

#[test]
fn an_object_is_streamed_piece_by_piece() {
    let site = Site::with(MOODY);
    let (head, events) = events(ask(&site, "moody", "stream-object", &[], &asked("fence")));
    assert_named(&head);
    let mut order = kinds(&events);
    order.dedup();
    assert_eq!(order, ["object-delta", "object", "finish"]);
    let [.., partial, whole, finish] = &events[..] else { panic!("{events:?}") };
    assert_eq!(partial.json()["object"], json!({ "name": "Ada" }));
    assert_eq!(whole.json()["object"], json!({ "name": "Ada" }));
    assert_eq!(finish.json()["finishReason"], "stop");
    assert!(finish.json()["usage"]["totalTokens"].is_u64());
}

#[test]
fn an_object_may_come_as_text() {
    let site = Site::with(MOODY);
    let rows: [(&str, &[(&str, &str)]); 2] =
        [("stream-object", &[("accept", "text/plain")]), ("stream-object?format=text", &[])];
    for (route, headers) in rows {
        let reply = ask(&site, "moody", route, headers, &asked("fence")).reply().unwrap();
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_named(&reply);
        assert_eq!(reply.text(), "{\"name\":\"Ada\"}");
    }
}

#[test]
fn a_failure_of_a_whole_answer_or_bare_text_is_an_error_response() {
    let site = Site::with(MOODY);
    let rows = [("text", "text"), ("object", "object"), ("stream-object?format=text", "object")];
    for (route, product) in rows {
        let reply = ask(&site, "moody", route, &[], &asked("fail")).reply().unwrap();
        assert_eq!(reply.status, 500, "{route}: {}", reply.text());
        assert_eq!(reply.error(), format!("Failed to generate {product}: not in the mood"));
        assert_eq!(reply.header("x-error-code"), Some("provider_error"), "{route}");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{route}");
        let id = reply.header("x-generation-id").unwrap_or_default();
        let entries = site.get("/agents/moody/history?limit=1").data()["entries"].take();
        assert_eq!(entries[0]["id"], id, "{route}");
    }
}

#[test]
fn a_failure_after_the_head_of_a_stream_is_an_event() {
    let site = Site::with(MOODY);
    for (route, kind) in [("stream", "error"), ("stream-object", "error")] {
        let (head, events) = events(ask(&site, "moody", route, &[], &asked("fail")));
        assert_named(&head);
        let last = events.last().unwrap().json();
        let expected =
            json!({ "type": kind, "error": "not in the mood", "code": "provider_error" });
        assert_eq!(last, expected, "{route}");
    }
    let reply = ask(&site, "moody", "chat", &[], &asked("fail")).reply().unwrap();
    assert_eq!(reply.status, 200);
    let told = "data: {\"type\":\"error\",\"errorText\":\"not in the mood\"}\n\ndata: [DONE]\n\n";
    assert!(reply.text().ends_with(told), "{}", reply.text());
    let entries = site.get("/agents/moody/history?limit=3").data()["entries"].take();
    let failed = |entry: &Value| entry["status"] == "error" && entry["error"] == "not in the mood";
    assert!(entries.as_array().unwrap().iter().all(failed), "{entries}");
}

/// The streaming routes of a generation, each with its final events after a cancel.
const STREAMS: [(&str, &str); 3] = [
    ("stream", "id: 2\ndata: {\"type\":\"abort\"}\n\n"),
    ("chat", "data: {\"type\":\"abort\"}\n\ndata: [DONE]\n\n"),
    ("stream-object", "id: 1\ndata: {\"type\":\"abort\"}\n\n"),
];

#[test]
fn a_stream_can_be_cancelled_before_its_first_output() {
    let site = Site::with(MOODY);
    for (route, last_words) in STREAMS {
        let mut wire = ask(&site, "moody", route, &[], &asked("wait"));
        let head = wire.head().unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let id = head.header("x-generation-id").unwrap().to_owned();
        let cancel = format!("/agents/moody/generations/{id}/cancel");
        assert_eq!(site.post(&cancel, &json!({})).data()["status"], "cancelled");
        let rest = wire.rest_of(head).unwrap().text();
        assert!(rest.ends_with(last_words), "{route}: {rest}");
        let entry = site.get("/agents/moody/history?limit=1").data()["entries"][0].take();
        assert_eq!((&entry["id"], &entry["status"]), (&json!(id), &json!("cancelled")));
    }
}

#[test]
fn a_stream_is_kept_alive_before_its_first_output() {
    let site = Site::with(&format!("[limits]\nheartbeat = \"20ms\"\n{MOODY}"));
    for (route, _) in STREAMS {
        let mut wire = ask(&site, "moody", route, &[], &asked("wait"));
        assert_eq!(wire.head().unwrap().status, 200);
        let mut read = Vec::new();
        while !read.ends_with(b": keep-alive\n\n") {
            read.extend(wire.chunk().unwrap().unwrap());
        }
    }
}

#[test]
fn an_object_that_never_comes_is_a_failure() {
    let site = Site::with(MOODY);
    let reply = ask(&site, "stubborn", "object", &[], &asked("one")).reply().unwrap();
    assert_eq!((reply.status, reply.header("x-error-code")), (500, Some("generation_failed")));
    let error = reply.error();
    assert!(error.starts_with("Failed to generate object: the answer is not JSON"), "{error}");
}

#[test]
fn a_caller_may_choose_the_id_of_a_generation() {
    let site = Site::with(MOODY);
    for (number, (route, _)) in ROUTES.iter().enumerate() {
        let id = format!("mine:{number}");
        let mut body = asked("hello");
        body["options"] = json!({ "generationId": id });
        let first = ask(&site, "assistant", route, &[], &body).reply().unwrap();
        assert_eq!((first.status, first.header("x-generation-id")), (200, Some(id.as_str())));
        let entry = site.get("/agents/assistant/history?limit=1").data()["entries"][0].take();
        assert_eq!((&entry["id"], &entry["status"]), (&json!(id), &json!("completed")));

        let again = ask(&site, "moody", route, &[], &body).reply().unwrap();
        assert_eq!((again.status, again.header("x-error-code")), (409, Some("generation_exists")));
        assert_eq!(again.error(), format!("Generation {id} already exists"), "{route}");
        assert_eq!(again.header("x-generation-id"), Some(id.as_str()));
        assert_eq!(site.get("/agents/moody/history").data()["pagination"]["total"], 0);
    }

    let mut body = asked("wait");
    body["options"] = json!({ "generationId": "stop-me" });
    let mut wire = ask(&site, "moody", "text", &[], &body);
    eventually("it can be cancelled", || {
        let cancelled = site.post("/agents/moody/generations/stop-me/cancel", &json!({}));
        (cancelled.status == 200).then_some(())
    });
    let reply = wire.reply().unwrap();
    assert_eq!(reply.header("x-error-code"), Some("generation_cancelled"));
}

#[test]
fn a_disconnect_cancels_a_silent_model() {
    let site = Site::with(MOODY);
    let status = || site.get("/agents/moody").data()["status"].take();
    for (route, _) in ROUTES {
        let wire = ask(&site, "moody", route, &[], &asked("wait"));
        eventually("the agent works", || (status() == "working").then_some(()));
        drop(wire);
        eventually("the agent is idle again", || (status() == "idle").then_some(()));
    }
}

#[test]
fn a_generation_ends_if_its_client_stops_reading() {
    let site = Site::with("[limits]\nsubscriber_stall = \"300ms\"\n");
    let wire = ask(&site, "assistant", "stream", &[], &asked(&"word ".repeat(180_000)));
    let newest = || site.get("/agents/assistant/history").data()["entries"].get(0).cloned();
    eventually("the run has ended", || newest().filter(|run| run["status"] == "cancelled"));
    drop(wire);
}

#[test]
fn attaching_to_no_running_chat_is_204() {
    let site = Site::start();
    for path in ["c1/stream", "c1/stream?userId=u1", "a%20b/stream", "%ff/stream"] {
        let reply = site.get(&format!("/agents/assistant/chat/{path}"));
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{path}");
    }
}
