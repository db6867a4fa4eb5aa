//! A token taken apart, before anything in it is believed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};

use super::json;
use crate::auth::AuthError;

/// Longest token, in bytes. Longer ones are refused unread.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Longest name of a key, in characters.
const KID_CHARS_MAX: usize = 200;

/// What is no JWT at all, or a broken one.
pub(super) const MALFORMED: &str = "jwt malformed";

/// Parameters of a header that change how the rest is to be read: who does not know what they
/// mean must refuse, and here they mean nothing.
const UNSUPPORTED: [(&str, &str); 4] = [
    ("crit", "unsupported header crit"),
    ("b64", "unsupported header b64"),
    ("zip", "unsupported header zip"),
    ("enc", "unsupported header enc"),
];

/// The parts of a token. Its header is read, its claims are not yet.
#[derive(Debug)]
pub(super) struct Token<'t> {
    pub(super) header: Header,
    /// What the signature is of: header and claims, as they came.
    pub(super) signed: &'t str,
    pub(super) signature: &'t str,
    claims: &'t str,
}

/// What counts of a header. Keys and addresses of keys in it (`jwk`, `jku`, `x5c`, `x5u`) do not.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// `None` for every name but the exact one of an algorithm that can be checked.
    pub(super) algorithm: Option<Algorithm>,
    /// Which key of a set.
    pub(super) kid: Option<String>,
}

impl<'t> Token<'t> {
    pub(super) fn take_apart(text: &'t str) -> Result<Self, AuthError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(AuthError::Malformed("token too large"));
        }
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(AuthError::Malformed(MALFORMED));
        };
        if claims.is_empty() || signature.is_empty() {
            return Err(AuthError::invalid(MALFORMED));
        }
        let signed = &text[..header.len() + 1 + claims.len()];
        let header = Header::read(&object(header)?)?;
        Ok(Self { header, signed, signature, claims })
    }

    /// Reads the claims: not before the signature was found to be good.
    pub(super) fn claims(&self) -> Result<Map<String, Value>, AuthError> {
        object(self.claims)
    }
}

impl Header {
    fn read(header: &Map<String, Value>) -> Result<Self, AuthError> {
        if let Some((_, reason)) = UNSUPPORTED.iter().find(|(name, _)| header.contains_key(*name)) {
            return Err(AuthError::invalid(*reason));
        }
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) if is_kid(kid) => Some(kid.clone()),
            Some(_) => return Err(AuthError::invalid("invalid header kid")),
        };
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(|it| it.parse().ok());
        Ok(Self { algorithm, kid })
    }
}

/// Whether a text may name a key.
fn is_kid(text: &str) -> bool {
    text.chars().count() <= KID_CHARS_MAX && !text.chars().any(char::is_control)
}

fn object(part: &str) -> Result<Map<String, Value>, AuthError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    bytes.and_then(|bytes| json::object(&bytes)).ok_or_else(|| AuthError::invalid(MALFORMED))
}
