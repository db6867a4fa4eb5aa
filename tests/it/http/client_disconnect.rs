//! Runs that end before their answer: clients disconnect, callers cancel, the server is killed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::site::Site;
use super::upstream::{
    ROUTES, ask, begin, begins, calls, clerk, event, events, newest, only, question, says,
};
use crate::program::Programs;
use support::client::{Events, Reply, Wire};
use support::eventually;
use support::provider::{Deed, Provider, piece, stream_end, stream_head};
use support::server::{Home, Server};

/// Time limit for a run to end after its last client has left.
const LEAVING_MAX: Duration = Duration::from_secs(10);

/// An agent that takes an hour for each word of a long answer; its stream is resumable.
const PACED: &str = r#"
[models.slow]
provider = "rehearsal"
pace = "1h"

[models.paced]
provider = "rehearsal"
pace = "20ms"

[agents.slow]
model = "slow"

[agents.host]
model = "paced"
chat = { resumable = true }
"#;

fn status(site: &Site, agent: &str) -> Value {
    site.get(&format!("/agents/{agent}")).data()["status"].take()
}

/// Waits for the end of a run that its client left at this moment.
fn until_cancelled(site: &Site, agent: &str, since: Instant) {
    eventually("the agent is idle", || (status(site, agent) == "idle").then_some(()));
    assert!(since.elapsed() < LEAVING_MAX, "{:?}", since.elapsed());
    let entry = newest(site, agent);
    assert_eq!(entry["status"], "cancelled", "{entry}");
    assert!(entry["endTime"].is_string(), "{entry}");
}

#[test]
fn a_disconnect_cancels_a_call_to_a_silent_provider() {
    let server = Provider::start(vec![vec![Deed::Hold]; ROUTES.len()]);
    let site = Site::with(&clerk(&server, ""));
    for (at, route) in ROUTES.iter().enumerate() {
        let wire = begin(&site, "clerk", route, &question());
        server.wait_until_asked(at + 1);
        assert_eq!(status(&site, "clerk"), "working");
        let since = Instant::now();
        drop(wire);
        server.wait_until_left(at + 1);
        until_cancelled(&site, "clerk", since);
    }
}

#[test]
fn a_disconnect_from_a_stream_cancels_the_call() {
    let begun = [begins("openai", "{\"name\":"), vec![Deed::Hold]].concat();
    let routes = ["stream", "chat", "stream-object"];
    let server = Provider::start(vec![begun; routes.len()]);
    let site = Site::with(&format!("{PACED}{}", clerk(&server, "")));
    for (at, route) in routes.iter().enumerate() {
        let mut reading = Events::read(begin(&site, "clerk", route, &question())).unwrap();
        while reading.next().unwrap().is_some_and(|event| !event.kind().ends_with("-delta")) {}
        let since = Instant::now();
        drop(reading);
        server.wait_until_left(at + 1);
        until_cancelled(&site, "clerk", since);
        assert_eq!(newest(&site, "clerk")["steps"][0]["text"], "{\"name\":", "{route}");

        let mut reading =
            Events::read(begin(&site, "slow", "stream", &json!({ "input": "so long" }))).unwrap();
        assert!(reading.next().unwrap().is_some());
        let since = Instant::now();
        drop(reading);
        until_cancelled(&site, "slow", since);
    }
}

#[test]
fn a_disconnect_cancels_a_running_tool() {
    let models = Provider::start([calls("lookup", "{}"), calls("doze", "{}")]);
    let tools = Provider::start([vec![Deed::Hold]]);
    let keys = format!(
        "tools = [\"lookup\", \"doze\"]\n[tools.lookup]\nkind = \"http\"\nmethod = \"POST\"\n\
         description = \"Looks up\"\nurl = \"{}lookup\"\nparameters = {{ type = \"object\" }}\n\
         [tools.doze]\nkind = \"workflow\"\nworkflow = \"nap\"\ndescription = \"Sleeps\"\n",
        tools.base_url()
    );
    let site = Site::with(&clerk(&models, &keys));
    let wire = begin(&site, "clerk", "text", &question());
    tools.wait_until_asked(1);
    let since = Instant::now();
    drop(wire);
    tools.wait_until_left(1);
    until_cancelled(&site, "clerk", since);

    let wire = begin(&site, "clerk", "stream", &question());
    let nap = || {
        let naps = site.get("/workflows/nap/executions").data();
        naps.pointer("/executions/0/status").cloned().unwrap_or_default()
    };
    eventually("the workflow runs", || (nap() == "running").then_some(()));
    let since = Instant::now();
    drop(wire);
    until_cancelled(&site, "clerk", since);
    eventually("the workflow is cancelled", || (nap() == "cancelled").then_some(()));
    assert!(since.elapsed() < LEAVING_MAX, "{:?}", since.elapsed());
}

fn cancel(site: &Site, agent: &str, id: &str) -> Reply {
    site.post(&format!("/agents/{agent}/generations/{id}/cancel"), &json!({}))
}

/// Returns the id of the newest run in the history.
fn working(site: &Site) -> String {
    let entry = newest(site, "clerk");
    assert_eq!(entry["status"], "working");
    entry["id"].as_str().unwrap().to_owned()
}

/// Cancels a run and checks its end. `left` is the number of connections to the provider that have
/// been closed by then.
fn cancel_once(site: &Site, server: &Provider, left: usize) {
    let id = working(site);
    let since = Instant::now();
    let reply = cancel(site, "clerk", &id);
    assert_eq!(reply.header("x-generation-id"), Some(id.as_str()));
    assert_eq!(reply.data(), json!({ "generationId": id, "status": "cancelled" }));
    server.wait_until_left(left);
    until_cancelled(site, "clerk", since);
    let again = cancel(site, "clerk", &id);
    let expected = (400, format!("Generation {id} is already cancelled"));
    assert_eq!((again.status, again.error()), expected);
}

#[test]
fn a_running_generation_is_cancelled_once() {
    let server = Provider::start(vec![vec![Deed::Hold]; ROUTES.len()]);
    let site = Site::with(&clerk(&server, ""));
    for (at, route) in ROUTES.iter().enumerate() {
        let mut wire = begin(&site, "clerk", route, &question());
        server.wait_until_asked(at + 1);
        cancel_once(&site, &server, at + 1);
        let reply = wire.reply().unwrap();
        if !matches!(*route, "text" | "object") {
            assert_eq!(events(&reply).pop(), Some(json!({ "type": "abort" })), "{route}");
            continue;
        }
        assert_eq!(reply.header("x-error-code"), Some("generation_cancelled"), "{route}");
        assert!(reply.error().ends_with("the generation was cancelled"), "{route}");
    }
    let id = newest(&site, "clerk")["id"].as_str().unwrap().to_owned();
    let stranger = cancel(&site, "assistant", &id);
    let code = stranger.header("x-error-code");
    assert_eq!((stranger.status, code), (404, Some("generation_not_found")));
    let done = ask(&site, "assistant", "text", &question());
    let id = done.header("x-generation-id").unwrap();
    let late = cancel(&site, "assistant", id);
    assert_eq!((late.status, late.error()), (400, format!("Generation {id} is already completed")));
}

#[test]
fn a_running_stream_is_cancelled_once() {
    let routes = ["stream", "chat", "stream-object"];
    let begun = [begins("openai", "{\"name\":\"A"), vec![Deed::Hold]].concat();
    let server = Provider::start(vec![begun; routes.len()]);
    let site = Site::with(&clerk(&server, ""));
    for (at, route) in routes.iter().enumerate() {
        let mut reading = Events::read(begin(&site, "clerk", route, &question())).unwrap();
        while reading.next().unwrap().is_some_and(|event| !event.kind().ends_with("-delta")) {}
        cancel_once(&site, &server, at + 1);
        let mut last: Vec<_> = std::iter::from_fn(|| reading.next().unwrap()).collect();
        if *route == "chat" {
            assert_eq!(last.pop().unwrap().data, "[DONE]");
        }
        assert_eq!(last.last().unwrap().kind(), "abort", "{route}");
    }
}

#[test]
fn a_continued_chat_is_replayed_from_its_start() {
    let site = Site::with(&format!("{PACED}\n[agents.plain]\nmodel = \"paced\"\n"));
    // as the agent says, and as the request does
    is_replayed(&site, "host", &json!({ "userId": "ann", "conversationId": "c" }));
    let options = json!({ "userId": "ann", "conversationId": "c", "resumable": true });
    is_replayed(&site, "plain", &options);
}

fn is_replayed(site: &Site, agent: &str, options: &Value) {
    let words: Vec<_> = (0..40).map(|number| format!("w{number}")).collect();
    let body = json!({ "input": words.join(" "), "options": options });
    let mut first = Events::read(begin(site, agent, "chat", &body)).unwrap();
    while first.next().unwrap().is_some_and(|event| event.kind() != "text-delta") {}
    let id = first.head.header("x-generation-id").unwrap().to_owned();
    drop(first);

    let attach = |query: &str| {
        let mut wire = Wire::open(site.address).unwrap();
        wire.send("GET", &format!("/agents/{agent}/chat/c/stream{query}"), &[], None).unwrap();
        wire.reply().unwrap()
    };
    // of another user, and without a user
    assert_eq!((attach("?userId=eve").status, attach("").status), (204, 204));
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| attach("?userId=ann"));
        (attach("?userId=ann"), one.join().unwrap())
    });
    for reply in [one, two] {
        assert_eq!(reply.header("x-generation-id"), Some(id.as_str()));
        let events = events(&reply);
        assert_eq!(events[0]["type"], "start", "{events:?}");
        let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        assert_eq!(said, words.join(" "));
        only(&events, "finish");
    }
    assert_eq!(attach("?userId=ann").status, 204);
    assert_eq!(newest(site, agent)["status"], "completed");
}

#[test]
fn a_killed_generation_is_interrupted_in_the_history() {
    let begun = [begins("openai", "half "), vec![Deed::Hold]].concat();
    let server = Provider::start([says("before"), begun, says("after")]);
    let site = Site::with(&clerk(&server, ""));
    let options = json!({ "userId": "ann", "conversationId": "c" });
    let body = |input: &str| json!({ "input": input, "options": options });
    ask(&site, "clerk", "text", &body("one")).data();
    let mut reading = Events::read(begin(&site, "clerk", "stream", &body("two"))).unwrap();
    while reading.next().unwrap().is_some_and(|event| event.kind() != "text-delta") {}

    let site = site.after_a_kill();
    server.wait_until_left(1);
    assert_eq!(status(&site, "clerk"), "idle");
    let history = site.get("/agents/clerk/history").data();
    let entries = history["entries"].as_array().unwrap();
    let shown: Vec<_> =
        entries.iter().map(|it| (&it["input"], &it["status"], &it["error"])).collect();
    let interrupted = json!("interrupted by a restart");
    assert_eq!(
        shown,
        [
            (&json!("two"), &json!("error"), &interrupted),
            (&json!("one"), &json!("completed"), &Value::Null)
        ]
    );
    let id = entries[0]["id"].as_str().unwrap();
    assert_eq!(cancel(&site, "clerk", id).error(), format!("Generation {id} is already error"));

    ask(&site, "clerk", "text", &body("three")).data();
    let told = server.asked().pop().unwrap().body["messages"].to_string();
    assert!(
        told.contains("\"one\"") && told.contains("\"before\"") && told.contains("\"three\""),
        "{told}"
    );
}

#[test]
fn slow_output_arrives_as_it_is_generated() {
    let frame =
        format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": "grün 🙂" } }] }));
    let cut = frame.find('🙂').unwrap() + 2;
    let server = Provider::start([vec![
        stream_head(),
        event(&json!({ "choices": [{ "delta": { "content": "first" } }] })),
        Deed::Wait,
        piece(&frame.as_bytes()[..cut]),
        Deed::Wait,
        piece(&frame.as_bytes()[cut..]),
        event(&json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] })),
        stream_end(),
    ]]);
    let site = Site::with(&clerk(&server, ""));
    let mut reading = Events::read(begin(&site, "clerk", "stream", &question())).unwrap();
    let mut delta = || loop {
        let event = reading.next().unwrap().unwrap().json();
        if event["type"] == "text-delta" {
            return event["delta"].as_str().unwrap().to_owned();
        }
    };
    assert_eq!(delta(), "first");
    server.permit();
    server.permit();
    assert_eq!(delta(), "grün 🙂");
}

#[test]
fn a_disconnected_caller_holds_no_memory() {
    let home = Home::new(
        "store.passivate_after = \"100ms\"\n\
         [[workflows.nap.steps]]\nid = \"s\"\ntype = \"andSleep\"\nduration = \"30d\"\n",
    );
    let site = Server::start(home.greenroom(&[]));
    let mut wire = Wire::open(site.address).unwrap();
    let body = json!({ "input": {}, "options": { "executionId": "e" } }).to_string();
    wire.send("POST", "/workflows/nap/execute", &[], Some(body.as_bytes())).unwrap();
    let live = || {
        let text = site.get("/metrics").text();
        text.lines().find_map(|line| line.strip_prefix("greenroom_executions_live ")?.parse().ok())
    };
    eventually("it is in memory", || live().filter(|count: &u64| *count == 1));
    drop(wire);
    eventually("it has left memory", || live().filter(|count| *count == 0));
    let state = site.get("/workflows/nap/executions/e/state").data();
    assert_eq!(state["status"], "running", "it continues: {state}");
}
