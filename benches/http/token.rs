//! The token of the guarded server.

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;

/// Environment variable with the secret of the guarded server.
pub(crate) const SECRET_VARIABLE: &str = "JWT_SECRET";
/// Secret for benches only.
pub(crate) const SECRET: &str = "only-for-measuring-0123456789abcdef";

/// Makes a token like those of identity providers: subject, email address, roles, expiry.
pub(crate) fn signed() -> String {
    let claims = json!({
        "sub": "ada",
        "email": "ada@example.com",
        "roles": ["staff"],
        "exp": jsonwebtoken::get_current_timestamp() + 24 * 3600,
    });
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    // cannot fail: the header and the claims are valid
    encode(&Header::default(), &claims, &key).unwrap_or_default()
}
