//! Builds log records: bounded in size, with secrets redacted.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use greenroom_actors::observe::log_record::{LogRecord, LogScope};
use greenroom_actors::ports::clock::{Clock, SystemClock};
use log::kv::{Key, VisitSource};
use serde_json::Value;

use super::redaction::Redaction;
use crate::telemetry::redact::{REDACTED, Redactor};

/// Builds records from what the crate `log` passes on.
#[derive(Debug)]
pub(super) struct RecordBuilder {
    redactor: Arc<Redaction>,
    /// Maximum size of a message, and of all keys and values together.
    bytes_max: usize,
    clock: SystemClock,
}

impl RecordBuilder {
    pub(super) fn new(redactor: Arc<Redaction>, bytes_max: usize) -> Self {
        Self { redactor, bytes_max, clock: SystemClock }
    }

    pub(super) fn build(&self, record: &log::Record<'_>) -> LogRecord {
        let mut pairs = Pairs { builder: self, room: self.bytes_max, pairs: Vec::new() };
        // a value that cannot be read ends the list
        let _ = record.key_values().visit(&mut pairs);
        LogRecord {
            at: self.clock.now(),
            level: record.level().into(),
            target: Arc::from(record.target()),
            message: self.text(record.args(), self.bytes_max),
            attributes: pairs.pairs,
            scope: LogScope::current().unwrap_or_default(),
        }
    }

    /// Formats and redacts a text. A suffix gives its full length if it is truncated.
    fn text(&self, text: &dyn fmt::Display, bytes_max: usize) -> String {
        let redactor = self.redactor.current();
        let room = redactor.bytes_needed(bytes_max);
        let mut written = Bounded { text: String::new(), room, bytes: 0 };
        // some values fail to format; keep what they have written
        let _ = write!(written, "{text}");
        let Bounded { mut text, bytes, .. } = written;
        if redactor.redact(&mut text, bytes_max) {
            let _ = write!(text, "… ({bytes} bytes)");
        }
        text
    }
}

/// Stores the first `room` bytes written to it and counts all.
struct Bounded {
    text: String,
    room: usize,
    bytes: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.bytes += piece.len();
        let taken = &piece[..piece.floor_char_boundary(self.room)];
        self.text.push_str(taken);
        // take nothing after a piece that did not fit: the text has no gaps
        self.room = if taken.len() < piece.len() { 0 } else { self.room - taken.len() };
        Ok(())
    }
}

/// Reads keys and values until their size reaches the limit.
struct Pairs<'s> {
    builder: &'s RecordBuilder,
    room: usize,
    pairs: Vec<(String, Value)>,
}

impl<'kvs> VisitSource<'kvs> for Pairs<'_> {
    fn visit_pair(
        &mut self,
        key: Key<'kvs>,
        value: log::kv::Value<'kvs>,
    ) -> Result<(), log::kv::Error> {
        let key = key.as_str();
        let Some(room) = self.room.checked_sub(key.len()).filter(|room| *room > 0) else {
            return Ok(());
        };
        let value = self.value(key, &value, room);
        let bytes = value.as_str().map_or(0, str::len);
        self.room = room.saturating_sub(bytes);
        self.pairs.push((key.to_owned(), value));
        Ok(())
    }
}

impl Pairs<'_> {
    fn value(&self, key: &str, value: &log::kv::Value<'_>, room: usize) -> Value {
        if Redactor::is_secret_key(key) {
            return Value::from(REDACTED);
        }
        let number = value.to_u64().map(Value::from);
        let number = number.or_else(|| value.to_i64().map(Value::from));
        let number = number.or_else(|| value.to_f64().map(Value::from));
        let simple = number.or_else(|| value.to_bool().map(Value::from));
        simple.unwrap_or_else(|| Value::from(self.builder.text(value, room)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::observe::log_record::LogLevel;
    use log::Level;
    use serde_json::json;

    use super::*;
    use crate::telemetry::redact::Secrets;

    /// Returns a record with this message and no ids or attributes.
    pub(in crate::telemetry::logs) fn record(message: &str) -> Arc<LogRecord> {
        Arc::new(LogRecord {
            at: Timestamp(1_700_000_000_123),
            level: LogLevel::Info,
            target: Arc::from("a::b"),
            message: message.to_owned(),
            attributes: Vec::new(),
            scope: Arc::default(),
        })
    }

    fn builder(bytes_max: usize) -> RecordBuilder {
        let mut secrets = Secrets::default();
        secrets.add("canary-4711");
        RecordBuilder::new(Arc::new(Redaction::new(&secrets)), bytes_max)
    }

    #[test]
    fn a_record_has_the_redacted_message_attributes_and_scope() {
        let scope = Arc::new(LogScope { user_id: Some("ann".into()), ..LogScope::default() });
        let pairs = [
            ("count", log::kv::Value::from(3)),
            ("share", log::kv::Value::from(0.5)),
            ("fine", log::kv::Value::from(true)),
            ("who", log::kv::Value::from("canary-4711")),
            ("token", log::kv::Value::from("x")),
            ("db_password", log::kv::Value::from("x")),
            ("clientSecret", log::kv::Value::from("x")),
            ("apiKey", log::kv::Value::from("x")),
            ("auth_token", log::kv::Value::from(4711)),
            ("tokens", log::kv::Value::from(4711)),
        ];
        let made = scope.within(|| {
            let args = format_args!("of canary-4711");
            let pairs = &pairs[..];
            let mut builder = log::Record::builder();
            let logged = builder.args(args).level(Level::Warn).target("t").key_values(&pairs);
            self::builder(200).build(&logged.build())
        });
        assert_eq!((made.level, &*made.target), (LogLevel::Warn, "t"));
        assert_eq!(made.message, "of [redacted]");
        let attributes: serde_json::Map<_, _> = made.attributes.into_iter().collect();
        let expected = json!({ "count": 3, "share": 0.5, "fine": true, "who": "[redacted]",
            "token": "[redacted]", "db_password": "[redacted]", "clientSecret": "[redacted]",
            "apiKey": "[redacted]", "auth_token": "[redacted]", "tokens": 4711 });
        assert_eq!(Value::from(attributes), expected);
        assert_eq!(made.scope, scope);
    }

    #[test]
    fn long_messages_and_attributes_are_truncated() {
        let long = "x".repeat(1_000_000);
        let pairs = [("a", long.as_str()), ("b", "y")];
        let pairs = &pairs[..];
        let args = format_args!("{long}!");
        let mut builder = log::Record::builder();
        let made = self::builder(8).build(&builder.args(args).key_values(&pairs).build());
        assert_eq!(made.message, "xxxxxxxx… (1000001 bytes)");
        assert_eq!(made.attributes, [("a".to_owned(), json!("xxxxxxx… (1000000 bytes)"))]);
        let args = format_args!("123456 canary-4711");
        let made = self::builder(8).build(&log::Record::builder().args(args).build());
        assert_eq!(made.message, "123456 [redacted]… (18 bytes)");
    }
}
