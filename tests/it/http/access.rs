//! Authorization: every route, with a token of every kind.

mod identity;
mod keys;
mod pages;
mod start;
mod tricks;

use greenroom::api::catalogue::{Access, Method, ROUTES, Route, RouteName};
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

use super::site::{CONFIG, Site};
use crate::program::Programs;
use support::client::{Reply, Wire};
use support::server::{Home, Server};

const SECRET: &str = "a secret of these tests, long enough to sign with";

/// Signs claims.
fn signed(claims: &Value, secret: &str) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&Header::default(), claims, &key).unwrap()
}

/// Returns a valid token of a user with roles.
fn token(id: &str, roles: &[&str]) -> String {
    let email = format!("{id}@example.com");
    signed(&json!({ "sub": id, "email": email, "roles": roles, "exp": now() + 600 }), SECRET)
}

/// Returns the current time in seconds, the unit of tokens.
fn now() -> i64 {
    SystemClock.now().0 / 1000
}

/// Headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Starts a server that checks tokens, with these lines under `[auth]`.
fn guarded(auth: &str) -> Site {
    guarded_with(auth, "", &[])
}

/// Doors for clients of other protocols, whose routes are not there without them.
const FACES: &str = "[faces.openai]\nworkflows = \"*\"\n\
                     [[faces.mcp]]\nworkflows = \"*\"\n\
                     [[faces.mcp]]\nname = \"ops\"\nworkflows = \"*\"\n";

/// Starts such a server with more tables and arguments.
fn guarded_with(auth: &str, tables: &str, arguments: &[&str]) -> Site {
    let home = Home::new(&format!("[auth]\n{auth}\n[auth.jwt]\n{tables}\n{CONFIG}\n{FACES}"));
    let mut command = home.greenroom(arguments);
    command.env("JWT_SECRET", SECRET);
    Site { home, server: Server::start(command) }
}

fn ask(site: &Site, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let token = bearer(token);
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    site.send(method, path, &headers, Some(body.to_string().as_bytes()))
}

/// Returns status, code, text and challenge of a refusal.
type Refusal = (u16, &'static str, &'static str, &'static str);

fn refusal_of(reply: &Reply) -> (u16, String, String, String) {
    let header = |name| reply.header(name).unwrap_or_default().to_owned();
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.header("x-request-id").is_some());
    // on routes for clients of OpenAI in their form
    let text = match reply.json()["error"]["message"].as_str() {
        Some(text) => text.to_owned(),
        None => reply.error(),
    };
    (reply.status, header("x-error-code"), text, header("www-authenticate"))
}

fn owned(refusal: Refusal) -> (u16, String, String, String) {
    let (status, code, text, challenge) = refusal;
    (status, code.to_owned(), text.to_owned(), challenge.to_owned())
}

/// A caller, and its refusal where a token is required.
struct Visitor {
    id: &'static str,
    token: Option<String>,
    refusal: Option<Refusal>,
    is_admin: bool,
}

const REQUIRED: Refusal = (401, "auth_required", "Authentication required", "Bearer");
const INVALID: &str = "Bearer error=\"invalid_token\"";

fn visitors() -> Vec<Visitor> {
    let expired = signed(&json!({ "sub": "ann", "roles": ["admin"], "exp": now() - 60 }), SECRET);
    let forged = signed(&json!({ "sub": "ann", "roles": ["admin"] }), &SECRET.replace('a', "b"));
    let refused = |token: Option<String>, refusal| {
        let token = token.map(|token| bearer(&token));
        Visitor { id: "ann", token, refusal: Some(refusal), is_admin: false }
    };
    let known = |id, roles: &[&str]| {
        let token = Some(bearer(&token(id, roles)));
        Visitor { id, token, refusal: None, is_admin: roles.contains(&"admin") }
    };
    vec![
        refused(None, REQUIRED),
        refused(
            Some("garbage".to_owned()),
            (401, "token_invalid", "Invalid token: jwt malformed", INVALID),
        ),
        refused(Some(forged), (401, "token_invalid", "Invalid token: invalid signature", INVALID)),
        refused(Some(expired), (401, "token_expired", "Token expired", INVALID)),
        known("ben", &["staff"]),
        known("eve", &["admin"]),
    ]
}

/// Returns a path of a route, with ids that do not exist.
fn place(row: &Route, visitor: &Visitor) -> String {
    let segment = |segment: &str| match segment {
        ":userId" => visitor.id.to_owned(),
        ":name" | ":file" => "none".to_owned(),
        ":id" if row.path.starts_with("/workflows") => "add".to_owned(),
        ":id" if row.path.starts_with("/agents") => "assistant".to_owned(),
        other if other.starts_with(':') => "none".to_owned(),
        other => other.to_owned(),
    };
    row.path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Returns the expected refusal of a caller; `None`: the handler answers.
fn expected(visitor: &Visitor, needs_token: bool, needs_admin: bool) -> Option<Refusal> {
    if !needs_token {
        return None;
    }
    let missing = (
        403,
        "role_missing",
        "One of these roles is required: admin",
        "Bearer error=\"insufficient_scope\"",
    );
    visitor.refusal.or_else(|| (needs_admin && !visitor.is_admin).then_some(missing))
}

/// Returns true for streams that end with the server.
fn is_endless(row: &Route) -> bool {
    row.path == "/inbox/stream"
}

fn head_of(site: &Site, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut wire = Wire::open(site.address).unwrap();
    wire.send("GET", path, headers, None).unwrap();
    wire.head().unwrap()
}

/// Calls every route as every caller; `needs_token` returns true for routes that need a token.
fn walk(site: &Site, needs_token: impl Fn(&Route) -> bool, needs_admin: bool) {
    let mut let_in = 0;
    for row in ROUTES.iter() {
        for visitor in visitors() {
            let path = place(row, &visitor);
            let at = format!("{row} as {} with {:?}", visitor.id, visitor.token);
            let token = visitor.token.as_deref().map(|token| ("authorization", token));
            let headers: Vec<_> = token.into_iter().collect();
            let body = row.method.changes().then_some(&b"{}"[..]);
            // what is about the token ignores none
            let is_needed =
                needs_token(row) || row.name == RouteName::WhoAmI && visitor.token.is_some();
            let expected = expected(&visitor, is_needed, needs_admin);
            let reply = match is_endless(row) && expected.is_none() {
                true => head_of(site, &path, &headers),
                false => site.send(row.method.as_str(), &path, &headers, body),
            };
            match expected {
                Some(refusal) => assert_eq!(refusal_of(&reply), owned(refusal), "{at}"),
                None => {
                    let_in += 1;
                    assert!(!matches!(reply.status, 401 | 403), "{at}: {}", reply.text());
                    assert_eq!(reply.header("www-authenticate"), None, "{at}");
                }
            }
            if row.answers_head() {
                let mut wire = Wire::open(site.address).unwrap();
                wire.send("HEAD", &path, &headers, None).unwrap();
                assert_eq!(wire.head().unwrap().status, reply.status, "HEAD {at}");
            }
            // No handler answers OPTIONS: there is nothing to protect.
            assert_eq!(site.send("OPTIONS", &path, &headers, None).status, 405, "OPTIONS {at}");
        }
    }
    assert!(let_in >= ROUTES.len(), "{let_in}");
}

/// Routes that the specification and the contract protect by default.
const PROTECTED: [&str; 33] = [
    "POST /workflows/:id/execute",
    "POST /workflows/:id/stream",
    "POST /workflows/:id/executions/:executionId/cancel",
    "POST /workflows/:id/executions/:executionId/replay",
    "POST /v1/chat/completions",
    "GET /v1/models",
    "GET /v1/models/*",
    "GET /tools/mcp",
    "POST /tools/mcp/:server/restart",
    "POST /tools/mcp/:server/accept",
    "POST /mcp",
    "POST /mcp/:name/mcp",
    "POST /agents/:id/text",
    "POST /agents/:id/stream",
    "POST /agents/:id/chat",
    "POST /agents/:id/object",
    "POST /agents/:id/stream-object",
    "GET /agents/:id/chat/:conversationId/stream",
    "POST /agents/:id/generations/:generationId/cancel",
    "POST /agents/:id/generations/:generationId/approve",
    "POST /tools/:name/execute",
    "GET /api/memory/conversations",
    "POST /api/memory/conversations",
    "GET /api/memory/conversations/:id",
    "PATCH /api/memory/conversations/:id",
    "DELETE /api/memory/conversations/:id",
    "GET /api/memory/conversations/:id/messages",
    "GET /api/memory/conversations/:id/working-memory",
    "POST /api/memory/conversations/:id/working-memory",
    "POST /api/memory/conversations/:id/clone",
    "GET /api/memory/search",
    "DELETE /api/memory/users/:userId",
    "GET /workflows/:id/executions",
];

fn is_probe(row: &Route) -> bool {
    matches!(&*row.path, "/livez" | "/readyz")
}

/// Returns true for pages whose address is a credential.
fn is_link(row: &Route) -> bool {
    row.path == "/inbox/link/:token"
}

/// Returns true for what says where clients get a token.
fn is_metadata(row: &Route) -> bool {
    row.path.starts_with("/.well-known/")
}

/// Returns true for pages that are public and show nothing about the server without a token.
fn is_page(row: &Route) -> bool {
    matches!(&*row.path, "/" | "/ui" | "/ui/:file") || row.path.starts_with("/console")
}

#[test]
fn the_default_table_is_kept_on_every_route() {
    // the last one of them by a rule without roles
    let site = guarded("rules = [{ route = \"GET /workflows/:id/executions\" }]");
    let named = |row: &Route| PROTECTED.contains(&row.to_string().as_str());
    assert_eq!(ROUTES.iter().filter(|row| named(row)).count(), PROTECTED.len());
    walk(&site, named, false);
}

#[test]
fn private_routes_need_a_token() {
    let site = guarded("default = \"private\"\npublic = [\"GET /agents\", \"GET /workflows/add\"]");
    let public = ["GET /agents", "GET /workflows/:id"];
    let is_public = |row: &Route| public.contains(&row.to_string().as_str());
    let is_open = |row: &Route| {
        is_probe(row) || is_link(row) || is_metadata(row) || is_page(row) || is_public(row)
    };
    walk(&site, |row| !is_open(row), false);
    assert_eq!(refusal_of(&site.get("/workflows/approval")), owned(REQUIRED));
    // Unknown routes are not hidden.
    assert_eq!(site.get("/nope").status, 404);
}

#[test]
fn a_rule_asks_for_its_role_on_every_route() {
    let methods = Method::ALL.map(Method::as_str).into_iter().filter(|method| *method != "PUT");
    let rules: Vec<_> = methods
        .map(|method| format!("{{ route = \"{method} /*\", roles = [\"admin\"] }}"))
        .collect();
    // A rule takes precedence over `public`.
    let site = guarded(&format!("public = [\"GET /*\"]\nrules = [{}]", rules.join(", ")));
    walk(&site, |row| !is_probe(row) && !is_link(row) && !is_metadata(row), true);
}

#[test]
fn only_probes_pages_and_links_are_always_open() {
    let pages = ROUTES.iter().filter(|row| row.access == Access::Page);
    assert!(pages.clone().count() == 6 && pages.into_iter().all(is_page));
    let open = ROUTES.iter().filter(|row| row.access == Access::Open);
    let is_open = |row: &Route| is_probe(row) || is_link(row) || is_metadata(row);
    assert!(open.clone().count() == 6 && open.into_iter().all(is_open));
}
