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
