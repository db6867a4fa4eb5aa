//! Callers who may accept changed tools: those who may use the route that does so, in every way in
//! which a call is approved.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::client::Reply;
use support::server::{Home, Server};

use super::asking::text_of;
use super::changing::{change, changed, settled, sums};
use super::{CALLERS, Site, ready, scripted};
use crate::program::Programs as _;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Leaves the acceptance of changed tools to admins.
const RULE: &str = "{ route = \"POST /tools/mcp/*\", roles = [\"admin\"] }";

/// Starts a server with these rules of access, for which ann is an admin and bob is not, and changes the
/// tool `sum`.
fn guarded(rules: &str) -> Site {
    let home = Home::new("");
    let mut config = scripted::config("own", "good", &home.path("asked"));
    write!(
        config,
        "[inbox]\nsecret = \"secret:TEST_INBOX_KEY\"\nbase_url = \"https://green.example\"\n\
         [[faces.mcp]]\nagents = [\"clerk\"]\n\
         [auth]\npublic = [\"GET /tools/mcp\", \"POST /tools/:name/execute\"]\nrules = [{rules}]\n"
    )
    .unwrap();
    for (id, role) in [("ann", "admin"), ("bob", "staff")] {
        let hash: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
        write!(
            config,
            "[[auth.api_keys]]\nid = \"{id}\"\nhash = \"sha256:{hash}\"\n\
             user = {{ roles = [\"{role}\"] }}\n"
        )
        .unwrap();
    }
    home.configure(&(config + CALLERS));
    let mut command = home.greenroom(&[]);
    command.env("TEST_INBOX_KEY", SECRET);
    let site = Site { server: Server::start(command), home };
    ready(&site.server, "own");
    change(&site, "Second");
    changed(&site);
    site
}

fn post_as(site: &Site, user: &str, path: &str, body: &Value) -> Reply {
    let headers = [("x-api-key", user), ("content-type", "application/json")];
    site.server.send("POST", path, &headers, Some(body.to_string().as_bytes()))
}

/// A call of the changed tool that waits.
struct Waiting {
    generation: Value,
    ask: String,
    call: String,
}

fn waiting(site: &Site) -> Waiting {
    let body = json!({ "input": "the sum" });
    let generation = post_as(site, "bob", "/agents/clerk/text", &body).data();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let asked = &generation["asks"][0];
    let (ask, call) = (text(&asked["askId"]), text(&asked["toolCallId"]));
    Waiting { generation, ask, call }
}

/// Answers in the inbox.
fn in_inbox(site: &Site, user: &str, waiting: &Waiting, approved: bool) -> Reply {
    let body = json!({ "data": { "approved": approved } });
    post_as(site, user, &format!("/inbox/{}/answer", waiting.ask), &body)
}

/// Approves by the call.
fn by_call(site: &Site, user: &str, waiting: &Waiting) -> Reply {
    let id = waiting.generation["generationId"].as_str().unwrap();
    let body = json!({ "toolCallId": waiting.call, "approved": true });
    post_as(site, user, &format!("/agents/clerk/generations/{id}/approve"), &body)
}

/// Approves in a message of the chat.
fn in_chat(site: &Site, user: &str, waiting: &Waiting) -> Reply {
    let part = json!({
        "type": "tool-own_sum", "toolCallId": waiting.call, "state": "approval-responded",
        "input": { "n": 41 }, "approval": { "id": waiting.ask, "approved": true },
    });
    let message = json!({ "id": "m1", "role": "assistant", "parts": [part] });
    post_as(site, user, "/agents/clerk/chat", &json!({ "messages": [message] }))
}

/// Approves, or not, with a link that this user makes for itself.
fn with_link(site: &Site, user: &str, waiting: &Waiting, approved: bool) -> Reply {
    with_link_from(site, user, waiting, approved, &[])
}

fn with_link_from(
    site: &Site,
    user: &str,
    waiting: &Waiting,
    approved: bool,
    forwarded: &[(&str, &str)],
) -> Reply {
    let body = json!({ "to": format!("user:{user}") });
    let made = post_as(site, user, &format!("/inbox/{}/link", waiting.ask), &body).data();
    let path = made["url"].as_str().unwrap().strip_prefix("https://green.example").unwrap();
    let mut headers =
        vec![("content-type", "application/x-www-form-urlencoded"), ("origin", "null")];
    headers.extend_from_slice(forwarded);
    let form = format!("approved={approved}");
    site.server.send("POST", path, &headers, Some(form.as_bytes()))
}

/// Asks the agent over MCP, with an approval of the question that it has answered with before; returns the
/// result.
fn over_mcp(site: &Site, user: &str, asked: Option<&Value>) -> Value {
    let mut params = json!({ "name": "agent_clerk", "arguments": { "prompt": "the sum" } });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    if let Some(asked) = asked {
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let answer = json!({ "action": "accept", "content": { "approved": true } });
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"][key] = answer;
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("x-api-key", user),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "agent_clerk"),
    ];
    let reply = site.server.send("POST", "/mcp", &headers, Some(body.to_string().as_bytes()));
    reply.json()["result"].clone()
}

fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("x-error-code").unwrap_or_default())
}

#[test]
fn an_approval_that_accepts_a_change_needs_what_the_route_needs_however_it_is_given() {
    let site = guarded(RULE);
    let first = waiting(&site);
    let needed = "needs what POST /tools/mcp/own/accept needs: the role admin. The ask stays open";
    for (door, refused) in [
        ("inbox", in_inbox(&site, "bob", &first, true)),
        ("call", by_call(&site, "bob", &first)),
        ("chat", in_chat(&site, "bob", &first)),
    ] {
        assert_eq!(code(&refused), (403, "not_assigned"), "{door}: {}", refused.text());
        assert!(refused.error().contains(needed), "{door}: {}", refused.error());
    }
    for user in ["bob", "ann"] {
        let refused = with_link(&site, user, &first, true);
        assert_eq!(code(&refused), (403, "not_assigned"), "{user}");
        let page = refused.text();
        assert!(page.contains("needs the role admin, which a link does not have"), "{page}");
    }
    let asks = site.server.get("/inbox").data();
    assert_eq!(asks["asks"][0]["askId"], first.ask, "{asks}");
    assert_eq!(sums(&site), 0);
    let accept = post_as(&site, "bob", "/tools/mcp/own/accept", &json!({}));
    assert_eq!(code(&accept), (403, "role_missing"));

    let second = waiting(&site);
    assert_eq!(in_inbox(&site, "bob", &second, false).status, 200, "it can be declined");
    assert!(text_of(&site.server, &second.generation).contains("refused by a person"));
    let third = waiting(&site);
    assert_eq!(with_link(&site, "bob", &third, false).status, 200, "also with a link");
    changed(&site);
    assert_eq!(in_inbox(&site, "ann", &first, true).status, 200);
    assert!(text_of(&site.server, &first.generation).contains("42"));
    settled(&site);
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}

#[test]
fn a_client_of_mcp_is_asked_again_and_an_admin_accepts() {
    let site = guarded(RULE);
    let asked = over_mcp(&site, "bob", None);
    let again = over_mcp(&site, "bob", Some(&asked));
    let needed = "needs what POST /tools/mcp/own/accept needs: the role admin";
    assert!(again["inputRequests"].to_string().contains(needed), "{again}");
    assert_eq!(sums(&site), 0);
    let asked = over_mcp(&site, "ann", None);
    let done = over_mcp(&site, "ann", Some(&asked));
    assert!(done["content"][0]["text"].as_str().is_some_and(|it| it.contains("42")), "{done}");
    settled(&site);
}

#[test]
fn where_no_rule_is_about_the_route_those_who_are_asked_accept() {
    for by_link in [true, false] {
        let site = guarded("");
        let waiting = waiting(&site);
        let answered = match by_link {
            true => with_link(&site, "bob", &waiting, true),
            false => in_chat(&site, "bob", &waiting),
        };
        assert_eq!(answered.status, 200, "{}", answered.text());
        assert!(text_of(&site.server, &waiting.generation).contains("42"));
        settled(&site);
    }
}

#[test]
fn a_rule_without_roles_wants_a_token() {
    let site = guarded("{ route = \"POST /tools/mcp/own/accept\" }");
    let waiting = waiting(&site);
    let refused = with_link(&site, "bob", &waiting, true);
    assert_eq!(code(&refused), (403, "not_assigned"));
    assert!(refused.text().contains("needs a token, which a link does not have"));
    assert_eq!(by_call(&site, "bob", &waiting).status, 200);
    assert!(text_of(&site.server, &waiting.generation).contains("42"));
}

#[test]
fn a_link_that_is_used_elsewhere_accepts_no_change() {
    let site = guarded("");
    let waiting = waiting(&site);
    let elsewhere = [("x-forwarded-for", "203.0.113.5")];
    let refused = with_link_from(&site, "bob", &waiting, true, &elsewhere);
    assert_eq!(code(&refused), (403, "not_assigned"), "{}", refused.text());
    changed(&site);
    let declined = with_link_from(&site, "bob", &waiting, false, &elsewhere);
    assert_eq!(declined.status, 200, "{}", declined.text());
}
