//! Claims of tokens with a valid signature.

use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::forge::{NOW, SECRET, SetClock, hs256, provider, verified};
use crate::auth::{AuthError, JwtProvider, JwtSettings};

fn settings() -> JwtSettings {
    JwtSettings::hs256(SECRET)
}

fn check(provider: &JwtProvider, claims: &str) -> Result<(), String> {
    verified(provider, &hs256(claims)).map(drop).map_err(|error| error.to_string())
}

#[test]
fn times_are_numbers_within_the_range_of_dates() {
    let provider = provider(settings());
    let invalid = [
        "\"1800003600\"",
        "null",
        "true",
        "[]",
        "{}",
        "-1",
        "-0.5",
        "1e18",
        "1e308",
        "253402300800",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999",
    ];
    for claim in ["exp", "nbf"] {
        for value in invalid {
            let refused = check(&provider, &format!(r#"{{"sub":"ann","{claim}":{value}}}"#));
            assert_eq!(refused, Err(format!("Invalid token: invalid claim {claim}")), "{value}");
        }
        // JSON readers reject this number
        let refused = check(&provider, &format!(r#"{{"{claim}":1e999}}"#));
        assert_eq!(refused, Err("Invalid token: jwt malformed".to_owned()));
    }
    assert_eq!(check(&provider, r#"{"sub":"ann","iat":1800003600.25,"exp":253402300799}"#), Ok(()));
}

/// The clock is half a second after `NOW`.
#[test]
fn a_token_is_valid_from_nbf_until_exp() {
    let expired = "Token expired";
    let not_yet = "Invalid token: jwt not active";
    let rows: [(u64, Value, Option<&str>); 16] = [
        (0, json!({ "exp": NOW }), Some(expired)),
        (0, json!({ "exp": NOW as f64 + 0.5 }), Some(expired)),
        (0, json!({ "exp": NOW + 1 }), None),
        (0, json!({ "exp": 0 }), Some(expired)),
        (0, json!({ "nbf": NOW }), None),
        (0, json!({ "nbf": NOW as f64 + 0.5 }), None),
        (0, json!({ "nbf": NOW + 1 }), Some(not_yet)),
        (5, json!({ "exp": NOW - 4 }), None),
        (5, json!({ "exp": NOW - 5 }), Some(expired)),
        (5, json!({ "exp": NOW - 60 }), Some(expired)),
        (5, json!({ "nbf": NOW + 5 }), None),
        (5, json!({ "nbf": NOW + 6 }), Some(not_yet)),
        (5, json!({ "nbf": 253_402_300_799_i64 }), Some(not_yet)),
        (5, json!({ "iat": NOW + 3600 }), None),
        (5, json!({ "nbf": NOW + 60, "exp": NOW - 60 }), Some(not_yet)),
        (5, json!({}), None),
    ];
    for (leeway, claims, refusal) in rows {
        let provider = provider(JwtSettings { leeway: Duration::from_secs(leeway), ..settings() });
        let refusal = refusal.map_or(Ok(()), |text| Err(text.to_owned()));
        assert_eq!(check(&provider, &claims.to_string()), refusal, "{claims} within {leeway} s");
    }
}

#[test]
fn a_user_expires_with_the_token() {
    let clock = SetClock::new();
    let patient = JwtSettings { leeway: Duration::from_secs(5), ..settings() };
    let provider = JwtProvider::at(patient, clock.clone()).unwrap();
    let token = hs256(json!({ "sub": "ann", "exp": NOW + 10 }).to_string());
    let user = verified(&provider, &token).unwrap();
    assert_eq!(user.expires_at().map(|end| end.0), Some((NOW + 10) * 1000));

    clock.advance(Duration::from_secs(14));
    assert!(verified(&provider, &token).is_ok());
    clock.advance(Duration::from_secs(1));
    assert_eq!(verified(&provider, &token), Err(AuthError::Expired));

    let endless = verified(&provider, &hs256(r#"{"sub":"ann"}"#)).unwrap();
    assert_eq!(endless.expires_at(), None);
}

#[test]
fn exp_can_be_required() {
    let provider = provider(JwtSettings { require_exp: true, ..settings() });
    let missing = Err("Invalid token: missing claim exp".to_owned());
    assert_eq!(check(&provider, r#"{"sub":"ann"}"#), missing);
    assert_eq!(check(&provider, r#"{"sub":"ann","exp":1800003600}"#), Ok(()));
    let null = check(&provider, r#"{"sub":"ann","exp":null}"#);
    assert_eq!(null, Err("Invalid token: invalid claim exp".to_owned()));
}

#[test]
fn issuer_and_audience_are_checked_when_configured() {
    let any = || provider(settings());
    let picky = || {
        provider(JwtSettings {
            issuer: vec!["https://id.example".to_owned(), "https://id2.example".to_owned()],
            audience: vec!["greenroom".to_owned(), "desk".to_owned()],
            ..settings()
        })
    };
    let (iss, aud) = (Some("invalid issuer"), Some("invalid audience"));
    let id = "https://id.example";
    let rows = [
        (picky(), json!({ "iss": id, "aud": "greenroom" }), None),
        (picky(), json!({ "iss": "https://id2.example", "aud": ["x", "desk"] }), None),
        (picky(), json!({ "iss": "https://ID.example", "aud": "desk" }), iss),
        (picky(), json!({ "iss": "https://id.example/", "aud": "desk" }), iss),
        (picky(), json!({ "aud": "desk" }), iss),
        (picky(), json!({ "iss": [id], "aud": "desk" }), iss),
        (picky(), json!({ "iss": null, "aud": "desk" }), iss),
        (picky(), json!({ "iss": id }), aud),
        (picky(), json!({ "iss": id, "aud": "Desk" }), aud),
        (picky(), json!({ "iss": id, "aud": [] }), aud),
        (picky(), json!({ "iss": id, "aud": ["desk", 1] }), aud),
        (picky(), json!({ "iss": id, "aud": ["x", "y"] }), aud),
        (picky(), json!({ "iss": id, "aud": ["Desk", 1] }), aud),
        (picky(), json!({ "iss": id, "aud": { "desk": true } }), aud),
        (any(), json!({ "iss": "anybody", "aud": ["anything"] }), None),
        (any(), json!({}), None),
    ];
    for (provider, claims, reason) in rows {
        let refusal = reason.map_or(Ok(()), |reason| Err(format!("Invalid token: {reason}")));
        assert_eq!(check(&provider, &claims.to_string()), refusal, "{claims}");
    }
}

#[test]
fn invalid_settings_are_refused() {
    let leeway = JwtSettings { leeway: Duration::from_millis(5001), ..settings() };
    let short = JwtSettings::hs256("x".repeat(31));
    let pem = format!("\n-----BEGIN PUBLIC KEY-----\n{}\n", "x".repeat(64));
    let pem = JwtSettings::hs256(pem);
    let mixed = vec![Algorithm::HS256, Algorithm::RS256];
    let rows = [
        (leeway, "leeway is 5.001s; the maximum is 5s"),
        (short, "the secret has 31 bytes; it must have at least 32"),
        (pem, "the secret is a PEM; use `public_key`, or a random secret"),
        (
            JwtSettings { algorithms: Vec::new(), ..settings() },
            "no algorithm is configured; set one, e.g. HS256",
        ),
        (
            JwtSettings { algorithms: mixed, ..settings() },
            "HS256 and RS256 need different kinds of keys",
        ),
        (
            JwtSettings { algorithms: vec![Algorithm::ES256], ..settings() },
            "a secret is for HS256, HS384 and HS512, not for [ES256]",
        ),
    ];
    for (settings, message) in rows {
        assert_eq!(JwtProvider::new(settings).unwrap_err(), message);
    }
    assert!(JwtProvider::new(JwtSettings::hs256("x".repeat(32))).is_ok());
    let shown = format!("{:?} {:?}", settings(), provider(settings()));
    assert!(!shown.contains("a secret") && !shown.contains("97, 32"), "{shown}");
}
