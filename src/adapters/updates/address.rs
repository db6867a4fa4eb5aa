//! The address of a package registry.

use std::str::FromStr;

use url::Url;

/// URL of an index; ends with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryAddress(pub(super) Url);

/// Reason why a text is not the URL of an index. Repeats nothing of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRegistryAddress {
    #[error("must begin with https://, http:// or sparse+https://")]
    Scheme,
    #[error("must not hold a user name or a password")]
    Credentials,
    #[error("must end with a path")]
    Tail,
    #[error("is not a valid address: {0}")]
    Malformed(String),
}

impl FromStr for RegistryAddress {
    type Err = InvalidRegistryAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix("sparse+").unwrap_or(text);
        let slash = if text.ends_with('/') { "" } else { "/" };
        let url = Url::parse(&format!("{text}{slash}"))
            .map_err(|error| InvalidRegistryAddress::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            Err(InvalidRegistryAddress::Scheme)
        } else if url.password().is_some() || !url.username().is_empty() {
            Err(InvalidRegistryAddress::Credentials)
        } else if url.query().is_some() || url.fragment().is_some() {
            Err(InvalidRegistryAddress::Tail)
        } else {
            Ok(Self(url))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_url_has_no_credentials_and_no_query() {
        use InvalidRegistryAddress::{Credentials, Scheme, Tail};
        let home = "https://index.example/";
        let rows = [
            ("https://index.example", Ok(home)),
            ("https://index.example/", Ok(home)),
            ("sparse+https://index.example/", Ok(home)),
            ("http://127.0.0.1:8080/a/b", Ok("http://127.0.0.1:8080/a/b/")),
            ("ftp://index.example", Err(Scheme)),
            ("file:///srv/index", Err(Scheme)),
            ("git+https://index.example", Err(Scheme)),
            ("https://ann@index.example", Err(Credentials)),
            ("https://ann:pw@index.example", Err(Credentials)),
            ("https://index.example/?token=1", Err(Tail)),
            ("https://index.example/#x", Err(Tail)),
        ];
        for (text, expected) in rows {
            let parsed = text.parse::<RegistryAddress>().map(|address| address.0.to_string());
            assert_eq!(parsed, expected.map(str::to_owned), "{text}");
        }
        for text in ["", "index.example", "sparse+", "https://", "https://a b"] {
            let refusal = text.parse::<RegistryAddress>().unwrap_err();
            assert!(matches!(refusal, InvalidRegistryAddress::Malformed(_)), "{text}: {refusal}");
        }
    }
}
