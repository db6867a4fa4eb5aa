//! Ids that are segments of paths: of users, conversations, workflows, agents and generations.

use std::borrow::Cow;
use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api::error::ApiError;

/// Maximum length of an id, in characters.
const ID_CHARS_MAX: usize = 200;

/// Returns true if a decoded text is a valid id.
pub fn is_id(text: &str) -> bool {
    wrong_with(text).is_none()
}

/// Checks an id at `place` in a body.
pub fn check_id(place: &str, text: &str) -> Result<(), ApiError> {
    wrong_with(text).map_or(Ok(()), |what| Err(ApiError::body(place, what)))
}

/// Returns the rule for ids that a text breaks, if any.
pub fn wrong_with(text: &str) -> Option<String> {
    wrong_with_line(text, ID_CHARS_MAX).or_else(|| {
        // clients resolve dot segments as folders
        let fits_path = !text.contains('/') && text != "." && text != "..";
        (!fits_path).then(|| "must not contain / and must not be . or ..".to_owned())
    })
}

/// Returns the rule for lines of at most `chars_max` characters that a text breaks, if any.
pub fn wrong_with_line(text: &str, chars_max: usize) -> Option<String> {
    let fits = (1..=chars_max).contains(&text.chars().count());
    let is_line = fits && !text.chars().any(char::is_control);
    (!is_line).then(|| format!("must be 1 to {chars_max} characters, no control characters"))
}

/// Decodes a segment of a path; `None` if it is not a valid id.
pub fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let text = if raw.contains('%') {
        Cow::Owned(String::from_utf8(percent_decode(raw.as_bytes())?).ok()?)
    } else {
        Cow::Borrowed(raw)
    };
    is_id(&text).then_some(text)
}

/// Encodes an id as a segment of a path.
pub fn encode(id: &str) -> impl Display {
    const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(id, SAFE)
}

fn percent_decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(*bytes.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                decoded.push(u8::try_from(value).ok()?);
            }
            other => decoded.push(*other),
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_a_path_are_valid() {
        let longest = "ü".repeat(ID_CHARS_MAX);
        for text in ["a", "ann@example.com", "a b", "...", longest.as_str()] {
            assert!(is_id(text), "{text:?}");
        }
        let too_long = format!("{longest}x");
        let rows = [
            ("", "must be 1 to 200 characters, no control characters"),
            (too_long.as_str(), "must be 1 to 200 characters, no control characters"),
            ("a\nb", "must be 1 to 200 characters, no control characters"),
            ("a/b", "must not contain / and must not be . or .."),
            (".", "must not contain / and must not be . or .."),
            ("..", "must not contain / and must not be . or .."),
        ];
        for (text, what) in rows {
            let refused = check_id("id", text).unwrap_err().to_string();
            assert_eq!(refused, format!("Invalid request body: id: {what}"), "{text:?}");
        }
    }

    #[test]
    fn an_id_is_decoded_once() {
        assert_eq!(decode("order").as_deref(), Some("order"));
        assert_eq!(decode("%74ext").as_deref(), Some("text"));
        assert_eq!(decode("a%20b").as_deref(), Some("a b"));
        assert_eq!(decode("%25ff").as_deref(), Some("%ff"));
        assert_eq!(decode("%C3%A9").as_deref(), Some("é"));
        assert_eq!(decode("a+b").as_deref(), Some("a+b"));
    }

    #[test]
    fn an_invalid_segment_is_not_decoded() {
        let long = "x".repeat(201);
        let refused =
            ["", "%ff", "%zz", "%4", "%", "%+1", "%00", "%0d%0a", "a%2Fb", "%7f", long.as_str()];
        for raw in refused {
            assert_eq!(decode(raw), None, "{raw:?} was accepted");
        }
        assert!(decode(&long[..200]).is_some());
    }
}
