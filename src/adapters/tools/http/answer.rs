//! What comes back: bounded, and as JSON where it is JSON.

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

/// Bytes of a refusal that are read. More than is shown, so that a secret in it is seen whole.
const REFUSAL_BYTES_MAX: usize = 16 << 10;
/// Characters of a refusal that are shown.
const REFUSAL_CHARS_MAX: usize = 500;

/// Why there is no answer.
pub(super) enum AnswerError {
    /// The connection broke.
    Connection(reqwest::Error),
    /// It is no good; fit for models and callers.
    Answer(String),
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
        let (bytes, _) = beginning(answer, REFUSAL_BYTES_MAX).await?;
        let text = struck(String::from_utf8_lossy(&bytes).into_owned());
        let text: String = text.chars().take(REFUSAL_CHARS_MAX).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        return Err(AnswerError::Answer(format!("HTTP {}{said}", status.as_u16())));
    }
    let is_json = answer.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
    let (bytes, is_whole) = beginning(answer, bytes_max).await?;
    if !is_whole {
        let why = format!("the answer is larger than {bytes_max} bytes");
        return Err(AnswerError::Answer(why));
    }
    let bad = |why: &str| AnswerError::Answer(why.to_owned());
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
