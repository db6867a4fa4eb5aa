//! `[cors]`: web pages of other origins that may call.

use super::entry::Entry;
use super::keys::{Takes, section};

section! {
    /// Web pages of other origins that may call.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CorsConfig {
        /// Origins of web pages that may call: `scheme://host`, `scheme://host:port` or
        /// `scheme://host:*`; `"*"` allows every page. The server's own origin is always allowed.
        origins: Vec<String> = ["http://localhost:*", "http://127.0.0.1:*"].map(str::to_owned).into(),
            Takes::Texts(origins, "an array of origins");
    }
}

fn origins(entry: &Entry<'_>) -> Option<Vec<String>> {
    let items = entry.items()?;
    let origins: Vec<_> = items.iter().map(origin).collect();
    origins.into_iter().collect()
}

fn origin(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?;
    if text == "*" || is_origin(&text) {
        return Some(text);
    }
    entry.refuse("must be an origin such as \"https://app.example\", without a path")
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    // an IPv6 host contains colons, within brackets
    let after_host = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_host..].split_once(':') {
        Some((rest, port)) => (&authority[..after_host + rest.len()], Some(port)),
        None => (authority, None),
    };
    let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    !scheme.is_empty()
        && scheme.chars().all(is_scheme_char)
        && !host.is_empty()
        && host.chars().all(is_host_char)
        && port.is_none_or(|port| port == "*" || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_no_path() {
        for good in ["http://localhost:*", "https://app.example", "http://[::1]:80", "app://x"] {
            assert!(is_origin(good), "{good} was refused");
        }
        for bad in ["localhost", "http://", "http://a/", "http://a:b", "https://*.example", ""] {
            assert!(!is_origin(bad), "{bad} was accepted");
        }
    }
}
