//! The inbox: lists, answers, refusals, access, and asks from before an update.

mod claims;
mod links;
mod stream;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::site::{Site, api_keys, at, key};
use crate::program::Programs as _;
use support::client::Reply;
use support::eventually;
use support::server::Server;
use support::store::Store;

const CONFIG: &str = r#"
[workflows.order]
resume_schema = { type = "object", required = ["ok"], properties = { ok = { type = "boolean", title = "Approve?" }, note = { type = "string" } } }
steps = [{ id = "review", suspend = { reason = "Order of {{ input.who }}", payload = { who = "input.who" } }, map = { ok = "resume.ok", by = "resumed_by.id" } }]

[workflows.soon]
steps = [{ id = "ask", suspend = { reason = "Soon?", deadline = "1h" }, map = "resume" }]

[workflows.assigned]
steps = [{ id = "ask", suspend = { reason = "Who?", deadline = "1h", to = ["user:{{ input.who }}", "role:manager", "!self"] }, map = "resume" }]

[workflows.late]
steps = [{ id = "ask", suspend = { reason = "Late?", deadline = "1ms", on_timeout = { resume = "1" } }, map = "resume" }]
"#;

fn site() -> Site {
    Site::with(CONFIG)
}

/// Starts an execution that waits; returns its ask.
fn asked(site: &Site, workflow: &str, id: &str) -> Value {
    site.execute(workflow, id, &json!({ "who": "ann" }));
    let asks = inbox(site, "?state=all&limit=200")["asks"].clone();
    let of = asks.as_array().unwrap().iter().find(|ask| ask["of"]["executionId"] == id);
    of.unwrap().clone()
}

fn inbox(site: &Site, query: &str) -> Value {
    site.get(&format!("/inbox{query}")).data()
}

fn ids(page: &Value) -> Vec<String> {
    let asks = page["asks"].as_array().unwrap().iter();
    asks.map(|ask| ask["of"]["executionId"].as_str().unwrap().to_owned()).collect()
}

fn place(ask: &Value) -> String {
    format!("/inbox/{}", ask["askId"].as_str().unwrap())
}

fn answer(site: &Site, ask: &Value, body: &Value) -> Reply {
    site.post(&format!("{}/answer", place(ask)), body)
}

fn code(reply: &Reply) -> (u16, String) {
    (reply.status, reply.header("x-error-code").unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn an_ask_shows_how_to_answer_it_and_takes_the_answer() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    let of = json!({ "workflowId": "order", "executionId": "o1", "stepId": "review",
                     "path": "review" });
    assert_eq!((&ask["of"], &ask["kind"], &ask["state"]), (&of, &json!("step"), &json!("open")));
    let shown = site.get(&place(&ask));
    assert_eq!(shown.header("x-execution-id"), Some("o1"));
    let shown = shown.data();
    assert_eq!(
        (&shown["reason"], &shown["payload"]),
        (&json!("Order of ann"), &json!({ "who": "ann" }))
    );
    assert_eq!(shown["schema"]["required"], json!(["ok"]));
    let form = json!([
        { "name": "ok", "type": "boolean", "required": true, "title": "Approve?" },
        { "name": "note", "type": "string", "required": false },
    ]);
    assert_eq!(shown["form"], form);
    let body = json!({ "data": { "ok": true }, "options": { "userId": "lea" } });
    let reply = answer(&site, &ask, &body);
    assert_eq!(reply.header("x-execution-id"), Some("o1"));
    let answered = reply.data();
    let lea = json!({ "id": "lea", "verified": false });
    assert_eq!(
        (&answered["state"], &answered["answeredBy"], &answered["data"]),
        (&json!("answered"), &lea, &json!({ "ok": true }))
    );
    let state = site.server.state_when("order", "o1", |state| state["status"] == "completed");
    assert_eq!(state["result"], json!({ "ok": true, "by": "lea" }));
    let site = site.after_a_kill();
    assert_eq!(site.get(&place(&ask)).data(), answered, "also after a kill");
}

#[test]
fn refusals_change_nothing() {
    let site = site();
    let (answered, cancelled) = (asked(&site, "order", "o1"), asked(&site, "order", "o2"));
    let (open, late) = (asked(&site, "order", "o3"), asked(&site, "late", "l1"));
    let good = json!({ "data": { "ok": true } });
    answer(&site, &answered, &good).data();
    site.post(&at("order", "o2", "cancel"), &json!({})).data();
    site.server.state_when("late", "l1", |state| state["status"] == "completed");
    let unknown = json!({ "askId": "ask_0000000000000000" });
    let rows = [
        (&answered, good.clone(), 409, "ask_answered"),
        (&cancelled, good.clone(), 409, "ask_withdrawn"),
        (&late, good.clone(), 409, "ask_expired"),
        (&unknown, good, 404, "ask_not_found"),
        (&unknown, json!([]), 404, "ask_not_found"),
        (&open, json!([]), 400, "body_invalid"),
        (&open, json!({ "resumeData": {} }), 400, "body_invalid"),
        (&open, json!({ "data": { "ok": "yes" } }), 400, "answer_invalid"),
        (&open, json!({ "data": {} }), 400, "answer_invalid"),
        (&open, json!({}), 400, "answer_invalid"),
        (
            &open,
            json!({ "data": { "ok": true }, "options": { "userId": "" } }),
            400,
            "body_invalid",
        ),
    ];
    for (ask, body, status, expected) in rows {
        let reply = answer(&site, ask, &body);
        assert_eq!(code(&reply), refused(status, expected), "{body}: {}", reply.text());
    }
    let reply = answer(&site, &open, &json!({ "data": { "ok": "yes" } }));
    assert_eq!(reply.error(), "Invalid answer: ok: \"yes\" is not of type \"boolean\"");
    assert_eq!(ids(&inbox(&site, "")), ["o3"]);
    for path in ["/inbox/ask_x", "/inbox/%2f", "/inbox/%ff"] {
        assert_eq!(code(&site.get(path)), refused(404, "ask_not_found"), "{path}");
    }
    for query in [
        "?state=x",
        "?kind=x",
        "?to=x",
        "?to=!self",
        "?claimed=1",
        "?due=x",
        "?limit=0",
        "?limit=201",
        "?cursor=x",
        "?x=1",
    ] {
        assert_eq!(
            code(&site.get(&format!("/inbox{query}"))),
            refused(400, "query_invalid"),
            "{query}"
        );
    }
}

#[test]
fn a_repeated_answer_with_its_key_gets_the_same() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    let path = format!("{}/answer", place(&ask));
    let send = |body: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
        site.send("POST", &path, &headers, Some(body.as_bytes()))
    };
    let first = send(r#"{"data":{"ok":true}}"#).data();
    assert_eq!(send(r#"{"data":{"ok":true}}"#).data(), first);
    assert_eq!(code(&send(r#"{"data":{"ok":false}}"#)), refused(409, "idempotency_key_reused"));
}

#[test]
fn one_of_many_concurrent_answers_wins() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let body = json!({ "data": { "ok": true } });
        let send = |_| {
            scope.spawn({
                let body = body.clone();
                let (site, ask) = (&site, &ask);
                move || answer(site, ask, &body)
            })
        };
        let calls: Vec<_> = (0..12).map(send).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 11));
    assert!(lost.iter().all(|reply| code(reply) == refused(409, "ask_answered")));
}

#[test]
fn lists_are_filtered_and_paged() {
    let site = site();
    for n in 0..5 {
        asked(&site, "order", &format!("o{n}"));
    }
    let (first, soon) = (asked(&site, "order", "o5"), asked(&site, "soon", "s1"));
    answer(&site, &first, &json!({ "data": { "ok": true } })).data();
    asked(&site, "late", "l1");
    site.server.state_when("late", "l1", |state| state["status"] == "completed");
    let open = ["s1", "o0", "o1", "o2", "o3", "o4"];
    assert_eq!(ids(&inbox(&site, "")), open, "by deadline, then by age");
    assert_eq!(ids(&inbox(&site, "?state=closed")), ["l1", "o5"], "the last closed first");
    let rows: [(&str, &[&str]); 6] = [
        ("?workflowId=soon", &["s1"]),
        ("?workflowId=none", &[]),
        ("?kind=function", &[]),
        ("?due=2100-01-01", &["s1"]),
        ("?userId=ann", &[]),
        ("?state=closed&workflowId=late", &["l1"]),
    ];
    for (query, expected) in rows {
        assert_eq!(ids(&inbox(&site, query)), expected, "{query}");
    }
    let everything: Vec<&str> = open.into_iter().chain(["l1", "o5"]).collect();
    for limit in 1..=9 {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = inbox(&site, &format!("?state=all&limit={limit}{cursor}"));
            found.extend(ids(&page));
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, everything, "in pages of {limit}");
    }
    let cursor_of = |state: &str| {
        let page = inbox(&site, &format!("?state={state}&limit=1"));
        page["nextCursor"].as_str().unwrap().to_owned()
    };
    let behind =
        |state: &str, cursor: &str| ids(&inbox(&site, &format!("?state={state}&cursor={cursor}")));
    let (among_open, among_closed) = (cursor_of("open"), cursor_of("closed"));
    assert_eq!(behind("closed", &among_open), ["l1", "o5"], "all closed ones are behind");
    assert_eq!(behind("open", &among_closed), [""; 0], "no open one is");
    assert_eq!(soon["of"]["workflowId"], "soon");
}

fn with_keys(auth: &str, users: &[(&str, &str)]) -> String {
    format!("[auth]\n{auth}\n{}", api_keys(users))
}

fn ask_as(site: &Site, who: &str, request: &str, body: Option<&Value>) -> Reply {
    let (method, path) = request.split_once(' ').unwrap();
    let key = key(who);
    let headers = [("x-api-key", key.as_str()), ("content-type", "application/json")];
    let body = body.map(Value::to_string);
    site.send(method, path, &headers, body.as_deref().map(str::as_bytes))
}

#[test]
fn an_answer_needs_what_a_resume_needs() {
    let rules = "[[auth.rules]]\nroute = \"POST /workflows/order/*\"\nroles = [\"manager\"]\n\
                 [[auth.rules]]\nroute = \"GET /workflows/order/executions/*\"\nroles = [\"manager\"]\n";
    let users = [("ann", "staff"), ("eve", "manager")];
    let site = Site::with(&format!("{}{rules}{CONFIG}", with_keys("", &users)));
    let start = json!({ "input": { "who": "ann" }, "options": { "executionId": "o1" } });
    ask_as(&site, "eve", "POST /workflows/order/execute", Some(&start)).data();
    let ask = ask_as(&site, "eve", "GET /inbox", None).data()["asks"][0].clone();
    let good = json!({ "data": { "ok": true } });
    let to_answer = format!("POST {}/answer", place(&ask));
    let show = format!("GET {}", place(&ask));
    assert_eq!(code(&ask_as(&site, "ann", &show, None)), refused(403, "role_missing"));
    assert_eq!(code(&ask_as(&site, "ann", &to_answer, Some(&good))), refused(403, "role_missing"));
    assert_eq!(code(&answer(&site, &ask, &good)), refused(401, "auth_required"));
    let answered = ask_as(&site, "eve", &to_answer, Some(&good)).data();
    assert_eq!(answered["answeredBy"], json!({ "id": "eve", "verified": true }));
}

#[test]
fn asks_of_other_users_do_not_exist() {
    let auth = "ownership = { roles = [\"admin\"] }";
    let users = [("ann", "staff"), ("ben", "staff"), ("eve", "admin")];
    let site = Site::with(&format!("{}{CONFIG}", with_keys(auth, &users)));
    for (who, id) in [("ann", "o1"), ("ben", "o2")] {
        let start = json!({ "input": { "who": who }, "options": { "executionId": id } });
        ask_as(&site, who, "POST /workflows/order/execute", Some(&start)).data();
    }
    let listed = |who: &str, query: &str| {
        ids(&ask_as(&site, who, &format!("GET /inbox{query}"), None).data())
    };
    assert_eq!(listed("ann", ""), ["o1"]);
    assert_eq!(listed("ann", "?userId=ben"), [""; 0]);
    assert_eq!(listed("eve", ""), ["o1", "o2"]);
    assert_eq!(listed("eve", "?userId=ben"), ["o2"]);
    assert_eq!(site.get("/inbox").status, 401);
    let bens = ask_as(&site, "ben", "GET /inbox", None).data()["asks"][0].clone();
    let good = json!({ "data": { "ok": true } });
    let to_answer = format!("POST {}/answer", place(&bens));
    for body in [&good, &json!([])] {
        let reply = ask_as(&site, "ann", &to_answer, Some(body));
        assert_eq!(code(&reply), refused(404, "ask_not_found"));
        assert_eq!(reply.header("x-execution-id"), None);
    }
    assert_eq!(code(&ask_as(&site, "ann", &format!("GET {}", place(&bens)), None)).0, 404);
    ask_as(&site, "ben", &to_answer, Some(&good)).data();
}

#[test]
fn what_waited_before_an_update_has_its_ask() {
    let site = Site::on(Store::Sqlite, CONFIG);
    let known: HashSet<String> =
        ["o1", "o2"].map(|id| place(&asked(&site, "order", id))).into_iter().collect();
    let Site { home, mut server } = site;
    server.signal("TERM");
    assert!(server.ended().success());
    let connection = rusqlite::Connection::open(home.path("store.db")).unwrap();
    connection.execute_batch("DELETE FROM asks; UPDATE executions SET has_asks = 0").unwrap();
    drop(connection);
    let site = Site { server: Server::start(home.greenroom(&[])), home };
    let page = eventually("the inbox is complete", || {
        Some(inbox(&site, "")).filter(|page| page["incomplete"] == false)
    });
    let found: Vec<Value> = page["asks"].as_array().unwrap().clone();
    assert_eq!(found.iter().map(place).collect::<HashSet<_>>(), known, "the same ids");
    answer(&site, &found[0], &json!({ "data": { "ok": true } })).data();
    assert_eq!(ids(&inbox(&site, "")).len(), 1);
}
