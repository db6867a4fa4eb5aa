//! Tokens that this program signs itself, and the content of tokens before it is trusted.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Map, Value};

use super::token::{TOKEN_BYTES_MAX, object};

/// Signs claims with a secret. `algorithm` is one of HS256, HS384 and HS512.
pub(crate) fn sign(
    claims: &Map<String, Value>,
    secret: &[u8],
    algorithm: Algorithm,
) -> Result<String, String> {
    let key = EncodingKey::from_secret(secret);
    encode(&Header::new(algorithm), claims, &key).map_err(|error| error.to_string())
}

/// Header and claims of a token whose signature was not verified, as far as they can be read.
#[derive(Debug, PartialEq)]
pub(crate) struct Unverified {
    pub(crate) header: Option<Map<String, Value>>,
    pub(crate) claims: Option<Map<String, Value>>,
}

impl Unverified {
    /// Reads the parts of a token, also of one that no server accepts.
    pub(crate) fn read(text: &str) -> Self {
        // longer ones are refused unread
        let text = if text.len() > TOKEN_BYTES_MAX { "" } else { text };
        let mut parts = text.split('.').map(|part| object(part).ok());
        Self { header: parts.next().flatten(), claims: parts.next().flatten() }
    }
}
