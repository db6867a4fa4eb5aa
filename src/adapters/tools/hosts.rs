//! Hosts that data may choose although they are not public: their names in the configuration.

use std::net::IpAddr;
use std::str::FromStr;

/// A host that data may choose although it is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutgoingHost {
    Address(IpAddr),
    /// Name in lower case, without a final dot.
    Name(String),
    /// Suffix of names, from a dot on: `*.corp`.
    Suffix(String),
}

/// Error for a text that does not name a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a host name, an address or `*.` and the end of names, without a port")]
pub struct InvalidOutgoingHost;

impl FromStr for OutgoingHost {
    type Err = InvalidOutgoingHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(address) = address_of(text) {
            return Ok(Self::Address(address));
        }
        let (is_suffix, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = plain_name(name);
        let is_label = |label: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            !label.is_empty() && label.chars().all(fits)
        };
        match name.split('.').all(is_label) {
            true if is_suffix => Ok(Self::Suffix(format!(".{name}"))),
            true => Ok(Self::Name(name)),
            false => Err(InvalidOutgoingHost),
        }
    }
}

/// Parses the host of a URL as an address; `None` for a name.
pub(super) fn address_of(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// Normalizes a name: `Example.com.` is `example.com`.
pub(super) fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_by_address_name_or_suffix() {
        for text in ["10.0.0.5", "fd00::1", "[fd00::1]", "printer", "A.corp.", "*.corp", "my_host"]
        {
            assert!(text.parse::<OutgoingHost>().is_ok(), "{text}");
        }
        let bad = ["", "*", "*.", "a b", "http://a", "a:80", "10.0.0.0/8", "a..b", "*.*.a", "[::1"];
        for text in bad {
            assert_eq!(text.parse::<OutgoingHost>(), Err(InvalidOutgoingHost), "{text}");
        }
    }
}
