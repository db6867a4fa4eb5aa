//! Validation of the values of conversations.

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::domain::nesting::check_members_depth;
use serde_json::{Map, Value};

use crate::api::error::ApiError;
use crate::api::ids::check_id;

const TITLE_CHARS_MAX: usize = 500;

/// Returns the chosen id if it is valid, or a new one.
pub(super) fn new_id(
    runtime: &Runtime,
    path: &str,
    chosen: Option<String>,
) -> Result<Arc<str>, ApiError> {
    match chosen {
        None => Ok(runtime.clock().new_id()),
        Some(id) => check_id(path, &id).map(|()| Arc::from(id)),
    }
}

pub(super) fn title(title: Option<String>) -> Result<Option<String>, ApiError> {
    if title.as_ref().is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX) {
        let what = format!("must not be longer than {TITLE_CHARS_MAX} characters");
        return Err(ApiError::body("title", what));
    }
    Ok(title)
}

pub(super) fn check_size(
    runtime: &Runtime,
    path: &str,
    value: &Map<String, Value>,
) -> Result<(), ApiError> {
    let depth_max = runtime.limits().machine.value_depth_max;
    check_members_depth(value, depth_max).map_err(|too_deep| ApiError::body(path, too_deep))?;
    let bytes = serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
    check_bytes(runtime, path, bytes)
}

/// Validates working memory, which agents read as text: an object becomes JSON, `null` clears it.
pub(super) fn working_memory(
    runtime: &Runtime,
    content: Value,
) -> Result<Option<String>, ApiError> {
    let text = match content {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        Value::Object(members) => {
            check_size(runtime, "content", &members)?;
            Value::Object(members).to_string()
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(ApiError::body("content", "must be a string, an object or null"));
        }
    };
    check_bytes(runtime, "content", text.len())?;
    Ok(Some(text))
}

fn check_bytes(runtime: &Runtime, path: &str, bytes: usize) -> Result<(), ApiError> {
    let max = runtime.limits().machine.value_bytes_max;
    if bytes > max {
        return Err(ApiError::body(path, format!("is larger than {max} bytes")));
    }
    Ok(())
}
