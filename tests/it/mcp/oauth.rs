//! MCP servers over HTTP that want tokens, which their authorization server gives, or another one, or none.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use support::provider::{Asked, Deed, Provider, whole};
use support::server::{Home, Server};

use super::{call, ready, status_when};
use crate::program::Programs as _;

/// The secret of the client in the environment.
const SECRET: (&str, &str) = ("TEST_CLIENT_SECRET", "canary-client-7d20c1");
/// Requests for which a token is good.
const USES: usize = 3;

fn header<'a>(asked: &'a Asked, name: &str) -> &'a str {
    let found = asked.headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_default()
}

fn said(document: &Value) -> Vec<Deed> {
    whole(200, &[("content-type", "application/json")], &document.to_string())
}

fn refused(status: u16, challenge: &str) -> Vec<Deed> {
    whole(status, &[("www-authenticate", challenge)], "no")
}

/// Answers the requests of MCP. The result of its tool is the header with the token.
fn serve(asked: &Asked) -> Vec<Deed> {
    let Some(method) = asked.body["method"].as_str() else { return whole(405, &[], "") };
    let id = &asked.body["id"];
    let result = match method {
        _ if id.is_null() => return whole(202, &[], ""),
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                                "serverInfo": { "name": "own", "version": "1" } }),
        "tools/list" => {
            let read = json!({ "readOnlyHint": true });
            json!({ "tools": [{ "name": "count", "inputSchema": { "type": "object" }, "annotations": read }] })
        }
        "tools/call" => {
            json!({ "content": [{ "type": "text", "text": header(asked, "authorization") }] })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "unknown" });
            return said(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    said(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Returns the metadata of a server and of its authorization server, both at the host of the request.
fn metadata(asked: &Asked) -> Option<Vec<Deed>> {
    let origin = format!("http://{}", header(asked, "host"));
    Some(match asked.path.as_str() {
        "/meta" => said(&json!({ "resource": format!("{origin}/v1"),
                                 "authorization_servers": [format!("{origin}/issuer")] })),
        "/.well-known/oauth-authorization-server/issuer" => whole(404, &[], ""),
        "/.well-known/openid-configuration/issuer" => {
            said(&json!({ "issuer": format!("{origin}/issuer"),
                          "token_endpoint": format!("{origin}/token"),
                          "grant_types_supported": ["client_credentials"],
                          "token_endpoint_auth_methods_supported": ["client_secret_post"] }))
        }
        _ => return None,
    })
}

/// A server whose tokens are good for a few requests.
fn forgetful(asked: &Asked) -> Vec<Deed> {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    if let Some(document) = metadata(asked) {
        return document;
    }
    if asked.path == "/token" {
        LEFT.store(USES, Ordering::SeqCst);
        let token = format!("canary-token-{}", TOKENS.fetch_add(1, Ordering::SeqCst));
        return said(&json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }));
    }
    let newest = TOKENS.load(Ordering::SeqCst).wrapping_sub(1);
    let is_newest = header(asked, "authorization") == format!("Bearer canary-token-{newest}");
    let has_left = |left: usize| left.checked_sub(1);
    match is_newest && LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, has_left).is_ok() {
        true => serve(asked),
        false => refused(401, "Bearer resource_metadata=\"/meta\", scope=\"tools:read\""),
    }
}

/// Starts greenroom with a server `own`, whose connection has further keys of `oauth`.
fn start(own: &Provider, keys: &str) -> (Server, Home) {
    let home = Home::new(&format!(
        "[mcp.own]\nurl = \"{}mcp\"\nrestart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n\
         oauth = {{ client_id = \"green room\", client_secret = \"secret:{}\"{keys} }}\n",
        own.base_url(),
        SECRET.0
    ));
    let mut command = home.greenroom(&["--log", "debug"]);
    command.envs([SECRET]);
    (Server::start(command), home)
}

/// Returns the bodies of the requests for tokens.
fn forms(server: &Provider) -> Vec<String> {
    let asked = server.asked().into_iter().filter(|asked| asked.path == "/token");
    asked.map(|asked| asked.body.as_str().unwrap().to_owned()).collect()
}

/// Asserts that nothing that is shown has a secret or a token.
fn shows_no_secret(mut server: Server) {
    let status = server.get("/tools/mcp").data().to_string();
    server.signal("TERM");
    assert!(server.ended().success());
    let log = server.log.lock().unwrap().iter().collect::<Vec<_>>().join("\n");
    assert!(log.contains("SIGTERM: stopping"), "{log}");
    assert!(!log.contains("canary"), "{log}");
    assert!(!status.contains("canary"), "{status}");
}

#[test]
fn a_server_that_wants_tokens_gets_new_ones_whenever_it_refuses_them() {
    let own = Provider::choosing(forgetful);
    let (server, _home) = start(&own, "");
    ready(&server, "own");
    for _ in 0..2 * USES {
        assert_eq!(call(&server, "own.count", &json!({})), Ok(json!("Bearer [secret]")));
    }
    let forms = forms(&own);
    assert!(forms.len() >= 3, "{forms:?}");
    let resource = own.base_url().trim_end_matches('/').replace(':', "%3A").replace('/', "%2F");
    let expected = format!(
        "grant_type=client_credentials&scope=tools%3Aread&resource={resource}\
         &client_id=green+room&client_secret={}",
        SECRET.1
    );
    assert!(forms.iter().all(|form| *form == expected), "{forms:?}");
    let status = status_when(&server, "own", |_| true);
    assert_eq!((&status["state"], &status["failures"]), (&json!("ready"), &json!(0)));
    shows_no_secret(server);
}

/// An authorization server that does not know the client, and repeats what it got.
fn unknowing(asked: &Asked) -> Vec<Deed> {
    if asked.path == "/token" {
        let why = format!("{} {}", header(asked, "authorization"), SECRET.1);
        let refusal =
            json!({ "error": "invalid_client", "error_description": why, "more": SECRET.1 });
        return whole(401, &[], &refusal.to_string());
    }
    refused(401, "Bearer")
}

#[test]
fn a_client_that_is_refused_is_shown_with_the_reason_and_without_its_secret() {
    let own = Provider::choosing(unknowing);
    let token_url = own.base_url().replace("/v1/", "/token");
    let (server, _home) = start(&own, &format!(", token_url = \"{token_url}\""));
    let why = "it gets no token: 127.0.0.1: it answered invalid_client (status 401): \
               Basic [secret] [secret]";
    let status = status_when(&server, "own", |status| status["state"] == "failed");
    assert_eq!(status["reason"], why);
    server.says(why);
    let asked = own.asked();
    assert!(asked.iter().all(|asked| asked.path == "/token"), "nothing goes without a token");
    assert!(asked.iter().all(|asked| header(asked, "authorization").starts_with("Basic ")));
    shows_no_secret(server);
}

/// A server that refuses everything, and whose authorization server is another one on this machine.
fn luring(asked: &Asked) -> Vec<Deed> {
    let host = header(asked, "host");
    match asked.path.as_str() {
        "/.well-known/oauth-protected-resource/v1/mcp" => whole(404, &[], ""),
        "/.well-known/oauth-protected-resource" => said(&json!({
            "resource": format!("http://{host}"),
            "authorization_servers": ["http://127.0.0.1:9/"],
        })),
        _ => refused(401, "Basic realm=\"x\""),
    }
}

#[test]
fn metadata_leads_to_no_host_that_only_this_machine_can_reach() {
    let own = Provider::choosing(luring);
    let (server, _home) = start(&own, "");
    let status = status_when(&server, "own", |status| status["state"] == "failed");
    let reason = status["reason"].as_str().unwrap();
    let begin = "it gets no token: the metadata of its authorization server at 127.0.0.1: calls to \
                 127.0.0.1 are not allowed";
    assert!(reason.starts_with(begin), "{reason}");
    shows_no_secret(server);
}

/// A server whose calls need another scope than its list. A token is named after its scope.
fn strict(asked: &Asked) -> Vec<Deed> {
    if let Some(document) = metadata(asked) {
        return document;
    }
    if asked.path == "/token" {
        let form = asked.body.as_str().unwrap();
        let can_call = form.contains("tools%3Acall");
        let token = if can_call { "wide-canary" } else { "narrow-canary" };
        return said(&json!({ "access_token": token, "token_type": "bearer" }));
    }
    match header(asked, "authorization") {
        "Bearer wide-canary" => serve(asked),
        "Bearer narrow-canary" if asked.body["method"] == "tools/call" => {
            refused(403, "Bearer error=\"insufficient_scope\", scope=\"tools:call\"")
        }
        "Bearer narrow-canary" => serve(asked),
        _ => refused(401, "Bearer resource_metadata=\"/meta\", scope=\"tools:list\""),
    }
}

#[test]
fn a_call_that_needs_another_scope_gets_it_unless_the_scope_is_configured() {
    let own = Provider::choosing(strict);
    let (server, _home) = start(&own, "");
    ready(&server, "own");
    assert_eq!(call(&server, "own.count", &json!({})), Ok(json!("Bearer [secret]")));
    let scopes: Vec<_> = forms(&own).iter().map(|form| form.contains("tools%3Alist")).collect();
    assert_eq!(scopes, [true, true], "what was there stays");
    shows_no_secret(server);
    let (server, _home) = start(&own, ", scope = \"tools:list\"");
    ready(&server, "own");
    let failure = call(&server, "own.count", &json!({})).unwrap_err();
    let why = "Failed to execute tool: the MCP server own refused the call: it wants a token with the \
               scope `tools:call` (status 403); see `oauth.scope`";
    assert_eq!(failure, why);
    status_when(&server, "own", |status| status["state"] == "ready");
    shows_no_secret(server);
}

/// A server that revokes its first token at a call, and whose authorization server then fails twice.
fn revoking(asked: &Asked) -> Vec<Deed> {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    if let Some(document) = metadata(asked) {
        return document;
    }
    if asked.path == "/token" {
        return match TOKENS.fetch_add(1, Ordering::SeqCst) {
            0 => said(&json!({ "access_token": "first-canary", "token_type": "Bearer" })),
            1 | 2 => whole(503, &[], "canary"),
            _ => said(&json!({ "access_token": "second-canary", "token_type": "Bearer" })),
        };
    }
    let is_revoked = asked.body["method"] == "tools/call" || TOKENS.load(Ordering::SeqCst) > 1;
    match header(asked, "authorization") {
        "Bearer second-canary" => serve(asked),
        "Bearer first-canary" if !is_revoked => serve(asked),
        _ => refused(401, "Bearer resource_metadata=\"/meta\", error=\"invalid_token\""),
    }
}

#[test]
fn a_connection_without_a_token_is_lost_and_made_again() {
    let own = Provider::choosing(revoking);
    let (server, _home) = start(&own, "");
    ready(&server, "own");
    let why = "it gets no token: 127.0.0.1: it answered with status 503";
    let failure = call(&server, "own.count", &json!({})).unwrap_err();
    assert_eq!(failure, format!("Failed to execute tool: the MCP server own: {why}"));
    server.says(&format!("MCP server own: the connection was lost: {why}"));
    status_when(&server, "own", |status| status["state"] == "ready" && status["lost"] == 1);
    assert_eq!(call(&server, "own.count", &json!({})), Ok(json!("Bearer [secret]")));
    shows_no_secret(server);
}

/// A server that refuses every token at calls.
fn refusing(asked: &Asked) -> Vec<Deed> {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    if let Some(document) = metadata(asked) {
        return document;
    }
    if asked.path == "/token" {
        let token = format!("canary-{}", TOKENS.fetch_add(1, Ordering::SeqCst));
        return said(&json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }));
    }
    match header(asked, "authorization") {
        "" => refused(401, "Bearer resource_metadata=\"/meta\""),
        _ if asked.body["method"] == "tools/call" => refused(401, "Bearer error=\"invalid_token\""),
        _ => serve(asked),
    }
}

#[test]
fn a_server_that_refuses_new_tokens_costs_no_token_for_each_call() {
    let own = Provider::choosing(refusing);
    let (server, _home) = start(&own, "");
    ready(&server, "own");
    let why = |n: usize| {
        let failure = call(&server, "own.count", &json!({})).unwrap_err();
        let refused = "Failed to execute tool: the MCP server own refused the call: it refuses ";
        let why = failure.strip_prefix(refused).unwrap_or_else(|| panic!("{n}: {failure}"));
        why.to_owned()
    };
    let cure = ": see which audience and scope the authorization server gives to this client";
    assert_eq!(why(0), format!("a new token (status 401){cure}"));
    for n in 1..5 {
        let why = why(n);
        assert!(why.starts_with("the newest token (status 401), and none is fetched in "), "{why}");
        assert!(why.ends_with(cure), "{why}");
    }
    assert_eq!(forms(&own).len(), 2);
    status_when(&server, "own", |status| status["state"] == "ready" && status["lost"] == 0);
    shows_no_secret(server);
}
