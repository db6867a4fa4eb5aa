//! WebSocket frames match the schemas of the document.

use serde_json::{Value, json};

use super::super::sockets::Socket;
use super::Documented;

#[test]
fn messages_of_sockets_match_the_document() {
    let documented = Documented::start();
    let frames = |path: &str, message: &str, count: usize| {
        let mut socket = Socket::open(&documented.site, path);
        socket.say(message);
        (0..count).map(|_| socket.next()).collect::<Vec<Value>>()
    };
    let rows = [
        ("/ws", "EchoFrame", r#"{"a":1}"#),
        ("/ws", "EchoFrame", "no JSON"),
        ("/ws/logs", "LogsSocketFrame", r#"{"type":"updateFilter","filter":{"level":"warn"}}"#),
        ("/ws/logs", "LogsSocketFrame", r#"{"type":"updateFilter","filter":{"level":"loud"}}"#),
        ("/ws/observability?limit=5", "ObserverFrame", r#"{"type":"PING"}"#),
        ("/ws/observability", "ObserverFrame", r#"{"type":"PING"}"#),
        ("/ws/observability", "ObserverFrame", r#"{"type":"SUBSCRIBE","entityType":"agent"}"#),
        ("/ws/observability", "ObserverFrame", r#"{"type":"SUBSCRIBE","entityType":"cow"}"#),
    ];
    for (path, schema, message) in rows {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        for frame in frames(path, message, 2) {
            documented.validate(&schema, &frame, &frame.to_string());
        }
    }
}
