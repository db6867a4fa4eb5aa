//! The token that the guarded server takes.

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;

/// Where the guarded server finds its secret.
pub(crate) const SECRET_VARIABLE: &str = "JWT_SECRET";
/// Of this program alone.
pub(crate) const SECRET: &str = "only-for-measuring-0123456789abcdef";

/// A token as identity providers give it: a subject, an address, roles, an end.
pub(crate) fn signed() -> String {
    let claims = json!({
        "sub": "ada",
        "email": "ada@example.com",
        "roles": ["staff"],
        "exp": jsonwebtoken::get_current_timestamp() + 24 * 3600,
    });
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    // The header and the claims are made here: nothing can fail but a lack of memory.
    encode(&Header::default(), &claims, &key).unwrap_or_default()
}
