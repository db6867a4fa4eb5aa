//! `subscriptions/listen`: what clients notice without asking.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

use super::{CONFIG, KEY, Site, command, forms, modern};
use support::client::{Events, Wire};
use support::server::{Home, Server};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn tasks() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Opens a stream, and returns what the server agreed to.
pub(super) fn listen(site: &Site, more: &[(&str, &str)], notifications: &Value) -> (Events, Value) {
    let params = json!({ "notifications": notifications });
    let (headers, body) = modern("subscriptions/listen", &params, &tasks());
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    headers.extend_from_slice(more);
    let mut wire = Wire::open(site.server.address).unwrap();
    wire.send("POST", "/mcp", &headers, Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    let agreed = next(&mut events, "subscriptions/acknowledged");
    (events, agreed["notifications"].clone())
}

/// Returns the parameters of the next notification, which has to be of this kind.
fn next(events: &mut Events, kind: &str) -> Value {
    let event = events.next().unwrap().unwrap().json();
    assert_eq!(event["method"], format!("notifications/{kind}"), "{event}");
    assert_eq!(event["params"]["_meta"], json!({ TAG: 1 }));
    event["params"].clone()
}

/// Reads the result of the request, which has to be the last event.
fn assert_ended(events: &mut Events) {
    let last = events.next().unwrap().unwrap().json();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(last["result"]["_meta"][TAG], 1);
    assert!(events.next().unwrap().is_none());
}

#[test]
fn a_client_notices_what_becomes_of_tasks_and_executions() {
    let site = Site::start();
    let id = site.call("workflow_expense", &json!({ "amount": 5 }), &tasks())["taskId"].clone();
    let execution = id.as_str().unwrap().split_once('.').unwrap().0;
    let uri = format!("greenroom://executions/{execution}");
    let (mut events, agreed) = listen(
        &site,
        &[],
        &json!({
            "taskIds": ["x", id, "expense/x.y"],
            "resourceSubscriptions": [uri, "greenroom://executions/expense/none", "file:///x"],
            "promptsListChanged": true,
        }),
    );
    assert_eq!(agreed, json!({ "taskIds": [id], "resourceSubscriptions": [uri] }));
    let waits = next(&mut events, "tasks");
    assert_eq!((&waits["taskId"], &waits["status"]), (&id, &json!("input_required")));
    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let responses = json!({ key: { "action": "accept", "content": { "approved": true } } });
    let update = json!({ "taskId": id, "inputResponses": responses });
    assert!(site.ask("tasks/update", &update, &tasks()).get("error").is_none());
    // in any order, and possibly with one in between
    let (mut updated, mut completed) = (false, false);
    while !updated || !completed {
        let event = events.next().unwrap().unwrap().json();
        let params = &event["params"];
        match event["method"].as_str().unwrap() {
            "notifications/tasks" => completed = params["status"] == "completed",
            "notifications/resources/updated" => {
                assert_eq!(params["uri"], uri);
                updated = true;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(
        site.ask("tasks/get", &json!({ "taskId": id }), &tasks())["result"]["status"],
        "completed"
    );
}

#[test]
fn a_client_notices_other_tools() {
    let config = format!("system.reload_every = \"0s\"\n{CONFIG}");
    let site = Site::with(Home::new(&config));
    let (mut events, agreed) = listen(&site, &[], &json!({ "toolsListChanged": true }));
    assert_eq!(agreed, json!({ "toolsListChanged": true }));
    // what changes no tool is not noticed
    site.home.configure(&config.replace("duration = \"1h\"", "duration = \"2h\""));
    site.server.signal("HUP");
    site.server.says("reloaded the configuration");
    site.home.configure(&config.replace("Greets someone", "Greets anyone"));
    site.server.signal("HUP");
    next(&mut events, "tools/list_changed");
    let tools = site.ask("tools/list", &json!({}), &json!({}))["result"]["tools"].clone();
    let greet = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "workflow_greet");
    assert_eq!(greet.unwrap()["description"], "Greets anyone");
}

#[test]
fn subscriptions_are_bounded_and_end_with_the_server() {
    let config = CONFIG.replacen("resources = true", "resources = true\nsubscriptions_max = 2", 1);
    let site = Site::with(Home::new(&config));
    let refused = |ids: &[&str], abilities: &Value| {
        let params = json!({ "notifications": { "taskIds": ids } });
        site.ask("subscriptions/listen", &params, abilities)["error"].clone()
    };
    let many = refused(&["a", "b", "c"], &tasks());
    assert_eq!(many["code"], -32602);
    assert!(many["message"].as_str().unwrap().contains("more than 2"), "{many}");
    assert_eq!(refused(&["a"], &forms())["code"], -32021);
    let (mut events, agreed) = listen(&site, &[], &json!({ "taskIds": ["a", "b"] }));
    assert_eq!(agreed, json!({}));
    site.server.signal("TERM");
    assert_ended(&mut events);
}

#[test]
fn a_subscription_ends_with_its_token() {
    let home = Home::new(&format!("[auth.jwt]\n{CONFIG}"));
    let mut command = command(&home);
    command.env("JWT_SECRET", KEY);
    let site = Site { server: Server::start(command), home };
    // in whole seconds, one of which may be nearly over
    let claims = json!({ "sub": "ann", "exp": SystemClock.now().0 / 1000 + 3 });
    let key = EncodingKey::from_secret(KEY.as_bytes());
    let token = jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap();
    let bearer = format!("Bearer {token}");
    let notifications = json!({ "toolsListChanged": true });
    let (mut events, agreed) = listen(&site, &[("authorization", &bearer)], &notifications);
    assert_eq!(agreed, notifications);
    assert_ended(&mut events);
}
