//! Questions that a form cannot ask: the person answers on a page.

use serde_json::{Value, json};

use super::access::with_users;
use super::{CONFIG, KEY, Site, answer_to, question};
use support::server::{Home, Server};

const BASE: &str = "https://green.example";

/// A server that makes links.
fn site() -> Site {
    with(CONFIG)
}

/// A server with this configuration that makes links.
fn with(config: &str) -> Site {
    let inbox = format!("[inbox]\nsecret = \"secret:TEST_INBOX_KEY\"\nbase_url = \"{BASE}\"\n");
    let home = Home::new(&format!("{inbox}{config}"));
    let mut command = super::command(&home);
    command.env("TEST_INBOX_KEY", KEY);
    Site { server: Server::start(command), home }
}

fn pages() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// Returns the path of the page of the only question.
fn page_of(result: &Value) -> String {
    let (key, _) = question(result);
    let params = &result["inputRequests"][&key]["params"];
    assert_eq!((&params["mode"], params.get("requestedSchema")), (&json!("url"), None));
    params["url"].as_str().unwrap().strip_prefix(BASE).unwrap().to_owned()
}

fn submit(site: &Site, path: &str, form: &str) -> u16 {
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", "null")];
    site.server.send("POST", path, &headers, Some(form.as_bytes())).status
}

#[test]
fn an_answer_without_a_form_is_given_on_a_page() {
    let site = site();
    let call = ("workflow_nested", &json!({}));
    let asked = site.call(call.0, call.1, &pages());
    let (page, asked) = (page_of(&asked), question(&asked));
    assert!(site.server.get(&page).text().contains("Which lines?"));
    let opened = answer_to(call, &asked, &json!({}));
    std::thread::scope(|scope| {
        // the person has agreed to open it: the call waits until there is an answer
        let waiting = scope.spawn(|| site.ask("tools/call", &opened, &pages()));
        assert_eq!(submit(&site, &page, "data=%7B%22lines%22%3A%5B%22a%22%5D%7D"), 200);
        let done = waiting.join().unwrap();
        assert_eq!(done["result"]["structuredContent"], json!(["a"]), "{done}");
    });
    let again = site.ask("tools/call", &opened, &pages());
    assert_eq!(again["result"]["structuredContent"], json!(["a"]), "the current state");
}

#[test]
fn pages_are_for_clients_that_open_them() {
    let site = site();
    // a form is shown where it can ask
    let asked = site.call("workflow_expense", &json!({ "amount": 5 }), &pages());
    let (key, _) = question(&asked);
    assert_eq!(asked["inputRequests"][&key]["params"]["mode"], "form");
    let only = json!({ "elicitation": { "url": {} } });
    page_of(&site.call("workflow_expense", &json!({ "amount": 5 }), &only));
    let forms = json!({ "elicitation": { "form": {} } });
    let waiting = site.call("workflow_nested", &json!({}), &forms);
    assert_eq!(waiting["structuredContent"]["status"], "suspended");
    // without links in the configuration there are none
    let plain = Site::start();
    let waiting = plain.call("workflow_nested", &json!({}), &pages());
    assert_eq!(waiting["structuredContent"]["status"], "suspended");
}

#[test]
fn a_task_shows_its_page() {
    let site = site();
    let abilities = json!({
        "elicitation": { "url": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let id = site.call("workflow_nested", &json!({}), &abilities)["taskId"].clone();
    let now = || site.ask("tasks/get", &json!({ "taskId": id }), &abilities)["result"].clone();
    let task = now();
    assert_eq!(task["status"], "input_required");
    let (key, request) = task["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let page = request["params"]["url"].as_str().unwrap().strip_prefix(BASE).unwrap();
    // that it was opened is no answer
    let opened = json!({ "taskId": id, "inputResponses": { key: { "action": "accept" } } });
    assert!(site.ask("tasks/update", &opened, &abilities).get("error").is_none());
    assert_eq!(now()["status"], "input_required");
    assert_eq!(submit(&site, page, "data=%7B%22lines%22%3A%5B%5D%7D"), 200);
    let done =
        support::eventually("it ends", || Some(now()).filter(|it| it["status"] == "completed"));
    assert_eq!(done["result"]["structuredContent"], json!([]));
}

#[test]
fn a_page_counts_as_its_caller_by_a_role() {
    let site = with(&with_users("[auth]\nownership = { roles = [\"manager\"] }\n"));
    let call = json!({ "name": "workflow_others", "arguments": {} });
    let asked = |user: &str| {
        site.ask_as(&[("x-api-key", user)], "tools/call", &call, &pages()).json()["result"].clone()
    };
    let page = page_of(&asked("eve"));
    assert_eq!(submit(&site, &page, "data=1"), 200);
    assert_eq!(asked("ann")["structuredContent"]["status"], "suspended", "ann is not asked");
}

#[test]
fn there_is_no_page_for_those_who_may_not_answer() {
    let route = "POST /agents/:id/generations/:generationId/cancel";
    let rules = format!("[auth]\nrules = [{{ route = \"{route}\", roles = [\"manager\"] }}]\n");
    let site = with(&with_users(&rules));
    let call = json!({ "name": "agent_cashier", "arguments": { "prompt": "REFUND" } });
    for (user, status) in [("ann", Value::from("complete")), ("eve", Value::from("input_required"))]
    {
        let asked = site.ask_as(&[("x-api-key", user)], "tools/call", &call, &pages()).json();
        let result = &asked["result"];
        assert_eq!(result["resultType"], status, "{user}: {result}");
        assert_eq!(result.get("inputRequests").is_some(), user == "eve", "{user}");
    }
}
