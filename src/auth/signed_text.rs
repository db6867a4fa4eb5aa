//! Payloads with a signature behind them, which this server recognizes: HMAC-SHA256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Least bytes of a secret, as of those that sign tokens of the API.
pub(super) const SECRET_BYTES_MIN: usize = 32;

/// Longest text of those whose payload has a few hundred bytes.
pub(super) const TEXT_BYTES_MAX: usize = 2048;

/// Creates a key from a secret. The error completes a sentence about the secret.
pub(super) fn key_of(secret: &[u8]) -> Result<Hmac<Sha256>, String> {
    match secret.len() {
        0 => Err("is not set".to_owned()),
        1..SECRET_BYTES_MIN => Err(format!("has less than {SECRET_BYTES_MIN} bytes")),
        _ => Hmac::new_from_slice(secret).map_err(|error| error.to_string()),
    }
}

/// Returns a payload with its signature, in characters that need no escape in an address. `signing`
/// makes the signature of the encoded payload.
pub(super) fn signed(payload: &[u8], signing: impl FnOnce(&str) -> Hmac<Sha256>) -> String {
    let payload = URL_SAFE_NO_PAD.encode(payload);
    let signature = URL_SAFE_NO_PAD.encode(signing(&payload).finalize().into_bytes());
    format!("{payload}.{signature}")
}

/// Returns the payload of a text of at most `bytes_max` bytes; `None` if its signature is not the one
/// that `signing` makes.
pub(super) fn opened(
    text: &str,
    bytes_max: usize,
    signing: impl FnOnce(&str) -> Hmac<Sha256>,
) -> Option<Vec<u8>> {
    let text = Some(text).filter(|text| text.len() <= bytes_max)?;
    let (payload, signature) = text.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    // in constant time
    signing(payload).verify_slice(&signature).ok()?;
    URL_SAFE_NO_PAD.decode(payload).ok()
}
