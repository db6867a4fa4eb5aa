//! Errors of a provider, with texts for callers: no secret, no host, no HTML.
//!
//! The log gets the cause as well, with secrets removed.

use std::time::Duration;

use chrono::DateTime;
use greenroom_actors::domain::foreign;
use greenroom_actors::ports::model::{ModelError, ModelErrorKind};
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::fields::text;
use super::key::{ApiKey, redacted};

/// Longest part of a provider's message that callers get.
const MESSAGE_CHARS_MAX: usize = 500;

/// Makes errors for one model.
#[derive(Debug, Clone)]
pub(super) struct Failures {
    pub(super) provider: &'static str,
    pub(super) key: Option<ApiKey>,
}

impl Failures {
    /// Makes an error of a response without a success status.
    pub(super) fn of_status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> ModelError {
        let parsed: Option<Value> = foreign::from_slice(body).ok();
        let message = match &parsed {
            Some(json) => message_of(json),
            None => prose(body),
        };
        let message = message.or_else(|| status.canonical_reason().map(str::to_owned));
        let message = self.shown(&message.unwrap_or_default());
        let provider = self.provider;
        let code = status.as_u16();
        let message = match message.is_empty() {
            true => format!("{provider} answered {code}"),
            false => format!("{provider} answered {code}: {message}"),
        };
        let retry_after = pause_of_headers(headers);
        let retry_after = retry_after.or_else(|| parsed.as_ref().and_then(pause_of_body));
        ModelError { kind: kind_of_status(code), message, retry_after }
    }

    /// Makes an error of a frame in the middle of an answer; `None` if the frame is not an error.
    pub(super) fn of_frame(&self, frame: &Value) -> Option<ModelError> {
        let error = frame.get("error").filter(|error| !error.is_null())?;
        let message = message_of(frame).unwrap_or_default();
        let message = format!("{} failed: {}", self.provider, self.shown(&message));
        let kind = kind_of_error(error);
        Some(ModelError { kind, message, retry_after: pause_of_body(frame) })
    }

    /// Makes an error of a failed connection, and logs the cause.
    pub(super) fn of_transport(&self, error: reqwest::Error, what: &str) -> ModelError {
        let error = error.without_url();
        let mut causes = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            causes = format!("{causes}: {inner}");
            cause = inner.source();
        }
        log::warn!("{}: {}", self.provider, self.shown(&causes));
        self.unavailable(what)
    }

    pub(super) fn unavailable(&self, what: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Unavailable, format!("{} {what}", self.provider))
    }

    pub(super) fn unreadable(&self, what: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Other, format!("{} sent {what}", self.provider))
    }

    pub(super) fn timeout(&self, what: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Timeout, format!("{} {what}", self.provider))
    }

    /// Puts a provider's text on one line, without secrets, shortened.
    fn shown(&self, text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = redacted(&words.join(" "), self.key.as_ref());
        match text.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn kind_of_status(status: u16) -> ModelErrorKind {
    match status {
        401..=403 => ModelErrorKind::Auth,
        408 | 504 => ModelErrorKind::Timeout,
        429 => ModelErrorKind::RateLimited,
        425 | 500.. => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Other,
    }
}

/// Classifies an error inside a stream, which names its kind in one of several ways.
fn kind_of_error(error: &Value) -> ModelErrorKind {
    let status = error.get("code").or_else(|| error.get("status"));
    let status = status.and_then(|code| match code {
        Value::String(text) => text.parse().ok(),
        code => code.as_u64(),
    });
    if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
        return kind_of_status(status);
    }
    match text(error, "type") {
        "rate_limit_error" | "rate_limit_exceeded" => ModelErrorKind::RateLimited,
        "authentication_error" | "permission_error" | "billing_error" => ModelErrorKind::Auth,
        "timeout_error" => ModelErrorKind::Timeout,
        "overloaded_error" | "api_error" | "server_error" => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Other,
    }
}

/// Returns the provider's message, from any of its usual places.
fn message_of(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let places = ["/error/message", "/error", "/message", "/detail", "/error_description"];
    let found = places.iter().find_map(|place| body.pointer(place)?.as_str());
    found.filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns a plain text body; `None` for HTML.
fn prose(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    (!text.is_empty() && !text.starts_with('<')).then(|| text.to_owned())
}

fn pause_of_headers(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(pause) = header("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(pause));
    }
    let written = header(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = written.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // a date, by the clock of the server
    let until = DateTime::parse_from_rfc2822(written).ok()?;
    let now = DateTime::parse_from_rfc2822(header(DATE.as_str())?).ok()?;
    (until - now).to_std().ok()
}

/// Reads Google's pause from the body: `"retryDelay": "13s"`.
fn pause_of_body(body: &Value) -> Option<Duration> {
    let body = body.get(0).unwrap_or(body);
    let details = body.pointer("/error/details")?.as_array()?;
    let written = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = written.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn failures() -> Failures {
        Failures { provider: "openai", key: ApiKey::new("canary-0123456789") }
    }

    #[test]
    fn statuses_and_bodies_become_errors() {
        use ModelErrorKind::{Auth, Other, RateLimited, Timeout, Unavailable};
        let page = "<!doctype html><title>Bad gateway</title>";
        let rows: [(u16, &str, ModelErrorKind, &str); 11] = [
            (400, r#"{"error":{"message":"bad seed"}}"#, Other, "openai answered 400: bad seed"),
            (
                401,
                r#"{"error":{"message":"wrong key canary-0123456789"}}"#,
                Auth,
                "openai answered 401: wrong key [removed]",
            ),
            (402, r#"{"message":"no money"}"#, Auth, "openai answered 402: no money"),
            (404, r#"{"error":"no such model"}"#, Other, "openai answered 404: no such model"),
            (408, "", Timeout, "openai answered 408: Request Timeout"),
            (
                429,
                r#"[{"error":{"message":"slow\n down"}}]"#,
                RateLimited,
                "openai answered 429: slow down",
            ),
            (500, "it broke", Unavailable, "openai answered 500: it broke"),
            (502, page, Unavailable, "openai answered 502: Bad Gateway"),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Unavailable,
                "openai answered 529: Overloaded",
            ),
            (302, "", Other, "openai answered 302: Found"),
            (599, "{}", Unavailable, "openai answered 599"),
        ];
        for (status, body, kind, message) in rows {
            let status = StatusCode::from_u16(status).unwrap();
            let error = failures().of_status(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!((error.kind, error.message.as_str()), (kind, message), "{status}");
        }
        let long = json!({ "error": { "message": "ü".repeat(100_000) } }).to_string();
        let error =
            failures().of_status(StatusCode::BAD_REQUEST, &HeaderMap::new(), long.as_bytes());
        assert!(error.message.chars().count() < 600);
    }

    #[test]
    fn retry_pauses_are_read_in_every_form() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let later = "Wed, 21 Oct 2015 07:28:30 GMT";
        let google = r#"{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"13.5s"}]}}"#;
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<u64>);
        let rows: [Row<'_>; 8] = [
            (&[("retry-after", "7")], "", Some(7_000)),
            (&[("retry-after", "0.5")], "", Some(500)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], "", Some(250)),
            (&[("retry-after", later), ("date", date)], "", Some(30_000)),
            (&[("retry-after", later)], "", None),
            (&[("retry-after", "-1")], "", None),
            (&[("retry-after", "soon")], google, Some(13_500)),
            (&[], "", None),
        ];
        for (given, body, expected) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                );
            }
            let error =
                failures().of_status(StatusCode::TOO_MANY_REQUESTS, &headers, body.as_bytes());
            assert_eq!(error.retry_after, expected.map(Duration::from_millis), "{given:?}");
        }
    }

    #[test]
    fn errors_inside_streams_are_classified() {
        use ModelErrorKind::{Auth, Other, RateLimited, Unavailable};
        let rows = [
            (
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "m" } }),
                Some(Unavailable),
            ),
            (json!({ "error": { "type": "rate_limit_error" } }), Some(RateLimited)),
            (json!({ "error": { "code": 503, "message": "m" } }), Some(Unavailable)),
            (json!({ "error": { "code": "401" } }), Some(Auth)),
            (json!({ "error": "it broke" }), Some(Other)),
            (json!({ "error": null, "choices": [] }), None),
            (json!({ "choices": [] }), None),
        ];
        for (frame, kind) in rows {
            assert_eq!(failures().of_frame(&frame).map(|it| it.kind), kind, "{frame}");
        }
    }
}
