//! Routes of the server itself, its documentation and its WebSockets, and added routes.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{frames, observability, parts};
use crate::api::catalogue::{Answer, Method, Route};
use crate::api::error::{ApiError, SystemFailure};
use crate::api::query::PERMISSIONS_MAX;
use crate::api::setup::KEY_CHARS_MAX;
use crate::api::wire::caller::CallerView;
use crate::api::wire::system::{InstalledView, SetupView, UpdatesView};
use crate::maintenance::{IndexError, InstallError};

pub(super) fn landing() -> Described {
    Described::new("landing").answering(200, parts::text_answer("A page", "text/html"))
}

pub(super) fn whoami(components: &mut Components) -> Described {
    let data = components.answer::<CallerView<'_>>();
    let request = json!({
        "type": "array", "maxItems": PERMISSIONS_MAX,
        "items": { "type": "string", "pattern": "^(GET|HEAD|POST|PUT|PATCH|DELETE) /" },
    });
    Described::new("whoAmI")
        .about(
            "The user of the token, and whether the rules of access allow these requests. One that is \
             allowed can still be refused for its content, or because it is about the data of others.",
        )
        .with_query([parts::query(
            "request",
            "Method and path of a request, as in `POST /workflows/order/execute`; repeated for several",
            request,
        )])
        .answering(200, parts::json_answer("The caller", data))
}

/// Returns the response for clients that have the newest version.
fn unchanged() -> Value {
    let about = "The version of `If-None-Match` is the newest";
    parts::response(about, Value::Null, &[("etag", parts::ETAG)])
}

/// Adds a response that is sent only to clients without the newest version.
fn cacheable(described: Described, about: &str, content: Value) -> Described {
    let tags = json!({ "type": "string" });
    described
        .with([parts::header("If-None-Match", "`ETag` of the version that the client has", tags)])
        .answering(200, parts::response(about, content, &[("etag", parts::ETAG)]))
        .answering(304, unchanged())
}

/// Returns the redirect of an address with a missing or superfluous trailing slash.
fn redirect() -> Value {
    parts::response("The address has moved", Value::Null, &[("location", parts::LOCATION)])
}

pub(super) fn document() -> Described {
    let content = json!({ "application/json": { "schema": {
        "type": "object", "required": ["openapi", "info", "paths"],
        "properties": { "openapi": { "const": "3.1.0" }, "info": { "type": "object" },
                        "paths": { "type": "object" } },
    } } });
    cacheable(Described::new("apiDocument").about("Without an envelope."), "This document", content)
}

pub(super) fn browse() -> Described {
    cacheable(Described::new("browseApi"), "A page", html())
        .about("An address with a trailing slash is redirected.")
        .answering(308, redirect())
}

pub(super) fn browse_file() -> Described {
    let text = || json!({ "schema": { "type": "string" } });
    let content = json!({
        "text/html": text(), "text/css": text(), "text/javascript": text(),
        "image/png": { "schema": { "type": "string", "contentMediaType": "image/png" } },
    });
    let described = Described::new("browseApiFile")
        .with([parts::path("file", "Name of the file", parts::any_id())])
        .refusing([not_found("/ui/missing.css")]);
    cacheable(described, "The file", content)
}

pub(super) fn console() -> Described {
    cacheable(Described::new("console"), "The page of the console", html())
}

pub(super) fn console_place() -> Described {
    let described = Described::new("consolePlace")
        .with([parts::path("tail", "What is shown", json!({ "type": "string" }))])
        .about("The page of the console, which shows what the path names.")
        .refusing([not_found("/console/assets/missing/")]);
    cacheable(described, "The page of the console", html())
}

pub(super) fn console_asset() -> Described {
    let text = || json!({ "schema": { "type": "string" } });
    let content = json!({
        "text/css": text(), "text/javascript": text(), "image/svg+xml": text(), "text/plain": text(),
    });
    let described = Described::new("consoleAsset")
        .with([parts::path("file", "Name of the file", parts::any_id())])
        .refusing([not_found("/console/assets/missing.css")]);
    cacheable(described, "The file", content)
}

fn html() -> Value {
    json!({ "text/html": { "schema": { "type": "string" } } })
}

fn not_found(path: &str) -> ApiError {
    ApiError::PathNotFound { method: "GET".to_owned(), path: path.to_owned() }
}

/// Describes a probe, which answers for every host.
fn probe(operation_id: &'static str, pattern: &str) -> (Described, Value) {
    let schema = json!({ "type": "string", "pattern": pattern });
    let content = json!({ "text/plain": { "schema": schema } });
    let mut described = Described::new(operation_id);
    described.refusals.retain(|refusal| *refusal != ApiError::HostNotAllowed);
    (described, content)
}

pub(super) fn live() -> Described {
    let (described, content) = probe("live", "^ok\n$");
    described.answering(200, parts::response("The process responds", content, &[]))
}

pub(super) fn ready() -> Described {
    let (described, content) = probe("ready", "^(not )?ready\n");
    described
        .answering(200, parts::response("The server accepts new work", content.clone(), &[]))
        .answering(503, parts::response("The server accepts no new work", content, &[]))
}

pub(super) fn metrics() -> Described {
    let content = json!({ "text/plain": { "schema": { "type": "string" } } });
    Described::new("metrics")
        .about("In the text format of Prometheus.")
        .answering(200, parts::response("All metrics", content, &[]))
}

pub(super) fn check_updates(components: &mut Components) -> Described {
    let data = components.answer::<UpdatesView>();
    Described::new("checkUpdates")
        .answering(200, parts::json_answer("Installed and available versions", data))
        .refusing([SystemFailure::Unchecked(IndexError::Unreachable).into()])
}

/// Describes a route that changes the installation.
fn operating(operation_id: &'static str) -> Described {
    Described::new(operation_id)
        .about("Only for callers on this machine, or with a token.")
        .refusing([ApiError::LocalOnly])
}

pub(super) fn install_updates(components: &mut Components) -> Described {
    let data = components.answer::<InstalledView>();
    let name = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 200,
                       "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
                       "description": "The name of this program; others are not found" });
    let body = json!({ "type": "object", "properties": { "packageName": name } });
    let failures = [
        SystemFailure::NoCommand,
        SystemFailure::UnknownPackage("left-pad".to_owned()),
        SystemFailure::Installing,
        SystemFailure::NotInstalled(InstallError::ExitCode(1)),
    ];
    operating("installUpdates")
        .with_body(body, false, json!({}))
        .answering(201, parts::json_answer("The update is installed", data))
        .refusing(failures.map(ApiError::from))
        .refusing([ApiError::Draining { recorded: None }])
}

pub(super) fn set_up_observability(components: &mut Components) -> Described {
    let data = components.answer::<SetupView>();
    let key = json!({ "type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX,
                      "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" });
    let body = json!({
        "type": "object",
        "required": ["publicKey", "secretKey"],
        "properties": { "publicKey": key, "secretKey": key },
    });
    operating("setUpObservability")
        .with_body(body, true, json!({ "publicKey": "pk-1", "secretKey": "sk-1" }))
        .answering(200, parts::json_answer("The keys are saved", data))
        .refusing([SystemFailure::FileNotWritten.into()])
}

/// Describes a route that becomes a WebSocket.
fn socket(operation_id: &'static str, receives: &str, sends: &str) -> Described {
    let mut answer = parts::response("The connection becomes a WebSocket", Value::Null, &[]);
    answer["x-websocket-receives"] = parts::reference("schemas", receives);
    answer["x-websocket-sends"] = parts::reference("schemas", sends);
    Described::new(operation_id).answering(101, answer).refusing([
        ApiError::OriginNotAllowed,
        ApiError::WebSocketOnly("send Connection: Upgrade and Upgrade: websocket"),
        ApiError::InvalidHeader { name: "Sec-WebSocket-Key", what: "must be sent".to_owned() },
    ])
}

pub(super) fn echo() -> Described {
    socket("echo", frames::ECHO_MESSAGE, frames::ECHO_FRAME).about("JSON messages are echoed.")
}

pub(super) fn tail_logs() -> Described {
    socket("tailLogs", frames::LOGS_MESSAGE, frames::LOGS_FRAME)
        .with_query(observability::entry_filters("Maximum number of initial entries"))
}

pub(super) fn observe() -> Described {
    let kind = json!({ "type": "string", "enum": ["agent", "workflow"] });
    socket("observe", frames::OBSERVER_MESSAGE, frames::OBSERVER_FRAME).with_query([
        parts::query("entityType", "Only events of agents or of workflows", kind),
        parts::query(
            "entityId",
            "Only events of the agent or workflow with this id",
            parts::any_id(),
        ),
        parts::query("agentId", "Alias of `entityId`", parts::any_id()),
        parts::query("since", "Initial events: those since this time", parts::time()),
        parts::query(
            "limit",
            "Initial events: the latest, at most this many",
            parts::number(1, 1000, 100),
        ),
    ])
}

/// Describes an added route; the input and output of its handler are unknown.
pub(super) fn custom(row: &Route, index: usize) -> Described {
    let segments = row.path.split('/').filter_map(|segment| match segment {
        "*" => Some(parts::TAIL),
        other => other.strip_prefix(':'),
    });
    let text = || json!({ "type": "string" });
    let described = Described::new(format!("custom{}", index + 1))
        .with(segments.map(|name| parts::path(name, "Part of the path", text())));
    let anything = parts::response("Any response", json!({ "*/*": {} }), &[]);
    let described = match row.answer {
        Answer::Text => return files(row, described),
        Answer::Json => described.answering_else(anything),
        Answer::Events => {
            let events = json!({ "text/event-stream": { "schema": text() } });
            let events = parts::response("The events", events, &[]);
            described.answering(200, events).answering_else(anything)
        }
        Answer::WebSocket => described
            .answering(101, parts::response("The connection becomes a WebSocket", Value::Null, &[]))
            .answering_else(anything),
    };
    match row.method {
        Method::Get | Method::Delete => described,
        Method::Post | Method::Put | Method::Patch => {
            described.with_body(json!({}), false, Value::Null)
        }
    }
}

/// Describes a route of a file or folder.
fn files(row: &Route, described: Described) -> Described {
    let whole = || json!({ "*/*": {} });
    let refused = |status, text: &str| ApiError::ByHandler { status, text: text.to_owned() };
    let described = cacheable(described, "The file", whole())
        .answering(206, parts::response("Part of the file", whole(), &[]))
        .refusing([
            not_found("/files/missing.css"),
            refused(400, "The range cannot be read"),
            refused(412, "The file has changed"),
            refused(416, "The file has no such part"),
        ]);
    if row.path.ends_with('*') { described.answering(308, redirect()) } else { described }
}
