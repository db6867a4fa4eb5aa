//! Calls of every route of a running server, by area.

use serde_json::{Value, json};

use super::super::site::at;
use super::{Documented, Headers};
use support::client::Reply;

const EXECUTION: &str = "/workflows/{id}/executions/{executionId}";
const GENERATION: &str = "/agents/{id}/generations/{generationId}";
const ASYNC: Headers<'_> = &[("prefer", "respond-async")];
const CONVERSATION: &str = "/api/memory/conversations/{id}";

pub(super) fn walk_workflows(documented: &Documented) {
    let execute = "/workflows/{id}/execute";
    let options = |id: &str| json!({ "executionId": id, "userId": "ada" });
    let start = |id| json!({ "input": { "n": 1, "who": "Ada" }, "options": options(id) });
    documented.post("/workflows/add/execute", "/workflows/add/execute", &start("x-1"));
    let example = documented.example("/workflows/add/execute");
    documented.post("/workflows/add/execute", "/workflows/add/execute", &example);
    for place in [execute, "/workflows/add/execute"] {
        let input = json!({ "input": { "n": 1 } });
        let accepted = documented.ask("POST", place, "/workflows/add/execute", ASYNC, Some(&input));
        assert_eq!(accepted.status, 202);
    }
    documented.post(execute, "/workflows/approval/execute", &start("x-2"));
    documented.post(execute, "/workflows/pair/execute", &start("x-3"));
    documented.post(execute, "/workflows/parent/execute", &start("x-4"));
    assert_eq!(documented.post(execute, "/workflows/failing/execute", &start("x-5")).status, 500);
    assert_eq!(documented.post(execute, "/workflows/add/execute", &start("x-1")).status, 409);
    documented.post("/workflows/{id}/stream", "/workflows/add/stream", &start("x-6"));
    documented.post("/workflows/add/stream", "/workflows/add/stream", &start("x-7"));
    documented.post("/workflows/{id}/stream", "/workflows/failing/stream", &start("x-8"));
    documented.site.begin("nap", "x-9", &json!({}));
    walk_lists(documented);
    walk_inbox(documented);
    walk_moves(documented);
}

/// Calls agents and workflows as clients of OpenAI do.
pub(super) fn walk_openai(documented: &Documented) {
    documented.get("/v1/models", "/v1/models");
    documented.get("/v1/models/{tail}", "/v1/models/workflow/add");
    assert_eq!(documented.get("/v1/models/{tail}", "/v1/models/none").status, 404);
    let place = "/v1/chat/completions";
    let complete = |model: &str, content: &str, stream: bool| {
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": model, "messages": messages, "stream": stream,
            "stream_options": { "include_usage": true } });
        documented.post(place, place, &body).status
    };
    documented.post(place, place, &documented.example(place));
    let rows = [
        ("assistant", "hello", 200),
        ("workflow/add", "{\"n\":1}", 200),
        ("workflow/approval", "{\"who\":\"Ada\"}", 200),
    ];
    for (model, content, status) in rows {
        for stream in [false, true] {
            assert_eq!(complete(model, content, stream), status, "{model}");
        }
    }
    assert_eq!(complete("workflow/failing", "hello", false), 422);
    assert_eq!(complete("none", "hello", false), 404);
    let refused = json!({ "model": "assistant", "messages": [], "n": 2 });
    assert_eq!(documented.post(place, place, &refused).status, 400);
}

/// Lists and answers what waits for people.
fn walk_inbox(documented: &Documented) {
    let (one, answer) = ("/inbox/{askId}", "/inbox/{askId}/answer");
    let start = |id| json!({ "input": { "who": "Ada" }, "options": { "executionId": id } });
    for id in ["x-11", "x-12"] {
        documented.post("/workflows/{id}/execute", "/workflows/approval/execute", &start(id));
    }
    let page = documented.get("/inbox", "/inbox?workflowId=approval&limit=2&state=all").data();
    assert!(page["nextCursor"].is_string());
    let asks = documented.get("/inbox", "/inbox?workflowId=approval").data()["asks"].clone();
    let place_of = |id: &str| {
        let mut asks = asks.as_array().unwrap().iter();
        let ask = asks.find(|ask| ask["of"]["executionId"] == id).unwrap();
        format!("/inbox/{}", ask["askId"].as_str().unwrap())
    };
    let (place, cancelled) = (place_of("x-11"), place_of("x-12"));
    documented.get(one, &place);
    let approved = json!({ "data": { "approved": true }, "options": { "userId": "ada" } });
    let lea = |mut body: Value| {
        body["options"] = json!({ "userId": "lea" });
        body
    };
    for (what, body, status) in [
        ("claim", lea(json!({ "for": "1h" })), 200),
        ("claim", json!({ "options": { "userId": "bob" } }), 409),
        ("claim", json!({}), 400),
        ("assign", lea(json!({ "to": ["user:ada", "role:manager"] })), 200),
        ("assign", lea(json!({ "to": ["user:ada"] })), 403),
        ("assign", lea(json!({ "to": ["ada"] })), 400),
        ("release", lea(json!({})), 200),
    ] {
        let reply = documented.post(&format!("{one}/{what}"), &format!("{place}/{what}"), &body);
        assert_eq!(reply.status, status, "{what} {body}");
    }
    documented.get("/inbox", "/inbox?to=user:ada&claimed=false&agentId=none");
    let seen = [("if-match", "\"0\"")];
    let changed =
        documented.ask("POST", answer, &format!("{place}/answer"), &seen, Some(&approved));
    assert_eq!(changed.status, 412);
    let bulk = "/workflows/executions/bulk";
    let named = |dry: bool| json!({ "action": "suspend", "executionIds": ["x-9"], "dryRun": dry });
    documented.post(bulk, bulk, &named(true));
    documented.post(bulk, bulk, &named(false));
    documented.post(
        bulk,
        "/workflows/executions/bulk?status=suspended",
        &json!({ "action": "resume" }),
    );
    assert_eq!(documented.post(bulk, bulk, &json!({ "action": "cancel" })).status, 400);
    let cancel = format!("{EXECUTION}/cancel");
    documented.post(&cancel, &at("approval", "x-12", "cancel"), &json!({}));
    for (place, body, status) in [
        (&place, json!({ "data": { "approved": 1 }, "options": { "userId": "ada" } }), 400),
        (&place, approved.clone(), 200),
        (&place, approved.clone(), 409),
        (&cancelled, approved.clone(), 409),
    ] {
        assert_eq!(documented.post(answer, &format!("{place}/answer"), &body).status, status);
    }
    documented.get(one, &place);
    assert_eq!(documented.get(one, "/inbox/none").status, 404);
    assert_eq!(documented.post(answer, "/inbox/none/answer", &approved).status, 404);
    assert_eq!(documented.get("/inbox", "/inbox?state=x").status, 400);
    // without a mistake it ends with the server
    assert_eq!(documented.get("/inbox/stream", "/inbox/stream?kind=x").status, 400);
}

/// Requests lists of executions, and single ones.
fn walk_lists(documented: &Documented) {
    let state = format!("{EXECUTION}/state");
    for (workflow, id) in [
        ("add", "x-1"),
        ("approval", "x-2"),
        ("pair", "x-3"),
        ("parent", "x-4"),
        ("failing", "x-5"),
    ] {
        documented.get(&state, &at(workflow, id, "state"));
    }
    let why = format!("{EXECUTION}/why");
    for (workflow, id) in
        [("add", "x-1"), ("approval", "x-2"), ("parent", "x-4"), ("failing", "x-5"), ("nap", "x-9")]
    {
        documented.get(&why, &at(workflow, id, "why"));
    }
    assert_eq!(documented.get(&why, &at("add", "none", "why")).status, 404);
    documented.get("/workflows/executions", "/workflows/executions?limit=3&status=suspended");
    documented.get("/workflows/executions", "/workflows/executions?from=2020-01-01&status=error");
    let counts = "/workflows/executions/counts";
    documented.get(counts, counts);
    documented.get(counts, "/workflows/executions/counts?userId=ann");
    documented.get(counts, "/workflows/executions/counts?workflowId=elephant");
    let outcomes = "/workflows/executions/outcomes";
    documented.get(outcomes, outcomes);
    documented.get(outcomes, "/workflows/executions/outcomes?from=2026-01-31&parts=3&userId=ann");
    documented.get(outcomes, "/workflows/executions/outcomes?workflowId=elephant");
    documented.get("/workflows/{id}/executions", "/workflows/add/executions?userId=ada");
    documented.get("/workflows/{id}/versions", "/workflows/add/versions?userId=ada");
    let events = format!("{EXECUTION}/events");
    documented.get(&events, &at("parent", "x-4", "events?limit=3"));
    documented.get(&events, &at("failing", "x-5", "events?after=1"));
    assert_eq!(documented.get(&events, &at("add", "none", "events")).status, 404);
    documented.get(&state, &at("parent", "x-4", "state?values=false"));
    documented.get("/whoami", "/whoami?request=GET%20/workflows&request=POST%20/nowhere");
}

/// Sends commands to executions.
fn walk_moves(documented: &Documented) {
    let suspend = format!("{EXECUTION}/suspend");
    documented.post(&suspend, &at("nap", "x-9", "suspend"), &json!({ "reason": "later" }));
    assert_eq!(documented.post(&suspend, &at("add", "x-1", "suspend"), &json!({})).status, 400);
    let resume = format!("{EXECUTION}/resume");
    let approved = json!({ "resumeData": { "approved": true } });
    let typed = "/workflows/approval/executions/{executionId}/resume";
    let refused = json!({ "resumeData": { "approved": 1 } });
    assert_eq!(documented.post(typed, &at("approval", "x-2", "resume"), &refused).status, 400);
    documented.post(typed, &at("approval", "x-2", "resume"), &approved);
    assert_eq!(documented.post(&resume, &at("approval", "x-2", "resume"), &approved).status, 404);
    documented.post(&resume, &at("parent", "x-4", "resume"), &approved);
    let left = json!({ "resumeData": 1, "options": { "stepId": "l" } });
    documented.post(&resume, &at("pair", "x-3", "resume"), &left);
    let replay = format!("{EXECUTION}/replay");
    let again = json!({ "stepId": "two", "options": { "executionId": "x-10" } });
    documented.post(&replay, &at("add", "x-1", "replay"), &again);
    documented.get(&format!("{EXECUTION}/state"), &at("add", "x-10", "state"));
    assert_eq!(documented.post(&replay, &at("add", "x-1", "replay"), &again).status, 409);
    let (place, again) = (at("add", "x-1", "replay"), json!({ "stepId": "two" }));
    assert_eq!(documented.ask("POST", &replay, &place, ASYNC, Some(&again)).status, 202);
    for (workflow, id, body) in [
        ("add", "x-1", json!({ "stepId": "none" })),
        ("pair", "x-3", json!({ "stepId": "l" })),
        ("add", "x-1", json!({ "stepId": "two", "resumeData": 1 })),
        ("add", "x-1", json!({ "stepId": "one", "input": { "n": "x" } })),
        ("approval", "x-2", json!({ "stepId": "ask", "resumeData": 1 })),
    ] {
        assert_eq!(documented.post(&replay, &at(workflow, id, "replay"), &body).status, 400);
    }
    let cancel = format!("{EXECUTION}/cancel");
    documented.post(&cancel, &at("nap", "x-9", "cancel"), &json!({ "reason": "enough" }));
    let stream = format!("{EXECUTION}/stream");
    for (workflow, id) in [("add", "x-1"), ("approval", "x-2"), ("failing", "x-5"), ("nap", "x-9")]
    {
        documented.get(&stream, &at(workflow, id, "stream"));
    }
    documented.get("/workflows", "/workflows");
    for id in ["add", "approval", "pair", "parent"] {
        documented.get("/workflows/{id}", &format!("/workflows/{id}"));
    }
}

pub(super) fn walk_agents(documented: &Documented) {
    for what in ["text", "stream", "object", "stream-object", "chat"] {
        let place = format!("/agents/{{id}}/{what}");
        let mut body = documented.example(&place);
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            200
        );
        body["options"] = json!({ "userId": "ada", "conversationId": "tea", "topP": 0.5 });
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            200
        );
        body["options"] = json!({ "topP": 5 });
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            400
        );
        assert_eq!(documented.post(&place, &format!("/agents/nobody/{what}"), &body).status, 404);
    }
    let body = documented.example("/agents/{id}/text").to_string();
    let text = "/agents/assistant/text";
    let accepted = documented.site.send("POST", text, ASYNC, Some(body.as_bytes()));
    let generation = accepted.header("location").unwrap();
    documented.get(GENERATION, generation);
    let place = "/agents/{id}/stream-object";
    let body = documented.example(place);
    let text = documented.post(place, "/agents/assistant/stream-object?format=text", &body);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    let attach = "/agents/{id}/chat/{conversationId}/stream";
    assert_eq!(documented.get(attach, "/agents/assistant/chat/tea/stream").status, 204);
    documented.get("/agents/{id}/history", "/agents/assistant/history?limit=3&page=1");
    let refused = documented.get("/agents/{id}/history", "/agents/assistant/history?limit=0");
    assert_eq!(refused.status, 400);
    documented.get("/agents", "/agents");
    documented.get("/agents/{id}", "/agents/assistant");
    let cancel = "/agents/{id}/generations/{generationId}/cancel";
    let path = "/agents/assistant/generations/none/cancel";
    assert_eq!(documented.post(cancel, path, &json!({})).status, 404);
    let approve = "/agents/{id}/generations/{generationId}/approve";
    let path = "/agents/assistant/generations/none/approve";
    let body = documented.example(approve);
    assert_eq!(documented.post(approve, path, &body).status, 404);
    let path = format!("{generation}/approve");
    assert_eq!(documented.post(approve, &path, &json!({ "approved": true })).status, 400);
    documented.get("/tools", "/tools");
    let call = "/tools/add_two/execute";
    documented.post(call, call, &documented.example(call));
    documented.post("/tools/{name}/execute", call, &documented.example(call));
    assert_eq!(documented.post(call, call, &json!({ "input": { "n": "x" } })).status, 400);
    documented.get("/tools/mcp", "/tools/mcp");
    let restart = "/tools/mcp/{server}/restart";
    assert!(documented.post(restart, "/tools/mcp/away/restart", &json!({})).status < 300);
    assert_eq!(documented.post(restart, "/tools/mcp/none/restart", &json!({})).status, 404);
    let accept = "/tools/mcp/{server}/accept";
    assert_eq!(documented.post(accept, "/tools/mcp/away/accept", &json!({})).status, 200);
    let tool = json!({ "tool": "none" });
    assert_eq!(documented.post(accept, "/tools/mcp/away/accept", &tool).status, 404);
    assert_eq!(documented.post(accept, "/tools/mcp/none/accept", &json!({})).status, 404);
}

/// Calls an agent whose tools wait for people.
pub(super) fn walk_asks(documented: &Documented) {
    let ask = |what: &str| {
        let place = format!("/agents/{{id}}/{what}");
        let body = json!({ "input": "go", "schema": { "type": "object" },
                           "options": { "conversationId": format!("asked-{what}") } });
        documented.post(&place, &format!("/agents/cashier/{what}"), &body)
    };
    let [text, object, chat] = ["text", "object", "chat"].map(ask);
    for what in ["stream", "stream-object"] {
        assert_eq!(ask(what).status, 200);
    }
    let place = |reply: &Reply, what: &str| {
        let id = reply.header("x-generation-id").unwrap();
        format!("/agents/cashier/generations/{id}{what}")
    };
    let shown = documented.get(GENERATION, &place(&text, "")).data();
    assert_eq!(shown["asks"], text.data()["asks"]);
    let messages = "/api/memory/conversations/{id}/messages";
    documented.get(messages, "/api/memory/conversations/asked-chat/messages?agentId=cashier");
    let body = json!({ "toolCallId": shown["asks"][0]["toolCallId"], "approved": true });
    let approve = format!("{GENERATION}/approve");
    assert_eq!(documented.post(&approve, &place(&text, "/approve"), &body).status, 200);
    let ask = shown["asks"][0]["askId"].as_str().unwrap();
    documented.get("/inbox/{askId}", &format!("/inbox/{ask}"));
    documented.get("/inbox", "/inbox?state=all&agentId=cashier");
    let cancel = format!("{GENERATION}/cancel");
    for reply in [&object, &chat] {
        let cancelled = documented.post(&cancel, &place(reply, "/cancel"), &json!({}));
        assert_eq!(cancelled.status, 200);
    }
    documented.get(messages, "/api/memory/conversations/asked-chat/messages?agentId=cashier");
}

pub(super) fn walk_memory(documented: &Documented) {
    let all = "/api/memory/conversations";
    let body = documented.example(all);
    assert_eq!(documented.post(all, all, &body).status, 201);
    documented.get(all, "/api/memory/conversations?userId=ada&limit=5&offset=0");
    let tea = |what: &str| format!("/api/memory/conversations/tea{what}?userId=ada");
    documented.get(CONVERSATION, &tea(""));
    let title = json!({ "title": "Tea", "metadata": { "a": 1 } });
    documented.ask("PATCH", CONVERSATION, &tea(""), &[], Some(&title));
    let messages = documented.get(&format!("{CONVERSATION}/messages"), &tea("/messages"));
    assert!(!messages.data()["messages"].as_array().unwrap().is_empty());
    let memory = format!("{CONVERSATION}/working-memory");
    documented.post(&memory, &tea("/working-memory"), &json!({ "content": { "likes": "tea" } }));
    documented.get(&memory, &tea("/working-memory"));
    let clone = format!("{CONVERSATION}/clone");
    let copy = json!({ "newId": "tea-2" });
    assert_eq!(documented.post(&clone, &tea("/clone"), &copy).status, 201);
    assert_eq!(documented.post(&clone, &tea("/clone"), &copy).status, 409);
    let search = "/api/memory/search";
    let found = documented.get(search, "/api/memory/search?userId=ada&q=hello");
    assert_ne!(found.data()["count"], 0);
    assert_eq!(documented.get(search, search).status, 400);
    documented.ask("DELETE", CONVERSATION, &tea(""), &[], None);
    assert_eq!(documented.get(CONVERSATION, &tea("")).status, 404);
    let user = "/api/memory/users/{userId}";
    documented.ask("DELETE", user, "/api/memory/users/ada", &[], None);
}

pub(super) fn walk_observability(documented: &Documented) {
    let parent: Headers<'_> =
        &[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let execute = "/workflows/{id}/execute";
    let body = json!({ "input": { "n": 1 } });
    let reply = documented.ask("POST", execute, "/workflows/add/execute", parent, Some(&body));
    let trace_id = reply.header("x-trace-id").unwrap();
    let traces = "/observability/traces";
    let page = documented.get(traces, "/observability/traces?limit=1").data();
    let cursor = page["nextCursor"].as_str().unwrap();
    documented.get(traces, &format!("{traces}?entityType=agent&cursor={cursor}"));
    assert_eq!(documented.get(traces, "/observability/traces?limit=101").status, 400);
    let trace = documented.get("/observability/traces/{traceId}", &format!("{traces}/{trace_id}"));
    let trace = trace.data();
    let span_id = trace["spans"][0]["spanId"].as_str().unwrap();
    documented.get("/observability/spans/{spanId}", &format!("/observability/spans/{span_id}"));
    for (place, path) in [
        ("/observability/traces/{traceId}/logs", format!("{traces}/{trace_id}/logs")),
        ("/observability/spans/{spanId}/logs", format!("/observability/spans/{span_id}/logs")),
        ("/observability/logs", "/observability/logs?severityText=DEBUG&limit=5".to_owned()),
        ("/api/logs", "/api/logs?level=trace&limit=5".to_owned()),
    ] {
        documented.get(place, &path);
        let other = if path.contains('?') { "&" } else { "?" };
        assert_eq!(documented.get(place, &format!("{path}{other}cursor=x")).status, 400);
    }
    for place in ["/observability/traces/{traceId}", "/observability/spans/{spanId}"] {
        let path = place.replace("{traceId}", "x").replace("{spanId}", "x");
        assert_eq!(documented.get(place, &path).status, 404);
        assert_eq!(documented.get(&format!("{place}/logs"), &format!("{path}/logs")).status, 404);
    }
}

pub(super) fn walk_system(documented: &Documented) {
    documented.get("/updates", "/updates");
    let updates = "/updates";
    assert_eq!(documented.post(updates, updates, &documented.example(updates)).status, 201);
    let own = json!({ "packageName": "greenroom" });
    assert_eq!(documented.post(updates, updates, &own).status, 201);
    let other = json!({ "packageName": "left-pad" });
    assert_eq!(documented.post(updates, updates, &other).status, 404);
    let keys = "/setup-observability";
    assert_eq!(documented.post(keys, keys, &documented.example(keys)).status, 200);
    let through: Headers<'_> = &[("x-forwarded-for", "10.0.0.1")];
    for place in [updates, keys] {
        let body = documented.example(place);
        assert_eq!(documented.ask("POST", place, place, through, Some(&body)).status, 403);
    }
    for place in ["/ws", "/ws/logs", "/ws/observability"] {
        assert_eq!(documented.get(place, place).status, 426);
        let headers: Headers<'_> =
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")];
        assert_eq!(documented.ask("GET", place, place, headers, None).status, 400);
    }
    for place in ["/doc", "/ui"] {
        let known: Headers<'_> = &[("if-none-match", "*")];
        assert_eq!(documented.ask("GET", place, place, known, None).status, 304);
    }
    assert_eq!(documented.get("/ui", "/ui/").status, 308);
}

pub(super) fn walk_mcp(documented: &Documented) {
    let request = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let call = json!({ "name": "workflow_add", "arguments": { "n": 1 } });
    for (place, path) in [("/mcp", "/mcp"), ("/mcp/{name}/mcp", "/mcp/ops/mcp")] {
        let post = |body: &Value| documented.post(place, path, body).status;
        assert_eq!(post(&request("tools/list", &json!({}))), 200);
        assert_eq!(post(&request("tools/call", &call)), 200);
        assert_eq!(post(&request("tools/none", &json!({}))), 200);
        assert_eq!(post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })), 202);
        assert_eq!(post(&json!([])), 400);
    }
}
