//! Tokens that are signed by this server, for those who have no token of the API.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::signed_text::{TEXT_BYTES_MAX, key_of, opened, signed};

/// Longest time that a link is good for.
pub const LINK_TTL_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Keeps signatures of links apart from others that are made with the same secret.
const PURPOSE: &[u8] = b"greenroom inbox link\n";

/// Signs what links say, and recognizes it: HMAC-SHA256.
#[derive(Clone)]
pub struct LinkKey(Hmac<Sha256>);

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey")
    }
}

impl LinkKey {
    /// Creates a key from a secret. The error completes a sentence about the secret.
    pub fn new(secret: &[u8]) -> Result<Self, String> {
        key_of(secret).map(Self)
    }

    /// Returns a token of characters that need no escape in an address.
    pub fn sign(&self, payload: &[u8]) -> String {
        signed(payload, |payload| self.signing(payload))
    }

    /// Returns the payload of a token; `None` if it was not signed with this key.
    pub fn open(&self, token: &str) -> Option<Vec<u8>> {
        opened(token, TEXT_BYTES_MAX, |payload| self.signing(payload))
    }

    fn signing(&self, payload: &str) -> Hmac<Sha256> {
        self.0.clone().chain_update(PURPOSE).chain_update(payload)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_has_what_was_signed() {
        let key = LinkKey::new(SECRET).unwrap();
        let token = key.sign("zoë?".as_bytes());
        assert_eq!(key.open(&token).as_deref(), Some("zoë?".as_bytes()));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    }

    #[test]
    fn tokens_that_were_not_made_here_are_refused() {
        let key = LinkKey::new(SECRET).unwrap();
        let good = key.sign(b"payload");
        let (payload, signature) = good.split_once('.').unwrap();
        let other = LinkKey::new(b"another secret of 32 bytes or mor").unwrap();
        let bad = [
            String::new(),
            ".".to_owned(),
            payload.to_owned(),
            format!("{payload}."),
            format!(".{signature}"),
            format!("{payload}.{}", &signature[1..]),
            format!("{payload}.{signature}="),
            format!("{payload}.{signature}.{signature}"),
            format!("{}.{signature}", &payload[1..]),
            format!("{}.{signature}", URL_SAFE_NO_PAD.encode("payloads")),
            other.sign(b"payload"),
            key.sign(&[0; TEXT_BYTES_MAX]),
        ];
        for bad in bad {
            assert_eq!(key.open(&bad), None, "{bad:?} was accepted");
        }
        for at in 0..good.len() {
            let mut damaged = good.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            assert_eq!(key.open(&damaged), None, "{damaged:?} was accepted");
        }
    }

    #[test]
    fn secrets_are_long_and_not_shown() {
        for (secret, problem) in
            [(&b""[..], "is not set"), (&SECRET[1..], "has less than 32 bytes")]
        {
            assert_eq!(LinkKey::new(secret).unwrap_err(), problem);
        }
        assert_eq!(format!("{:?}", LinkKey::new(SECRET).unwrap()), "LinkKey");
    }
}
