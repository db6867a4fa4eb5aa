//! The baseline: actix-web, a parsed body, a group commit, an answer of greenroom's shape. No
//! actors, expressions, schemas, events or lists; nothing could be resumed from its store.

use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::{StreamExt as _, stream};
use greenroom_actors::domain::usage::Usage;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Outcome;
use crate::commits::Commits;
use crate::records::{Change, Record};
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

/// Serves with a store in a database, or else in the working directory. Blocks.
pub(crate) fn serve(database: Option<&str>) -> Outcome<()> {
    let commits = match database {
        Some(url) => Commits::in_database(url)?,
        None => Commits::in_file(Path::new("bare.db"))?,
    };
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
        Ok(server.await?)
    })
}

/// Executes three steps. In SQLite five rows: started, three steps, completed.
async fn noop3(body: web::Json<Execute>, commits: web::Data<Commits>) -> HttpResponse {
    let input = body.into_inner().input;
    let Some(n) = input["n"].as_i64() else { return HttpResponse::BadRequest().finish() };
    let (id, at) = (commits.new_id(), SystemClock.now());
    let result = json!({ "n": n + 3 });
    let record = Record { id: id.clone(), at, change: Change::Noop3 { input, n } };
    if !commits.add(record).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": at.to_iso(), "endAt": now(),
        "status": "completed", "result": result }))
}

/// Suspends. In SQLite three rows: started, step begun, suspended.
async fn suspend(body: web::Json<Execute>, commits: web::Data<Commits>) -> HttpResponse {
    let input = body.into_inner().input;
    let (id, at) = (commits.new_id(), SystemClock.now());
    let start = at.to_iso();
    let amount = &input["amount"];
    let reason = format!("{} asks for {amount}", input["employee"]);
    let suspension = json!({ "suspendedAt": start, "reason": reason, "suspendedStepIndex": 0,
        "stepId": "manager", "path": "manager", "payload": { "amount": amount } });
    let change = Change::Suspend { input, reason, suspension: suspension.clone() };
    if !commits.add(Record { id: id.clone(), at, change }).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": start, "endAt": null, "status": "suspended",
        "result": null, "suspension": suspension }))
}

/// Resumes. In SQLite three rows: resumed, step completed, completed.
async fn resume(
    path: web::Path<String>,
    body: web::Json<Resume>,
    commits: web::Data<Commits>,
) -> HttpResponse {
    let id: Arc<str> = path.into_inner().into();
    let (at, data) = (SystemClock.now(), body.into_inner().resume_data);
    let is_approved = data["approved"] == true;
    let result = json!({ "status": if is_approved { "paid" } else { "refused" } });
    let change = Change::Resume { data, result: result.clone() };
    if !commits.add(Record { id: id.clone(), at, change }).await {
        return HttpResponse::ServiceUnavailable().finish();
    }
    answer(&json!({ "executionId": &*id, "startAt": at.to_iso(), "endAt": now(),
        "status": "completed", "result": result }))
}

/// Repeats the prompt. One row with both.
async fn text(
    agent: web::Path<String>,
    body: web::Json<Generate>,
    commits: web::Data<Commits>,
) -> HttpResponse {
    let text = body.into_inner().input;
    let usage = usage_of(&text);
    let record = generated(commits.new_id(), agent.into_inner(), text.clone(), usage);
    if !commits.add(record).await {
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
    let (usage, id) = (usage_of(&text), commits.new_id());
    let mut events = vec![event(1, &json!({ "type": "start", "messageId": &*id }))];
    let deltas = (2..).zip(text.split_inclusive(' '));
    events.extend(deltas.map(|(number, delta)| {
        event(number, &json!({ "type": "text-delta", "id": "0", "delta": delta, "text": delta }))
    }));
    let last = event(
        events.len() + 1,
        &json!({ "type": "finish", "finishReason": "stop", "usage": usage }),
    );
    let record = generated(id, agent.into_inner(), text, usage);
    let finish = async move {
        let is_durable = commits.add(record).await;
        is_durable.then_some(last).ok_or_else(|| io::Error::other("not durable"))
    };
    let body = stream::iter(events).map(Ok).chain(stream::once(finish));
    HttpResponse::Ok().content_type("text/event-stream").streaming(body)
}

/// Returns the usage of an answer that repeats its prompt.
fn usage_of(text: &str) -> Usage {
    let words = text.split_whitespace().count() as u64;
    Usage {
        prompt_tokens: words,
        completion_tokens: words,
        total_tokens: 2 * words,
        ..Usage::default()
    }
}

fn generated(id: Arc<str>, agent: String, text: String, usage: Usage) -> Record {
    Record { id, at: SystemClock.now(), change: Change::Generate { agent, text, usage } }
}

fn event(number: usize, data: &Value) -> Bytes {
    Bytes::from(format!("id: {number}\ndata: {data}\n\n"))
}

fn answer(data: &Value) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "success": true, "data": data }))
}

/// Current time in the format of answers.
fn now() -> String {
    SystemClock.now().to_iso()
}
