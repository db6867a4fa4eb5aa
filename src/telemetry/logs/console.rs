//! Lines of the console: exactly one per record, whatever the record contains.

use std::fmt::{self, Write as _};
use std::io;

use greenroom_actors::observe::log_record::{LogRecord, LogScope};
use log::Level;
use serde_json::{Map, Value};

/// Format of lines on the console.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object per line.
    Json,
}

impl LogFormat {
    pub const NAMES: [(&'static str, Self); 2] = [("text", Self::Text), ("json", Self::Json)];

    /// Writes the line of a record whose message is the output of [`LogFormat::show`].
    pub(super) fn write(
        self,
        buffer: &mut env_logger::fmt::Formatter,
        record: &log::Record<'_>,
    ) -> io::Result<()> {
        use io::Write as _;
        match self {
            Self::Json => writeln!(buffer, "{}", record.args()),
            Self::Text => {
                let (time, level) = (buffer.timestamp(), record.level());
                let style = buffer.default_level_style(level);
                let (target, shown) = (Escaped(record.target()), record.args());
                writeln!(buffer, "[{time} {style}{level:<5}{style:#} {target}] {shown}")
            }
        }
    }

    /// Formats a record; as text without time, level and target, which [`LogFormat::write`] adds.
    pub(super) fn show(self, record: &LogRecord, level: Level) -> String {
        match self {
            Self::Text => text(record),
            Self::Json => json(record, level),
        }
    }
}

fn text(record: &LogRecord) -> String {
    let LogRecord { message, attributes, scope, .. } = record;
    let mut line = Escaped(message).to_string();
    for (key, value) in attributes {
        let value = match value {
            Value::String(text) => shown_value(text),
            other => other.to_string(),
        };
        let _ = write!(line, " {}={value}", Escaped(key));
    }
    // even if the message names one: a search for `workflow=order` finds every line
    for (name, id) in short_ids(scope) {
        let _ = write!(line, " {name}={}", shown_value(id));
    }
    line
}

/// Returns the ids of a scope except traces, which people look up by the other ids.
fn short_ids(scope: &LogScope) -> impl Iterator<Item = (&'static str, &str)> {
    let execution = scope.execution_id.as_ref().map(|id| id.as_str());
    [
        ("workflow", scope.workflow_id.as_deref()),
        ("execution", execution),
        ("agent", scope.agent_id.as_deref()),
        ("generation", scope.generation_id.as_deref()),
        ("conversation", scope.conversation_id.as_deref()),
        ("user", scope.user_id.as_deref()),
        ("request", scope.request_id.as_deref()),
    ]
    .into_iter()
    .filter_map(|(name, id)| Some((name, id?)))
}

/// Returns a value as it is, or quoted if its end would be ambiguous.
fn shown_value(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '=') || is_risky(c);
    if text.is_empty() || text.contains(ends) {
        escaped_json(&Value::from(text))
    } else {
        text.to_owned()
    }
}

fn json(record: &LogRecord, level: Level) -> String {
    let LogRecord { at, target, message, attributes, scope, level: _ } = record;
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), Value::from(at.to_iso()));
    line.insert("level".to_owned(), Value::from(level.as_str().to_ascii_lowercase()));
    line.insert("target".to_owned(), Value::from(&**target));
    line.insert("message".to_owned(), Value::from(message.as_str()));
    let span = scope.span_id.map(|id| id.to_string());
    let id = |id: &'static str, value: Option<&str>| Some((id.to_owned(), Value::from(value?)));
    line.extend(id("traceId", scope.trace_id.as_deref()));
    line.extend(id("spanId", span.as_deref()));
    line.extend(id("executionId", scope.execution_id.as_ref().map(|id| id.as_str())));
    line.extend(id("parentExecutionId", scope.parent_execution_id.as_ref().map(|id| id.as_str())));
    line.extend(id("workflowId", scope.workflow_id.as_deref()));
    line.extend(id("agentId", scope.agent_id.as_deref()));
    line.extend(id("generationId", scope.generation_id.as_deref()));
    line.extend(id("conversationId", scope.conversation_id.as_deref()));
    line.extend(id("userId", scope.user_id.as_deref()));
    line.extend(id("requestId", scope.request_id.as_deref()));
    if !attributes.is_empty() {
        let attributes: Map<_, _> = attributes.iter().cloned().collect();
        line.insert("attributes".to_owned(), Value::from(attributes));
    }
    escaped_json(&Value::from(line))
}

/// Serializes JSON and escapes all characters that a terminal would interpret.
fn escaped_json(value: &Value) -> String {
    let json = value.to_string();
    if !json.contains(is_risky) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // such characters occur only in strings, where JSON can escape them all
        match is_risky(c) {
            true => drop(write!(escaped, "\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Returns true if a character could start a new line, control a terminal, or change the reading
/// direction.
fn is_risky(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Displays a text with risky characters escaped.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_risky) {
            f.write_str(&rest[..at])?;
            let Some(risky) = rest[at..].chars().next() else { break };
            write!(f, "{}", risky.escape_default())?;
            rest = &rest[at + risky.len_utf8()..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::telemetry::logs::record_builder::tests::record;

    fn about_an_order(message: &str) -> LogRecord {
        let scope = LogScope {
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
            span_id: "b7ad6b7169203331".parse().ok(),
            execution_id: Some(ExecutionId::trusted("e1")),
            workflow_id: Some("order".into()),
            user_id: Some("ann \u{1b}[2J".into()),
            ..LogScope::default()
        };
        let attributes = vec![
            ("n".to_owned(), json!(3)),
            ("who".to_owned(), json!("a\nb")),
            ("x\ny".to_owned(), json!("plain")),
        ];
        LogRecord { attributes, scope: Arc::new(scope), ..(*record(message)).clone() }
    }

    #[test]
    fn text_lines_have_short_ids_and_escape_control_characters() {
        let line =
            LogFormat::Text.show(&about_an_order("execution e1 is\r\npaid\u{202e}"), Level::Info);
        assert_eq!(
            line,
            "execution e1 is\\r\\npaid\\u{202e} n=3 who=\"a\\nb\" x\\ny=plain \
             workflow=order execution=e1 user=\"ann \\u001b[2J\""
        );
        assert_eq!(LogFormat::Text.show(&record("größe ✓"), Level::Info), "größe ✓");
    }

    #[test]
    fn json_lines_have_all_ids_and_escape_control_characters() {
        let line = LogFormat::Json.show(&about_an_order("paid\u{9b}\u{2028}\u{7f}"), Level::Warn);
        assert!(line.contains("paid\\u009b\\u2028\\u007f"), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            read,
            json!({
                "timestamp": "2023-11-14T22:13:20.123Z", "level": "warn", "target": "a::b",
                "message": "paid\u{9b}\u{2028}\u{7f}",
                "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
                "executionId": "e1", "workflowId": "order", "userId": "ann \u{1b}[2J",
                "attributes": { "n": 3, "who": "a\nb", "x\ny": "plain" }
            })
        );
        let bare: Value =
            serde_json::from_str(&LogFormat::Json.show(&record("hi"), Level::Info)).unwrap();
        assert_eq!(bare.as_object().unwrap().len(), 4);
    }

    proptest! {
        /// Quoted user input cannot start another line.
        #[test]
        fn a_record_is_one_line(message in "(\\PC|\\p{C}){0,40}", user in "(\\PC|\\p{C}){0,10}") {
            let scope = LogScope { user_id: Some(user.as_str().into()), ..LogScope::default() };
            let record = LogRecord { scope: Arc::new(scope), ..(*record(&message)).clone() };
            for (_, format) in LogFormat::NAMES {
                let line = format.show(&record, Level::Info);
                prop_assert!(!line.contains(is_risky), "{line:?}");
            }
            let json: Value = serde_json::from_str(&LogFormat::Json.show(&record, Level::Info)).unwrap();
            prop_assert_eq!(json["message"].as_str(), Some(message.as_str()));
        }
    }
}
