//! Answers that cannot be taken as they are: replaced by an error, so that their calls end at once, or
//! mended where only a hint is wrong.

use std::borrow::Cow;
use std::fmt;

use greenroom_actors::domain::foreign::{RESERVED_KEY, reserved_key_at};
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::adapters::mcp::connection::faults::Findings;

/// Hint of a task that is left out unless it is a whole number.
const POLL_INTERVAL: &str = "pollIntervalMs";

/// A notification without effect.
const NOTHING: &str = r#"{"jsonrpc":"2.0","method":"notifications/unreadable"}"#;

/// Parts of a message that are seen before it is read.
#[derive(Deserialize)]
struct Seen {
    id: Option<Number>,
    method: Option<IgnoredAny>,
    result: Option<Form>,
    error: Option<Form>,
}

/// Id of a message of ours, which are numbers; other ones are not known.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Known(i64),
    Other(IgnoredAny),
}

/// Form of a part, which is not read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Object,
    Other,
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(FormVisitor)
    }
}

struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Form, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Form::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Form, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Form::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Form, E> {
        Ok(Form::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Form, E> {
        Ok(Form::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Form, E> {
        Ok(Form::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Form, E> {
        Ok(Form::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Form, E> {
        Ok(Form::Other)
    }
}

/// Returns what is read in place of a message; `None`: the message as it is. One that cannot be read is
/// noted.
pub(crate) fn in_place_of(message: &[u8], findings: &Findings) -> Option<String> {
    let text = String::from_utf8_lossy(message);
    let is_text = matches!(text, Cow::Borrowed(_));
    let is_reserved = reserved_key_at(&text).is_some();
    let seen = match serde_json::from_str::<Seen>(&text) {
        Ok(seen) => seen,
        Err(error) => {
            let why = match text.trim_start().starts_with('[') {
                true => "it is a batch".to_owned(),
                false => error.to_string(),
            };
            findings.unreadable(&why);
            return is_reserved.then(|| NOTHING.to_owned());
        }
    };
    let Seen { id, method: None, result, error } = seen else {
        // a request of the server gets no answer
        return is_reserved.then(|| NOTHING.to_owned());
    };
    // they are absent, or null
    let has_null = result.is_none() && error.is_none();
    let is_other = |part: Option<Form>| part == Some(Form::Other);
    let problem = match () {
        () if !is_text => Some("it is not UTF-8".to_owned()),
        () if is_reserved => Some(format!("the key {RESERVED_KEY} is reserved")),
        () if has_null => Some("it has neither a result nor an error".to_owned()),
        () if is_other(result) => Some("its result is not an object".to_owned()),
        () if is_other(error) => Some("its error is not an object".to_owned()),
        // the only texts of valid JSON that may not be readable
        () if text.contains("\\u") => {
            let read = serde_json::from_str::<ServerJsonRpcMessage>(&text);
            read.err().map(|error| error.to_string())
        }
        () => None,
    };
    match (problem, id) {
        (None, _) => result.and_then(|_| without_bad_interval(&text)),
        (Some(why), id) => {
            findings.unreadable(&why);
            let Number::Known(id) = id? else { return is_reserved.then(|| NOTHING.to_owned()) };
            let message = format!("the answer of the server cannot be read: {why}");
            let error = json!({ "code": ErrorCode::INTERNAL_ERROR.0, "message": message });
            Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        }
    }
}

/// Returns a message without its suggested interval, if that is none.
fn without_bad_interval(text: &str) -> Option<String> {
    if !text.contains(POLL_INTERVAL) {
        return None;
    }
    let mut message: Value = serde_json::from_str(text).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    let is_bad = result.get(POLL_INTERVAL).is_some_and(|interval| interval.as_u64().is_none());
    if !is_bad {
        return None;
    }
    result.shift_remove(POLL_INTERVAL);
    Some(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Option<Value> {
        let read = in_place_of(message, &Findings::default());
        read.map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn answers_that_cannot_be_read_become_errors() {
        for (message, part) in [
            (&br#"{"jsonrpc":"2.0","id":7,"result":[]}"#[..], "its result is not an object"),
            (br#"{"jsonrpc":"2.0","id":7,"result":"a"}"#, "its result is not an object"),
            (br#"{"jsonrpc":"2.0","id":7,"error":null}"#, "neither a result nor an error"),
            (br#"{"jsonrpc":"2.0","id":7,"error":"no"}"#, "its error is not an object"),
            (br#"{"jsonrpc":"2.0","id":7,"result":{"a":"\ud800"}}"#, "hex escape"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}", "not UTF-8"),
            (
                br#"{"jsonrpc":"2.0","id":7,"result":{"$serde_json::private::RawValue":"1"}}"#,
                "is reserved",
            ),
        ] {
            let text = String::from_utf8_lossy(message).into_owned();
            let Some(read) = read(message) else { panic!("{text}") };
            assert_eq!(read["id"], 7, "{text}");
            let why = read["error"]["message"].as_str().unwrap();
            assert!(why.contains(part), "{text}: {why}");
            assert!(serde_json::from_value::<ServerJsonRpcMessage>(read.clone()).is_ok(), "{read}");
        }
    }

    #[test]
    fn other_messages_with_a_reserved_key_are_ignored() {
        for message in [
            &br#"{"jsonrpc":"2.0","method":"x","params":{"$serde_json::private::RawValue":"1"}}"#[..],
            br#"{"jsonrpc":"2.0","id":"a","result":{"$serde_json::private::RawValue":"1"}}"#,
            br#"{"jsonrpc":"2.0","id":7,"id":7,"result":{"$serde_json::private::RawValue":"1"}}"#,
        ] {
            assert_eq!(read(message).unwrap()["method"], "notifications/unreadable");
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for message in [
            &br#"{"jsonrpc":"2.0","id":7,"result":{}}"#[..],
            br#"{"jsonrpc":"2.0","id":7,"result":{"a":"\u00e4","content":[]}}"#,
            br#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#,
            br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":"\ud800"}}"#,
            br#"{"jsonrpc":"2.0","id":7,"result":{"taskId":"a","pollIntervalMs":5}}"#,
            // without an id that can be read, no call can end
            br#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            br#"{"jsonrpc":"2.0","id":7,"result":{"#,
            b"{}",
        ] {
            assert_eq!(read(message), None, "{}", String::from_utf8_lossy(message));
        }
    }

    #[test]
    fn an_interval_that_is_none_is_left_out() {
        for interval in ["-5", "0.5", "\"x\"", "null"] {
            let message = format!(
                r#"{{"jsonrpc":"2.0","id":7,"result":{{"taskId":"a","pollIntervalMs":{interval}}}}}"#
            );
            let expected = json!({ "jsonrpc": "2.0", "id": 7, "result": { "taskId": "a" } });
            assert_eq!(read(message.as_bytes()), Some(expected), "{interval}");
        }
    }
}
