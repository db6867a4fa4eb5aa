//! Log records over WebSockets.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::SinkExt;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::observe::span::EntityType;
use greenroom_actors::ports::clock::Clock as _;
use greenroom_actors::ports::store::Logs as _;
use tokio_tungstenite::tungstenite::Message;

use super::sockets::{Socket, next, open};
use super::*;

fn record(level: LogLevel, message: &str, scope: LogScope) -> Arc<LogRecord> {
    Arc::new(LogRecord {
        at: SystemClock.now(),
        level,
        target: "test".into(),
        message: message.to_owned(),
        attributes: Vec::new(),
        scope: Arc::new(scope),
    })
}

/// A record of the server itself.
fn plain(message: &str) -> Arc<LogRecord> {
    record(LogLevel::Info, message, LogScope::default())
}

impl Site {
    /// Does what whoever keeps the records does: first the store, then whoever listens.
    async fn tell(&self, batch: Vec<Arc<LogRecord>>) {
        self.store.write_logs(batch.clone()).await.unwrap();
        self.runtime.publish_logs(batch.into());
    }
}

async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

fn messages(frame: &Value) -> Vec<&str> {
    frame["logs"].as_array().unwrap().iter().map(|log| log["msg"].as_str().unwrap()).collect()
}

/// The messages of the next frame, which must be of this type.
async fn told(socket: &mut Socket, kind: &str) -> Vec<String> {
    let frame = next(socket).await;
    assert_eq!(frame["type"], kind, "{frame}");
    assert!(frame["timestamp"].is_string(), "{frame}");
    messages(&frame).into_iter().map(str::to_owned).collect()
}

#[actix_web::test]
async fn the_log_comes_as_it_is_and_then_as_it_is_written() {
    let site = Site::start(WebConfig::default()).await;
    let mut early = open(&site, "/ws/logs").await;
    assert!(told(&mut early, "initial").await.is_empty());
    site.tell(["a", "b", "c"].map(plain).into()).await;
    for message in ["a", "b", "c"] {
        assert_eq!(told(&mut early, "update").await, [message]);
    }
    let mut late = open(&site, "/ws/logs?limit=2").await;
    assert_eq!(told(&mut late, "initial").await, ["b", "c"], "the newest last");
    site.tell(vec![plain("d")]).await;
    for socket in [&mut early, &mut late] {
        assert_eq!(told(socket, "update").await, ["d"]);
    }
}

fn of_execution(id: &str, parent: Option<&str>) -> LogScope {
    LogScope {
        execution_id: Some(ExecutionId::trusted(id)),
        parent_execution_id: parent.map(ExecutionId::trusted),
        workflow_id: Some("order".into()),
        ..LogScope::default()
    }
}

#[actix_web::test]
async fn filters_hold_for_what_was_and_for_what_comes() {
    let agent = LogScope { agent_id: Some("clerk".into()), ..LogScope::default() };
    let all = || {
        vec![
            record(LogLevel::Debug, "server", LogScope::default()),
            record(LogLevel::Info, "clerk", agent.clone()),
            record(LogLevel::Warn, "e1", of_execution("e1", None)),
            record(LogLevel::Error, "e2", of_execution("e2", Some("e1"))),
        ]
    };
    let rows: [(&str, Value, &[&str]); 10] = [
        ("", json!({}), &["server", "clerk", "e1", "e2"]),
        ("level=warn", json!({ "level": "warn" }), &["e1", "e2"]),
        ("level=fatal", json!({ "level": "fatal" }), &[]),
        ("agentId=clerk", json!({ "agentId": "clerk" }), &["clerk"]),
        ("workflowId=order", json!({ "workflowId": "order" }), &["e1", "e2"]),
        ("executionId=e1", json!({ "executionId": "e1", "limit": 9 }), &["e1", "e2"]),
        ("executionId=e2", json!({ "executionId": "e2", "level": null }), &["e2"]),
        ("executionId=e1&level=error", json!({ "executionId": "e1", "level": "error" }), &["e2"]),
        ("until=2020-01-01T00:00:00Z", json!({ "until": "2020-01-01T00:00:00Z" }), &[]),
        ("since=2999-01-01T00:00:00Z", json!({ "since": "2999-01-01T00:00:00Z" }), &[]),
    ];
    for (query, filter, expected) in rows {
        let site = Site::start(WebConfig::default()).await;
        site.tell(all()).await;
        let mut opened = open(&site, &format!("/ws/logs?{query}")).await;
        assert_eq!(told(&mut opened, "initial").await, expected, "{query}");
        let mut changed = open(&site, "/ws/logs?agentId=nobody").await;
        assert!(told(&mut changed, "initial").await.is_empty());
        say(&mut changed, json!({ "type": "updateFilter", "filter": filter })).await;
        assert_eq!(told(&mut changed, "initial").await, expected, "{filter}");
        site.tell(all()).await;
        for socket in [&mut opened, &mut changed] {
            for message in expected {
                assert_eq!(told(socket, "update").await, [*message], "{query}");
            }
            say(socket, json!({ "type": "nothing" })).await;
            assert_eq!(next(socket).await["type"], "ERROR", "{query}: nothing else");
        }
    }
}

#[actix_web::test]
async fn what_a_reader_of_the_log_gets_wrong_is_told() {
    let site = Site::start(WebConfig::default()).await;
    for query in
        ["level=loud", "limit=0", "limit=1001", "limit=x", "since=now", "until=", "agentId="]
    {
        let refused = site.get(&format!("/ws/logs?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.body);
    }
    let mut socket = open(&site, "/ws/logs").await;
    told(&mut socket, "initial").await;
    let wrong = [
        json!([]),
        json!({ "type": "nope" }),
        json!({ "type": "updateFilter", "filter": 5 }),
        json!({ "type": "updateFilter", "filter": { "level": "loud" } }),
        json!({ "type": "updateFilter", "filter": { "limit": true } }),
        json!({ "type": "updateFilter", "filter": { "limit": 1.5 } }),
    ];
    for message in wrong {
        say(&mut socket, message.clone()).await;
        let error = next(&mut socket).await;
        assert_eq!((&error["type"], &error["success"]), (&json!("ERROR"), &json!(false)));
        assert!(error["error"].is_string(), "{message}: {error}");
    }
    site.tell(vec![plain("still here")]).await;
    assert_eq!(told(&mut socket, "update").await, ["still here"]);
}

#[actix_web::test]
async fn nothing_is_lost_or_repeated_where_what_was_meets_what_comes() {
    const RECORDS: usize = 3_000;
    let site = Arc::new(Site::start(WebConfig::default()).await);
    let is_over = Arc::new(AtomicBool::new(false));
    let (logging, over) = (Arc::clone(&site), Arc::clone(&is_over));
    let writer = actix_web::rt::spawn(async move {
        for number in 0..RECORDS {
            logging.tell(vec![plain(&number.to_string())]).await;
            tokio::task::yield_now().await;
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut readers = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let mut socket = open(&site, "/ws/logs?limit=1000").await;
        readers.push(actix_web::rt::spawn(async move {
            let mut seen: Vec<usize> = Vec::new();
            while seen.last() != Some(&(RECORDS - 1)) {
                let frame = next(&mut socket).await;
                seen.extend(
                    messages(&frame).into_iter().map(|text| text.parse::<usize>().unwrap()),
                );
            }
            seen
        }));
    }
    writer.await.unwrap();
    assert!(readers.len() > 1, "nobody came while records were written");
    for reader in readers {
        let seen = reader.await.unwrap();
        let expected: Vec<usize> = (seen[0]..RECORDS).collect();
        assert_eq!(seen, expected);
    }
}

#[actix_web::test]
async fn observers_hear_what_is_logged_in_the_traces_that_they_asked_for() {
    let site = Site::start(WebConfig::default()).await;
    let mut all = open(&site, "/ws/observability").await;
    let mut some = open(&site, "/ws/observability?entityType=workflow&agentId=order").await;
    for socket in [&mut all, &mut some] {
        assert_eq!(next(socket).await["type"], "CONNECTION_SUCCESS");
    }
    let below = LogScope {
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
        span_id: "b7ad6b7169203331".parse().ok(),
        root_type: Some(EntityType::Workflow),
        root_id: Some("order".into()),
        agent_id: Some("clerk".into()),
        ..LogScope::default()
    };
    site.tell(vec![plain("server"), record(LogLevel::Warn, "below", below)]).await;
    let body = async |socket: &mut Socket| {
        let frame = next(socket).await;
        assert_eq!(frame["type"], "OBSERVABILITY_LOG", "{frame}");
        frame["data"].clone()
    };
    assert_eq!(body(&mut all).await["body"], "server");
    for socket in [&mut all, &mut some] {
        let data = body(socket).await;
        let rows = [
            ("body", "below"),
            ("severityText", "WARN"),
            ("traceId", "0af7651916cd43dd8448eb211c80319c"),
            ("spanId", "b7ad6b7169203331"),
        ];
        for (field, value) in rows {
            assert_eq!(data[field], value, "{data}");
        }
        assert_eq!(data["attributes"]["agentId"], "clerk");
    }
}

#[actix_web::test]
async fn a_listener_that_is_too_slow_is_told_how_much_it_has_missed() {
    let config = WebConfig { subscriber_queue: 10, ..WebConfig::default() };
    let site = Site::start(config).await;
    let mut socket = open(&site, "/ws/logs").await;
    told(&mut socket, "initial").await;
    let long = "x".repeat(10_000);
    for _ in 0..20 {
        site.tell((0..50).map(|_| plain(&long)).collect()).await;
    }
    site.tell(vec![plain("last")]).await;
    let (mut heard, mut missed) = (0, 0);
    loop {
        let frame = next(&mut socket).await;
        match frame["type"].as_str().unwrap() {
            "update" if messages(&frame) == ["last"] => break,
            "update" => heard += 1,
            "DROPPED" => missed += frame["count"].as_u64().unwrap(),
            other => panic!("{other}"),
        }
    }
    assert_eq!(heard + missed, 1000);
    assert!(missed > 0, "nothing was missed");
}
