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
    /// Stores and publishes records, as the server's logger does.
    async fn log_live(&self, batch: Vec<Arc<LogRecord>>) {
        self.store.write_logs(batch.clone()).await.unwrap();
        self.runtime.publish_logs(batch.into());
    }
}

async fn send_json(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

fn messages(frame: &Value) -> Vec<&str> {
    frame["logs"].as_array().unwrap().iter().map(|log| log["msg"].as_str().unwrap()).collect()
}

/// Returns the messages of the next frame, which must be of this type.
async fn next_logs(socket: &mut Socket, kind: &str) -> Vec<String> {
    let frame = next(socket).await;
    assert_eq!(frame["type"], kind, "{frame}");
    assert!(frame["timestamp"].is_string(), "{frame}");
    messages(&frame).into_iter().map(str::to_owned).collect()
}

#[actix_web::test]
async fn the_log_starts_with_its_newest_entries_and_continues_live() {
    let site = Site::start(WebConfig::default()).await;
    let mut early = open(&site, "/ws/logs").await;
    assert!(next_logs(&mut early, "initial").await.is_empty());
    site.log_live(["a", "b", "c"].map(plain).into()).await;
    for message in ["a", "b", "c"] {
        assert_eq!(next_logs(&mut early, "update").await, [message]);
    }
    let mut late = open(&site, "/ws/logs?limit=2").await;
    assert_eq!(next_logs(&mut late, "initial").await, ["b", "c"], "the newest last");
    site.log_live(vec![plain("d")]).await;
    for socket in [&mut early, &mut late] {
        assert_eq!(next_logs(socket, "update").await, ["d"]);
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
async fn filters_apply_to_past_and_live_records() {
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
        site.log_live(all()).await;
        let mut opened = open(&site, &format!("/ws/logs?{query}")).await;
        assert_eq!(next_logs(&mut opened, "initial").await, expected, "{query}");
        let mut changed = open(&site, "/ws/logs?agentId=unknown").await;
        assert!(next_logs(&mut changed, "initial").await.is_empty());
        send_json(&mut changed, json!({ "type": "updateFilter", "filter": filter })).await;
        assert_eq!(next_logs(&mut changed, "initial").await, expected, "{filter}");
        site.log_live(all()).await;
        for socket in [&mut opened, &mut changed] {
            for message in expected {
                assert_eq!(next_logs(socket, "update").await, [*message], "{query}");
            }
            send_json(socket, json!({ "type": "nothing" })).await;
            assert_eq!(next(socket).await["type"], "ERROR", "{query}: nothing else");
        }
    }
}

#[actix_web::test]
async fn invalid_log_filters_and_messages_are_refused() {
    let site = Site::start(WebConfig::default()).await;
    for query in
        ["level=loud", "limit=0", "limit=1001", "limit=x", "since=now", "until=", "agentId="]
    {
        let refused = site.get(&format!("/ws/logs?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.body);
    }
    let mut socket = open(&site, "/ws/logs").await;
    next_logs(&mut socket, "initial").await;
    let wrong = [
        json!([]),
        json!({ "type": "nope" }),
        json!({ "type": "updateFilter", "filter": 5 }),
        json!({ "type": "updateFilter", "filter": { "level": "loud" } }),
        json!({ "type": "updateFilter", "filter": { "limit": true } }),
        json!({ "type": "updateFilter", "filter": { "limit": 1.5 } }),
    ];
    for message in wrong {
        send_json(&mut socket, message.clone()).await;
        let error = next(&mut socket).await;
        assert_eq!((&error["type"], &error["success"]), (&json!("ERROR"), &json!(false)));
        assert!(error["error"].is_string(), "{message}: {error}");
    }
    site.log_live(vec![plain("still here")]).await;
    assert_eq!(next_logs(&mut socket, "update").await, ["still here"]);
}

#[actix_web::test]
async fn nothing_is_lost_or_repeated_between_history_and_live_records() {
    const RECORDS: usize = 3_000;
    // room for all records: on a busy machine, a subscriber may not run while they are written
    let config = WebConfig {
        subscriber_queue: RECORDS,
        subscriber_queue_bytes: RECORDS * 10_000,
        subscribers_bytes_max: usize::MAX,
        ..WebConfig::default()
    };
    let site = Arc::new(Site::start(config).await);
    let is_over = Arc::new(AtomicBool::new(false));
    let (logging, over) = (Arc::clone(&site), Arc::clone(&is_over));
    let writer = actix_web::rt::spawn(async move {
        for number in 0..RECORDS {
            logging.log_live(vec![plain(&number.to_string())]).await;
            tokio::task::yield_now().await;
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut subscribers = Vec::new();
    for limit in [1, 10, 1000].into_iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut socket = open(&site, &format!("/ws/logs?limit={limit}")).await;
        subscribers.push(actix_web::rt::spawn(async move {
            let mut frames = vec![numbers(&next(&mut socket).await)];
            while frames.last().is_none_or(|last| last.last() != Some(&(RECORDS - 1))) {
                frames.push(numbers(&next(&mut socket).await));
            }
            (frames.remove(0), frames.concat())
        }));
    }
    writer.await.unwrap();
    assert!(subscribers.len() > 1, "no subscriber connected while records were written");
    for subscriber in subscribers {
        let (initial, live) = subscriber.await.unwrap();
        for part in [&initial, &live] {
            assert!(part.is_sorted(), "{part:?}");
        }
        // the first frame may leave out records that were written while it was read
        let mut seen = [initial, live].concat();
        seen.sort_unstable();
        let expected: Vec<usize> = (seen[0]..RECORDS).collect();
        assert_eq!(seen, expected);
    }
}

fn numbers(frame: &Value) -> Vec<usize> {
    messages(frame).into_iter().map(|text| text.parse().unwrap()).collect()
}

#[actix_web::test]
async fn observers_get_the_log_records_of_their_traces() {
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
    site.log_live(vec![plain("server"), record(LogLevel::Warn, "below", below)]).await;
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
async fn a_slow_subscriber_gets_the_number_of_dropped_records() {
    let config = WebConfig { subscriber_queue: 10, ..WebConfig::default() };
    let site = Site::start(config).await;
    let mut socket = open(&site, "/ws/logs").await;
    next_logs(&mut socket, "initial").await;
    let long = "x".repeat(10_000);
    for _ in 0..20 {
        site.log_live((0..50).map(|_| plain(&long)).collect()).await;
    }
    site.log_live(vec![plain("last")]).await;
    let (mut received, mut missed) = (0, 0);
    loop {
        let frame = next(&mut socket).await;
        match frame["type"].as_str().unwrap() {
            "update" if messages(&frame) == ["last"] => break,
            "update" => received += 1,
            "DROPPED" => missed += frame["count"].as_u64().unwrap(),
            other => panic!("{other}"),
        }
    }
    assert_eq!(received + missed, 1000);
    assert!(missed > 0, "nothing was missed");
}
