//! Ownership over HTTP: what belongs to another user is answered as if it did not exist.

mod memory;
mod observability;

use futures_util::SinkExt;
use futures_util::future::{BoxFuture, FutureExt, ready};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::sockets::{Socket, next};
use super::*;
use crate::api::access::AccessPolicy;
use crate::auth::{AuthError, AuthProvider, Providers, User};
use crate::web::binding::Binding;
use crate::web::gate::Auth;

/// Accepts names as tokens. `eve` is an administrator, `robot` has no id.
struct Names;

impl AuthProvider for Names {
    fn kind(&self) -> &str {
        "names"
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        let profile = match token {
            "eve" => json!({ "id": "eve", "roles": ["admin"] }),
            "robot" => json!({}),
            name => json!({ "id": name, "roles": ["staff"] }),
        };
        ready(User::new(profile.as_object().cloned().unwrap())).boxed()
    }
}

fn binding(owner_roles: Option<&str>) -> Binding {
    let mut providers = Providers::default();
    providers.push(Arc::new(Names));
    let owner_roles = owner_roles.map(|role| Arc::from([role.to_owned()]));
    let policy = AccessPolicy { owner_roles, ..AccessPolicy::default() };
    Binding { auth: Arc::new(Auth { providers, policy }), ..Binding::default() }
}

async fn site(owner_roles: Option<&str>) -> Site {
    let binding = binding(owner_roles);
    Site::start(WebConfig { binding, ..WebConfig::default() }).await
}

/// Site where things belong to their users; the role `admin` sees all.
async fn owned() -> Site {
    site(Some("admin")).await
}

fn bearer(name: &str) -> String {
    format!("authorization: Bearer {name}\r\n")
}

impl Site {
    async fn ask(&self, who: &str, request: &str, body: Option<&Value>) -> Answer {
        let (method, path) = request.split_once(' ').unwrap();
        let body = body.map(Value::to_string);
        self.send(method, path, &bearer(who), body.as_deref()).await
    }

    /// Sends a request that must succeed, and returns the data of its answer.
    async fn data_for(&self, who: &str, request: &str, body: Option<&Value>) -> Value {
        let answer = self.ask(who, request, body).await;
        assert!(answer.status < 300, "{who} {request}: {}", answer.body);
        answer.json()["data"].take()
    }

    /// Starts an approval, which suspends.
    async fn approval(&self, who: &str, id: &str) {
        let body = json!({ "input": {}, "options": { "executionId": id } });
        self.data_for(who, "POST /workflows/approval/execute", Some(&body)).await;
    }
}

/// Returns all parts of an answer that a client can compare.
fn observable(answer: &Answer, id: &str) -> (u16, Vec<String>, String) {
    let varies = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !["date", "x-request-id"].contains(&name.to_ascii_lowercase().as_str())
    };
    let mut head: Vec<_> =
        answer.head.lines().filter(varies).map(|line| line.replace(id, "<id>")).collect();
    head.sort();
    (answer.status, head, answer.body.replace(id, "<id>"))
}

/// Request about an execution, and the status for its owner. `!` is replaced by its path.
struct Row {
    request: &'static str,
    headers: &'static str,
    body: &'static str,
    owner: u16,
}

const EXECUTION: [Row; 13] = [
    Row { request: "GET !/state", headers: "", body: "", owner: 200 },
    Row { request: "GET !/stream?fromSequence=x", headers: "", body: "", owner: 400 },
    Row { request: "POST !/resume", headers: "", body: "{\"resumeData\":{}}", owner: 400 },
    Row { request: "POST !/resume", headers: "", body: "{", owner: 400 },
    Row { request: "POST !/resume", headers: "", body: "[1]", owner: 400 },
    Row { request: "POST !/resume", headers: "idempotency-key: \r\n", body: "{}", owner: 400 },
    Row { request: "POST !/resume", headers: "content-type: x/y\r\n", body: "{}", owner: 415 },
    Row { request: "POST !/suspend", headers: "", body: "{", owner: 400 },
    Row { request: "POST !/suspend", headers: "", body: "{\"reason\":5}", owner: 400 },
    Row { request: "POST !/suspend", headers: "content-type: x/y\r\n", body: "{}", owner: 415 },
    Row { request: "POST !/cancel", headers: "", body: "{", owner: 400 },
    Row { request: "POST !/suspend", headers: "", body: "", owner: 400 },
    Row { request: "POST !/cancel", headers: "", body: "{}", owner: 200 },
];

#[actix_web::test]
async fn an_execution_of_another_answers_as_if_it_did_not_exist() {
    let site = owned().await;
    site.approval("ann", "of-ann").await;
    let send = async |who: &str, row: &Row, id: &str| {
        let path = format!("/workflows/approval/executions/{id}");
        let request = row.request.replace('!', &path);
        let (method, path) = request.split_once(' ').unwrap();
        let headers = bearer(who) + row.headers;
        site.send(method, path, &headers, Some(row.body)).await
    };
    for row in &EXECUTION {
        let case = format!("{} {:?} {}", row.request, row.headers, row.body);
        let missing = send("ben", row, "no-one").await;
        let error = missing.json()["error"].as_str().map(str::to_owned);
        assert_eq!(missing.status, 404, "{case}: {}", missing.body);
        assert_eq!(error.as_deref(), Some("Execution no-one not found"), "{case}");
        assert_eq!(missing.header("x-execution-id"), None, "{case}");
        for stranger in ["ben", "robot"] {
            let answer = send(stranger, row, "of-ann").await;
            assert_eq!(
                observable(&answer, "of-ann"),
                observable(&missing, "no-one"),
                "{stranger}: {case}"
            );
        }
        let own = send("ann", row, "of-ann").await;
        assert_eq!(own.status, row.owner, "ann: {case}: {}", own.body);
        let path = "/workflows/approval/executions/of-ann/state";
        let seen = site.ask("eve", &format!("GET {path}"), None).await;
        assert_eq!(seen.status, 200, "an administrator: {}", seen.body);
        let anonymous = site.get(path).await;
        assert_eq!(anonymous.status, 401, "without a token: {}", anonymous.body);
    }
    let taken = json!({ "input": {}, "options": { "executionId": "of-ann" } });
    let taken = site.ask("ben", "POST /workflows/approval/execute", Some(&taken)).await;
    assert_eq!(taken.status, 409, "ids are given once: {}", taken.body);
}

#[actix_web::test]
async fn a_stream_of_another_is_not_found() {
    let site = owned().await;
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "s-1" } });
    site.ask("ann", "POST /workflows/noop/stream", Some(&body)).await;
    let path = "GET /workflows/noop/executions/s-1/stream";
    let stranger = site.ask("ben", path, None).await;
    assert_eq!((stranger.status, stranger.header("content-type")), (404, Some("application/json")));
    for reader in ["ann", "eve"] {
        let own = site.ask(reader, path, None).await;
        assert!(own.body.contains("workflow-complete"), "{reader}: {}", own.body);
    }
}

#[actix_web::test]
async fn lists_of_executions_are_of_the_caller() {
    let site = owned().await;
    for (who, id) in [("ann", "a1"), ("ben", "b1"), ("ann", "a2"), ("robot", "r1")] {
        site.approval(who, id).await;
    }
    let ids = async |who: &str, query: &str| {
        let mut found = Vec::new();
        for path in ["/workflows/executions", "/workflows/approval/executions"] {
            let list = site.data_for(who, &format!("GET {path}{query}"), None).await;
            let rows = list["executions"].as_array().unwrap();
            let ids = rows.iter().map(|row| row["executionId"].as_str().unwrap().to_owned());
            found.push((ids.collect::<Vec<_>>().join(" "), list["nextCursor"].is_string()));
        }
        assert_eq!(found[0], found[1], "{who} {query}");
        found.remove(0)
    };
    let rows = [
        ("ann", "", "a2 a1", false),
        ("ann", "?userId=ann", "a2 a1", false),
        ("ann", "?userId=ben", "", false),
        ("ann", "?limit=1", "a2", true),
        ("ann", "?status=completed", "", false),
        ("robot", "", "", false),
        ("robot", "?userId=ann", "", false),
        ("eve", "", "r1 a2 b1 a1", false),
        ("eve", "?userId=ben", "b1", false),
    ];
    for (who, query, expected, has_more) in rows {
        assert_eq!(ids(who, query).await, (expected.to_owned(), has_more), "{who} {query}");
    }
    for (who, query, all) in [
        ("ann", "", 2),
        ("ann", "?userId=ben", 0),
        ("robot", "", 0),
        ("eve", "", 4),
        ("eve", "?userId=ben", 1),
    ] {
        let counts = format!("GET /workflows/executions/counts{query}");
        let counted = site.data_for(who, &counts, None).await;
        assert_eq!(counted["total"]["all"], all, "{who} {query}");
    }
    for id in ["a1", "b1"] {
        let cancel = format!("POST /workflows/approval/executions/{id}/cancel");
        assert_eq!(site.ask("eve", &cancel, Some(&json!({}))).await.status, 200);
    }
    for (who, query, cancelled) in [
        ("ann", "", 1),
        ("ann", "?userId=ben", 0),
        ("robot", "", 0),
        ("eve", "", 2),
        ("eve", "?userId=ben", 1),
    ] {
        let outcomes = format!("GET /workflows/executions/outcomes{query}");
        let counted = site.data_for(who, &outcomes, None).await;
        assert_eq!(counted["total"]["cancelled"], cancelled, "{who} {query}");
    }
    for (who, query, all) in
        [("ann", "", 2), ("ann", "?userId=ben", 0), ("robot", "", 0), ("eve", "", 4)]
    {
        let versions =
            site.data_for(who, &format!("GET /workflows/approval/versions{query}"), None).await;
        assert_eq!(versions["versions"][0]["all"], all, "{who} {query}");
        let events = site.ask(who, "GET /workflows/approval/executions/a1/events", None).await;
        assert_eq!(events.status, if who == "robot" { 404 } else { 200 }, "{who}");
    }
    let refused = site.ask("ann", "GET /workflows/executions?userId=ben&limit=0", None).await;
    assert_eq!(refused.status, 400, "invalid for all callers");
}

#[actix_web::test]
async fn bulk_operations_reach_executions_of_the_caller() {
    let site = owned().await;
    for (who, id) in [("ann", "a1"), ("ben", "b1"), ("ann", "a2")] {
        site.approval(who, id).await;
    }
    let path = "POST /workflows/executions/bulk";
    let named = json!({ "action": "cancel", "executionIds": ["a1", "b1"] });
    let refused = site.ask("robot", path, Some(&named)).await;
    assert_eq!(refused.status, 403, "a caller without an id has no executions");
    let done = site.data_for("ann", path, Some(&named)).await;
    let failures = json!([{ "executionId": "b1", "message": "execution not found" }]);
    assert_eq!((&done["result"]["done"], &done["result"]["failures"]), (&json!(1), &failures));
    let all = json!({ "action": "cancel" });
    for (query, done) in [("?userId=ben", 0), ("?status=suspended", 1)] {
        let of = site.data_for("ann", &format!("{path}{query}"), Some(&all)).await;
        assert_eq!(of["result"]["done"], done, "{query}");
    }
    let state = "GET /workflows/approval/executions/b1/state";
    assert_eq!(site.data_for("ben", state, None).await["status"], "suspended");
    let operation = done["executionId"].as_str().unwrap();
    let state = format!("GET /workflows/greenroom.bulk/executions/{operation}/state");
    assert_eq!(site.ask("ben", &state, None).await.status, 404, "the operation is hers as well");
    assert_eq!(
        site.data_for("eve", &format!("{path}?status=suspended"), Some(&all)).await["result"]["done"],
        1
    );
}

#[actix_web::test]
async fn generations_are_of_their_user() {
    let site = owned().await;
    let mut ids = Vec::new();
    for who in ["ann", "ben", "ann", "robot"] {
        let body = json!({ "input": format!("of {who}") });
        let answer = site.ask(who, "POST /agents/assistant/text", Some(&body)).await;
        ids.push(answer.header("x-generation-id").unwrap().to_owned());
    }
    let rows = [
        ("ann", "?limit=1", 1, json!({ "page": 0, "limit": 1, "total": 2, "totalPages": 2 })),
        ("ann", "?page=5", 0, json!({ "page": 5, "limit": 10, "total": 2, "totalPages": 1 })),
        ("ben", "", 1, json!({ "page": 0, "limit": 10, "total": 1, "totalPages": 1 })),
        ("robot", "", 0, json!({ "page": 0, "limit": 10, "total": 0, "totalPages": 0 })),
        ("eve", "", 4, json!({ "page": 0, "limit": 10, "total": 4, "totalPages": 1 })),
    ];
    for (who, query, count, pagination) in rows {
        let path = format!("GET /agents/assistant/history{query}");
        let page = site.data_for(who, &path, None).await;
        assert_eq!(page["pagination"], pagination, "{who}");
        let entries = page["entries"].as_array().unwrap();
        assert_eq!(entries.len(), count, "{who}");
        let is_own = |entry: &Value| who == "eve" || entry["userId"] == *who;
        assert!(entries.iter().all(is_own), "{who}: {entries:?}");
    }
    let cancel = async |who: &str, id: &str, body: &str| {
        let path = format!("/agents/assistant/generations/{id}/cancel");
        site.send("POST", &path, &bearer(who), Some(body)).await
    };
    // Of the same length, since that changes the length of the answer.
    let none = "x".repeat(ids[0].len());
    for body in ["", "{}", "{"] {
        let missing = cancel("ben", &none, body).await;
        for stranger in ["ben", "robot"] {
            let answer = cancel(stranger, &ids[0], body).await;
            assert_eq!(
                observable(&answer, &ids[0]),
                observable(&missing, &none),
                "{stranger} {body}"
            );
        }
    }
    for who in ["ann", "eve"] {
        let own = cancel(who, &ids[0], "").await;
        assert_eq!(own.status, 400, "it has ended: {}", own.body);
        assert_eq!(own.header("x-generation-id"), Some(&*ids[0]));
    }
}

/// Returns the status of a streamed answer, without waiting for its end.
async fn status_of(site: &Site, head: &str, body: &str) -> (String, TcpStream) {
    let mut stream = site.connect().await;
    let (host, length) = (site.address, body.len());
    let request = format!("{head}host: {host}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    let reading = stream.read_exact(&mut status);
    timeout(PATIENCE, reading).await.unwrap().unwrap();
    (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
}

#[actix_web::test]
async fn a_chat_of_another_cannot_be_picked_up() {
    let mut registry = registry();
    let agent = registry.agents.get_mut("assistant").unwrap();
    Arc::make_mut(agent).is_resumable = true;
    let config = WebConfig { binding: binding(Some("admin")), ..WebConfig::default() };
    let site = Site::over(config, registry).await;
    let attach = async |who: &str, user: &str| {
        let path = format!("/agents/assistant/chat/c/stream{user}");
        status_of(&site, &format!("GET {path} HTTP/1.1\r\n{}", bearer(who)), "").await.0
    };
    let body = "{\"input\":\"slow\",\"options\":{\"conversationId\":\"c\"}}";
    let mut chats = Vec::new();
    for who in ["robot", "ann"] {
        let mut chat = site.connect().await;
        let head = format!("POST /agents/assistant/chat HTTP/1.1\r\n{}", bearer(who));
        let request =
            format!("{head}host: {}\r\ncontent-length: {}\r\n\r\n", site.address, body.len());
        chat.write_all((request + body).as_bytes()).await.unwrap();
        chats.push(chat);
    }
    let begun = async { while attach("ann", "").await != "200" {} };
    timeout(PATIENCE, begun).await.unwrap();
    let rows = [
        ("ann", "", "200"),
        ("ann", "?userId=ben", "200"),
        ("ben", "", "204"),
        ("ben", "?userId=ann", "204"),
        ("robot", "", "204"),
        ("eve", "", "204"),
        ("eve", "?userId=ann", "200"),
    ];
    for (who, user, status) in rows {
        assert_eq!(attach(who, user).await, status, "{who} {user}");
    }
    assert_eq!(chats.len(), 2);
}

async fn observe(site: &Site, who: &str) -> Socket {
    let url = format!("ws://{}/ws/observability?userId=ann", site.address);
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer {who}").parse().unwrap();
    request.headers_mut().insert("authorization", token);
    let mut socket = connect_async(request).await.unwrap().0;
    assert_eq!(next(&mut socket).await["type"], "CONNECTION_SUCCESS");
    socket
}

/// Returns the users of workflows that end, up to one of `last`.
async fn users_until(socket: &mut Socket, last: &str) -> Vec<String> {
    let mut users = Vec::new();
    loop {
        let event = next(socket).await;
        let span = &event["data"]["span"];
        if event["data"]["type"] == "span:end" && span["name"] == "invoke_workflow noop" {
            let user = span["attributes"]["user.id"].as_str().unwrap_or("anonymous").to_owned();
            users.push(user);
            if users.last().is_some_and(|user| user == last) {
                return users;
            }
        }
    }
}

#[actix_web::test]
async fn observers_see_the_traces_of_their_user_and_cannot_ask_for_more() {
    let site = owned().await;
    let mut sockets = Vec::new();
    for who in ["ann", "eve", "ben"] {
        sockets.push(observe(&site, who).await);
    }
    let wide = "{\"type\":\"SUBSCRIBE\",\"entityType\":\"workflow\",\"userId\":\"ann\",\
                \"visibility\":\"Everything\"}";
    sockets[2].send(Message::text(wide)).await.unwrap();
    assert_eq!(next(&mut sockets[2]).await["type"], "SUBSCRIPTION_SUCCESS");
    let body = json!({ "input": { "n": 1 } });
    for who in ["ann", "robot", "carl", "ann", "ben"] {
        site.data_for(who, "POST /workflows/noop/execute", Some(&body)).await;
    }
    site.data_for("ann", "POST /workflows/noop/execute", Some(&body)).await;
    site.data_for("ben", "POST /workflows/noop/execute", Some(&body)).await;
    let expected: [(&str, &[&str]); 3] = [
        ("ann", &["ann", "ann", "ann"]),
        ("eve", &["ann", "anonymous", "carl", "ann", "ben", "ann", "ben"]),
        ("ben", &["ben", "ben"]),
    ];
    for (socket, (who, users)) in sockets.iter_mut().zip(expected) {
        let mut seen = Vec::new();
        while seen.len() < users.len() {
            seen.extend(users_until(socket, users[users.len() - 1]).await);
        }
        assert_eq!(seen, users, "{who}");
    }
}

#[actix_web::test]
async fn keys_of_callers_without_an_id_are_refused() {
    let site = owned().await;
    let body = json!({ "input": { "n": 1 } }).to_string();
    for (who, status) in [("ann", 200), ("robot", 400), ("eve", 200)] {
        let headers = format!("{}idempotency-key: k\r\n", bearer(who));
        let answer = site.send("POST", "/workflows/noop/execute", &headers, Some(&body)).await;
        assert_eq!(answer.status, status, "{who}: {}", answer.body);
        let text = "Invalid header Idempotency-Key: needs a token with the id of a user";
        assert_eq!(answer.body.contains(text), status == 400, "{}", answer.body);
    }
}
