//! Servers over parts of a program.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::ids::ExecutionId;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::builder::{Step, Suspend, Workflow};
use crate::runtime::{
    AnswerAsk, AskError, Clock, Principal, ResumeError, Status, SystemClock, Timestamp, Visibility,
};
use crate::store::{Executions as _, MemoryStore};
use crate::{Greenroom, Server};

/// A time long ago.
const THEN: Timestamp = Timestamp(1_000_000_000_000);

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        THEN
    }

    fn new_id(&self) -> Arc<str> {
        SystemClock.new_id()
    }
}

fn over(store: &Arc<MemoryStore>) -> Greenroom {
    let noop = Workflow::new("noop").step(Step::map("a", json!({ "n": "input.n + 1" })));
    Greenroom::new()
        .configure(|config| config.server.port = 0)
        .store(Arc::clone(store) as _)
        .clock(Arc::new(Stopped))
        .workflow(noop)
}

#[tokio::test]
async fn a_server_keeps_everything_in_the_programs_store_and_dates_it_by_its_clock() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store).start().await.unwrap();
    let run = server.handle().start("noop", &json!({ "n": 1 })).execution_id("one").await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!({ "n": 2 }));

    let mut connection = TcpStream::connect(server.handle().address()).await.unwrap();
    let request =
        "GET /observability/status HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let storage = ["storage", "storagePersistent"].map(|key| body["data"][key].clone());
    assert_eq!(storage, [json!("memory"), json!(false)], "{body}");
    server.stop().await.unwrap();

    let stored = store.describe(&ExecutionId::trusted("one")).await.unwrap().unwrap();
    assert_eq!((stored.header.created_at, stored.ended_at), (THEN, Some(THEN)));

    let server = over(&store).start().await.unwrap();
    let result = server.handle().run("noop", "one").result().await.unwrap();
    assert_eq!(result, json!({ "n": 2 }), "the next server finds it there");
    server.stop().await.unwrap();
}

#[test]
fn a_store_that_servers_would_share_is_refused() {
    let clustered = over(&Arc::default())
        .configure(|config| config.cluster.listen = Some("127.0.0.1:0".parse().unwrap()));
    let refused = clustered.checked().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cluster.listen: servers share a database of PostgreSQL, and this program has a store of \
         its own"
    );
}

/// Sends a request, and returns the status and the body of the answer.
async fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let mut connection = TcpStream::connect(server.handle().address()).await.unwrap();
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap())
}

/// Returns a server with a workflow that asks, and a check that lets only `true` pass.
fn guarded() -> Greenroom {
    let ask = Step::map("ask", json!("resume")).suspend(Suspend::when("true"));
    let late = Suspend::when("true").deadline(Duration::from_millis(1)).on_timeout_resume(json!(2));
    over(&Arc::default())
        .clock(Arc::new(SystemClock))
        .workflow(Workflow::new("asks").step(ask))
        .workflow(Workflow::new("late").step(Step::map("ask", json!("resume")).suspend(late)))
        .on_answer(|answer| async move {
            let of = (answer.workflow_id.as_deref(), answer.execution_id.as_ref());
            assert_eq!(of, (Some("asks"), Some(&ExecutionId::trusted("one"))));
            if answer.data["panics"] == json!(true) {
                panic!("a defect");
            }
            let (ask, by) = (answer.ask.is_some(), answer.by.map(|by| by.id.to_string()));
            match *answer.data == json!(true) {
                true => Ok(()),
                false => Err(format!("no; ask {ask}, by {by:?}, step {:?}", answer.step)),
            }
        })
}

#[tokio::test]
async fn a_program_checks_answers_at_every_door() {
    let server = guarded().start().await.unwrap();
    let run = server.handle().start("asks", &json!({})).execution_id("one").await.unwrap();
    assert_eq!(run.settled().await.unwrap().status, Status::Suspended);
    let handle = server.handle();
    let runtime = handle.runtime();
    let waits = run.state().await.unwrap().suspensions[0].id.clone().unwrap();
    let ask = runtime.find_ask(&format!("ask_{waits}"), &Visibility::Everything).await.unwrap();

    let resume = "/workflows/asks/executions/one/resume";
    let answer = format!("/inbox/{}/answer", ask.id);
    let no =
        |ask, step: &str| format!("The answer was refused: no; ask {ask}, by None, step {step}");
    let failed = "The answer was refused: it could not be checked; the log of the server has the \
                  reason";
    for (path, body, text) in [
        (resume, json!({ "resumeData": 1 }), no(true, "Some(\"ask\")")),
        (resume, json!({ "resumeData": { "panics": true } }), failed.to_owned()),
        (&answer, json!({ "data": 1 }), no(true, "Some(\"ask\")")),
        (&answer, json!({ "data": { "panics": true } }), failed.to_owned()),
    ] {
        let (status, refusal) = post(&server, path, &body).await;
        assert_eq!((status, &refusal["error"]), (403, &json!(text)));
    }
    let refused = run.resume(&1).await.unwrap_err();
    assert_eq!(
        refused,
        ResumeError::Refused("no; ask true, by None, step Some(\"ask\")".to_owned())
    );
    let given = AnswerAsk { by: Some(Principal::verified("ann")), ..AnswerAsk::default() };
    let refused = runtime.answer_ask(ask.clone(), given).await.unwrap_err();
    let said = "no; ask true, by Some(\"ann\"), step Some(\"ask\")".to_owned();
    assert_eq!(refused, AskError::Refused(said));
    assert_eq!(run.state().await.unwrap().status, Status::Suspended);

    let (status, _) = post(&server, &answer, &json!({ "data": true })).await;
    assert_eq!((status, run.result().await.unwrap()), (200, json!(true)));
    let late = server.handle().start("late", &json!({})).await.unwrap();
    assert_eq!(late.result().await.unwrap(), json!(2), "no answer, no check");
    server.stop().await.unwrap();
}

#[test]
fn only_one_check_decides() {
    let twice = guarded().on_answer(|_| async { Ok(()) });
    assert_eq!(
        twice.checked().unwrap_err().to_string(),
        "on_answer is set twice: one check decides"
    );
}
