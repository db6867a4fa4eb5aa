//! Lists of executions.

use serde_json::{Value, json};

use super::site::Site;

fn ids(page: &Value) -> Vec<String> {
    let rows = page["executions"].as_array().unwrap();
    rows.iter().map(|row| row["executionId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pages_follow_each_other_newest_first() {
    let site = Site::start();
    let mut expected = Vec::new();
    for n in 0..7 {
        let id = format!("a{n}");
        site.execute("add", &id, &json!({ "n": n }));
        expected.insert(0, id);
    }
    site.execute("approval", "other", &json!({ "who": "ann" }));
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = site.get(&format!("/workflows/add/executions?limit=3{cursor}")).data();
        seen.extend(ids(&page));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, expected);
    let all = site.get("/workflows/executions").data();
    assert_eq!(ids(&all)[0], "other");
    assert_eq!(ids(&all)[1..], expected);
}

#[test]
fn filters_narrow() {
    let site = Site::start();
    site.execute("add", "done", &json!({ "n": 1 }));
    let body =
        json!({ "input": { "who": "x" }, "options": { "executionId": "mine", "userId": "u 1" } });
    site.post("/workflows/approval/execute", &body).data();
    site.begin("nap", "live", &json!({}));
    let rows = [
        ("/workflows/executions?status=completed", &["done"][..]),
        ("/workflows/executions?status=suspended", &["mine"]),
        ("/workflows/executions?status=running", &["live"]),
        ("/workflows/executions?status=error", &[]),
        ("/workflows/executions?userId=u%201", &["mine"]),
        ("/workflows/executions?userId=u+1&status=suspended", &["mine"]),
        ("/workflows/executions?userId=nobody", &[]),
        ("/workflows/executions?from=2999-01-01T00:00:00Z", &[]),
        ("/workflows/executions?from=2000-01-01T00:00:00Z", &["live", "mine", "done"]),
        ("/workflows/executions?to=2000-01-01T00:00:00Z", &[]),
        ("/workflows/executions?endedFrom=2000-01-01", &["done"]),
        ("/workflows/executions?endedFrom=2000-01-01&status=completed", &["done"]),
        ("/workflows/executions?endedFrom=2000-01-01&status=running", &[]),
        ("/workflows/executions?endedTo=2000-01-01", &[]),
        ("/workflows/executions?endedTo=2999-01-01&endedFrom=2999-01-01", &[]),
        ("/workflows/approval/executions?endedFrom=2000-01-01", &[]),
        ("/workflows/executions?replayOf=done", &[]),
        ("/workflows/approval/executions", &["mine"]),
        ("/workflows/approval/executions?status=completed", &[]),
    ];
    for (path, expected) in rows {
        assert_eq!(ids(&site.get(path).data()), expected, "{path}");
    }
    let row = &site.get("/workflows/approval/executions").data()["executions"][0];
    assert_eq!((&row["status"], &row["userId"]), (&json!("suspended"), &json!("u 1")));
    assert_eq!(row["suspension"]["stepId"], "ask");
}

#[test]
fn lists_by_end_are_ordered_and_replays_name_their_original() {
    let site = Site::start();
    // It begins first and ends last.
    site.execute("approval", "w", &json!({ "who": "ann" }));
    site.execute("add", "a", &json!({ "n": 1 }));
    let body = json!({ "stepId": "one", "options": { "executionId": "again" } });
    site.post("/workflows/add/executions/a/replay", &body).data();
    let answer = json!({ "resumeData": { "approved": true } });
    site.post("/workflows/approval/executions/w/resume", &answer).data();

    let (mut seen, mut ends) = (Vec::new(), Vec::new());
    let mut cursor = String::new();
    loop {
        let page = site.get(&format!("/workflows/executions?endedFrom=2000-01-01&limit=1{cursor}"));
        let page = page.data();
        seen.extend(ids(&page));
        ends.push(page["executions"][0]["endAt"].as_str().unwrap().to_owned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(ends.is_sorted_by(|one, next| one >= next), "those that ended last first: {ends:?}");
    seen.sort();
    assert_eq!(seen, ["a", "again", "w"]);
    let refused = site.get(&format!("/workflows/executions?limit=1{cursor}"));
    assert_eq!(refused.status, 400, "a place of another list");

    let replays = site.get("/workflows/executions?replayOf=a").data();
    assert_eq!(ids(&replays), ["again"]);
    let from = json!({ "executionId": "a", "stepId": "one" });
    assert_eq!(replays["executions"][0]["replayedFrom"], from);
    let originals = site.get("/workflows/approval/executions").data();
    assert_eq!(originals["executions"][0].get("replayedFrom"), None);
}

#[test]
fn executions_are_found_by_the_version_they_began_with() {
    let site = Site::start();
    for id in ["a", "b"] {
        site.execute("add", id, &json!({ "n": 1 }));
    }
    let versions = site.get("/workflows/add/versions").data();
    assert_eq!((&versions["isComplete"], &versions["countedFrom"]), (&json!(true), &json!([])));
    let version = &versions["versions"][0];
    assert_eq!((&version["isCurrent"], &version["completed"]), (&json!(true), &json!(2)));
    assert!(version["firstStartAt"].as_str() <= version["lastStartAt"].as_str());
    let hash = version["definitionHash"].as_str().unwrap();
    let state = site.get("/workflows/add/executions/a/state").data();
    assert_eq!(state["definitionHash"], hash);
    let shown = |query: &str| site.get(&format!("/workflows/add{query}"));
    assert_eq!(shown("").data()["definitionHash"], hash);
    assert_eq!(shown(&format!("?definitionHash={hash}")).data(), shown("").data());
    let unknown = shown("?definitionHash=none");
    assert_eq!(
        (unknown.status, unknown.error()),
        (404, "Workflow add of version none not found".to_owned())
    );
    let of = |hash: &str| site.get(&format!("/workflows/add/executions?definitionHash={hash}"));
    assert_eq!(ids(&of(hash).data()), ["b", "a"]);
    assert_eq!(ids(&of("other").data()), [""; 0]);
}

#[test]
fn a_state_can_be_read_without_its_values() {
    let site = Site::start();
    site.execute("add", "a", &json!({ "n": 1 }));
    let state = |query: &str| site.get(&format!("/workflows/add/executions/a/state{query}"));
    let (whole, slim) = (state("?values=true").data(), state("?values=false").data());
    assert_eq!(whole, state("").data());
    for name in ["input", "context", "result"] {
        assert!(slim[name].is_null() && !whole[name].is_null(), "{name}: {slim}");
    }
    let outputs = |state: &Value| state["steps"].as_array().unwrap()[0]["output"].is_null();
    assert_eq!((outputs(&whole), outputs(&slim)), (false, true));
    assert_eq!(
        (&slim["status"], &slim["lastSequence"]),
        (&whole["status"], &whole["lastSequence"])
    );
    assert_eq!(state("?vals=1").status, 400, "a misspelt parameter");
    assert_eq!(state("?_=1").status, 200, "others are ignored");
    let refused = state("?values=no");
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"], "Invalid query parameter values: must be true or false");
}

#[test]
fn large_payloads_are_in_the_state_alone() {
    let site = Site::start();
    for (id, length) in [("small", 100), ("large", 20_000)] {
        site.execute("approval", id, &json!({ "who": "x".repeat(length) }));
    }
    let page = site.get("/workflows/approval/executions").data();
    let shown = |row: &Value| {
        let suspension = &row["suspension"];
        (suspension["payload"].is_null(), suspension["payloadOmitted"].clone())
    };
    assert_eq!(ids(&page), ["large", "small"]);
    assert_eq!(shown(&page["executions"][0]), (true, json!(true)));
    assert_eq!(shown(&page["executions"][1]), (false, Value::Null));
    assert_eq!(page["executions"][0]["suspensions"][0]["payloadOmitted"], true);
    let state = |query: &str| {
        site.get(&format!("/workflows/approval/executions/small/state{query}")).data()
    };
    assert_eq!(shown(&state("")), (false, Value::Null));
    assert_eq!(shown(&state("?values=false")), (true, json!(true)));
}
