//! WebSockets, slow bodies, clients that do not read.

use futures_util::{SinkExt, StreamExt};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::*;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(super) async fn open(site: &Site, path: &str) -> Socket {
    connect_async(format!("ws://{}{path}", site.address)).await.unwrap().0
}

/// Returns the next text; skips pings.
pub(super) async fn next(socket: &mut Socket) -> Value {
    loop {
        let message = timeout(PATIENCE, socket.next()).await.unwrap();
        match message.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn send_text(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
}

#[actix_web::test]
async fn the_echo_returns_json_messages() {
    let site = Site::start(WebConfig::default()).await;
    let mut socket = open(&site, "/ws").await;
    assert_eq!(next(&mut socket).await["type"], "CONNECTION_TEST");
    send_text(&mut socket, "{\"b\": 1, \"a\": [1e3]}").await;
    assert_eq!(
        next(&mut socket).await,
        json!({ "type": "ECHO", "success": true, "data": { "b": 1, "a": [1e3] } })
    );
    send_text(&mut socket, "hello").await;
    let error = next(&mut socket).await;
    assert_eq!((&error["type"], &error["success"]), (&json!("ERROR"), &json!(false)));
}

#[actix_web::test]
async fn an_observer_gets_the_spans_of_its_filter() {
    let site = Site::start(WebConfig::default()).await;
    let mut socket = open(&site, "/ws/observability?entityType=workflow&entityId=noop").await;
    let welcome = next(&mut socket).await;
    assert_eq!(welcome["type"], "CONNECTION_SUCCESS");
    assert_eq!(welcome["data"]["entityId"], "noop");
    send_text(&mut socket, "{\"type\":\"PING\"}").await;
    assert_eq!(next(&mut socket).await, json!({ "type": "PONG", "success": true }));
    site.post("/workflows/failing/execute", &json!({ "input": {} })).await;
    site.post("/workflows/noop/execute", &json!({ "input": { "n": 1 } })).await;
    let event = next(&mut socket).await;
    assert_eq!(event["type"], "OBSERVABILITY_EVENT");
    assert_eq!(event["data"]["type"], "span:start");
    assert_eq!(event["data"]["span"]["attributes"]["entity.id"], "noop");
    loop {
        let event = next(&mut socket).await;
        let is_root = event["data"]["span"].get("parentSpanId").is_none();
        if event["data"]["type"] == "span:end" && is_root {
            assert_eq!(event["data"]["span"]["status"]["code"], "OK");
            break;
        }
    }
    send_text(&mut socket, "{\"type\":\"SUBSCRIBE\",\"entityId\":\"approval\"}").await;
    let subscribed = next(&mut socket).await;
    assert_eq!(subscribed["type"], "SUBSCRIPTION_SUCCESS");
    site.post("/workflows/noop/execute", &json!({ "input": { "n": 1 } })).await;
    site.post("/workflows/approval/execute", &json!({ "input": {} })).await;
    let event = next(&mut socket).await;
    assert_eq!(event["data"]["span"]["attributes"]["entity.id"], "approval");
    send_text(&mut socket, "nonsense").await;
    while next(&mut socket).await["type"] != "ERROR" {}
    let refused = site.get("/ws/observability?entityType=tool").await;
    assert_eq!(refused.status, 400, "{}", refused.body);
}

#[actix_web::test]
async fn streams_and_sockets_end_at_shutdown() {
    // connections that do not end would take longer
    let config = WebConfig { shutdown_timeout: 10 * PATIENCE, ..WebConfig::default() };
    let site = Site::start(config).await;
    let mut socket = open(&site, "/ws").await;
    next(&mut socket).await;
    let body = json!({ "input": {} });
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        site.shutdown.fire();
    };
    let (stream, ()) = tokio::join!(site.post("/workflows/approval/stream", &body), stopping);
    assert!(stream.body.contains(": the server is shutting down"), "{}", stream.body);
    let last = socket.next().await.unwrap().unwrap();
    let Message::Close(Some(frame)) = last else { panic!("{last:?}") };
    assert_eq!(u16::from(frame.code), 1001);
    timeout(PATIENCE, site.handle.stop(true)).await.unwrap();
}

#[actix_web::test]
async fn a_body_that_does_not_arrive_is_408_and_closes_the_connection() {
    let config = WebConfig { body_timeout: Duration::from_millis(100), ..WebConfig::default() };
    let site = Site::start(config).await;
    let mut stream = site.connect().await;
    let head =
        "POST /workflows/noop/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    let answer = answer_of(&bytes);
    assert_eq!(answer.status, 408);
    assert_eq!(answer.json()["error"], "Request body was not received in time");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[actix_web::test]
async fn a_connection_is_reused_after_a_refusal_or_says_close() {
    let site = Site::start(WebConfig::default()).await;
    let mut stream = site.connect().await;
    let body = "{\"input\":{\"n\":1}}";
    for (path, status) in [("nope", "404"), ("noop", "200")] {
        let request = format!(
            "POST /workflows/{path}/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = [0; 2048];
        let reading = stream.read(&mut bytes);
        let length = timeout(PATIENCE, reading).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {text:?}");
    }
    let request = "POST /nope HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    assert_eq!(answer_of(&bytes).header("connection"), Some("close"));
}

#[actix_web::test]
async fn a_generation_ends_when_its_client_disconnects() {
    let site = Site::start(WebConfig::default()).await;
    let mut stream = site.connect().await;
    let body = "{\"input\":\"slow\"}";
    let request = format!(
        "POST /agents/assistant/text HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let status = async || site.get("/agents/assistant").await.json()["data"]["status"].clone();
    until(async || status().await == "working").await;
    drop(stream);
    until(async || status().await == "idle").await;
}

/// Starts an execution, attaches a connection that reads nothing, and produces many events.
async fn neglected(site: &Site) -> TcpStream {
    let start = json!({ "input": {}, "options": { "executionId": "w-1" } });
    let (_, stream) = tokio::join!(site.post("/workflows/waiting/execute", &start), async {
        let path = "/workflows/waiting/executions/w-1";
        until(async || site.get(&format!("{path}/state")).await.status == 200).await;
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let mut stream = socket.connect(site.address).await.unwrap();
        let request = format!("GET {path}/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let reason = "r".repeat(100_000);
        for _ in 0..20 {
            let suspend = json!({ "reason": reason });
            let suspended = site.post(&format!("{path}/suspend"), &suspend).await;
            assert_eq!(suspended.status, 200, "{}", suspended.body);
            let (resume, nothing) = (format!("{path}/resume"), json!({}));
            // The step never ends, and neither does the request.
            let _ = timeout(Duration::from_millis(30), site.post(&resume, &nothing)).await;
        }
        stream
    });
    stream
}

#[actix_web::test]
async fn a_subscriber_that_reads_nothing_is_disconnected() {
    let config = WebConfig {
        subscriber_queue: 4,
        subscriber_stall: Duration::from_millis(300),
        ..WebConfig::default()
    };
    let site = Site::start(config).await;
    let mut stream = neglected(&site).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let mut bytes = Vec::new();
    // The end of the stream or a reset: not an open connection.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains(": dropped"));
}

#[actix_web::test]
async fn a_subscriber_that_reads_again_in_time_gets_the_dropped_count() {
    let config = WebConfig { subscriber_queue: 4, ..WebConfig::default() };
    let site = Site::start(config).await;
    let mut stream = neglected(&site).await;
    read_until(&mut stream, ": dropped ").await;
}

async fn until(condition: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < PATIENCE, "nothing happened");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[actix_web::test]
async fn chunked_and_too_large_bodies() {
    let config = WebConfig { body_bytes_max: 100, ..WebConfig::default() };
    let site = Site::start(config).await;
    let ask = async |head: &str, body: &str| {
        let mut stream = site.connect().await;
        let request = format!(
            "POST http://localhost/workflows/noop/execute HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        // After the answer actix-web drains the rest of the body.
        let _ = timeout(Duration::from_millis(500), stream.read_to_end(&mut bytes)).await;
        answer_of(&bytes)
    };
    let chunked = "connection: close\r\ntransfer-encoding: chunked\r\n";
    let good = ask(chunked, "9\r\n{\"input\":\r\n8\r\n{\"n\":1}}\r\n0\r\n\r\n").await;
    assert_eq!(good.status, 200, "{}", good.body);
    let endless = format!("80\r\n{}\r\n", " ".repeat(128));
    for (head, body) in [(chunked, endless.as_str()), ("content-length: 5000\r\n", "{")] {
        let large = ask(head, body).await;
        assert_eq!(large.status, 413, "{}", large.body);
        assert_eq!(large.json()["error"], "Request body is larger than 100 bytes");
        assert_eq!(large.header("connection"), Some("close"));
    }
    let foreign = "content-type: application/csv\r\ncontent-length: 50\r\n";
    let broken = "transfer-encoding: chunked\r\n";
    for (head, body, status) in [(foreign, "a,b", 415), (broken, "zz\r\n{}\r\n", 400)] {
        let refused = ask(head, body).await;
        assert_eq!(refused.status, status, "{}", refused.body);
        assert_eq!(refused.header("connection"), Some("close"), "{}", refused.body);
    }
}
