//! Algorithms that a key is usable for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey};

/// Shortest modulus of an RSA key, in bytes (2048 bits).
const MODULUS_BYTES_MIN: usize = 256;

/// Returns the algorithms that a public key is usable for; none for other keys.
pub(in crate::auth) fn algorithms_of(key: &DecodingKey) -> &'static [Algorithm] {
    const RSA: [Algorithm; 6] = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ];
    // derived from the bytes, not from the declared type
    match Jwk::from_decoding_key(key, None).map(|key| key.algorithm) {
        Ok(AlgorithmParameters::RSA(key)) => match URL_SAFE_NO_PAD.decode(key.n) {
            Ok(modulus) if modulus.len() >= MODULUS_BYTES_MIN => &RSA,
            _ => &[],
        },
        Ok(AlgorithmParameters::EllipticCurve(key)) => match key.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => &[],
        },
        Ok(AlgorithmParameters::OctetKeyPair(key)) => match key.curve {
            EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            _ => &[],
        },
        _ => &[],
    }
}
