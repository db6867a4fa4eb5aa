//! Reading what a server says with a refusal: the challenge `Bearer` of `WWW-Authenticate` (RFC 6750).

use crate::adapters::mcp::settings::is_scope;

/// Largest header that is read, in bytes.
const HEADER_BYTES_MAX: usize = 8192;
/// Largest scope that is taken over from others, in bytes.
const SCOPE_BYTES_MAX: usize = 2048;

/// Parameters of the challenge `Bearer`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Address of the metadata of the server.
    pub(super) resource_metadata: Option<String>,
    /// Scopes that the request needs.
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads the first challenge `Bearer` of a header.
    pub(super) fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        if header.len() > HEADER_BYTES_MAX {
            return challenge;
        }
        let (mut rest, mut scheme, mut has_begun) = (Scanner(header), "", false);
        while let Some(word) = rest.word() {
            let Some(value) = rest.value() else {
                if has_begun {
                    break;
                }
                scheme = word;
                has_begun = scheme.eq_ignore_ascii_case("bearer");
                continue;
            };
            if !scheme.eq_ignore_ascii_case("bearer") {
                continue;
            }
            match word.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scopes = scopes_of(&value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }
        challenge
    }

    /// Returns true if another scope would be enough.
    pub(super) fn is_of_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Returns the scopes of a text; none if it is too long.
pub(super) fn scopes_of(text: &str) -> Vec<String> {
    if text.len() > SCOPE_BYTES_MAX {
        return Vec::new();
    }
    text.split(' ').filter(|scope| is_scope(scope)).map(str::to_owned).collect()
}

/// Adds scopes that are not there yet, as long as all of them are not too long.
pub(super) fn add_scopes(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        let bytes: usize = scopes.iter().map(|scope| scope.len() + 1).sum();
        if !scopes.contains(scope) && bytes + scope.len() <= SCOPE_BYTES_MAX {
            scopes.push(scope.clone());
        }
    }
}

/// The rest of a header.
struct Scanner<'h>(&'h str);

impl<'h> Scanner<'h> {
    fn skip(&mut self, of: &[char]) {
        self.0 = self.0.trim_start_matches(of);
    }

    /// Takes the next word: a scheme, the name of a parameter, or a token without a name.
    fn word(&mut self) -> Option<&'h str> {
        self.skip(&[' ', '\t', ',']);
        let is_end = |c: char| matches!(c, ' ' | '\t' | ',' | '=' | '"');
        // what belongs to nothing is passed over, one character at a time
        let len = self.0.find(is_end).unwrap_or(self.0.len());
        let len = if len == 0 { self.0.chars().next()?.len_utf8() } else { len };
        let (word, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(word)
    }

    /// Takes the value that follows a name.
    fn value(&mut self) -> Option<String> {
        let after = self.0.trim_start_matches([' ', '\t']).strip_prefix('=')?;
        let after = after.trim_start_matches([' ', '\t']);
        if after.is_empty() || after.starts_with([',', '=']) {
            // the end of a token in base64
            self.0 = after.trim_start_matches('=');
            return None;
        }
        let Some(quoted) = after.strip_prefix('"') else {
            let len = after.find([' ', '\t', ',']).unwrap_or(after.len());
            let (value, rest) = after.split_at(len);
            self.0 = rest;
            return Some(value.to_owned());
        };
        let (mut value, mut chars) = (String::new(), quoted.chars());
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('"') | None => break,
                Some(char) => value.push(char),
            }
        }
        self.0 = chars.as_str();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let none = || (None, "", false);
        for (header, (metadata, scopes, is_of_scope)) in [
            ("", none()),
            ("Bearer", none()),
            ("Basic realm=\"a, Bearer scope=b\"", none()),
            ("=,\"\\", none()),
            ("Bearer resource_metadata=\"https://a/b\"", (Some("https://a/b"), "", false)),
            ("bearer Resource_Metadata = https://a/b", (Some("https://a/b"), "", false)),
            (
                "Basic realm=\"x\", Bearer error=\"insufficient_scope\", scope=\"a b\" ,\
                 resource_metadata=\"https://a\"",
                (Some("https://a"), "a b", true),
            ),
            ("Negotiate YWJj==, Bearer scope=\"a\"", (None, "a", false)),
            ("Bearer scope=\"a\", Basic scope=\"b\", realm=\"c\"", (None, "a", false)),
            ("Bearer error=\"invalid_\\token\", scope=\"a\\\"b  c\"", (None, "c", false)),
            ("Bearer scope=\"a", (None, "a", false)),
        ] {
            let read = Challenge::read(header);
            assert_eq!(read.resource_metadata.as_deref(), metadata, "{header}");
            assert_eq!(read.scopes.join(" "), scopes, "{header}");
            assert_eq!(read.is_of_scope(), is_of_scope, "{header}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        for (len, count) in [(SCOPE_BYTES_MAX, 1), (SCOPE_BYTES_MAX + 1, 0)] {
            assert_eq!(scopes_of(&"a".repeat(len)).len(), count);
        }
        for (len, count) in [(HEADER_BYTES_MAX, 1), (HEADER_BYTES_MAX + 1, 0)] {
            let header = format!("{:len$}", "Bearer scope=a", len = len);
            assert_eq!(Challenge::read(&header).scopes.len(), count);
        }
        let mut scopes = vec!["a".to_owned()];
        let long = "b".repeat(SCOPE_BYTES_MAX - 2);
        add_scopes(&mut scopes, &["a".to_owned(), long, "c".to_owned()]);
        assert_eq!(scopes.len(), 2);
    }
}
