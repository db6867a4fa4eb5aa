//! Keys of providers, and their removal from all texts.

use std::fmt;

use reqwest::header::HeaderValue;

/// Replacement for a secret.
const REMOVED: &str = "[removed]";

/// Prefixes of keys of the large providers.
const KEY_PREFIXES: [&str; 6] = ["sk-", "gsk_", "xai-", "AIza", "key-", "fw_"];

/// Names before a secret, with the separator.
const BEFORE_SECRETS: [&str; 7] =
    ["bearer ", "key=", "api_key=", "api-key: ", "access_token=", "token=", "basic "];

/// A key; only headers get it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Accepts a key unless it is empty or has characters that a header cannot hold. Surrounding
    /// white space is removed: files and shells add it.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty() && HeaderValue::from_str(key).is_ok()).then(|| Self(key.to_owned()))
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the key as a header value that the HTTP client does not log.
    pub(super) fn header(&self) -> HeaderValue {
        let mut value =
            HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Removes the key, and anything that looks like a key, from a text.
pub(super) fn redacted(text: &str, key: Option<&ApiKey>) -> String {
    let text = match key {
        Some(ApiKey(key)) => {
            let encoded: String = reqwest::Url::parse("http://x/")
                .map(|mut url| {
                    url.query_pairs_mut().append_key_only(key);
                    url.query().unwrap_or_default().to_owned()
                })
                .unwrap_or_default();
            let text = text.replace(key.as_str(), REMOVED);
            if encoded.is_empty() { text } else { text.replace(&encoded, REMOVED) }
        }
        None => text.to_owned(),
    };
    without_suspects(&text)
}

/// Returns true for a character that ends a key.
fn ends_key(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '&' | '<' | '>' | ')' | '}' | ']')
}

fn without_suspects(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let name_before = BEFORE_SECRETS.iter().find(|name| lower[at..].starts_with(**name));
        let is_begin = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let begins_key =
            is_begin && KEY_PREFIXES.iter().any(|prefix| text[at..].starts_with(prefix));
        let secret_at = match name_before {
            Some(name) => Some(at + name.len()),
            None => begins_key.then_some(at),
        };
        let Some(start) = secret_at else {
            let next = text[at..].chars().next().map_or(1, char::len_utf8);
            clean.push_str(&text[at..at + next]);
            at += next;
            continue;
        };
        let rest = &text[start..];
        let end = rest.find(ends_key).unwrap_or(rest.len());
        clean.push_str(&text[at..start]);
        // a short word is prose: "bearer token"
        let is_secret = end >= 8 && !rest.starts_with(REMOVED);
        clean.push_str(if is_secret { REMOVED } else { &rest[..end] });
        at = start + end;
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_removed_from_texts() {
        let key = ApiKey::new(" can+ary/0123 \n").unwrap();
        let rows = [
            ("no: can+ary/0123!", "no: [removed]!"),
            ("https://x/?key=can%2Bary%2F0123&a=1", "https://x/?key=[removed]&a=1"),
            ("Authorization: Bearer abcdefgh12", "Authorization: Bearer [removed]"),
            ("invalid bearer token", "invalid bearer token"),
            ("Incorrect key: sk-ab****wxyz. Look", "Incorrect key: [removed] Look"),
            ("\"x-api-key: 0123456789\"", "\"x-api-key: [removed]\""),
            ("disk-full, monkey=1234567", "disk-full, monkey=1234567"),
            ("größe AIzaSyExample", "größe [removed]"),
        ];
        for (text, expected) in rows {
            assert_eq!(redacted(text, Some(&key)), expected);
        }
        assert_eq!(redacted("can+ary/0123", None), "can+ary/0123");
    }

    #[test]
    fn debug_output_does_not_show_the_key() {
        let key = ApiKey::new("canary").unwrap();
        assert_eq!(format!("{key:?} {:?}", key.header()), "ApiKey(..) Sensitive");
        for unusable in ["", "  ", "a\nb", "\u{7f}"] {
            assert_eq!(ApiKey::new(unusable), None);
        }
    }
}
