//! Ownership: resources of other users are hidden, before and after a restart.

use serde_json::{Value, json};

use super::site::{Site, api_keys, at, key};
use support::client::Reply;

/// Starts a site with the users `ann` and `ben`, and the admin `eve`, who sees all resources.
fn site() -> Site {
    let users = api_keys(&[("ann", "staff"), ("ben", "staff"), ("eve", "admin")]);
    Site::with(&format!("[auth]\nownership = {{ roles = [\"admin\"] }}\n{users}"))
}

fn ask(site: &Site, who: &str, request: &str, body: &str) -> Reply {
    let (method, path) = request.split_once(' ').unwrap();
    let key = key(who);
    let headers = [("x-api-key", key.as_str()), ("content-type", "application/json")];
    site.send(method, path, &headers, Some(body.as_bytes()))
}

fn post(site: &Site, who: &str, path: &str, body: &Value) -> Value {
    ask(site, who, &format!("POST {path}"), &body.to_string()).data()
}

fn get(site: &Site, who: &str, path: &str) -> Value {
    ask(site, who, &format!("GET {path}"), "").data()
}

/// Returns ids and users of the executions in a caller's list, oldest first.
fn listed(site: &Site, who: &str, path: &str) -> Vec<(String, Value)> {
    let list = get(site, who, path);
    let rows = list["executions"].as_array().unwrap().iter().rev();
    rows.map(|row| (row["executionId"].as_str().unwrap().to_owned(), row["userId"].clone()))
        .collect()
}

fn assert_apart(site: &Site, child: &str) {
    for (workflow, id) in [("parent", "of-ann"), ("approval", child)] {
        let missing = "x".repeat(id.len());
        for (request, body) in [
            ("GET state", ""),
            ("GET stream", ""),
            ("GET why", ""),
            ("POST suspend", "{}"),
            ("POST suspend", "{"),
            ("POST resume", "{\"resumeData\":{\"approved\":true}}"),
            ("POST resume", "{"),
            ("POST cancel", "{}"),
            ("POST replay", "{\"stepId\":\"ask\"}"),
            ("POST replay", "{"),
        ] {
            let (method, what) = request.split_once(' ').unwrap();
            let told = |id: &str| {
                let request = format!("{method} {}", at(workflow, id, what));
                let reply = ask(site, "ben", &request, body);
                let mut headers = reply.headers.clone();
                headers.retain(|(name, _)| !["date", "x-request-id"].contains(&&**name));
                headers.sort();
                (reply.status, headers, reply.text().replace(id, "<id>"))
            };
            let anothers = told(id);
            assert_eq!(anothers.0, 404, "{request} {body}");
            assert!(anothers.1.iter().all(|(name, _)| name != "x-execution-id"), "{request}");
            assert_eq!(anothers, told(&missing), "{request} {body}");
        }
        for who in ["ann", "eve"] {
            let state = get(site, who, &at(workflow, id, "state"));
            assert_eq!((&state["status"], &state["userId"]), (&json!("suspended"), &json!("ann")));
        }
        let nobody = site.get(&at(workflow, id, "state"));
        assert_eq!(nobody.status, 401, "{}", nobody.text());
    }
    let of = |ids: &[&str], user: &str| -> Vec<(String, Value)> {
        ids.iter().map(|id| ((*id).to_owned(), json!(user))).collect()
    };
    let all = "/workflows/executions";
    assert_eq!(listed(site, "ann", all), of(&["of-ann", child], "ann"));
    assert_eq!(listed(site, "ben", all), of(&["of-ben"], "ben"));
    assert_eq!(listed(site, "ben", &format!("{all}?userId=ann")), []);
    assert_eq!(listed(site, "ben", "/workflows/parent/executions"), []);
    assert_eq!(listed(site, "eve", all).len(), 3);
    for (who, total) in [("ann", 2), ("ben", 1), ("eve", 3)] {
        let page = get(site, who, "/agents/assistant/history?limit=1");
        assert_eq!(page["pagination"]["total"], total, "{who}");
        let owner = if who == "eve" { "ann" } else { who };
        assert_eq!(page["entries"][0]["userId"], owner, "{who}");
    }
}

#[test]
fn executions_of_other_users_are_hidden_before_and_after_a_kill() {
    let site = site();
    let start = |who: &str, workflow: &str, input: Value| {
        let options = json!({ "executionId": format!("of-{who}"), "userId": "somebody else" });
        let body = json!({ "input": input, "options": options });
        post(&site, who, &format!("/workflows/{workflow}/execute"), &body)
    };
    start("ann", "parent", json!({ "who": "Ann" }));
    start("ben", "add", json!({ "n": 1 }));
    for who in ["ann", "ben", "ann"] {
        let body = json!({ "input": format!("{who} asks"), "options": { "userId": "ann" } });
        post(&site, who, "/agents/assistant/text", &body);
    }
    let child = listed(&site, "ann", "/workflows/approval/executions").remove(0).0;
    assert_apart(&site, &child);
    let site = site.after_a_kill();
    assert_apart(&site, &child);

    let body = json!({ "resumeData": { "approved": true } });
    let resumed = post(&site, "ann", &at("parent", "of-ann", "resume"), &body);
    assert_eq!(resumed["status"], "completed", "{resumed}");
    // A replay keeps the owner, whatever caller starts it.
    let replay = json!({ "stepId": "child", "options": { "executionId": "again" } });
    post(&site, "eve", &at("parent", "of-ann", "replay"), &replay);
    let state = get(&site, "ann", &at("parent", "again", "state"));
    assert_eq!(state["userId"], "ann");
    assert_eq!(state["replayedBy"], json!({ "id": "eve", "verified": true }));
}
