//! Retention over HTTP.

use serde_json::json;

use super::site::{Site, at};
use support::eventually;
use support::store::Store;

/// Deletes what has ended, at once.
const CONFIG: &str = r#"
limits.idempotency_ttl = "1ms"
retention = { executions = "1ms", generations = "1ms", every = "10ms" }
"#;

#[test]
fn what_has_ended_expires_and_what_waits_stays() {
    expired(Store::chosen());
}

#[test]
fn what_has_ended_expires_and_what_waits_stays_on_postgres() {
    Store::postgres().into_iter().for_each(expired);
}

fn expired(store: Store) {
    let site = Site::on(store, CONFIG);
    site.execute("approval", "s1", &json!({ "who": "ann" }));
    site.execute("add", "a1", &json!({ "n": 1 }));
    site.post("/agents/assistant/text", &json!({ "input": "hello" })).data();
    let gone =
        |what: &str, is_gone: &dyn Fn() -> bool| eventually(what, || is_gone().then_some(()));
    gone("the end of a1", &|| site.get(&at("add", "a1", "state")).status == 404);
    let history = || site.get("/agents/assistant/history").data()["entries"].clone();
    gone("the end of the generation", &|| history() == json!([]));
    let list = site.get("/workflows/executions").data()["executions"].clone();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|it| &it["executionId"]).collect();
    assert_eq!(ids, ["s1"]);
    assert_eq!(site.state("approval", "s1")["status"], "suspended");
    // its id is free again
    assert_eq!(site.execute("add", "a1", &json!({ "n": 5 }))["result"], json!({ "n": 8 }));
}
