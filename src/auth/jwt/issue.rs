//! Tokens that this program signs itself, and the content of tokens before it is trusted.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Map, Value};

use super::token::{Token, object};
use crate::auth::AuthError;

/// Signs claims with a secret. `algorithm` is one of HS256, HS384 and HS512.
pub(crate) fn sign(
    claims: &Map<String, Value>,
    secret: &[u8],
    algorithm: Algorithm,
) -> Result<String, String> {
    let key = EncodingKey::from_secret(secret);
    encode(&Header::new(algorithm), claims, &key).map_err(|error| error.to_string())
}

/// Header and claims of a token whose signature was not verified.
#[derive(Debug, PartialEq)]
pub(crate) struct Unverified {
    pub(crate) header: Map<String, Value>,
    pub(crate) claims: Map<String, Value>,
}

impl Unverified {
    /// Reads a token. Returns an error if it is not a JSON Web Token.
    pub(crate) fn read(text: &str) -> Result<Self, AuthError> {
        let token = Token::split(text)?;
        let header = text.split('.').next().unwrap_or_default();
        Ok(Self { header: object(header)?, claims: token.claims()? })
    }
}
