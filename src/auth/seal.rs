//! Texts that clients keep for this server, which recognizes its own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::signed_text::{SECRET_BYTES_MIN, key_of, opened, signed};

/// Longest sealed text: clients send it with each answer.
const SEALED_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a mark: enough that none can be guessed.
const MARK_BYTES: usize = 16;

/// Keeps sealed payloads and marks apart, and both from what else is signed with the same secret.
const PAYLOADS: &[u8] = b"greenroom sealed payload\n";
const MARKS: &[u8] = b"greenroom mark\n";

/// Seals payloads and marks names: HMAC-SHA256.
#[derive(Clone)]
pub struct SealKey(Hmac<Sha256>);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey")
    }
}

impl SealKey {
    /// Creates a key from a secret. The error completes a sentence about the secret.
    pub fn new(secret: &[u8]) -> Result<Self, String> {
        key_of(secret).map(Self)
    }

    /// Creates a key that no other process has. What it sealed is worth nothing after a restart.
    pub fn random() -> Result<Self, String> {
        let mut secret = [0; SECRET_BYTES_MIN];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        Self::new(&secret)
    }

    /// Returns the payload with its seal, in characters that need no escape anywhere; `None` if it is
    /// too long.
    pub fn seal(&self, payload: &[u8]) -> Option<String> {
        let sealed = signed(payload, |payload| self.over(PAYLOADS, &[payload]));
        Some(sealed).filter(|sealed| sealed.len() <= SEALED_BYTES_MAX)
    }

    /// Returns the payload of a sealed text; `None` if this key has not sealed it.
    pub fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        opened(sealed, SEALED_BYTES_MAX, |payload| self.over(PAYLOADS, &[payload]))
    }

    /// Returns a mark for a list of texts, which others cannot guess.
    pub fn mark(&self, texts: &[&str]) -> String {
        let whole = self.over(MARKS, texts).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode(&whole[..MARK_BYTES])
    }

    /// Returns true if the mark is the one of these texts.
    pub fn knows(&self, mark: &str, texts: &[&str]) -> bool {
        let Ok(mark) = URL_SAFE_NO_PAD.decode(mark) else { return false };
        mark.len() == MARK_BYTES && self.over(MARKS, texts).verify_truncated_left(&mark).is_ok()
    }

    /// The length before each text keeps lists apart that are equal when joined.
    fn over(&self, purpose: &[u8], texts: &[&str]) -> Hmac<Sha256> {
        let mut mac = self.0.clone().chain_update(purpose);
        for text in texts {
            mac.update(&(text.len() as u64).to_be_bytes());
            mac.update(text.as_bytes());
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_sealed_text_has_what_was_sealed() {
        let key = SealKey::new(SECRET).unwrap();
        let sealed = key.seal("zoë?".as_bytes()).unwrap();
        assert_eq!(key.open(&sealed).as_deref(), Some("zoë?".as_bytes()));
        assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    }

    #[test]
    fn texts_that_were_not_sealed_here_are_refused() {
        let key = SealKey::new(SECRET).unwrap();
        let good = key.seal(b"payload").unwrap();
        let (payload, seal) = good.split_once('.').unwrap();
        let bad = [
            String::new(),
            ".".to_owned(),
            payload.to_owned(),
            format!(".{seal}"),
            format!("{payload}.{}", &seal[1..]),
            format!("{payload}.{}", key.mark(&[payload])),
            format!("{}.{seal}", URL_SAFE_NO_PAD.encode("payloads")),
            SealKey::random().unwrap().seal(b"payload").unwrap(),
            format!("{good}{}", "A".repeat(SEALED_BYTES_MAX)),
        ];
        for bad in bad {
            assert_eq!(key.open(&bad), None, "{bad:?} was accepted");
        }
    }

    #[test]
    fn what_is_sealed_can_be_opened_as_long_as_it_may_be() {
        let key = SealKey::new(SECRET).unwrap();
        // 43 characters of the seal and a dot
        let longest = vec![0; (SEALED_BYTES_MAX - 44) / 4 * 3];
        let sealed = key.seal(&longest).unwrap();
        assert_eq!(key.open(&sealed), Some(longest));
        assert_eq!(key.seal(&[0; SEALED_BYTES_MAX / 4 * 3]), None);
    }

    #[test]
    fn a_mark_is_of_its_texts_in_their_order() {
        let key = SealKey::new(SECRET).unwrap();
        let mark = key.mark(&["run", "ann"]);
        assert!(key.knows(&mark, &["run", "ann"]));
        for others in [&["ann", "run"][..], &["runann"], &["run", "ann", ""], &["runa", "nn"], &[]]
        {
            assert!(!key.knows(&mark, others), "{others:?}");
        }
        for bad in ["", "x", &mark[1..], &format!("{mark}AAAA"), &key.seal(b"run").unwrap()] {
            assert!(!key.knows(bad, &["run", "ann"]), "{bad}");
        }
        assert!(!SealKey::random().unwrap().knows(&mark, &["run", "ann"]));
    }

    #[test]
    fn secrets_are_long_and_not_shown() {
        for (secret, problem) in
            [(&b""[..], "is not set"), (&SECRET[1..], "has less than 32 bytes")]
        {
            assert_eq!(SealKey::new(secret).unwrap_err(), problem);
        }
        assert_eq!(format!("{:?}", SealKey::new(SECRET).unwrap()), "SealKey");
    }
}
