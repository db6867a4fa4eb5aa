//! The history of an agent over HTTP.

use serde_json::json;

use super::site::Site;
use support::store::Store;

#[test]
fn history_survives_a_kill_newest_first() {
    kept(Store::chosen());
}

#[test]
fn history_survives_a_kill_newest_first_on_postgres() {
    Store::postgres().into_iter().for_each(kept);
}

fn kept(store: Store) {
    let site = Site::on(store, "");
    for text in ["one", "two", "three"] {
        let body = json!({ "input": text, "options": { "userId": "ann" } });
        site.post("/agents/assistant/text", &body).data();
    }
    let path = "/agents/assistant/history?page=0&limit=2";
    let before = site.get(path).data();
    assert_eq!(before["pagination"], json!({ "page": 0, "limit": 2, "total": 3, "totalPages": 2 }));
    let inputs: Vec<_> =
        before["entries"].as_array().unwrap().iter().map(|it| &it["input"]).collect();
    assert_eq!(inputs, ["three", "two"]);
    for field in ["id", "startTime", "endTime", "output", "steps", "usage", "userId"] {
        assert!(!before["entries"][0][field].is_null(), "{field} is missing: {before}");
    }

    let site = site.after_a_kill();
    assert_eq!(site.get(path).data(), before);
    let last = site.get("/agents/assistant/history?page=1&limit=2").data();
    assert_eq!(last["entries"][0]["input"], "one");
}
