//! What comes back: bounded, and as JSON where it is JSON.

use std::time::UNIX_EPOCH;

use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

/// Bytes of a refusal that are read. More than is shown, so that a secret in it is seen whole.
const REFUSAL_BYTES_MAX: usize = 16 << 10;
/// Characters of a refusal that are shown.
const REFUSAL_CHARS_MAX: usize = 500;

/// Why there is no answer.
pub(super) enum AnswerError {
    /// The connection broke.
    Connection(reqwest::Error),
    /// It is no good; its words are fit for models and callers.
    Answer(AttemptFailure),
}

/// Reads an answer. Other statuses than 2xx are errors with the beginning of their text.
/// `struck` takes secrets out of a text.
pub(super) async fn read(
    answer: Response,
    bytes_max: usize,
    struck: impl Fn(String) -> String,
) -> Result<Value, AnswerError> {
    let status = answer.status();
    if !status.is_success() {
        let retry_after_ms = pause_asked(answer.headers(), SystemClock.now());
        let (bytes, _) = beginning(answer, REFUSAL_BYTES_MAX).await?;
        let text = struck(String::from_utf8_lossy(&bytes).into_owned());
        let text: String = text.chars().take(REFUSAL_CHARS_MAX).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        let refusal =
            AttemptFailure::http(status.as_u16(), format!("HTTP {}{said}", status.as_u16()));
        return Err(AnswerError::Answer(AttemptFailure { retry_after_ms, ..refusal }));
    }
    let is_json = answer.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
    let (bytes, is_whole) = beginning(answer, bytes_max).await?;
    if !is_whole {
        let why = format!("the answer is larger than {bytes_max} bytes");
        return Err(AnswerError::Answer(AttemptFailure::new(ErrorKind::Limit, why)));
    }
    let bad = |why: &str| AnswerError::Answer(AttemptFailure::new(ErrorKind::Response, why));
    let text = String::from_utf8(bytes).map_err(|_| bad("the answer is no text"))?;
    let text = struck(text);
    match is_json {
        _ if text.is_empty() => Ok(Value::Null),
        true => serde_json::from_str(&text).map_err(|_| bad("the answer is broken JSON")),
        false => Ok(Value::String(text)),
    }
}

/// Reads up to a bound, and says whether that was all. A body that goes on is left alone, which
/// ends its connection.
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

/// `application/json`, with or without parameters, or a type that ends with `+json`.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    essence.ends_with(b"/json") || essence.ends_with(b"+json")
}

/// How long the other side wants to be left alone, in milliseconds: seconds, or until a time (RFC
/// 9110, section 10.2.3). A time is compared with the other side's own clock where it says that.
fn pause_asked(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if asked.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: u64 = asked.parse().ok()?;
        return Some(seconds.saturating_mul(1000));
    }
    let until = time_of(asked)?;
    let now = text(DATE).and_then(time_of).or_else(|| u64::try_from(now.0).ok())?;
    Some(until.saturating_sub(now))
}

/// Milliseconds since 1970.
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
    fn a_pause_is_asked_for_in_seconds_or_until_a_time() {
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
        for (asked, date, expected) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in [(RETRY_AFTER, asked), (DATE, date)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(pause_asked(&headers, now), expected, "{asked:?} {date:?}");
        }
    }
}
