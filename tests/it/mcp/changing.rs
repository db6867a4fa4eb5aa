//! Tools whose definitions change: asked about, used, left out and accepted, also over a restart.

use serde_json::{Value, json};
use support::eventually;
use support::server::Server;

use super::Site;
use super::asking::{answer, open_ask, suspended, text_of};
use crate::program::Programs as _;

/// Gives the tool `sum` another description from the next list on, and lets the server say so.
pub(super) fn change(site: &Site, description: &str) {
    std::fs::write(site.home.path("said"), description).unwrap();
    site.call("renew", &json!({})).unwrap();
}

/// Waits until `sum` has changed, and returns how.
pub(super) fn changed(site: &Site) -> Value {
    let status = site.status_when("own", |status| status["changed"][0]["name"] == "sum");
    status["changed"][0].clone()
}

/// Waits until nothing has changed.
pub(super) fn settled(site: &Site) {
    site.status_when("own", |status| status["state"] == "ready" && status["changed"] == json!([]));
}

/// Returns the description that models and callers see.
fn described(site: &Site) -> String {
    let tools = site.server.get("/tools").data();
    let tools = tools.as_array().unwrap();
    let sum = tools.iter().find(|tool| tool["name"] == "own.sum").unwrap();
    sum["description"].as_str().unwrap().to_owned()
}

/// Accepts what has changed; returns the status and the names.
fn accept(server: &Server, body: &Value) -> (u16, Value) {
    let reply = server.post("/tools/mcp/own/accept", body);
    let accepted = if reply.status == 200 { reply.data()["accepted"].clone() } else { Value::Null };
    (reply.status, accepted)
}

pub(super) fn sums(site: &Site) -> usize {
    let noted = std::fs::read_to_string(site.home.path("asked")).unwrap_or_default();
    noted.lines().filter(|line| *line == "sum").count()
}

#[test]
fn a_call_of_a_changed_tool_waits_for_a_person_whose_approval_counts_for_later_calls() {
    let site = Site::start("approval = { tools = [\"hang\"], to = [\"user:ann\"] }\n");
    change(&site, "Sends the numbers to us");
    let shown = changed(&site);
    assert_eq!(shown["parts"], json!(["description"]));
    assert_eq!(shown["description"], "Sends the numbers to us");
    assert_eq!(described(&site), "Does sum", "models read what is accepted");

    let (refused, late) = (suspended(&site.server, "the sum"), suspended(&site.server, "a sum"));
    assert_eq!(sums(&site), 0, "nothing is called before");
    let asks = site.server.get("/inbox").data();
    let asks = asks["asks"].as_array().unwrap().clone();
    let reason = asks[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("The tool own.sum, first seen "), "{reason}");
    assert!(reason.contains("(description)") && reason.contains("Sends the numbers"), "{reason}");
    let of = |generation: &Value| {
        let id = &generation["generationId"];
        asks.iter().find(|ask| &ask["of"]["generationId"] == id).unwrap().clone()
    };
    let decide = |site: &Site, ask: &Value, user: &str, is_approved: bool| {
        let path = format!("/inbox/{}/answer", ask["askId"].as_str().unwrap());
        let data = json!({ "approved": is_approved });
        site.server.post(&path, &json!({ "data": data, "options": { "userId": user } })).status
    };
    assert_eq!(decide(&site, &of(&refused), "bob", true), 403);
    assert_eq!(decide(&site, &of(&refused), "ann", false), 200);
    assert!(text_of(&site.server, &refused).contains("refused by a person"));
    assert_eq!(changed(&site), shown, "a refusal accepts nothing");

    let site = site.after_a_kill();
    assert_eq!(changed(&site)["hash"], shown["hash"], "also after a restart");
    assert_eq!(decide(&site, &of(&late), "ann", true), 200);
    assert!(text_of(&site.server, &late).contains("42"));
    settled(&site);
    assert_eq!(described(&site), "Sends the numbers to us", "tools are as the servers are shown");
    let next = site.server.post("/agents/clerk/text", &json!({ "input": "the sum" })).data();
    assert!(next["text"].as_str().unwrap().contains("42"), "{next}");
    let site = site.after_a_kill();
    settled(&site);
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}

#[test]
fn an_approval_counts_once_its_answer_is_acknowledged_although_the_server_is_killed() {
    let site = Site::start("");
    change(&site, "Second");
    changed(&site);
    let waiting = suspended(&site.server, "the sum");
    let ask = open_ask(&site.server);
    assert_eq!(answer(&site.server, &ask, &json!({ "approved": true })), 200);
    let site = site.after_a_kill();
    let said = text_of(&site.server, &waiting);
    // the kill may meet the call itself
    assert!(said.contains("42") || said.contains("interrupted"), "{said}");
    settled(&site);
    assert_eq!(described(&site), "Second");
    assert!(sums(&site) <= 1);
}

#[test]
fn an_approval_of_a_definition_that_has_changed_again_asks_again() {
    let site = Site::start("");
    change(&site, "Second");
    let second = changed(&site)["hash"].clone();
    let waiting = suspended(&site.server, "the sum");
    let ask = open_ask(&site.server);
    change(&site, "Third");
    site.status_when("own", |status| {
        let changed = &status["changed"][0];
        changed["name"] == "sum" && changed["hash"] != second
    });
    assert_eq!(accept(&site.server, &json!({ "tool": "sum", "hash": second })), (409, Value::Null));
    assert_eq!(answer(&site.server, &ask, &json!({ "approved": true })), 200);
    let again = open_ask(&site.server);
    assert!(again["reason"].as_str().unwrap().contains("Third") && again["askId"] != ask["askId"]);
    assert_eq!(sums(&site), 0);
    assert_eq!(answer(&site.server, &again, &json!({ "approved": true })), 200);
    assert!(text_of(&site.server, &waiting).contains("42"));
    change(&site, "Does sum");
    eventually("the tool", || (described(&site) == "Does sum").then_some(()));
    settled(&site);
}

#[test]
fn direct_calls_and_steps_are_refused_until_an_operator_accepts_the_change() {
    let site = Site::start("");
    change(&site, "Second");
    changed(&site);
    let why = site.call("sum", &json!({ "n": 1 })).unwrap_err();
    assert!(why.starts_with("Failed to execute tool: own.sum has changed since "), "{why}");
    assert!(why.contains("greenroom tools accept own sum, or POST /tools/mcp/own/accept"), "{why}");
    let input = json!({ "input": { "n": 2 } });
    let run = |site: &Site| site.server.post("/workflows/adding/execute", &input);
    assert_eq!((run(&site).status, sums(&site)), (500, 0));
    assert_eq!(accept(&site.server, &json!({ "tool": "none" })), (404, Value::Null));
    assert_eq!(accept(&site.server, &json!({ "tool": "sum" })), (200, json!(["sum"])));
    assert_eq!(described(&site), "Second", "it is in use when it is said to be accepted");
    assert_eq!(accept(&site.server, &json!({})), (200, json!([])), "nothing is left");
    assert_eq!(run(&site).data()["result"], json!({ "sum": 3 }));
    settled(&site);
}

#[test]
fn a_changed_tool_is_left_out_until_it_is_accepted() {
    let site = Site::start("on_change = \"drop\"\n");
    std::fs::write(site.home.path("said"), "Second").unwrap();
    let site = site.after_a_kill();
    changed(&site);
    let status = site.status_when("own", |_| true);
    let left_out = status["leftOut"].as_array().unwrap();
    let reason = left_out.iter().find(|it| it["name"] == "sum").unwrap()["reason"].clone();
    assert!(reason.as_str().unwrap().starts_with("it has changed since "), "{reason}");
    let why = site.call("sum", &json!({ "n": 1 })).unwrap_err();
    assert!(why.contains("own.sum cannot be used: it has changed"), "{why}");
    assert_eq!(accept(&site.server, &json!({})), (200, json!(["sum"])));
    settled(&site);
    eventually("the tool", || {
        (site.call("sum", &json!({ "n": 1 })) == Ok(json!({ "sum": 2 }))).then_some(())
    });
}

#[test]
fn changes_are_used_where_the_configuration_says_so() {
    let site = Site::start("on_change = \"use\"\n");
    change(&site, "Second");
    eventually("the tool", || (described(&site) == "Second").then_some(()));
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
    settled(&site);
}

#[test]
fn tools_beyond_those_that_are_remembered_are_left_out() {
    let site = Site::start("tools_seen_max = 2\n");
    let status = site.status_when("own", |_| true);
    assert_eq!(status["tools"], json!(["own.echo", "own.sum"]), "{status}");
    let left_out = status["leftOut"].as_array().unwrap();
    let reason = left_out.iter().find(|it| it["name"] == "die").unwrap()["reason"].clone();
    assert!(reason.as_str().unwrap().ends_with("2 tools of the server were seen (tools_seen_max)"));
}

#[test]
fn the_command_line_shows_and_accepts_changes() {
    let site = Site::start("");
    change(&site, "Second");
    changed(&site);
    let run = |arguments: &[&str]| {
        let mut command = site.home.greenroom(&["tools"]);
        command.args(arguments).env("GREENROOM_SERVER", format!("http://{}", site.server.address));
        command.env("XDG_CONFIG_HOME", site.home.path("settings")).env_remove("GREENROOM_TOKEN");
        let output = site.home.run(command);
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat()
    };
    let shown = run(&["servers"]);
    assert!(shown.contains("sum has changed: description"), "{shown}");
    let refused = run(&["accept", "own", "sum", "--hash", "0"]);
    assert!(refused.contains("changed again"), "{refused}");
    assert!(run(&["accept", "own", "sum"]).contains("accepted own.sum"));
    assert!(run(&["accept", "own"]).contains("nothing has changed"));
}
