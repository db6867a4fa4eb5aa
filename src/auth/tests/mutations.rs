//! Random and altered tokens: they never panic, never verify, and are refused with known reasons.

use std::sync::LazyLock;

use jsonwebtoken::Algorithm;
use proptest::prelude::*;

use super::forge::{
    GOOD, P256, RSA, SECRET, headed, hs256, of_pem, part, private, provider, signed, verified,
};
use crate::auth::{AuthError, JwtProvider, JwtSettings};

/// All reasons of refusals.
const REASONS: [&str; 18] = [
    "Token expired",
    "Invalid token: jwt malformed",
    "Invalid token: token too large",
    "Invalid token: invalid algorithm",
    "Invalid token: invalid signature",
    "Invalid token: unknown key",
    "Invalid token: unsupported header crit",
    "Invalid token: unsupported header b64",
    "Invalid token: unsupported header zip",
    "Invalid token: unsupported header enc",
    "Invalid token: invalid header kid",
    "Invalid token: jwt not active",
    "Invalid token: missing claim exp",
    "Invalid token: invalid claim exp",
    "Invalid token: invalid claim nbf",
    "Invalid token: invalid issuer",
    "Invalid token: invalid audience",
    "Invalid token: invalid user id",
];

fn is_known(error: &AuthError) -> bool {
    REASONS.contains(&error.to_string().as_str())
}

/// Providers, each with a token that it accepts.
static PROVIDERS: LazyLock<Vec<(JwtProvider, String)>> = LazyLock::new(|| {
    let of_key = |pem: &str, algorithm: Algorithm| {
        let header = format!(r#"{{"alg":"{algorithm:?}"}}"#);
        let token = signed(&header, GOOD, algorithm, &private(algorithm));
        (of_pem(pem, &[algorithm]).unwrap(), token)
    };
    vec![
        (provider(JwtSettings::hs256(SECRET)), hs256(GOOD)),
        of_key(RSA, Algorithm::RS256),
        of_key(P256, Algorithm::ES256),
    ]
});

/// A change of a text, at a place and with a character.
#[derive(Debug, Clone, Copy)]
enum Change {
    Replace,
    Insert,
    Remove,
    CutBefore,
    CutAfter,
    Double,
}

fn changed(token: &str, change: Change, at: usize, with: char) -> String {
    let characters: Vec<char> = token.chars().collect();
    let at = at % characters.len();
    let (before, after) = characters.split_at(at);
    let text = |parts: &[&[char]]| parts.concat().into_iter().collect();
    match change {
        Change::Replace => text(&[before, &[with], &after[1..]]),
        Change::Insert => text(&[before, &[with], after]),
        Change::Remove => text(&[before, &after[1..]]),
        Change::CutBefore => text(&[after]),
        Change::CutAfter => text(&[before]),
        Change::Double => text(&[before, after, after]),
    }
}

/// JSON texts that look like headers and claims, more or less.
fn texts() -> impl Strategy<Value = String> {
    let name = prop_oneof!["alg", "kid", "crit", "exp", "nbf", "iat", "iss", "aud", "sub", "[a-z]"];
    let value = prop_oneof![
        Just("\"HS256\"".to_owned()),
        Just("\"none\"".to_owned()),
        Just("null".to_owned()),
        Just("[[[[]]]]".to_owned()),
        Just("1e400".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[ -~]{0,12}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        "\\PC{0,6}",
    ];
    let member = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn altered_tokens_are_refused(
        changes in prop::collection::vec(
            (
                prop_oneof![
                    4 => Just(Change::Replace), 2 => Just(Change::Insert), 2 => Just(Change::Remove),
                    1 => Just(Change::CutBefore), 1 => Just(Change::CutAfter),
                    1 => Just(Change::Double),
                ],
                any::<usize>(),
                prop_oneof![8 => "[A-Za-z0-9_.=-]", 1 => "\\PC"],
            ),
            1..4,
        ),
    ) {
        for (provider, good) in &*PROVIDERS {
            let mut token = good.clone();
            for (change, at, with) in &changes {
                if !token.is_empty() {
                    token = changed(&token, *change, *at, with.chars().next().unwrap());
                }
            }
            match verified(provider, &token) {
                Ok(_) => prop_assert_eq!(&token, good),
                Err(error) => prop_assert!(is_known(&error), "{}", error),
            }
        }
    }

    #[test]
    fn random_texts_are_refused(
        text in prop_oneof![
            "\\PC{0,60}",
            "[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,44}",
            (texts(), texts(), prop::collection::vec(any::<u8>(), 0..70)).prop_map(
                |(header, claims, signature)| {
                    format!("{}.{}.{}", part(header), part(claims), part(signature))
                }
            ),
        ],
    ) {
        for (provider, _) in &*PROVIDERS {
            let refused = verified(provider, &text);
            prop_assert!(refused.as_ref().is_err_and(is_known), "{refused:?}");
        }
    }

    #[test]
    fn signed_random_texts_are_refused_with_known_reasons(text in texts()) {
        let (provider, _) = &PROVIDERS[0];
        for token in [headed(&text), hs256(&text)] {
            if let Err(error) = verified(provider, &token) {
                prop_assert!(is_known(&error), "{}", error);
            }
        }
    }
}

#[test]
fn unaltered_tokens_are_accepted() {
    for (provider, good) in &*PROVIDERS {
        assert!(verified(provider, good).is_ok());
    }
}
