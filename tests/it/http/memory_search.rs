//! Earlier messages in requests to a provider.

use serde_json::{Value, json};

use super::site::Site;
use super::upstream::{ask, calls, clerk, says};
use support::provider::Provider;
use support::store::Store;

const KEYS: &str = r#"instructions = "be brief"
tools = ["add"]
[agents.forgetful]
model = "remote"
memory = false
[tools.add]
kind = "workflow"
workflow = "add"
description = "Adds three"
"#;

/// Runs the agent; returns the messages that the provider received, each as its role and text.
fn told(site: &Site, server: &Provider, agent: &str, input: &str, options: &Value) -> Vec<String> {
    let before = server.asked().len();
    ask(site, agent, "text", &json!({ "input": input, "options": options })).data();
    let asked = server.asked().swap_remove(before);
    let messages = asked.body["messages"].as_array().unwrap().iter();
    let show = |message: &Value| {
        let text = message["content"].as_str().map_or_else(String::new, |text| format!(" {text}"));
        format!("{}{text}", message["role"].as_str().unwrap())
    };
    messages.map(show).collect()
}

fn talk(user: &str, conversation: &str) -> Value {
    json!({ "userId": user, "conversationId": conversation })
}

#[test]
fn earlier_messages_come_first_also_after_a_kill() {
    talked(Store::chosen());
}

#[test]
fn earlier_messages_come_first_also_after_a_kill_on_postgres() {
    Store::postgres().into_iter().for_each(talked);
}

fn talked(store: Store) {
    let add = [calls("add", "{\"n\":1}"), says("four")];
    let scripts = [says("hello ann"), says("again")].into_iter().chain(add).chain([says("bye")]);
    let server = Provider::start(scripts);
    let site = Site::on(store, &clerk(&server, KEYS));
    let ask = |site: &Site, input| told(site, &server, "clerk", input, &talk("ann", "c"));
    let mut expected = vec!["system be brief", "user one"];
    assert_eq!(ask(&site, "one"), expected);
    expected.extend(["assistant hello ann", "user two"]);
    assert_eq!(ask(&site, "two"), expected);
    let site = site.after_a_kill();
    expected.extend(["assistant again", "user three"]);
    assert_eq!(ask(&site, "three"), expected);
    let site = site.after_a_kill();
    expected.extend(["assistant", "tool {\"n\":4}", "assistant four", "user four"]);
    assert_eq!(ask(&site, "four"), expected);
    let shown = site.get("/api/memory/conversations/c/messages?agentId=clerk&userId=ann").data();
    let shown = shown["messages"].as_array().unwrap().clone();
    let roles: Vec<_> = shown.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"].repeat(4));
}

#[test]
fn conversations_of_other_users_are_not_sent_to_the_model() {
    let server = Provider::start(vec![says("yes"); 20]);
    let site = Site::with(&clerk(&server, KEYS));
    told(&site, &server, "clerk", "the secret of ann", &talk("ann", "c"));
    told(&site, &server, "forgetful", "a secret as well", &talk("ann", "c"));
    let alone = ["system be brief", "user hi"];
    let rows = [
        ("clerk", talk("eve", "c"), &alone[..]),
        ("clerk", json!({ "conversationId": "c" }), &alone),
        ("clerk", talk("ann", "d"), &alone),
        ("clerk", json!({ "userId": "ann" }), &alone),
        ("clerk", json!({}), &alone),
        ("forgetful", talk("ann", "c"), &alone[1..]),
    ];
    for (agent, options, expected) in rows {
        assert_eq!(told(&site, &server, agent, "hi", &options), expected, "{options}");
    }
    let messages = "/api/memory/conversations/c/messages?agentId=clerk";
    let shown = site.get(&format!("{messages}&userId=eve")).text();
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn only_the_newest_messages_are_sent_to_the_model() {
    let server = Provider::start((0..20).map(|number| says(&format!("answer {number}"))));
    let site = Site::with(&clerk(&server, KEYS));
    for number in 0..8 {
        let input = format!("question {number}");
        told(&site, &server, "clerk", &input, &talk("ann", "c"));
    }
    for (limit, expected) in [(Some(2), 2), (Some(4), 4), (Some(100), 20), (None, 10)] {
        let mut options = talk("ann", "c");
        if let Some(limit) = limit {
            options["contextLimit"] = json!(limit);
        }
        let told = told(&site, &server, "clerk", "now", &options);
        let [system, older @ .., newest] = &told[..] else { panic!("{told:?}") };
        assert_eq!((system.as_str(), newest.as_str()), ("system be brief", "user now"));
        assert_eq!(older.len(), expected, "{limit:?}: {told:?}");
        assert!(older.first().unwrap().starts_with("user "), "{told:?}");
        assert!(older.last().unwrap().starts_with("assistant answer"), "{told:?}");
    }
}
