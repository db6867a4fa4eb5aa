//! A token split into its parts, before anything in it is trusted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use greenroom_actors::domain::foreign;
use greenroom_actors::domain::nesting::check_members_depth;
use jsonwebtoken::Algorithm;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::auth::AuthError;

/// Longest token, in bytes. Longer ones are refused unread.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Longest key id, in characters.
const KID_CHARS_MAX: usize = 200;

/// Deepest nesting of claims. Users put values into contexts, which are recorded: they must stay
/// far below the bound of recorded values.
const CLAIMS_DEPTH_MAX: usize = 16;

/// Reason for a text that is not a valid JWT.
pub(super) const MALFORMED: &str = "jwt malformed";

/// The parts of a token. The header is read, the claims are not.
#[derive(Debug)]
pub(super) struct Token<'t> {
    pub(super) header: Header,
    /// The signed bytes: header and claims, as received.
    pub(super) signed: &'t str,
    pub(super) signature: &'t str,
    claims: &'t str,
}

/// The header. Keys and addresses of keys in it (`jwk`, `jku`, `x5c`, `x5u`) are ignored.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// `None` unless the name is exactly that of a known algorithm.
    pub(super) algorithm: Option<Algorithm>,
    /// Id of a key in a set.
    pub(super) kid: Option<String>,
}

/// Parameters of a header that matter. A parameter that is present twice is an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    #[serde(deserialize_with = "present")]
    alg: Option<Value>,
    #[serde(deserialize_with = "present")]
    kid: Option<Value>,
    // these change the meaning of the rest; servers that do not support them must refuse the token
    #[serde(deserialize_with = "present")]
    crit: Option<Value>,
    #[serde(deserialize_with = "present")]
    b64: Option<Value>,
    #[serde(deserialize_with = "present")]
    zip: Option<Value>,
    #[serde(deserialize_with = "present")]
    enc: Option<Value>,
}

/// Reads a value that is present, also null.
fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(reader).map(Some)
}

impl<'t> Token<'t> {
    pub(super) fn split(text: &'t str) -> Result<Self, AuthError> {
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
        let header = Header::read(object(header)?)?;
        Ok(Self { header, signed, signature, claims })
    }

    /// Reads the claims; to be called only after the signature was verified.
    pub(super) fn claims(&self) -> Result<Map<String, Value>, AuthError> {
        let claims: Map<String, Value> = object(self.claims)?;
        let depth = check_members_depth(&claims, CLAIMS_DEPTH_MAX);
        depth.map_err(|_| AuthError::invalid(MALFORMED))?;
        Ok(claims)
    }
}

impl Header {
    fn read(header: Parameters) -> Result<Self, AuthError> {
        let Parameters { alg, kid, crit, b64, zip, enc } = header;
        let unsupported = [
            (crit, "unsupported header crit"),
            (b64, "unsupported header b64"),
            (zip, "unsupported header zip"),
            (enc, "unsupported header enc"),
        ];
        if let Some((_, reason)) = unsupported.into_iter().find(|(value, _)| value.is_some()) {
            return Err(AuthError::invalid(reason));
        }
        let kid = match kid {
            None => None,
            Some(Value::String(kid)) if is_kid(&kid) => Some(kid),
            Some(_) => return Err(AuthError::invalid("invalid header kid")),
        };
        let algorithm = alg.as_ref().and_then(Value::as_str).and_then(|it| it.parse().ok());
        Ok(Self { algorithm, kid })
    }
}

/// Returns true if a text is valid as the id of a key.
fn is_kid(text: &str) -> bool {
    text.chars().count() <= KID_CHARS_MAX && !text.chars().any(char::is_control)
}

/// Reads a part as an object. Serde would also read a struct from an array.
pub(super) fn object<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, AuthError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    let bytes = bytes.filter(|bytes| bytes.trim_ascii_start().starts_with(b"{"));
    let read = bytes.and_then(|bytes| foreign::from_slice(&bytes).ok());
    read.ok_or_else(|| AuthError::invalid(MALFORMED))
}
