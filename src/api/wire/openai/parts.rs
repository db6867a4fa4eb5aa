//! Members of objects in a body; refusals name the place.

use serde_json::{Map, Value};

use crate::api::error::ApiError;

pub(super) fn object<'a>(
    place: &str,
    value: &'a Value,
) -> Result<&'a Map<String, Value>, ApiError> {
    value.as_object().ok_or_else(|| ApiError::body(place, "must be an object"))
}

/// Reads a text that is not empty.
pub(super) fn required<'a>(
    place: &str,
    members: &'a Map<String, Value>,
    key: &str,
) -> Result<&'a str, ApiError> {
    let text = members.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| ApiError::body(format!("{place}.{key}"), "must be a non-empty string"))
}
