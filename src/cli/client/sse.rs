//! Server-sent events of a response.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::Response;
use serde_json::Value;
use tokio::time::Instant;

use crate::http_client::Lines;

/// Longest event.
const EVENT_BYTES_MAX: usize = 64 << 20;

/// Begin of the comment in place of events that the server dropped, since they were not read in
/// time.
const DROPPED: &[u8] = b": dropped ";

/// An event: its number, if it has one, and its data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) id: Option<u64>,
    pub(super) data: Value,
}

/// Received bytes that are no event yet.
#[derive(Debug, Default)]
struct Parser {
    lines: Lines,
    id: Option<u64>,
    data: Vec<u8>,
    /// True behind the place of dropped events.
    has_gap: bool,
}

/// The events of a response.
pub(super) struct Events {
    body: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    parser: Parser,
    silence_max: Duration,
    opened: Instant,
    /// Time at which the last end of a line came, those of heartbeats included.
    alive: Instant,
}

impl Events {
    /// Reads the body of a response, which ends if nothing comes for `silence_max`.
    pub(super) fn of(response: Response, silence_max: Duration) -> Self {
        let body = response.bytes_stream().map(|bytes| bytes.map(|bytes| bytes.to_vec())).boxed();
        let now = Instant::now();
        Self { body, parser: Parser::default(), silence_max, opened: now, alive: now }
    }

    /// Returns the time between the begin of the stream and the end of its last line.
    pub(super) fn lasted(&self) -> Duration {
        self.alive - self.opened
    }

    /// Returns the next event; `None` at the end of the stream, also if it ends early. It ends where
    /// the server dropped events: a stream that is opened again behind the last one has them.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.parser.next() {
                return Some(event);
            }
            if self.parser.has_gap {
                return None;
            }
            match tokio::time::timeout(self.silence_max, self.body.next()).await {
                Ok(Some(Ok(bytes))) if self.parser.has_room_for(&bytes) => {
                    // a piece of an event that never becomes whole is no sign of life
                    if bytes.contains(&b'\n') {
                        self.alive = Instant::now();
                    }
                    self.parser.feed(&bytes);
                }
                _ => return None,
            }
        }
    }
}

impl Parser {
    fn has_room_for(&self, bytes: &[u8]) -> bool {
        self.lines.bytes().len() + self.data.len() + bytes.len() <= EVENT_BYTES_MAX
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.lines.feed(bytes);
    }

    /// Returns the next complete event before a gap. Comments, and events that are not JSON, are left
    /// out.
    fn next(&mut self) -> Option<Event> {
        while !self.has_gap
            && let Some(line) = self.lines.next()
        {
            let line = line.trim_ascii_end();
            if line.starts_with(DROPPED) {
                self.has_gap = true;
            } else if let Some(data) = line.strip_prefix(b"data:") {
                self.data.extend_from_slice(data);
            } else if let Some(id) = line.strip_prefix(b"id:") {
                self.id = std::str::from_utf8(id).ok().and_then(|id| id.trim().parse().ok());
            } else if line.is_empty() {
                let (data, id) = (std::mem::take(&mut self.data), self.id.take());
                if let Ok(data) = serde_json::from_slice(&data) {
                    return Some(Event { id, data });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use serde_json::json;

    use super::*;

    fn without_bytes() -> Events {
        let response = Response::from(http::Response::new(""));
        Events::of(response, Duration::from_secs(120))
    }

    #[tokio::test]
    async fn a_stream_ends_where_the_server_dropped_events() {
        let text = "id: 1\ndata: 1\n\n: dropped 2\n\nid: 4\ndata: 4\n\n";
        let body = stream::iter([Ok(text.into())]).chain(stream::pending()).boxed();
        let mut events = Events { body, ..without_bytes() };
        assert_eq!(events.next().await, Some(Event { id: Some(1), data: json!(1) }));
        assert_eq!([events.next().await, events.next().await], [None, None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_lasts_until_its_last_line() {
        const SECOND: Duration = Duration::from_secs(1);
        let beat = |count: u32| async move {
            let bytes = match count {
                0..4 => b": heartbeat\n\n".to_vec(),
                4..8 => b"data: a part".to_vec(),
                _ => std::future::pending().await,
            };
            tokio::time::sleep(15 * SECOND).await;
            Some((Ok(bytes), count + 1))
        };
        let body = stream::unfold(0, beat).boxed();
        let mut events = Events { body, ..without_bytes() };
        assert_eq!(events.next().await, None);
        assert_eq!(
            events.lasted(),
            60 * SECOND,
            "an event that is not whole, and silence, do not count"
        );
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let body = ": hello\n\nid: 7\ndata: {\"a\":\"ü\"}\n\ndata:{\"b\":1}\r\n\r\ndata: [DONE\n\n\
                    data: {\"c\"";
        let expected = [
            Event { id: Some(7), data: json!({ "a": "ü" }) },
            Event { id: None, data: json!({ "b": 1 }) },
        ];
        for size in 1..body.len() {
            let mut parser = Parser::default();
            let mut found = Vec::new();
            for piece in body.as_bytes().chunks(size) {
                parser.feed(piece);
                found.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(found, expected, "{size}");
        }
    }
}
