//! The identity of a caller comes from its token, whatever else the request claims.

use super::*;
use crate::http::site::at;

/// A workflow, a tool and an agent that return the identity of their caller.
const TELLING: &str = r#"
[workflows.who]
steps = [{ id = "tell", map = { user = "context.user if 'user' in context else none", id = "context.userId if 'userId' in context else none", tone = "context.tone" } }]

[tools.who]
kind = "workflow"
workflow = "who"
description = "Returns the identity of its caller"

[models.telling]
provider = "rehearsal"
[[models.telling.rules]]
when = "schema is not none"
object = { email = "messages[0].content" }
[[models.telling.rules]]
reply = "{{ messages[0].content }}"

[agents.telling]
model = "telling"
instructions = "{{ context.user.email if 'user' in context else 'nobody' }}"
"#;

/// All claims that a body can make.
fn claiming(mut body: Value) -> Value {
    let context =
        json!({ "user": { "id": "eve", "roles": ["admin"] }, "userId": "eve", "tone": "kind" });
    body["userId"] = json!("eve");
    body["context"] = context.clone();
    body["options"] = json!({ "userId": "eve", "context": context });
    body
}

fn profile() -> Value {
    json!({ "id": "ann", "email": "ann@example.com", "roles": ["staff"] })
}

fn site(auth: &str) -> (Site, String) {
    (guarded_with(auth, TELLING, &[]), token("ann", &["staff"]))
}

#[test]
fn a_workflow_runs_for_the_user_of_the_token() {
    let (site, ann) = site("");
    let body = claiming(json!({ "input": {} }));
    for route in ["execute", "stream"] {
        let path = format!("/workflows/who/{route}?userId=eve");
        let reply = ask(&site, &ann, "POST", &path, &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let id = reply.header("x-execution-id").unwrap();
        let state = ask(&site, &ann, "GET", &at("who", id, "state"), &json!({})).data();
        assert_eq!(state["userId"], "ann", "{route}: {state}");
        let told = json!({ "user": profile(), "id": "ann", "tone": "kind" });
        assert_eq!(state["result"], told, "{route}");
        assert_eq!(state["context"]["user"], profile(), "{route}: {state}");
        assert_eq!(state["context"]["userId"], "ann", "{route}: {state}");
    }
    let list = ask(&site, &ann, "GET", "/workflows/executions?userId=eve", &json!({})).data();
    assert_eq!(list["executions"], json!([]));
}

#[test]
fn an_agent_runs_for_the_user_of_the_token() {
    let (site, ann) = site("");
    let schema = json!({ "type": "object", "properties": { "email": { "type": "string" } } });
    for route in ["text", "stream", "chat", "object", "stream-object"] {
        let mut body = claiming(json!({ "input": "hi", "schema": schema }));
        body["options"]["conversationId"] = json!(route);
        let path = format!("/agents/telling/{route}?userId=eve");
        let reply = ask(&site, &ann, "POST", &path, &body);
        assert_eq!(reply.status, 200, "{route}: {}", reply.text());
        // Words are streamed one by one, each with the text before the next.
        let text = reply.text();
        assert!(text.contains("ann@example.com"), "{route}: {text}");
        assert!(!text.contains("nobody") && !text.contains("eve"), "{route}: {text}");
    }
    let history = ask(&site, &ann, "GET", "/agents/telling/history", &json!({})).data();
    let users: Vec<_> =
        history["entries"].as_array().unwrap().iter().map(|entry| &entry["userId"]).collect();
    assert_eq!(users, [&json!("ann"); 5]);
    let path = "/api/memory/conversations?agentId=telling&userId=eve";
    let list = ask(&site, &ann, "GET", path, &json!({})).data();
    assert_eq!(list["total"], 5, "{list}");
    let eve = token("eve", &[]);
    assert_eq!(ask(&site, &eve, "GET", path, &json!({})).data()["total"], 0);
    let path = "/api/memory/conversations/text/messages?agentId=telling&userId=ann";
    let foreign = ask(&site, &eve, "GET", path, &json!({}));
    assert_eq!((foreign.status, foreign.error().as_str()), (404, "Conversation not found"));
}

#[test]
fn a_tool_and_the_memory_work_for_the_user_of_the_token() {
    let (site, ann) = site("");
    let body = claiming(json!({ "input": {} }));
    let called = ask(&site, &ann, "POST", "/tools/who/execute?userId=eve", &body).data();
    assert_eq!(called["result"], json!({ "user": profile(), "id": "ann", "tone": "kind" }));

    let body = json!({ "agentId": "telling", "userId": "eve", "id": "mine", "title": "t" });
    let made = ask(&site, &ann, "POST", "/api/memory/conversations?userId=eve", &body);
    let user = &made.json()["data"]["conversation"]["userId"];
    assert_eq!((made.status, user), (201, &json!("ann")), "{}", made.text());
    for (id, status) in [("eve", 403), ("ann", 200)] {
        let forgotten = ask(&site, &ann, "DELETE", &format!("/api/memory/users/{id}"), &json!({}));
        assert_eq!(forgotten.status, status, "{id}: {}", forgotten.text());
    }
}

#[test]
fn an_optional_token_still_identifies_the_caller() {
    let public = "public = [\"POST /workflows/who/execute\", \"POST /agents/telling/text\"]";
    let (site, ann) = site(public);
    let body = claiming(json!({ "input": {} }));
    let expired = signed(&json!({ "sub": "eve", "exp": now() - 60 }), SECRET);
    let nobody = json!({ "user": null, "id": null, "tone": "kind" });
    let known = json!({ "user": profile(), "id": "ann", "tone": "kind" });
    for (token, user, told) in [
        (ann.as_str(), json!("ann"), known),
        // An invalid token counts as none, whatever the body claims.
        ("garbage", json!(null), nobody.clone()),
        (&expired, json!(null), nobody),
    ] {
        let reply = ask(&site, token, "POST", "/workflows/who/execute?userId=eve", &body);
        let id = reply.header("x-execution-id").unwrap().to_owned();
        assert_eq!(reply.data()["result"], told);
        let state = ask(&site, token, "GET", &at("who", &id, "state"), &json!({})).data();
        assert_eq!(state["userId"], user, "{state}");
    }
    let reply = site.post("/agents/telling/text?userId=eve", &claiming(json!({ "input": "hi" })));
    assert_eq!(reply.data()["text"], "nobody");
}

#[test]
fn a_user_is_made_by_the_configured_mapping() {
    let home = Home::new(&format!(
        "[auth.jwt]\nuser = {{ id = \"claims.uid\", tier = \"claims.plan.tier\", \
         roles = \"claims.groups\", tags = [\"'a'\"] }}\n\
         [auth]\nrules = [{{ route = \"GET /workflows/executions\", roles = [\"ops\"] }}]\n\
         {TELLING}\n{CONFIG}"
    ));
    let mut command = home.greenroom(&[]);
    command.env("JWT_SECRET", SECRET);
    let site = Site { server: Server::start(command), home };
    let claims = json!({ "sub": "s", "uid": 7, "plan": { "tier": "gold" }, "groups": "ops dev" });
    let gold = signed(&claims, SECRET);
    let body = claiming(json!({ "input": {} }));
    let told = ask(&site, &gold, "POST", "/workflows/who/execute", &body).data()["result"].take();
    let user = json!({ "id": 7, "tier": "gold", "roles": "ops dev", "tags": ["a"] });
    assert_eq!(told, json!({ "user": user, "id": "7", "tone": "kind" }));
    assert_eq!(ask(&site, &gold, "GET", "/workflows/executions", &json!({})).status, 200);
    // Missing claims are left out; the subject serves as the id.
    let bare = signed(&json!({ "sub": "s" }), SECRET);
    let told = ask(&site, &bare, "POST", "/workflows/who/execute", &body).data()["result"].take();
    assert_eq!(told, json!({ "user": { "tags": ["a"] }, "id": "s", "tone": "kind" }));
    assert_eq!(ask(&site, &bare, "GET", "/workflows/executions", &json!({})).status, 403);
}

#[test]
fn callers_are_told_what_they_may_request() {
    let rules = "rules = [{ route = \"POST /workflows/approval/execute\", roles = [\"ops\"] }]";
    let site = guarded(&format!("ownership = {{ roles = [\"ops\"] }}\n{rules}"));
    let question = "/whoami?request=POST%20/workflows/approval/execute\
                    &request=POST%20/workflows/add/execute&request=GET%20/nowhere";
    let told = |token: &str| ask(&site, token, "GET", question, &json!({})).data();
    let allowed = |told: &Value| -> Vec<bool> {
        let requests = told["requests"].as_array().unwrap();
        requests.iter().map(|it| it["isAllowed"].as_bool().unwrap()).collect()
    };
    let ann = told(&token("ann", &["staff"]));
    assert_eq!((&ann["isChecked"], &ann["userId"]), (&json!(true), &json!("ann")));
    assert_eq!((&ann["roles"], &ann["sees"]), (&json!(["staff"]), &json!("own")));
    assert!(ann["expiresAt"].is_string(), "{ann}");
    assert_eq!(allowed(&ann), [false, true, false]);
    assert_eq!(ann["requests"][0]["request"], "POST /workflows/approval/execute");
    assert_eq!(ann["requests"][0]["reason"], "One of these roles is required: ops");
    assert_eq!(ann["requests"][1]["reason"], Value::Null);
    let ops = told(&token("bob", &["ops"]));
    assert_eq!((&ops["sees"], allowed(&ops)), (&json!("all"), vec![true, true, false]));
    // what another method of the path allows, the method and its spelling do not change
    let spellings = "/whoami?request=HEAD%20/workfl%256Fws&request=DELETE%20/workflows";
    let other = ask(&site, &token("ann", &[]), "GET", spellings, &json!({})).data();
    assert_eq!(allowed(&other), [true, false]);
    assert_eq!(other["requests"][0]["request"], "HEAD /workfl%6Fws");
    let reason = other["requests"][1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Method DELETE"), "{reason}");
    // an invalid token is no token elsewhere; here it is what is asked about
    let refused = ask(&site, "not.a.token", "GET", "/whoami", &json!({}));
    assert_eq!(refused.status, 401, "{}", refused.error());
    assert_eq!(ask(&site, "not.a.token", "GET", "/workflows", &json!({})).status, 200);
    let nobody = site.get(question).data();
    assert_eq!((&nobody["userId"], &nobody["sees"]), (&Value::Null, &json!("none")));
    assert_eq!(allowed(&nobody), [false, false, false]);
    for (query, refusal) in [
        ("request=add".to_owned(), "request: must be a method and a path"),
        ("path=/".to_owned(), "path: unknown; known parameters: request"),
        (["request=GET%20/"; 101].join("&"), "request: is given more than 100 times"),
    ] {
        let refused = site.get(&format!("/whoami?{query}"));
        let text = refused.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 400, "{text}");
        assert!(text.starts_with(&format!("Invalid query parameter {refusal}")), "{text}");
    }
    let open = Site::start().get("/whoami").data();
    let expected = json!({ "isChecked": false, "userId": null, "roles": [], "expiresAt": null,
                           "sees": "all", "requests": [] });
    assert_eq!(open, expected);
}

#[test]
fn a_bulk_operation_needs_the_roles_of_its_command() {
    let rule = "rules = [{ route = \"POST /workflows/approval/executions/:executionId/cancel\", roles = [\"ops\"] }]";
    let site = guarded(rule);
    let (ann, ops) = (token("ann", &[]), token("bob", &["ops"]));
    let body = json!({ "input": { "who": "x" }, "options": { "executionId": "w" } });
    ask(&site, &ann, "POST", "/workflows/approval/execute", &body).data();
    let named = json!({ "action": "cancel", "executionIds": ["w"], "dryRun": true });
    let all = json!({ "action": "cancel", "dryRun": true });
    let suspend = json!({ "action": "suspend", "dryRun": true });
    for (query, body, status) in [
        ("", &named, 403),
        ("?status=suspended", &all, 403),
        ("?workflowId=approval", &all, 403),
        ("?workflowId=add", &all, 200),
        ("?workflowId=approval", &suspend, 200),
    ] {
        let path = format!("/workflows/executions/bulk{query}");
        assert_eq!(ask(&site, &ann, "POST", &path, body).status, status, "{query} {body}");
        assert_eq!(ask(&site, &ops, "POST", &path, body).status, 200, "{query} {body}");
    }
    // a rule for one execution counts where it is named
    let one =
        "rules = [{ route = \"POST /workflows/approval/executions/w/cancel\", roles = [\"ops\"] },
        { route = \"GET /workflows/:id/executions\", roles = [\"ops\"] }]";
    let strict = guarded(one);
    ask(&strict, &ann, "POST", "/workflows/approval/execute", &body).data();
    let bulk = "/workflows/executions/bulk";
    assert_eq!(ask(&strict, &ann, "POST", bulk, &named).status, 403);
    assert_eq!(ask(&strict, &ops, "POST", bulk, &named).status, 200);
    // who may not list executions sees counts only
    let some = format!("{bulk}?workflowId=approval");
    let cancels = |token: &str| {
        let preview = ask(&strict, token, "POST", &some, &all).data();
        (preview["matched"].clone(), preview["executions"].as_array().unwrap().len())
    };
    assert_eq!((cancels(&ann), cancels(&ops)), ((json!(1), 0), (json!(1), 1)));

    // an execution that begins later is not reached
    let later = json!({ "action": "cancel", "executionIds": ["later"],
                        "options": { "executionId": "trap" } });
    ask(&site, &ann, "POST", "/workflows/executions/bulk", &later).data();
    let state = "/workflows/greenroom.bulk/executions/trap/state";
    let input = ask(&site, &ann, "GET", state, &json!({})).data()["input"].take();
    assert_eq!(input["allowed"], json!([]), "{input}");
}
