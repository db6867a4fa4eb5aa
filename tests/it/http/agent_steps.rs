//! Agents as steps of workflows, with a provider behind them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::site::{ADD_TOOL, Site, at};
use super::upstream::{begins, calls, clerk, model, newest, says};
use support::client::{Event, Events, Wire};
use support::eventually;
use support::provider::{Deed, Provider, whole};

/// Maximum time that an upstream request may outlive its step.
const LEAVING_MAX: Duration = Duration::from_secs(10);

const WORKFLOWS: &str = r#"
[workflows.letter]
steps = [
    { id = "write", type = "andAgent", agent = "clerk", prompt = "To {{ input.who }}" },
    { id = "after", map = { text = "data.text", tokens = "data.usage.totalTokens" } },
]

[workflows.form]
[[workflows.form.steps]]
id = "fill"
type = "andAgent"
agent = "clerk"
prompt = "Fill it in"
schema = { type = "object", required = ["name"], properties = { name = { type = "string" } } }

[workflows.steady]
steps = [
    { id = "write", type = "andAgent", agent = "clerk", prompt = "Again", retry = { attempts = 2, delay = "1ms" } },
]

[workflows.race]
steps = [{ id = "first", type = "andRace", blocks = ["fast", "slow"] }]
blocks.fast = [{ id = "answer", type = "andAgent", agent = "rival", prompt = "Hurry" }]
blocks.slow = [{ id = "ask", type = "andAgent", agent = "clerk", prompt = "Take your time" }]
"#;

/// Returns the keys of the agent, and what follows it.
fn keys() -> String {
    format!("tools = [\"add\"]\n{ADD_TOOL}{WORKFLOWS}")
}

fn site(server: &Provider) -> Site {
    let rival = "[agents.rival]\nmodel = \"offline\"\n";
    Site::with(&format!("{rival}{}", clerk(server, &keys())))
}

/// Starts an execution and streams its events.
fn follow(site: &Site, workflow: &str, id: &str, options: Value) -> Events {
    let mut options = options;
    options["executionId"] = json!(id);
    let body = json!({ "input": { "who": "Ann" }, "options": options }).to_string();
    let mut wire = Wire::open(site.address).unwrap();
    let path = format!("/workflows/{workflow}/stream");
    wire.send("POST", &path, &[], Some(body.as_bytes())).unwrap();
    Events::read(wire).unwrap()
}

fn rest(mut reading: Events) -> Vec<Event> {
    std::iter::from_fn(|| reading.next().unwrap()).collect()
}

#[test]
fn a_step_gives_the_text_and_its_tools_show_in_the_stream() {
    let server = Provider::start([calls("add", "{\"n\":1}"), says("Dear Ann"), says("Dear Ann")]);
    let site = site(&server);
    let options = json!({ "userId": "ann", "conversationId": "c" });
    let events = rest(follow(&site, "letter", "e1", options.clone()));
    let progress = events.iter().filter(|event| event.kind() == "step-progress");
    let said: Vec<_> = progress.map(Event::json).collect();
    assert!(said.iter().all(|it| it["from"] == "write" && it["executionId"] == "e1"));
    let of =
        |kind: &str| said.iter().find(|it| it["event"]["type"] == kind).unwrap()["event"].clone();
    assert_eq!(of("tool-call")["toolName"], "add");
    assert_eq!(of("tool-result")["output"], json!({ "n": 4 }));
    assert_eq!(of("text-delta")["delta"], "Dear Ann");
    let state = site.state("letter", "e1");
    assert_eq!(state["result"], json!({ "text": "Dear Ann", "tokens": 10 }), "{state}");
    assert_eq!(state["usage"]["totalTokens"], 10, "{state}");
    let entry = newest(&site, "clerk");
    assert_eq!((&entry["userId"], &entry["conversationId"]), (&json!("ann"), &json!("c")));
    // the second run has no subscriber, and remembers the first
    let mut options = options;
    options["executionId"] = json!("e2");
    let body = json!({ "input": { "who": "Bob" }, "options": options });
    let result = site.post("/workflows/letter/execute", &body).data();
    assert_eq!(result["result"]["text"], "Dear Ann");
    let told = server.asked().pop().unwrap().body["messages"].to_string();
    assert!(told.contains("To Ann") && told.contains("To Bob"), "{told}");
}

#[test]
fn a_step_with_a_schema_gives_the_object() {
    let server = Provider::start([says("{\"name\":7}"), says("{\"name\":\"Ada\"}")]);
    let site = site(&server);
    let result = site.execute("form", "e1", &json!({}));
    assert_eq!(result["result"], json!({ "name": "Ada" }));
    assert_eq!(site.state("form", "e1")["usage"]["totalTokens"], 10);
}

#[test]
fn a_step_whose_provider_fails_fails_or_is_retried() {
    let refusal = whole(500, &[], "{\"error\":{\"message\":\"it broke\"}}");
    let server = Provider::start([refusal.clone(), refusal, says("at last")]);
    let site = site(&server);
    let body = json!({ "input": { "who": "x" }, "options": { "executionId": "e1" } });
    let failed = site.post("/workflows/letter/execute", &body);
    assert_eq!((failed.status, failed.error().as_str()), (500, "Failed to execute workflow"));
    let error = site.state("letter", "e1")["error"].take();
    assert_eq!(error["stepId"], "write");
    assert!(error["message"].as_str().unwrap().ends_with("openai answered 500: it broke"));
    let result = site.execute("steady", "e2", &json!({}));
    assert_eq!(result["result"]["text"], "at last");
    let attempts = site.state("steady", "e2")["steps"][0]["attempts"].take();
    assert_eq!(attempts, 2);
}

/// Ends executions whose provider is silent. The provider of the agent `rival` waits for a permit.
fn ends_upstream(workflow: &str, script: &[Deed], end: impl Fn(&Site, &Provider)) {
    let server = Provider::start(vec![script.to_vec(); 2]);
    let rival = Provider::start(vec![[vec![Deed::Wait], says("first")].concat(); 2]);
    let second = model("second", "openai", &rival);
    let agents = format!("{second}[agents.rival]\nmodel = \"second\"\n{}", clerk(&server, &keys()));
    let site = Site::with(&agents);
    // streamed, and not
    for (round, id) in ["e1", "e2"].into_iter().enumerate() {
        let body = json!({ "input": { "who": "x" }, "options": { "executionId": id } });
        let route = ["stream", "execute"][round];
        let mut wire = Wire::open(site.address).unwrap();
        let path = format!("/workflows/{workflow}/{route}");
        wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
        server.wait_until_asked(round + 1);
        let since = Instant::now();
        end(&site, &rival);
        server.wait_until_left(round + 1);
        assert!(since.elapsed() < LEAVING_MAX, "{route}: {:?}", since.elapsed());
        eventually("the agent is idle", || {
            (site.get("/agents/clerk").data()["status"] == "idle").then_some(())
        });
        assert_eq!(newest(&site, "clerk")["status"], "cancelled", "{route}");
        assert_eq!(wire.reply().unwrap().status, 200, "{route}");
    }
}

/// Returns the id of the running execution.
fn live(site: &Site, workflow: &str) -> String {
    eventually("an execution is live", || {
        let list = site.get(&format!("/workflows/{workflow}/executions")).data();
        let list = list["executions"].as_array().unwrap().clone();
        list.iter()
            .find(|it| it["status"] == "running")
            .map(|it| it["executionId"].as_str().unwrap().to_owned())
    })
}

#[test]
fn a_lost_race_cancels_the_upstream_call() {
    for script in silences() {
        ends_upstream("race", &script, |site, rival| {
            let id = live(site, "race");
            rival.permit();
            let state = site.state_when("race", &id, |state| state["status"] == "completed");
            assert_eq!(state["result"]["text"], "first");
        });
    }
}

#[test]
fn a_cancelled_execution_cancels_the_upstream_call() {
    for script in silences() {
        ends_upstream("letter", &script, |site, _| {
            let id = live(site, "letter");
            let cancelled = site.post(&at("letter", &id, "cancel"), &json!({})).data();
            assert_eq!(cancelled["status"], "cancelled");
        });
    }
}

/// Returns scripts of providers that are silent before and after their first word.
fn silences() -> [Vec<Deed>; 2] {
    [vec![Deed::Hold], [begins("openai", "well"), vec![Deed::Hold]].concat()]
}

#[test]
fn an_execution_survives_the_disconnect_of_its_caller() {
    let server = Provider::start([[vec![Deed::Wait], says("Dear Ann")].concat()]);
    let site = site(&server);
    let reading = follow(&site, "letter", "e1", json!({}));
    server.wait_until_asked(1);
    drop(reading);
    server.permit();
    let state = site.state_when("letter", "e1", |state| state["status"] == "completed");
    assert_eq!(state["result"]["text"], "Dear Ann");
}

#[test]
fn an_agent_step_interrupted_by_a_kill_runs_again() {
    let server = Provider::start([vec![Deed::Hold], says("Dear Ann")]);
    let site = site(&server);
    drop(follow(&site, "letter", "e1", json!({})));
    server.wait_until_asked(1);
    let site = site.after_a_kill();
    let state = site.state_when("letter", "e1", |state| state["status"] == "completed");
    assert_eq!(state["result"]["text"], "Dear Ann");
    let history = site.get("/agents/clerk/history").data();
    assert_eq!(
        (&history["pagination"]["total"], &history["entries"][0]["status"]),
        (&json!(1), &json!("completed"))
    );
}
