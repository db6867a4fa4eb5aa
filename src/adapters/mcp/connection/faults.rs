//! Findings about a connection: the reason why it has to end, and text that is no message.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_actors::domain::failure::shortened;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapters::mcp::secrets::Sent;
use crate::adapters::tools::secrets::Known;
use crate::telemetry::redact::redact_unknown;

/// Lines without JSON after which a program that has printed nothing else is given up.
pub(crate) const FOREIGN_LINES_MAX: usize = 100;
/// Maximum number of requests and notifications within [`FLOOD_WINDOW`]. Each request of a server costs
/// memory until its answer is taken.
const REQUESTS_MAX: usize = 10_000;
/// Maximum number of messages of all kinds within [`FLOOD_WINDOW`], far more than the results of calls:
/// those that answer nothing cost only time.
const MESSAGES_MAX: usize = 500_000;
/// Time in which messages are counted.
const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// Deepest message. Deeper ones could not be read, and their requests would never end.
const DEPTH_MAX: usize = 120;
/// First bytes of a foreign line that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// Findings about the messages of a server. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    found: Arc<Mutex<Found>>,
    /// Name of the server.
    server: Arc<str>,
    /// Secrets that are removed from what is shown.
    secrets: Sent,
    /// Fires with the first fault.
    faulted: CancellationToken,
}

#[derive(Debug, Default)]
struct Found {
    /// The reason why reading ended.
    fault: Option<String>,
    /// Begin of the first line that is not JSON.
    foreign: Vec<u8>,
    foreign_lines: usize,
    /// True once a line of JSON was read.
    has_spoken: bool,
    /// Number of messages so far.
    messages: u64,
    window: Option<Window>,
}

/// Messages within [`FLOOD_WINDOW`].
#[derive(Debug)]
struct Window {
    begin: Instant,
    messages: usize,
    requests: usize,
    unreadable: usize,
}

impl Findings {
    /// Creates findings about a server whose texts have none of these secrets.
    pub(crate) fn about(server: &Arc<str>, secrets: Sent) -> Self {
        Self { server: Arc::clone(server), secrets, ..Self::default() }
    }

    fn with<T>(&self, see: impl FnOnce(&mut Found) -> T) -> T {
        see(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the connection for this reason, unless there is one already.
    pub(crate) fn fault(&self, why: &str) {
        self.with(|found| {
            found.fault.get_or_insert_with(|| why.to_owned());
        });
        self.faulted.cancel();
    }

    /// Waits for a fault.
    pub(crate) async fn faulted(&self) {
        self.faulted.cancelled().await;
    }

    /// Counts a message of the server; the error is the reason to stop.
    pub(crate) fn message(&self) -> Result<(), String> {
        self.with(|found| {
            found.has_spoken = true;
            found.messages += 1;
            let window = found.window();
            window.messages += 1;
            within("messages", window.messages, MESSAGES_MAX)
        })
    }

    /// Returns the number of messages so far.
    pub(crate) fn messages(&self) -> u64 {
        self.with(|found| found.messages)
    }

    /// Counts a message, once more, that is a request or a notification.
    pub(crate) fn request(&self) -> Result<(), String> {
        self.with(|found| {
            let window = found.window();
            window.requests += 1;
            within("requests and notifications", window.requests, REQUESTS_MAX)
        })
    }

    /// Notes a message that cannot be read. The first one of a time is logged.
    pub(crate) fn unreadable(&self, why: &str) {
        let count = self.with(|found| {
            let window = found.window();
            window.unreadable += 1;
            window.unreadable
        });
        if count == 1 {
            let why = self.secrets.known().removed_from(why.to_owned());
            let why = shortened(&why, SHOWN_BYTES_MAX);
            log::warn!("MCP server {}: it sent a message that cannot be read: {why}", self.server);
        }
    }

    /// Notes the begin of a line that is no message; the error is the reason to stop.
    pub(crate) fn foreign_line(&self, first: u8) -> Result<(), String> {
        self.with(|found| {
            found.foreign_lines += 1;
            if found.foreign_lines == 1 {
                found.foreign.push(first);
            }
            if !found.has_spoken && found.foreign_lines > FOREIGN_LINES_MAX {
                return Err(found.foreign(&self.secrets.known()));
            }
            let window = found.window();
            window.requests += 1;
            within("lines that are not JSON", window.requests, REQUESTS_MAX)
        })
    }

    /// Notes another byte of such a line. The first line is shown.
    pub(crate) fn foreign_byte(&self, byte: u8) {
        self.with(|found| {
            if found.foreign_lines == 1 && found.foreign.len() < SHOWN_BYTES_MAX {
                found.foreign.push(byte);
            }
        });
    }

    /// Returns why a connection ended: the reason why reading ended, or else this one, with the text
    /// that was printed in place of JSON.
    pub(crate) fn explain(&self, why: String) -> String {
        self.with(|found| match &found.fault {
            Some(fault) => fault.clone(),
            None if found.has_spoken || found.foreign_lines == 0 => why,
            None => format!("{why}; {}", found.foreign(&self.secrets.known())),
        })
    }
}

impl Found {
    /// Returns the current window; begins another one if it is over.
    fn window(&mut self) -> &mut Window {
        let now = Instant::now();
        let is_over = |window: &Window| now.duration_since(window.begin) >= FLOOD_WINDOW;
        let kept = self.window.take().filter(|window| !is_over(window));
        self.window.insert(kept.unwrap_or(Window {
            begin: now,
            messages: 0,
            requests: 0,
            unreadable: 0,
        }))
    }

    /// Returns the begin of the first line that is not JSON, without secrets.
    fn foreign(&self, secrets: &Known) -> String {
        let text = String::from_utf8_lossy(&self.foreign);
        let text = match self.foreign.len() >= SHOWN_BYTES_MAX {
            // the last character may have been cut as well
            true => secrets.removed_from_begin(text.trim_end_matches('\u{fffd}').to_owned()),
            false => secrets.removed_from(text.into_owned()),
        };
        format!("it prints text that is not JSON: {}", redact_unknown(text).trim())
    }
}

fn within(what: &str, count: usize, max: usize) -> Result<(), String> {
    if count <= max {
        return Ok(());
    }
    let seconds = FLOOD_WINDOW.as_secs();
    Err(format!("it sent over {max} {what} within {seconds} seconds"))
}

/// Member that requests and notifications have, and answers do not.
const METHOD: &[u8] = b"method";

/// Shape of a message, seen while its bytes arrive.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Length of the current text of the outermost object as far as it is [`METHOD`]; `None` once it is
    /// another.
    matched: Option<usize>,
}

impl Shape {
    /// Takes the next byte. Returns true when the message turns out to be a request or a notification;
    /// the error is the reason to stop.
    pub(crate) fn take(&mut self, byte: u8) -> Result<bool, String> {
        let mut is_request = false;
        match byte {
            _ if self.is_escaped => (self.is_escaped, self.matched) = (false, None),
            b'\\' => self.is_escaped = self.in_string,
            b'"' => {
                is_request = self.in_string && self.matched == Some(METHOD.len());
                self.in_string = !self.in_string;
                self.matched = (self.in_string && self.depth == 1).then_some(0);
            }
            _ if self.in_string => {
                let is_next = |at: &usize| METHOD.get(*at) == Some(&byte);
                self.matched = self.matched.filter(is_next).map(|at| at + 1);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth <= DEPTH_MAX {
            return Ok(is_request);
        }
        Err(format!("it sent a message that is nested deeper than {DEPTH_MAX} levels"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_are_bounded_within_a_time() {
        let findings = Findings::default();
        let answers = |findings: &Findings| (0..MESSAGES_MAX).try_for_each(|_| findings.message());
        let asks = |findings: &Findings| {
            let one = |_| findings.message().and_then(|()| findings.request());
            (0..REQUESTS_MAX).try_for_each(one)
        };
        assert_eq!(asks(&findings), Ok(()));
        tokio::time::advance(FLOOD_WINDOW).await;
        assert_eq!(asks(&findings.clone()), Ok(()), "another window");
        let refused = findings.request().unwrap_err();
        assert_eq!(refused, "it sent over 10000 requests and notifications within 10 seconds");
        tokio::time::advance(FLOOD_WINDOW).await;
        assert_eq!(answers(&findings), Ok(()), "results of calls are no flood");
        let refused = findings.message().unwrap_err();
        assert_eq!(refused, "it sent over 500000 messages within 10 seconds");
    }

    #[tokio::test]
    async fn the_first_fault_is_the_reason() {
        let findings = Findings::default();
        assert_eq!(findings.explain("closed".to_owned()), "closed");
        findings.fault("first");
        findings.fault("second");
        findings.faulted().await;
        assert_eq!(findings.explain("closed".to_owned()), "first");
    }

    #[test]
    fn text_that_is_no_message_is_shown_without_secrets() {
        for (text, shown) in [
            ("has k3y-of-it".to_owned(), "has [secret]".to_owned()),
            ("has k3y-o".to_owned(), "has k3y-o".to_owned()),
            ("has password=x1 n".to_owned(), "has password=[redacted] n".to_owned()),
            (format!("{}k3y-of-it", "x".repeat(195)), "x".repeat(195)),
            (format!("{}\u{e4}", "x".repeat(199)), "x".repeat(199)),
        ] {
            let findings = Findings::about(&"s".into(), Sent::of(["k3y-of-it"]));
            let mut bytes = text.bytes();
            findings.foreign_line(bytes.next().unwrap()).unwrap();
            bytes.for_each(|byte| findings.foreign_byte(byte));
            let expected = format!("closed; it prints text that is not JSON: {shown}");
            assert_eq!(findings.explain("closed".to_owned()), expected);
        }
    }

    /// Returns whether a text is a request, or why it is refused.
    fn seen(text: &str) -> Result<bool, String> {
        let mut shape = Shape::default();
        text.bytes().try_fold(false, |is_request, byte| Ok(shape.take(byte)? || is_request))
    }

    #[test]
    fn requests_have_a_method() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
            (r#"{ "method" : "notifications/progress" }"#, true),
            (r#"{"id":1,"result":{"method":"x"}}"#, false),
            (r#"{"id":1,"result":{"a":"\"method\""}}"#, false),
            (r#"{"methods":1,"metho":2,"a\"method":3}"#, false),
            (r#""method""#, false),
        ] {
            assert_eq!(seen(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        let (most, deeper) = ("[".repeat(DEPTH_MAX), "{\"a\":".repeat(DEPTH_MAX + 1));
        assert_eq!(seen(&most), Ok(false));
        assert_eq!(seen(&format!("[\"\\\"{deeper}\"]")), Ok(false), "in a string");
        assert_eq!(seen(&"[{}]".repeat(1000)), Ok(false), "one behind the other");
        let why = seen(&deeper).unwrap_err();
        assert_eq!(why, "it sent a message that is nested deeper than 120 levels");
    }
}
