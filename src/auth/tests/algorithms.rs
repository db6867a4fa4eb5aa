//! Valid tokens of every algorithm, and keys for other algorithms.

use jsonwebtoken::Algorithm::{
    self, ES256, ES384, EdDSA, HS256, HS384, HS512, PS256, PS384, PS512, RS256, RS384, RS512,
};
use serde_json::json;

use super::forge::{
    ED25519, GOOD, P256, P384, RSA, RSA_OTHER, SECRET, of_pem, private, provider, secret, signed,
    verified,
};
use crate::auth::{JwtKeys, JwtProvider, JwtSettings};

const PKCS1: &str = include_str!("keys/rsa-pkcs1.test-public.pem");
const SMALL: &str = include_str!("keys/rsa-1024.test-public.pem");
const CERTIFICATE: &str = include_str!("keys/p256.test-certificate.pem");
const PRIVATE: &str = include_str!("keys/rsa.test-private.pem");

fn header(algorithm: Algorithm) -> String {
    json!({ "typ": "JWT", "alg": format!("{algorithm:?}") }).to_string()
}

#[test]
fn every_algorithm_of_a_secret_is_checked() {
    for algorithm in [HS256, HS384, HS512] {
        let provider =
            provider(JwtSettings { algorithms: vec![algorithm], ..JwtSettings::hs256(SECRET) });
        let token = signed(&header(algorithm), GOOD, algorithm, &secret(SECRET));
        assert_eq!(verified(&provider, &token).unwrap().id(), Some("ann"), "{algorithm:?}");
    }
}

#[test]
fn every_algorithm_of_a_public_key_is_checked() {
    let rsa = [RS256, RS384, RS512, PS256, PS384, PS512].map(|algorithm| (RSA, algorithm));
    let others = [(PKCS1, RS256), (P256, ES256), (P384, ES384), (ED25519, EdDSA)];
    for (pem, algorithm) in rsa.into_iter().chain(others) {
        let provider = of_pem(pem, &[algorithm]).unwrap();
        let token = signed(&header(algorithm), GOOD, algorithm, &private(algorithm));
        assert_eq!(verified(&provider, &token).unwrap().id(), Some("ann"), "{algorithm:?}");
    }
}

#[test]
fn several_algorithms_of_one_kind_are_accepted_together() {
    let provider = of_pem(RSA, &[RS256, PS512]).unwrap();
    for algorithm in [RS256, PS512] {
        let token = signed(&header(algorithm), GOOD, algorithm, &private(algorithm));
        assert!(verified(&provider, &token).is_ok(), "{algorithm:?}");
    }
    let token = signed(&header(RS512), GOOD, RS512, &private(RS512));
    let refused = verified(&provider, &token).unwrap_err().to_string();
    assert_eq!(refused, "Invalid token: invalid algorithm");
    let other = of_pem(RSA_OTHER, &[RS256]).unwrap();
    let token = signed(&header(RS256), GOOD, RS256, &private(RS256));
    let refused = verified(&other, &token).unwrap_err().to_string();
    assert_eq!(refused, "Invalid token: invalid signature");
}

#[test]
fn a_key_must_be_one_for_the_algorithms() {
    let broken = RSA.replace("MII", "MIJ");
    let two = format!("{P256}{P384}");
    let none_for = |list: &str| format!("the PEM is not a public key for {list}, which need ");
    let rsa = none_for("[RS256]") + "an RSA key of at least 2048 bits";
    let es256 = none_for("[ES256]") + "a key of P-256 for ES256, of P-384 for ES384";
    let both = none_for("[ES256, ES384]") + "a key of P-256 for ES256, of P-384 for ES384";
    let eddsa = none_for("[EdDSA]") + "an Ed25519 key";
    let no_key = "the PEM has no line -----BEGIN PUBLIC KEY-----";
    let rows: [(&str, &[Algorithm], &str); 15] = [
        (P256, &[RS256], &rsa),
        (ED25519, &[RS256], &rsa),
        (SMALL, &[RS256], &rsa),
        (&broken, &[RS256], &rsa),
        (RSA, &[ES256], &es256),
        (P384, &[ES256], &es256),
        (PKCS1, &[ES256], &es256),
        (P256, &[ES256, ES384], &both),
        (P256, &[EdDSA], &eddsa),
        (RSA, &[HS256], "[HS256] need a secret; a public key is not secret"),
        (PRIVATE, &[RS256], "the PEM is a private key"),
        (CERTIFICATE, &[ES256], "the PEM is a certificate"),
        (&two, &[ES256], "the PEM has several parts; it must be one key"),
        ("", &[RS256], no_key),
        ("a secret for tests", &[RS256], no_key),
    ];
    for (pem, algorithms, message) in rows {
        let refused = of_pem(pem, algorithms).unwrap_err();
        assert!(refused.starts_with(message), "{algorithms:?}: {refused}");
    }
}

#[test]
fn a_key_set_is_for_public_keys_and_has_an_address() {
    let rows = [
        ("https://id.example/keys", HS256, "[HS256] need a secret"),
        ("ftp://id.example/keys", RS256, "the address of the key set must begin with http://"),
        ("data:,x", RS256, "the address of the key set must begin with http://"),
    ];
    for (url, algorithm, message) in rows {
        let refused = JwtProvider::new(JwtSettings {
            keys: JwtKeys::Jwks(url.parse().unwrap()),
            algorithms: vec![algorithm],
            ..JwtSettings::hs256(SECRET)
        });
        let refused = refused.unwrap_err();
        assert!(refused.starts_with(message), "{url}: {refused}");
    }
}
