//! Parses bodies into typed values; refusals name the place.

use std::fmt;
use std::marker::PhantomData;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::domain::foreign::{RESERVED_KEY, reserved_key_at};
use greenroom_actors::domain::nesting::depth_exceeded_at;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;

use crate::api::error::{ApiError, NAME_BYTES_MAX};
use crate::nearest::nearest;

/// Maximum nesting of a body.
const DEPTH_MAX: usize = 128;

/// Deserializes only a JSON object; structs that derive `Deserialize` would also accept an array.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Deserializes a field that may be absent but whose `null` is a value.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A body that refuses unknown keys, at its root and in `options`.
pub trait Closed {
    /// All keys, those of options with their path, for suggestions.
    const KEYS: &'static [&'static str];
}

/// Parses a body whose root is an object.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_knowing(bytes, &[])
}

/// As [`parse`], for a body that refuses unknown keys.
pub fn parse_closed<T: DeserializeOwned + Closed>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_knowing(bytes, T::KEYS)
}

/// As [`parse_closed`]; an empty body counts as an empty object.
pub fn parse_closed_or_empty<T: DeserializeOwned + Closed>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_closed(if is_blank(bytes) { b"{}" } else { bytes })
}

fn parse_knowing<T: DeserializeOwned>(bytes: &[u8], keys: &[&str]) -> Result<T, ApiError> {
    let text = text_of(bytes)?;
    match serde_json::from_str::<Object<T>>(text) {
        Ok(Object(value)) => Ok(value),
        Err(error) if error.classify() != Category::Data => {
            Err(ApiError::InvalidJson(error.to_string()))
        }
        Err(_) => Err(refusal_of::<T>(text, keys)),
    }
}

/// Parses a body that may be any JSON.
pub fn parse_value(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_str(text_of(bytes)?).map_err(|error| ApiError::InvalidJson(error.to_string()))
}

/// As [`parse`]; an empty body counts as an empty object.
pub fn parse_or_empty<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    parse(if is_blank(bytes) { b"{}" } else { bytes })
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Returns true if the bytes are JSON. Required of a body without a usable content type.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn text_of(bytes: &[u8]) -> Result<&str, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ApiError::InvalidJson(format!("not UTF-8 after byte {}", error.valid_up_to()))
    })?;
    check_depth(text)?;
    Ok(text)
}

/// Refuses deep nesting anywhere, as the parser itself skips unknown keys, and the key with which it
/// does not count levels.
fn check_depth(text: &str) -> Result<(), ApiError> {
    if let Some(index) = reserved_key_at(text) {
        let (line, column) = place_of(text, index);
        let what = format!("the key {RESERVED_KEY} at line {line} column {column} is reserved");
        return Err(ApiError::InvalidJson(what));
    }
    match depth_exceeded_at(text.as_bytes(), DEPTH_MAX) {
        None => Ok(()),
        Some(index) => {
            let (line, column) = place_of(text, index);
            let what = format!("recursion limit exceeded at line {line} column {column}");
            Err(ApiError::InvalidJson(what))
        }
    }
}

fn place_of(text: &str, index: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..=index];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    (line, column)
}

/// Parses again, slower, to name the place. A later syntax error takes precedence over a wrong
/// shape.
fn refusal_of<T: DeserializeOwned>(text: &str, keys: &[&str]) -> ApiError {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return ApiError::InvalidJson(error.to_string());
    }
    let mut source = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Object<T>>(&mut source) {
        Ok(_) => ApiError::InvalidBody("refused".to_owned()),
        Err(error) => {
            let path = error.path().to_string();
            let what = without_place(&error.inner().to_string());
            if let Some(key) = named_in(&what, "unknown field `") {
                return unknown(&path, key, keys);
            }
            if let Some(key) = named_in(&what, "missing field `") {
                return ApiError::body(path_of(&path, key), "missing");
            }
            if let Some(key) = named_in(&what, "duplicate field `") {
                return ApiError::body(path_of(&path, key), "is given more than once");
            }
            if path == "." { ApiError::InvalidBody(what) } else { ApiError::body(path, what) }
        }
    }
}

/// Returns the key that an error of the parser names after these words.
fn named_in<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    message.strip_prefix(words)?.split_once('`').map(|(key, _)| key)
}

/// Returns the path of a key. The parser gives the path of its object, or that of the key.
fn path_of(path: &str, key: &str) -> String {
    let is_its_own =
        path.strip_suffix(key).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    match path {
        "." => key.to_owned(),
        path if is_its_own => path.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// Refuses a key with a suggestion: the same key in another place, a similar one beside it, or a
/// similar one anywhere; else with the list of keys.
fn unknown(path: &str, key: &str, keys: &[&str]) -> ApiError {
    let place = path.strip_suffix(key).unwrap_or(path).trim_matches('.');
    let inside = |known: &&&str| match known.rsplit_once('.') {
        Some((outer, _)) => outer == place,
        None => place.is_empty(),
    };
    let name = |known: &str| known.rsplit_once('.').map_or(known, |(_, name)| name).to_owned();
    let beside: Vec<&str> = keys.iter().filter(inside).copied().collect();
    let elsewhere = keys.iter().find(|known| name(known) == key).map(|known| (*known).to_owned());
    let like = |among: &[&str]| {
        let names: Vec<String> = among.iter().map(|known| name(known)).collect();
        let meant = nearest(key, names.iter().map(String::as_str))?;
        among.iter().find(|known| name(known) == meant).map(|known| (*known).to_owned())
    };
    let what = match elsewhere.or_else(|| like(&beside)).or_else(|| like(keys)) {
        Some(meant) => format!("unknown key; did you mean {meant}?"),
        None => format!("unknown key; known keys: {}", beside.join(", ")),
    };
    let place = if place.is_empty() { String::new() } else { format!("{place}.") };
    // a caller chooses it, and it may be as long as a body
    ApiError::body(format!("{place}{}", shortened(key, NAME_BYTES_MAX)), what)
}

/// Removes the line and column of the parser; the path is more precise.
fn without_place(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Options {
        #[serde(rename = "userId")]
        _user_id: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Body {
        #[serde(default, deserialize_with = "present")]
        input: Option<serde_json::Value>,
        #[serde(rename = "options")]
        _options: Option<Object<Options>>,
    }

    fn refusal(text: &str) -> String {
        parse::<Body>(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn malformed_json_is_named_by_line_and_column() {
        assert_eq!(refusal("{\"input\": }"), "Invalid JSON: expected value at line 1 column 11");
        assert_eq!(refusal(""), "Invalid JSON: EOF while parsing a value at line 1 column 0");
        assert!(refusal("{\"input\":{}} x").starts_with("Invalid JSON: trailing characters"));
        assert!(refusal("{\"options\":5,").starts_with("Invalid JSON: EOF"));
    }

    #[test]
    fn deep_nesting_is_refused_even_in_unknown_keys() {
        for key in ["input", "unknown"] {
            let text = format!("{{\"{key}\":{}{}}}", "[".repeat(200), "]".repeat(200));
            assert!(refusal(&text).starts_with("Invalid JSON: recursion limit exceeded"));
        }
        let brackets_in_text = format!("{{\"input\":\"\\\"{}\"}}", "[".repeat(200));
        assert!(parse::<Body>(brackets_in_text.as_bytes()).is_ok());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_malformed() {
        let error = parse::<Body>(b"{\"other\":\"\xff\"}").unwrap_err();
        assert_eq!(error.to_string(), "Invalid JSON: not UTF-8 after byte 10");
    }

    #[test]
    fn a_wrong_shape_is_named_by_its_path() {
        assert_eq!(
            refusal("{\"options\":{\"userId\":5}}"),
            "Invalid request body: options.userId: invalid type: integer `5`, expected a string"
        );
        assert_eq!(
            refusal("{\"options\":[\"u\"]}"),
            "Invalid request body: options: invalid type: sequence, expected an object"
        );
        assert_eq!(
            refusal("[{}]"),
            "Invalid request body: invalid type: sequence, expected an object"
        );
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Narrow {
        #[serde(rename = "reason")]
        _reason: Option<String>,
        #[serde(rename = "options")]
        _options: Option<Object<NarrowOptions>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NarrowOptions {
        #[serde(rename = "stepId")]
        _step_id: Option<String>,
    }

    impl Closed for Narrow {
        const KEYS: &'static [&'static str] = &["reason", "options", "options.stepId"];
    }

    #[test]
    fn an_unknown_key_is_refused_with_a_suggestion() {
        let rows = [
            (r#"{"stepId":"a"}"#, "stepId: unknown key; did you mean options.stepId?"),
            (r#"{"step_id":"a"}"#, "step_id: unknown key; did you mean options.stepId?"),
            (r#"{"option":{}}"#, "option: unknown key; did you mean options?"),
            (
                r#"{"options":{"stepid":"a"}}"#,
                "options.stepid: unknown key; did you mean options.stepId?",
            ),
            (r#"{"options":{"reason":"a"}}"#, "options.reason: unknown key; did you mean reason?"),
            (r#"{"options":{"x":1}}"#, "options.x: unknown key; known keys: options.stepId"),
            (r#"{"zzzz":1,"reason":5}"#, "zzzz: unknown key; known keys: reason, options"),
        ];
        for (body, what) in rows {
            let refusal = parse_closed::<Narrow>(body.as_bytes()).unwrap_err().to_string();
            assert_eq!(refusal, format!("Invalid request body: {what}"), "for {body}");
        }
        let long = format!("{{\"{}\":1}}", "a".repeat(1 << 20));
        let refusal = parse_closed::<Narrow>(long.as_bytes()).unwrap_err().to_string();
        assert!(refusal.len() < 1024, "{} bytes", refusal.len());
        assert!(parse_closed_or_empty::<Narrow>(b"\n").is_ok());
        assert!(parse_closed::<Narrow>(br#"{"options":{"stepId":"a"},"reason":null}"#).is_ok());
    }

    #[derive(Debug, Deserialize)]
    struct Strict {
        #[serde(rename = "to")]
        _to: String,
        #[serde(rename = "inner")]
        _inner: Option<Object<Inner>>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[serde(rename = "to")]
        _to: Option<String>,
        #[serde(rename = "from")]
        _from: String,
    }

    #[test]
    fn missing_and_repeated_keys_are_named_by_their_path() {
        let rows = [
            ("{}", "to: missing"),
            (r#"{"to":"a","inner":{"to":"b"}}"#, "inner.from: missing"),
            (r#"{"to":"a","to":"b"}"#, "to: is given more than once"),
            (r#"{"to":"a","inner":{"from":"","from":""}}"#, "inner.from: is given more than once"),
        ];
        for (body, what) in rows {
            let refusal = parse::<Strict>(body.as_bytes()).unwrap_err().to_string();
            assert_eq!(refusal, format!("Invalid request body: {what}"), "for {body}");
        }
    }

    #[test]
    fn null_differs_from_absent_and_unknown_keys_are_ignored() {
        let body: Body = parse(b"{\"input\":null,\"more\":1}").unwrap();
        assert_eq!(body.input, Some(serde_json::Value::Null));
        assert!(parse_or_empty::<Body>(b" ").unwrap().input.is_none());
    }
}
