//! The stream of what happens to asks.

use serde_json::{Value, json};

use crate::http::site::Site;
use support::PATIENCE;
use support::client::{Events, Wire};
use support::store::Store;

const CONFIG: &str = r#"
[workflows.free]
steps = [{ id = "ask", suspend = { reason = "Free?" }, map = "resume" }]

[workflows.other]
steps = [{ id = "ask", suspend = { reason = "Other?" }, map = "resume" }]
"#;

fn watch(site: &Site, query: &str) -> Events {
    let mut wire = Wire::open(site.server.address).unwrap();
    wire.send("GET", &format!("/inbox/stream{query}"), &[], None).unwrap();
    Events::read(wire).unwrap()
}

/// Returns type, execution and claim of the next event.
fn next(events: &mut Events) -> (String, Value, Value) {
    let event = events.next().unwrap().expect("the stream goes on").json();
    let ask = &event["ask"];
    let kind = event["type"].as_str().unwrap().to_owned();
    (kind, ask["of"]["executionId"].clone(), ask["claimedBy"].clone())
}

fn news(kind: &str, execution: &str, by: Value) -> (String, Value, Value) {
    (kind.to_owned(), json!(execution), by)
}

#[test]
fn subscribers_hear_of_every_change_that_they_asked_for() {
    let site = Site::with(CONFIG);
    site.execute("free", "before", &json!({}));
    let (mut all, mut some) = (watch(&site, ""), watch(&site, "?workflowId=other"));
    site.execute("free", "f1", &json!({}));
    assert_eq!(next(&mut all), news("opened", "f1", Value::Null), "not those of before");
    let asks = site.get("/inbox?workflowId=free").data()["asks"].clone();
    let of = asks.as_array().unwrap().iter().find(|ask| ask["of"]["executionId"] == "f1");
    let ask = format!("/inbox/{}", of.unwrap()["askId"].as_str().unwrap());
    let lea = json!({ "options": { "userId": "lea" } });
    let steps = [
        ("claim", json!({}), "claimed", json!("lea")),
        ("release", json!({}), "released", Value::Null),
        ("assign", json!({ "to": ["user:lea"] }), "assigned", Value::Null),
        ("answer", json!({ "data": 1 }), "answered", Value::Null),
    ];
    for (what, mut body, kind, by) in steps {
        body["options"] = lea["options"].clone();
        site.post(&format!("{ask}/{what}"), &body).data();
        assert_eq!(next(&mut all), news(kind, "f1", by), "{what}");
    }
    site.execute("other", "o1", &json!({}));
    let opened = news("opened", "o1", Value::Null);
    assert_eq!((next(&mut all), next(&mut some)), (opened.clone(), opened));
    site.post("/workflows/other/executions/o1/cancel", &json!({})).data();
    assert_eq!(next(&mut some), news("withdrawn", "o1", Value::Null));
}

#[test]
fn an_ask_that_cannot_be_read_stops_no_news_of_others() {
    let site = Site::on(Store::Sqlite, CONFIG);
    site.execute("free", "damaged", &json!({}));
    site.execute("free", "sound", &json!({}));
    let mut all = watch(&site, "");
    let connection = rusqlite::Connection::open(site.home.path("store.db")).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    let damage = "UPDATE asks SET kind = 99
        WHERE execution = (SELECT n FROM executions WHERE id = 'damaged')";
    assert_eq!(connection.execute(damage, []).unwrap(), 1);
    site.server.says("no more news of ask");
    site.post("/workflows/free/executions/sound/cancel", &json!({})).data();
    assert_eq!(next(&mut all), news("withdrawn", "sound", Value::Null));
}

#[test]
fn wrong_queries_are_refused() {
    let site = Site::with(CONFIG);
    for query in ["?state=open", "?limit=1", "?cursor=o", "?kind=x", "?to=ann", "?claimed=1"] {
        let refused = site.get(&format!("/inbox/stream{query}"));
        assert_eq!(refused.header("x-error-code"), Some("query_invalid"), "{query}");
    }
}
