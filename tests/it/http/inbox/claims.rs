//! Claims and assignments: who may answer, and the revision that a change is about.

use serde_json::{Value, json};

use super::super::site::{Site, at};
use super::{CONFIG, answer, ask_as, asked, code, ids, inbox, place, refused, site, with_keys};
use support::client::Reply;

/// Claims, releases, assigns or answers as a user.
fn change(site: &Site, ask: &Value, what: &str, user: &str, body: &Value) -> Reply {
    let mut body = body.clone();
    body["options"] = json!({ "userId": user });
    site.post(&format!("{}/{what}", place(ask)), &body)
}

#[test]
fn a_claim_keeps_others_away() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    assert_eq!(ask["to"], json!([]));
    assert_eq!((&ask["revision"], &ask["claimedBy"]), (&json!(0), &Value::Null));
    let reply = change(&site, &ask, "claim", "lea", &json!({ "for": "1h" }));
    assert_eq!(reply.header("etag"), Some("\"1\""));
    assert_eq!(reply.header("x-execution-id"), Some("o1"));
    let claimed = reply.data();
    assert_eq!((&claimed["claimedBy"], &claimed["revision"]), (&json!("lea"), &json!(1)));
    assert!(claimed["claimedUntil"].as_str() > claimed["openedAt"].as_str());
    let good = json!({ "data": { "ok": true } });
    for (what, body) in [
        ("claim", json!({})),
        ("claim", json!({ "force": true })),
        ("release", json!({})),
        ("assign", json!({ "to": ["user:bob"] })),
        ("answer", good.clone()),
    ] {
        let reply = change(&site, &ask, what, "bob", &body);
        assert_eq!(code(&reply), refused(409, "ask_claimed"), "{what}");
        assert!(reply.error().starts_with("lea is about to answer ask "), "{}", reply.error());
    }
    let site = site.after_a_kill();
    assert_eq!(site.get(&place(&ask)).data(), claimed, "nothing has changed, also after a kill");
    for (query, count) in [
        ("?claimed=true", 1),
        ("?claimed=false", 0),
        ("?to=none", 1),
        ("?to=me", 1),
        ("?to=user:bob", 0),
    ] {
        assert_eq!(ids(&inbox(&site, query)).len(), count, "{query}");
    }
    let released = change(&site, &ask, "release", "lea", &json!({})).data();
    assert_eq!((&released["claimedBy"], &released["revision"]), (&Value::Null, &json!(2)));
    let assigned = change(&site, &ask, "assign", "bob", &json!({ "to": ["user:bob"] })).data();
    assert_eq!(assigned["to"], json!(["user:bob"]));
    assert_eq!(ids(&inbox(&site, "?to=user:bob")), ["o1"]);
    let told = change(&site, &ask, "answer", "lea", &good);
    assert_eq!(code(&told), refused(403, "not_assigned"));
    let answered = change(&site, &ask, "answer", "bob", &good).data();
    assert_eq!(answered["answeredBy"]["id"], "bob");
}

#[test]
fn changes_of_an_ask_are_refused_without_an_effect() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    let closed = asked(&site, "order", "o2");
    answer(&site, &closed, &json!({ "data": { "ok": true } })).data();
    let unknown = json!({ "askId": "ask_0000000000000000" });
    let many: Vec<_> = (0..33).map(|n| format!("user:{n}")).collect();
    let lea = |body: Value| {
        let mut body = body;
        body["options"] = json!({ "userId": "lea" });
        body
    };
    let rows = [
        (&ask, "claim", json!({}), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "for": "25h" })), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "for": "0s" })), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "for": "soon" })), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "for": 30 })), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "fore": "1h" })), 400, "body_invalid"),
        (&ask, "claim", lea(json!({ "force": "yes" })), 400, "body_invalid"),
        (&ask, "claim", json!([]), 400, "body_invalid"),
        (&ask, "claim", json!({ "options": { "userId": "a/b" } }), 400, "body_invalid"),
        (&ask, "release", lea(json!({ "for": "1h" })), 400, "body_invalid"),
        (&ask, "assign", lea(json!({})), 400, "body_invalid"),
        (&ask, "assign", lea(json!({ "to": "user:a" })), 400, "body_invalid"),
        (&ask, "assign", lea(json!({ "to": ["user:a", "bob"] })), 400, "body_invalid"),
        (&ask, "assign", lea(json!({ "to": many })), 400, "body_invalid"),
        (&closed, "claim", lea(json!({})), 409, "ask_answered"),
        (&closed, "release", lea(json!({})), 409, "ask_answered"),
        (&closed, "assign", lea(json!({ "to": [] })), 409, "ask_answered"),
        (&unknown, "claim", lea(json!({})), 404, "ask_not_found"),
        (&unknown, "assign", json!([]), 404, "ask_not_found"),
    ];
    for (of, what, body, status, expected) in rows {
        let reply = site.post(&format!("{}/{what}", place(of)), &body);
        assert_eq!(code(&reply), refused(status, expected), "{what} {body}: {}", reply.text());
    }
    let reply = change(&site, &ask, "assign", "lea", &json!({ "to": ["user:a", "bob"] }));
    assert_eq!(
        reply.error(),
        "Invalid request body: to[1]: must be user:<id>, role:<name> or !self"
    );
    let reply = change(&site, &ask, "assign", "lea", &json!({ "to": ["user:a/b"] }));
    assert_eq!(
        reply.error(),
        "Invalid request body: to[0]: must not contain / and must not be . or .."
    );
    assert_eq!(inbox(&site, "")["asks"], json!([ask]));
}

#[test]
fn a_change_may_name_the_revision_that_it_is_about() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    assert_eq!(site.get(&place(&ask)).header("etag"), Some("\"0\""));
    let send = |what: &str, tag: &str, body: Value| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        let path = format!("{}/{what}", place(&ask));
        site.send("POST", &path, &headers, Some(body.to_string().as_bytes()))
    };
    let claim = || json!({ "options": { "userId": "lea" } });
    send("claim", "\"0\"", claim()).data();
    let good = json!({ "data": { "ok": true }, "options": { "userId": "lea" } });
    for (what, body) in [
        ("claim", claim()),
        ("release", claim()),
        ("assign", json!({ "to": [], "options": { "userId": "lea" } })),
        ("answer", good.clone()),
    ] {
        let reply = send(what, "\"0\"", body.clone());
        assert_eq!(code(&reply), refused(412, "ask_changed"), "{what}");
        for bad in ["0", "W/\"1\"", "\"1\", \"2\"", "\"x\""] {
            let reply = send(what, bad, body.clone());
            assert_eq!(code(&reply), refused(400, "header_invalid"), "{what} {bad}");
        }
    }
    assert_eq!(site.get(&place(&ask)).header("etag"), Some("\"1\""));
    send("claim", "*", claim()).data();
    let reply = send("answer", "\"2\"", good);
    assert_eq!(reply.header("etag"), Some("\"2\""));
    assert_eq!(reply.data()["state"], "answered");
}

#[test]
fn one_of_many_concurrent_claims_wins() {
    let site = site();
    let ask = asked(&site, "order", "o1");
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let send = |n: u32| {
            let (site, ask) = (&site, &ask);
            scope.spawn(move || change(site, ask, "claim", &format!("user {n}"), &json!({})))
        };
        let calls: Vec<_> = (0..12).map(send).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 11));
    assert!(lost.iter().all(|reply| code(reply) == refused(409, "ask_claimed")));
    assert_eq!(site.get(&place(&ask)).data()["revision"], 1);
}

#[test]
fn those_who_are_asked_answer_and_resume() {
    let users = [("ann", "staff"), ("bob", "staff"), ("eve", "manager"), ("zoe", "lead")];
    let force = "[inbox]\nforce_roles = [\"lead\"]\n";
    let site = Site::with(&format!("{}{force}{CONFIG}", with_keys("", &users)));
    let start = |who: &str, id: &str| {
        let body = json!({ "input": { "who": "bob" }, "options": { "executionId": id } });
        ask_as(&site, who, "POST /workflows/assigned/execute", Some(&body)).data();
        let asks = ask_as(&site, "zoe", "GET /inbox", None).data()["asks"].clone();
        let of = asks.as_array().unwrap().iter().find(|ask| ask["of"]["executionId"] == id);
        of.unwrap().clone()
    };
    let send = |who: &str, ask: &Value, what: &str, body: &Value| {
        ask_as(&site, who, &format!("POST {}/{what}", place(ask)), Some(body))
    };
    let resume = |who: &str, id: &str| {
        let path = at("assigned", id, "resume");
        ask_as(&site, who, &format!("POST {path}"), Some(&json!({ "resumeData": 1 })))
    };
    let good = json!({ "data": 1 });
    // asks user bob and managers; ann has started it
    let first = start("ann", "a1");
    assert_eq!(first["to"], json!(["user:bob", "role:manager", "!self"]));
    for who in ["ann", "zoe"] {
        assert_eq!(code(&send(who, &first, "answer", &good)), refused(403, "not_assigned"));
        assert_eq!(code(&send(who, &first, "claim", &json!({}))), refused(403, "not_assigned"));
        assert_eq!(code(&resume(who, "a1")), refused(403, "not_assigned"), "{who}");
    }
    let listed = |who: &str| ids(&ask_as(&site, who, "GET /inbox?to=me", None).data());
    assert_eq!(["ann", "bob", "eve"].map(|who| listed(who).len()), [0, 1, 1]);
    let by_role = ask_as(&site, "ann", "GET /inbox?to=role:manager", None).data();
    assert_eq!(ids(&by_role), ["a1"]);
    send("bob", &first, "claim", &json!({})).data();
    assert_eq!(code(&send("eve", &first, "answer", &good)), refused(409, "ask_claimed"));
    let force = json!({ "force": true });
    assert_eq!(code(&send("eve", &first, "release", &force)), refused(409, "ask_claimed"));
    send("zoe", &first, "release", &force).data();
    let answered = send("eve", &first, "answer", &good).data();
    assert_eq!(answered["answeredBy"], json!({ "id": "eve", "verified": true }));

    // a manager who has started it is excluded
    let second = start("eve", "a2");
    assert_eq!(code(&resume("eve", "a2")), refused(403, "not_assigned"));
    let to = |force: bool| json!({ "to": ["user:ann"], "force": force });
    assert_eq!(code(&send("ann", &second, "assign", &to(true))), refused(403, "not_assigned"));
    assert_eq!(code(&send("zoe", &second, "assign", &to(false))), refused(403, "not_assigned"));
    send("zoe", &second, "assign", &to(true)).data();
    assert_eq!(code(&resume("bob", "a2")), refused(403, "not_assigned"));
    assert_eq!(resume("ann", "a2").status, 200);
}

#[test]
fn a_resume_without_tokens_needs_the_user_who_is_asked() {
    let site = site();
    let ask = asked(&site, "assigned", "a1");
    let resume = |user: Value| {
        let body = json!({ "resumeData": 1, "options": user });
        site.post(&at("assigned", "a1", "resume"), &body)
    };
    for user in [json!({}), json!({ "userId": "bob" })] {
        assert_eq!(code(&resume(user)), refused(403, "not_assigned"));
    }
    assert_eq!(site.get(&place(&ask)).data()["state"], "open");
    assert_eq!(resume(json!({ "userId": "ann" })).status, 200);
}

#[test]
fn why_and_the_metrics_tell_of_open_asks() {
    let site = site();
    let ask = asked(&site, "assigned", "a1");
    change(&site, &ask, "claim", "ann", &json!({ "for": "1h" })).data();
    let why = site.get(&at("assigned", "a1", "why")).data();
    let listed = inbox(&site, "")["asks"].clone();
    assert_eq!(why["waitsFor"][0]["asks"], listed);
    let [claimed, deadline] = ["claimedBy", "deadline"].map(|key| &listed[0][key]);
    assert_eq!((claimed, deadline), (&json!("ann"), &ask["deadline"]));
    let metrics = || site.get("/metrics").text();
    for series in [
        "greenroom_asks{kind=\"step\"} 1\n",
        "greenroom_asks{kind=\"approval\"} 0\n",
        "greenroom_asks_oldest_age_seconds 0.",
    ] {
        assert!(metrics().contains(&format!("\n{series}")), "{series} in {}", metrics());
    }
    change(&site, &ask, "answer", "ann", &json!({ "data": 1 })).data();
    site.state_when("assigned", "a1", |state| state["status"] == "completed");
    assert_eq!(site.get(&at("assigned", "a1", "why")).data()["waitsFor"], json!([]));
    let series = "\ngreenroom_asks{kind=\"step\"} 1\n";
    assert!(metrics().contains(series), "counted anew after ten seconds only");
}
