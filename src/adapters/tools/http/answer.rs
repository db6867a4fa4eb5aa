//! Answers of called servers: limited, and parsed if they are JSON.

use std::time::UNIX_EPOCH;

use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::domain::foreign;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

use crate::telemetry::redact::redact_unknown;

/// Bytes of an error's body that are read. More than are shown, so that secrets are found whole.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// Characters of an error's body that are shown.
const ERROR_CHARS_MAX: usize = 500;

/// Reason why there is no answer.
pub(super) enum AnswerError {
    /// The connection broke.
    Connection(reqwest::Error),
    /// The answer is an error or cannot be read; the text is fit for models and callers.
    Answer(AttemptFailure),
}

/// Reads an answer. Other statuses than 2xx are errors with the beginning of their text.
/// `cleaned` removes secrets from a text.
pub(super) async fn read(
    answer: Response,
    bytes_max: usize,
    cleaned: impl Fn(String) -> String,
) -> Result<Value, AnswerError> {
    let status = answer.status();
    if !status.is_success() {
        let retry_after_ms = requested_pause(answer.headers(), SystemClock.now());
        let (bytes, _) = beginning(answer, ERROR_BYTES_MAX).await?;
        let text = redact_unknown(cleaned(String::from_utf8_lossy(&bytes).into_owned()));
        let text: String = text.chars().take(ERROR_CHARS_MAX).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if text.is_empty() { String::new() } else { format!(": {text}") };
        let failure =
            AttemptFailure::http(status.as_u16(), format!("HTTP {}{text}", status.as_u16()));
        return Err(AnswerError::Answer(AttemptFailure { retry_after_ms, ..failure }));
    }
    let is_json = answer.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
    let (bytes, is_whole) = beginning(answer, bytes_max).await?;
    if !is_whole {
        let why = format!("the answer is larger than {bytes_max} bytes");
        return Err(AnswerError::Answer(AttemptFailure::new(ErrorKind::Limit, why)));
    }
    let bad = |why: &str| AnswerError::Answer(AttemptFailure::new(ErrorKind::Response, why));
    let text = String::from_utf8(bytes).map_err(|_| bad("the answer is not UTF-8"))?;
    let text = cleaned(text);
    match is_json {
        _ if text.is_empty() => Ok(Value::Null),
        true => foreign::from_str(&text).map_err(|_| bad("the answer is invalid JSON")),
        false => Ok(Value::String(text)),
    }
}

/// Reads up to a limit, and returns true if that was all. A longer body is not read to its end,
/// which closes its connection.
async fn beginning(mut answer: Response, bytes_max: usize) -> Result<(Vec<u8>, bool), AnswerError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(AnswerError::Connection)? {
        let room = bytes_max - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, true))
}

/// Returns true for `application/json`, with or without parameters, and for types that end with
/// `+json`.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    essence.ends_with(b"/json") || essence.ends_with(b"+json")
}

/// Reads the pause that the server asks for, in milliseconds: from seconds or a time (RFC 9110,
/// section 10.2.3). A time is compared with the server's own clock if it sends `Date`.
fn requested_pause(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let requested = text(RETRY_AFTER)?;
    if requested.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: u64 = requested.parse().ok()?;
        return Some(seconds.saturating_mul(1000));
    }
    let until = time_of(requested)?;
    let now = text(DATE).and_then(time_of).or_else(|| u64::try_from(now.0).ok())?;
    Some(until.saturating_sub(now))
}

/// Parses an HTTP date to milliseconds since 1970.
fn time_of(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_or_a_time() {
        let now = Timestamp(784_111_777_000);
        let later = "Sun, 06 Nov 1994 08:49:47 GMT";
        let rows = [
            (Some("0"), None, Some(0)),
            (Some(" 120 "), None, Some(120_000)),
            (Some("99999999999999999"), None, Some(u64::MAX)),
            (Some("18446744073709551616"), None, None),
            (Some(later), None, Some(10_000)),
            (Some(later), Some("Sun, 06 Nov 1994 08:49:42 GMT"), Some(5_000)),
            (Some(later), Some("Sun, 06 Nov 1994 08:50:00 GMT"), Some(0)),
            (Some(later), Some("yesterday"), Some(10_000)),
            (Some("-1"), None, None),
            (Some("1.5"), None, None),
            (Some("soon"), None, None),
            (Some(""), None, None),
            (None, None, None),
        ];
        for (requested, date, expected) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in [(RETRY_AFTER, requested), (DATE, date)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(requested_pause(&headers, now), expected, "{requested:?} {date:?}");
        }
    }
}
