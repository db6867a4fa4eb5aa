//! Keys of signatures.

use std::sync::Arc;

use greenroom_actors::ports::clock::Clock;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};

use super::algorithms::algorithms_of;
use crate::auth::JwtKeys;
use crate::auth::jwks::Jwks;

/// Shortest secret, in bytes: the size of an HS256 signature.
const SECRET_BYTES_MIN: usize = 32;

/// The keys of a provider.
pub(super) enum Keys {
    /// One key for all tokens.
    Own(Box<DecodingKey>),
    /// A set of keys with ids.
    Set(Jwks),
}

impl Keys {
    pub(super) fn new(
        keys: JwtKeys,
        algorithms: &[Algorithm],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let family = family_of(algorithms)?;
        let is_secret = family == AlgorithmFamily::Hmac;
        match keys {
            JwtKeys::Secret(_) if !is_secret => {
                Err(format!("a secret is for HS256, HS384 and HS512, not for {algorithms:?}"))
            }
            JwtKeys::Secret(secret) if secret.len() < SECRET_BYTES_MIN => Err(format!(
                "the secret has {} bytes; it must have at least {SECRET_BYTES_MIN}",
                secret.len()
            )),
            JwtKeys::Secret(secret) if secret.trim_ascii_start().starts_with(b"-----BEGIN") => {
                Err("the secret is a PEM; use `public_key`, or a random secret".to_owned())
            }
            JwtKeys::Secret(secret) => Ok(Self::Own(Box::new(DecodingKey::from_secret(&secret)))),
            JwtKeys::Pem(_) | JwtKeys::Jwks(_) if is_secret => {
                Err(format!("{algorithms:?} need a secret; a public key is not secret"))
            }
            JwtKeys::Pem(pem) => {
                public_key(&pem, family, algorithms).map(|key| Self::Own(Box::new(key)))
            }
            JwtKeys::Jwks(url) => {
                Jwks::new(url, algorithms.to_vec(), Arc::clone(clock)).map(Self::Set)
            }
        }
    }
}

/// Returns the family of the algorithms. With two families, a key of one could be used as a key of
/// the other.
fn family_of(algorithms: &[Algorithm]) -> Result<AlgorithmFamily, String> {
    let Some(first) = algorithms.first() else {
        return Err("no algorithm is configured; set one, e.g. HS256".to_owned());
    };
    match algorithms.iter().find(|other| other.family() != first.family()) {
        Some(other) => Err(format!("{first:?} and {other:?} need different kinds of keys")),
        None => Ok(first.family()),
    }
}

/// Reads a public key that is usable for all of the algorithms.
fn public_key(
    pem: &[u8],
    family: AlgorithmFamily,
    algorithms: &[Algorithm],
) -> Result<DecodingKey, String> {
    check_label(pem)?;
    let key = match family {
        AlgorithmFamily::Rsa => DecodingKey::from_rsa_pem(pem),
        AlgorithmFamily::Ec => DecodingKey::from_ec_pem(pem),
        AlgorithmFamily::Ed => DecodingKey::from_ed_pem(pem),
        AlgorithmFamily::Hmac => return Err("a public key is not a secret".to_owned()),
    };
    let key = key.ok().filter(|key| {
        let possible = algorithms_of(key);
        algorithms.iter().all(|wanted| possible.contains(wanted))
    });
    key.ok_or_else(|| {
        let kind = match family {
            AlgorithmFamily::Rsa => "an RSA key of at least 2048 bits",
            AlgorithmFamily::Ec => "a key of P-256 for ES256, of P-384 for ES384",
            AlgorithmFamily::Ed | AlgorithmFamily::Hmac => "an Ed25519 key",
        };
        format!("the PEM is not a public key for {algorithms:?}, which need {kind}")
    })
}

/// Refuses a PEM that is not a public key, by its label. Certificates contain one, but their issuer
/// and expiry are not checked here.
fn check_label(pem: &[u8]) -> Result<(), String> {
    const BEGIN: &str = "-----BEGIN ";
    let text = String::from_utf8_lossy(pem);
    let mut labels = text.match_indices(BEGIN).map(|(at, _)| &text[at + BEGIN.len()..]);
    let label = labels.next().and_then(|rest| rest.split("-----").next()).unwrap_or_default();
    match label {
        "PUBLIC KEY" | "RSA PUBLIC KEY" if labels.next().is_none() => Ok(()),
        "PUBLIC KEY" | "RSA PUBLIC KEY" => {
            Err("the PEM has several parts; it must be one key".to_owned())
        }
        "CERTIFICATE" => Err("the PEM is a certificate; extract its public key with \
                              `openssl x509 -pubkey -noout -in FILE`"
            .to_owned()),
        label if label.ends_with("PRIVATE KEY") => {
            Err("the PEM is a private key, which only the issuer of tokens should have; extract \
                 the public key with `openssl pkey -pubout -in FILE`"
                .to_owned())
        }
        _ => Err("the PEM has no line -----BEGIN PUBLIC KEY-----".to_owned()),
    }
}
