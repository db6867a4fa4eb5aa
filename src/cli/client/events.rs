//! Events of executions, as lines.

use chrono::DateTime;
use serde_json::Value;

use super::screen::{Colour, Screen};
use super::text::{plain, text};

/// Returns the step that an event is about; an empty text if it is about the execution.
pub(super) fn step_of(event: &Value) -> &str {
    match text(event, "path") {
        "" => text(event, "from"),
        path => path,
    }
}

/// Returns more about an event, in one line: a reason or an error.
pub(super) fn detail_of(event: &Value) -> String {
    let suspension = text(&event["suspension"], "reason");
    let details = [text(event, "error"), text(event, "reason"), suspension];
    let detail = details.into_iter().find(|detail| !detail.is_empty()).unwrap_or_default();
    let detail = plain(detail);
    match text(event, "type") {
        "workflow-result" => text(event, "status").to_owned(),
        "compensation-complete" if event["skipped"] == true => "skipped, not undone".to_owned(),
        "step-error" if event["willRetry"] == true => {
            format!("attempt {}: {detail}; it is tried again", event["attempt"])
        }
        _ => detail,
    }
}

/// Returns the colour of a status or of the type of an event.
pub(super) fn colour_of(word: &str) -> Option<Colour> {
    match word {
        "completed"
        | "step-complete"
        | "compensation-complete"
        | "workflow-complete"
        | "OK"
        | "answered" => Some(Colour::Green),
        "error" | "step-error" | "compensation-error" | "workflow-error" | "ERROR" | "failed" => {
            Some(Colour::Red)
        }
        "suspended"
        | "step-suspended"
        | "workflow-suspended"
        | "workflow-compensating"
        | "open"
        | "warn" => Some(Colour::Yellow),
        "step-skipped" | "step-cancelled" | "workflow-cancelled" | "cancelled" | "debug"
        | "trace" => Some(Colour::Grey),
        _ => None,
    }
}

/// Colours a text like this word.
pub(super) fn painted(screen: &Screen, word: &str, shown: &str) -> String {
    match colour_of(word) {
        Some(colour) => screen.paint(colour, shown),
        None => shown.to_owned(),
    }
}

/// Returns an event as a line: its time, its type, its step and more about it.
pub(super) fn line_of(screen: &Screen, event: &Value) -> String {
    let (kind, step) = (text(event, "type"), plain(step_of(event)));
    let kind = painted(screen, kind, &format!("{:18}", plain(kind)));
    let line = format!("{}  {kind}  {step}  {}", plain(text(event, "timestamp")), detail_of(event));
    line.trim_end().to_owned()
}

/// Parses a time of the server, in milliseconds.
pub(super) fn ms_of(time: &str) -> Option<i64> {
    Some(DateTime::parse_from_rfc3339(time).ok()?.timestamp_millis())
}

/// Returns the milliseconds between two times of the server.
pub(super) fn ms_between(from: &str, to: &str) -> Option<u64> {
    u64::try_from(ms_of(to)? - ms_of(from)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::client::screen::Form;

    #[test]
    fn an_event_is_a_line() {
        let time = "2026-11-20T11:49:15.923Z";
        let rows = [
            (json!({ "type": "workflow-start" }), "workflow-start"),
            (
                json!({ "type": "step-start", "from": "b", "path": "a/b" }),
                "step-start          a/b",
            ),
            (
                json!({ "type": "step-error", "from": "b", "error": "no\u{1b}", "attempt": 2,
                    "willRetry": true }),
                "step-error          b  attempt 2: no\\u{1b}; it is tried again",
            ),
            (
                json!({ "type": "compensation-complete", "from": "b", "path": "b:compensate",
                    "skipped": true }),
                "compensation-complete  b:compensate  skipped, not undone",
            ),
            (
                json!({ "type": "workflow-suspended", "suspension": { "reason": "yes?" } }),
                "workflow-suspended    yes?",
            ),
            (
                json!({ "type": "workflow-result", "status": "completed" }),
                "workflow-result       completed",
            ),
        ];
        let screen = Screen::plain(Form::Table);
        for (mut event, expected) in rows {
            event["timestamp"] = json!(time);
            assert_eq!(line_of(&screen, &event), format!("{time}  {expected}"));
        }
        assert_eq!(ms_between(time, "2026-11-20T11:49:16.000Z"), Some(77));
        assert_eq!(ms_between(time, "-"), None);
    }
}
