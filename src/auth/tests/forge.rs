//! Tokens, valid and forged ones, and the clock of the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::Value;

use crate::auth::{AuthError, AuthProvider as _, JwtKeys, JwtProvider, JwtSettings, User};

/// In seconds; the clock is half a second later.
pub(super) const NOW: i64 = 1_800_000_000;

pub(super) const SECRET: &[u8] = b"a secret for tests, of 40 bytes in all..";

pub(super) const RSA: &str = include_str!("keys/rsa.test-public.pem");
pub(super) const RSA_OTHER: &str = include_str!("keys/rsa-other.test-public.pem");
pub(super) const P256: &str = include_str!("keys/p256.test-public.pem");
pub(super) const P384: &str = include_str!("keys/p384.test-public.pem");
pub(super) const ED25519: &str = include_str!("keys/ed25519.test-public.pem");

/// A clock that only tests move.
pub(super) struct SetClock(AtomicI64);

impl SetClock {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(NOW * 1000 + 500)))
    }

    pub(super) fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(super) fn set_back(&self, time: Duration) {
        self.0.fetch_sub(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn new_id(&self) -> Arc<str> {
        Arc::from("an id")
    }
}

pub(super) fn provider(settings: JwtSettings) -> JwtProvider {
    JwtProvider::at(settings, SetClock::new()).unwrap()
}

/// A provider with a public key.
pub(super) fn of_pem(pem: &str, algorithms: &[Algorithm]) -> Result<JwtProvider, String> {
    JwtProvider::new(JwtSettings {
        keys: JwtKeys::Pem(pem.as_bytes().to_vec()),
        algorithms: algorithms.to_vec(),
        ..JwtSettings::hs256(SECRET)
    })
}

/// Verifies a token with a provider that needs no key set.
pub(super) fn verified(provider: &JwtProvider, token: &str) -> Result<User, AuthError> {
    provider.verify(token).now_or_never().unwrap()
}

pub(super) fn part(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Returns a signed token of these texts, valid or not.
pub(super) fn signed(
    header: &str,
    claims: impl AsRef<[u8]>,
    algorithm: Algorithm,
    key: &EncodingKey,
) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// Returns a token for the provider with the secret.
pub(super) fn hs256(claims: impl AsRef<[u8]>) -> String {
    signed(r#"{"alg":"HS256","typ":"JWT"}"#, claims, Algorithm::HS256, &secret(SECRET))
}

/// Returns a token with this header, signed with the secret.
pub(super) fn headed(header: &str) -> String {
    signed(header, GOOD, Algorithm::HS256, &secret(SECRET))
}

pub(super) fn secret(bytes: &[u8]) -> EncodingKey {
    EncodingKey::from_secret(bytes)
}

/// Claims that are valid for another hour.
pub(super) const GOOD: &str = r#"{"sub":"ann","exp":1800003600}"#;

pub(super) fn claims(value: &Value) -> String {
    value.to_string()
}

/// Returns the private key for the public key of the algorithm.
pub(super) fn private(algorithm: Algorithm) -> EncodingKey {
    let key = match algorithm {
        Algorithm::ES256 => EncodingKey::from_ec_pem(include_bytes!("keys/p256.test-private.pem")),
        Algorithm::ES384 => EncodingKey::from_ec_pem(include_bytes!("keys/p384.test-private.pem")),
        Algorithm::EdDSA => {
            EncodingKey::from_ed_pem(include_bytes!("keys/ed25519.test-private.pem"))
        }
        _ => EncodingKey::from_rsa_pem(include_bytes!("keys/rsa.test-private.pem")),
    };
    key.unwrap()
}

pub(super) fn other_rsa() -> EncodingKey {
    EncodingKey::from_rsa_pem(include_bytes!("keys/rsa-other.test-private.pem")).unwrap()
}
