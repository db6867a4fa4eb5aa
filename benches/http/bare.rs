//! The baseline: actix-web, a parsed body, a group commit, an answer of greenroom's shape. No
//! actors, expressions, schemas, events or lists; nothing could be resumed from its store.

use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::{StreamExt as _, stream};
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::commits::{Commits, Row};
use crate::server::LISTENS;

/// Argument that makes this program the bare server.
pub(crate) const ARGUMENT: &str = "--bare";

#[derive(Deserialize)]
struct Execute {
    input: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resume {
    resume_data: Value,
}

#[derive(Deserialize)]
struct Generate {
    input: String,
}

/// Serves with a store in the working directory. Blocks.
pub(crate) fn serve() -> io::Result<()> {
    let commits = Commits::open(Path::new("bare.db")).map_err(io::Error::other)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let workers = std::thread::available_parallelism()?.get();
    let commits = web::Data::new(commits);
    actix_web::rt::System::new().block_on(async move {
        let server = HttpServer::new(move || {
            App::new()
                .app_data(commits.clone())
                .route("/workflows/noop3/execute", web::post().to(noop3))
                .route("/workflows/approval/execute", web::post().to(suspend))
                .route("/workflows/approval/executions/{execution}/resume", web::post().to(resume))
                .route("/agents/{agent}/text", web::post().to(text))
                .route("/agents/{agent}/stream", web::post().to(stream))
        })
        .workers(workers)
        .tcp_nodelay(true)
        .listen(listener)?
        .run();
        writeln!(io::stderr(), "bare {LISTENS}{address}")?;
        server.await
    })
}

/// Five rows: started, three steps, completed.
async fn noop3(body: web::Json<Execute>, commits: web::Data<Commits>) -> HttpResponse {
    let Some(n) = body.input["n"].as_i64() else { return HttpResponse::BadRequest().finish() };
    let (id, start) = (new_id(), now());
    let mut rows = vec![row(0, "started", &body.input)];
    let steps = (1..=3).map(|step| row(step, "step-completed", &json!({ "n": n + step })));
    rows.extend(steps);
    let result = json!({ "n": n + 3 });
    rows.push(row(4, "completed", &result));
    if !commits.add(id.clone(), rows).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": start, "endAt": now(),
        "status": "completed", "result": result }))
}

/// Three rows: started, step begun, suspended.
async fn suspend(body: web::Json<Execute>, commits: web::Data<Commits>) -> HttpResponse {
    let (id, start) = (new_id(), now());
    let amount = &body.input["amount"];
    let reason = format!("{} asks for {amount}", body.input["employee"]);
    let suspension = json!({ "suspendedAt": start, "reason": reason, "suspendedStepIndex": 0,
        "stepId": "manager", "path": "manager", "payload": { "amount": amount } });
    let rows = vec![
        row(0, "started", &body.input),
        row(1, "step-started", &json!({ "step": "manager" })),
        row(2, "suspended", &suspension),
    ];
    if !commits.add(id.clone(), rows).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": start, "endAt": null, "status": "suspended",
        "result": null, "suspension": suspension }))
}

/// Three rows: resumed, step completed, completed.
async fn resume(
    path: web::Path<String>,
    body: web::Json<Resume>,
    commits: web::Data<Commits>,
) -> HttpResponse {
    let id: Arc<str> = path.into_inner().into();
    let start = now();
    let is_approved = body.resume_data["approved"] == true;
    let result = json!({ "status": if is_approved { "paid" } else { "refused" } });
    let rows = vec![
        row(3, "resumed", &body.resume_data),
        row(4, "step-completed", &json!({ "approved": is_approved })),
        row(5, "completed", &result),
    ];
    if !commits.add(id.clone(), rows).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": start, "endAt": now(),
        "status": "completed", "result": result }))
}

/// One row with prompt and answer.
async fn text(
    agent: web::Path<String>,
    body: web::Json<Generate>,
    commits: web::Data<Commits>,
) -> HttpResponse {
    let text = body.into_inner().input;
    let (usage, row) = generated(&agent, &text);
    if !commits.add(new_id(), vec![row]).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "text": text, "usage": usage, "finishReason": "stop",
        "toolCalls": [], "toolResults": [] }))
}

/// One row, durable before the last event. Events leave one by one, as their words would come.
async fn stream(
    agent: web::Path<String>,
    body: web::Json<Generate>,
    commits: web::Data<Commits>,
) -> HttpResponse {
    let text = body.into_inner().input;
    let (usage, row) = generated(&agent, &text);
    let id = new_id();
    let mut events = vec![event(1, &json!({ "type": "start", "messageId": &*id }))];
    let deltas = (2..).zip(text.split_inclusive(' '));
    events.extend(deltas.map(|(number, delta)| {
        event(number, &json!({ "type": "text-delta", "id": "0", "delta": delta, "text": delta }))
    }));
    let last = event(
        events.len() + 1,
        &json!({ "type": "finish", "finishReason": "stop", "usage": usage }),
    );
    let finish = async move {
        let is_durable = commits.add(id, vec![row]).await;
        is_durable.then_some(last).ok_or_else(|| io::Error::other("not durable"))
    };
    let body = stream::iter(events).map(Ok).chain(stream::once(finish));
    HttpResponse::Ok().content_type("text/event-stream").streaming(body)
}

/// Returns the usage of an answer that repeats its prompt, and the row that records both.
fn generated(agent: &str, text: &str) -> (Value, Row) {
    let words = text.split_whitespace().count();
    let usage = json!({ "promptTokens": words, "completionTokens": words,
        "totalTokens": 2 * words, "cachedInputTokens": 0, "reasoningTokens": 0 });
    let record = json!({ "agent": agent, "input": text, "text": text, "usage": usage });
    (usage, row(0, "generated", &record))
}

fn event(number: usize, data: &Value) -> Bytes {
    Bytes::from(format!("id: {number}\ndata: {data}\n\n"))
}

fn answer(data: &Value) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "success": true, "data": data }))
}

fn row(seq: i64, kind: &'static str, body: &Value) -> Row {
    Row { seq, kind, body: body.to_string() }
}

fn new_id() -> Arc<str> {
    Uuid::new_v4().to_string().into()
}

/// Current time in the format of answers.
fn now() -> String {
    SystemClock.now().to_iso()
}
