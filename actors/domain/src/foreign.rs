//! JSON that comes from outside of the process.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Result};

/// Key of an object in whose place the parser takes the JSON in the text of its member, and parses it
/// without counting the levels around it. It does so once any crate of a program turns on its feature
/// `raw_value`.
pub const RESERVED_KEY: &str = "$serde_json::private::RawValue";

/// Parses JSON without [`RESERVED_KEY`].
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T> {
    match reserved_key_at(text) {
        None => serde_json::from_str(text),
        Some(_) => Err(Error::custom(format!("the key {RESERVED_KEY} is reserved"))),
    }
}

/// Parses JSON without [`RESERVED_KEY`].
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// Returns the index of the first text that is [`RESERVED_KEY`], in text that may be JSON.
pub fn reserved_key_at(text: &str) -> Option<usize> {
    // its characters can only be written as they are, or with this escape
    if !text.contains("RawValue") && !text.contains("\\u") {
        return None;
    }
    let (mut begin, mut is_escaped) = (None, false);
    for (index, byte) in text.bytes().enumerate() {
        match (byte, begin) {
            _ if is_escaped => is_escaped = false,
            (b'\\', Some(_)) => is_escaped = true,
            (b'"', None) => begin = Some(index),
            (b'"', Some(start)) if is_reserved(&text[start..=index]) => return Some(start),
            (b'"', Some(_)) => begin = None,
            _ => {}
        }
    }
    None
}

/// Returns true for the key as JSON, with its quotes. An escape has six characters.
fn is_reserved(quoted: &str) -> bool {
    let lengths = RESERVED_KEY.len() + 2..=RESERVED_KEY.len() * 6 + 2;
    lengths.contains(&quoted.len())
        && serde_json::from_str::<String>(quoted).is_ok_and(|text| text == RESERVED_KEY)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_key_is_refused_however_it_is_written() {
        let escaped: String =
            RESERVED_KEY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let begin = RESERVED_KEY.replacen('$', "\\u0024", 1);
        for key in [RESERVED_KEY, &begin, &escaped] {
            let text = format!(r#"{{"a\"":[{{"{key}":"1"}}]}}"#);
            assert_eq!(reserved_key_at(&text), Some(9), "{text}");
            let refused = from_str::<Value>(&text).unwrap_err().to_string();
            assert!(refused.contains("is reserved"), "{refused}");
            assert!(from_slice::<Value>(text.as_bytes()).is_err());
        }
        let texts = [
            json!({ "RawValue": "\u{1}", "text": format!("{RESERVED_KEY}s \"{RESERVED_KEY}") }),
            json!([format!("x{RESERVED_KEY}"), "private::RawValue\\"]),
        ];
        for value in texts {
            assert_eq!(from_str::<Value>(&value.to_string()).unwrap(), value);
        }
    }
}
