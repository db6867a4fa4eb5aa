//! Forged tokens, and the reasons of their refusals.

use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::json;

use super::forge::{
    self, GOOD, P256, RSA, SECRET, headed, hs256, of_pem, other_rsa, part, private, provider,
    secret, signed, verified,
};
use crate::auth::{JwtProvider, JwtSettings, TOKEN_BYTES_MAX};

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

fn check(provider: &JwtProvider, rows: Vec<(&str, String, &str)>) {
    for (name, token, reason) in rows {
        let refused = verified(provider, &token).map_err(|error| error.to_string());
        assert_eq!(refused, Err(format!("Invalid token: {reason}")), "{name}");
    }
}

fn with_secret() -> JwtProvider {
    provider(JwtSettings::hs256(SECRET))
}

/// Returns the parts of a valid token.
fn good_parts() -> [String; 3] {
    let token = hs256(GOOD);
    let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

#[test]
fn the_token_that_the_others_derive_from_is_valid() {
    assert_eq!(verified(&with_secret(), &hs256(GOOD)).unwrap().id(), Some("ann"));
}

#[test]
fn a_token_cannot_choose_its_algorithm() {
    let unsigned = |alg: &str| {
        let header = json!({ "alg": alg, "typ": "JWT" }).to_string();
        let message = format!("{}.{}", part(header), part(GOOD));
        [format!("{message}."), format!("{message}.{}", part("x"))]
    };
    let mut rows = Vec::new();
    for name in ["none", "None", "NONE", "nOnE"] {
        let [stripped, signed] = unsigned(name);
        rows.push((name, stripped, "jwt malformed"));
        rows.push((name, signed, "invalid algorithm"));
        rows.push((name, headed(&json!({ "alg": name }).to_string()), "invalid algorithm"));
    }
    for header in [
        r#"{"alg":"hs256"}"#,
        r#"{"alg":"HS256 "}"#,
        r#"{"alg":"HS256\u0000"}"#,
        r#"{"alg":""}"#,
        r#"{"alg":null}"#,
        r#"{"alg":["HS256"]}"#,
        r#"{"alg":256}"#,
        r#"{"typ":"JWT"}"#,
        r#"{"ALG":"HS256"}"#,
        r#"{"alg":"RS256"}"#,
        r#"{"alg":"dir","enc":""}"#,
    ] {
        let reason = match header.contains("enc") {
            true => "unsupported header enc",
            false => "invalid algorithm",
        };
        rows.push((header, headed(header), reason));
    }
    for (algorithm, alg) in [(Algorithm::HS384, "HS384"), (Algorithm::HS512, "HS512")] {
        let header = json!({ "alg": alg }).to_string();
        let honest = signed(&header, GOOD, algorithm, &secret(SECRET));
        rows.push(("another size of HMAC", honest, "invalid algorithm"));
        let disguised = signed(HEADER, GOOD, algorithm, &secret(SECRET));
        rows.push(("another size of HMAC, disguised", disguised, "invalid signature"));
    }
    check(&with_secret(), rows);
}

#[test]
fn a_public_key_is_not_accepted_as_a_secret() {
    let der = pem_body(RSA);
    let rows = [RSA.as_bytes(), RSA.trim_end().as_bytes(), &der].map(|known_to_all| {
        let key = secret(known_to_all);
        let honest = signed(r#"{"alg":"HS256"}"#, GOOD, Algorithm::HS256, &key);
        let disguised = signed(r#"{"alg":"RS256"}"#, GOOD, Algorithm::HS256, &key);
        [
            ("a secret made of the public key", honest, "invalid algorithm"),
            ("the same, disguised", disguised, "invalid signature"),
        ]
    });
    let provider = of_pem(RSA, &[Algorithm::RS256]).unwrap();
    check(&provider, rows.into_iter().flatten().collect());
}

fn pem_body(pem: &str) -> Vec<u8> {
    use base64::Engine as _;
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    base64::engine::general_purpose::STANDARD.decode(body).unwrap()
}

#[test]
fn foreign_signatures_are_refused() {
    let [header, claims, signature] = good_parts();
    let of_key = |key: &[u8]| signed(HEADER, GOOD, Algorithm::HS256, &secret(key));
    let shorter = &signature[..40];
    let others = hs256(r#"{"sub":"eve","exp":1800003600}"#);
    let others = others.rsplit_once('.').unwrap().1;
    let admin = part(r#"{"sub":"root","exp":1800003600}"#);
    let other_header = part(r#"{"alg":"HS256","typ":"JWS"}"#);
    let rows = vec![
        ("an empty secret", of_key(b""), "invalid signature"),
        ("the beginning of the secret", of_key(&SECRET[..32]), "invalid signature"),
        ("the secret and more", of_key(&[SECRET, b"!"].concat()), "invalid signature"),
        ("a stripped signature", format!("{header}.{claims}."), "jwt malformed"),
        ("without a signature", format!("{header}.{claims}"), "jwt malformed"),
        ("a cut signature", format!("{header}.{claims}.{shorter}"), "invalid signature"),
        ("a cut character", format!("{header}.{claims}.{}", &signature[..42]), "jwt malformed"),
        ("a longer signature", format!("{header}.{claims}.{signature}AAAA"), "invalid signature"),
        ("another token's signature", format!("{header}.{claims}.{others}"), "invalid signature"),
        ("other claims", format!("{header}.{admin}.{signature}"), "invalid signature"),
        ("another header", format!("{other_header}.{claims}.{signature}"), "invalid signature"),
        (
            "a signature of bytes that are none",
            format!("{header}.{claims}.{}", part([0; 32])),
            "invalid signature",
        ),
    ];
    check(&with_secret(), rows);

    let honest = signed(r#"{"alg":"RS256"}"#, GOOD, Algorithm::RS256, &other_rsa());
    let padding = signed(r#"{"alg":"RS256"}"#, GOOD, Algorithm::PS256, &private(Algorithm::PS256));
    let rows = vec![
        ("another key of the same kind", honest, "invalid signature"),
        ("the same key, another padding", padding, "invalid signature"),
    ];
    check(&of_pem(RSA, &[Algorithm::RS256, Algorithm::PS256]).unwrap(), rows);

    let zeros = |bytes: usize| {
        format!("{}.{}.{}", part(r#"{"alg":"ES256"}"#), part(GOOD), part(vec![0; bytes]))
    };
    let rows = vec![
        ("a signature of zeros", zeros(64), "invalid signature"),
        ("a short one", zeros(1), "invalid signature"),
    ];
    check(&of_pem(P256, &[Algorithm::ES256]).unwrap(), rows);
}

#[test]
fn headers_are_read_strictly() {
    let long = "k".repeat(201);
    let many = "k".repeat(1 << 20);
    let kid = |kid: &str| headed(&json!({ "alg": "HS256", "kid": kid }).to_string());
    let rows = vec![
        ("alg twice", headed(r#"{"alg":"none","alg":"HS256"}"#), "jwt malformed"),
        ("alg twice, escaped", headed(r#"{"alg":"HS256","\u0061lg":"none"}"#), "jwt malformed"),
        ("crit", headed(r#"{"alg":"HS256","crit":["x"],"x":1}"#), "unsupported header crit"),
        ("an empty crit", headed(r#"{"alg":"HS256","crit":[]}"#), "unsupported header crit"),
        ("crit of exp", headed(r#"{"alg":"HS256","crit":["exp"]}"#), "unsupported header crit"),
        ("a null crit", headed(r#"{"alg":"HS256","crit":null}"#), "unsupported header crit"),
        ("b64", headed(r#"{"alg":"HS256","b64":false}"#), "unsupported header b64"),
        ("zip", headed(r#"{"alg":"HS256","zip":"DEF"}"#), "unsupported header zip"),
        ("enc", headed(r#"{"alg":"HS256","enc":"A128GCM"}"#), "unsupported header enc"),
        ("a kid with NUL", kid("a\u{0}b"), "invalid header kid"),
        ("a kid with a line", kid("a\nb"), "invalid header kid"),
        ("a long kid", kid(&long), "invalid header kid"),
        ("a kid of 1 MB", kid(&many), "token too large"),
        ("a kid that is no text", headed(r#"{"alg":"HS256","kid":7}"#), "invalid header kid"),
        ("a null kid", headed(r#"{"alg":"HS256","kid":null}"#), "invalid header kid"),
        ("no object", headed("[]"), "jwt malformed"),
        ("an array of parameters", headed(r#"["HS256"]"#), "jwt malformed"),
        ("a lone surrogate", headed(r#"{"alg":"HS256","kid":"\ud800"}"#), "jwt malformed"),
        ("a BOM", headed("\u{feff}{\"alg\":\"HS256\"}"), "jwt malformed"),
        ("no JSON", headed("alg=HS256"), "jwt malformed"),
        ("two objects", headed(r#"{"alg":"HS256"}{}"#), "jwt malformed"),
        ("nothing", headed(""), "jwt malformed"),
    ];
    check(&with_secret(), rows);
}

#[test]
fn a_key_id_cannot_select_another_key() {
    // with one key, the id is ignored
    let names =
        ["../../../../dev/null", "/dev/null", "' OR '1'='1", "a' UNION SELECT 'key'", "%00", ""];
    for kid in names {
        let header = json!({ "alg": "HS256", "kid": kid }).to_string();
        assert!(verified(&with_secret(), &headed(&header)).is_ok(), "{kid}");
        let empty_file = signed(&header, GOOD, Algorithm::HS256, &secret(b""));
        assert!(verified(&with_secret(), &empty_file).is_err(), "{kid}");
    }
}

#[test]
fn keys_in_a_token_are_not_used() {
    let jwk = json!({ "kty": "oct", "k": part("brought along, brought along, brought") });
    let brought = secret(b"brought along, brought along, brought");
    let address = "http://127.0.0.1:1/keys";
    let headers = [
        json!({ "alg": "HS256", "jwk": jwk }),
        json!({ "alg": "HS256", "jku": address }),
        json!({ "alg": "HS256", "x5u": address }),
        json!({ "alg": "HS256", "x5c": ["MIIB"] }),
    ];
    for header in headers {
        let token = signed(&header.to_string(), GOOD, Algorithm::HS256, &brought);
        check(&with_secret(), vec![("a key in the token", token, "invalid signature")]);
        // the result is immediate, so nothing was fetched; and the configured key still works
        assert!(verified(&with_secret(), &headed(&header.to_string())).is_ok(), "{header}");
    }

    let own = json!({ "kty": "RSA", "n": part([0xc5; 256]), "e": "AQAB" });
    let header = json!({ "alg": "RS256", "jwk": own }).to_string();
    let token = signed(&header, GOOD, Algorithm::RS256, &other_rsa());
    let provider = of_pem(RSA, &[Algorithm::RS256]).unwrap();
    check(&provider, vec![("an RSA key in the token", token, "invalid signature")]);
}

#[test]
fn tokens_of_another_shape_are_refused() {
    let [header, claims, signature] = good_parts();
    let good = hs256(GOOD);
    let fits = |bytes: usize| {
        let token = hs256(forge::claims(&json!({ "sub": "ann", "x": "x".repeat(bytes) })));
        assert_eq!(token.len() > TOKEN_BYTES_MAX, bytes > 6000);
        token
    };
    assert!(verified(&with_secret(), &fits(6000)).is_ok());
    let deep = |levels: usize| {
        format!(r#"{{"sub":"ann","x":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels))
    };
    assert!(verified(&with_secret(), &hs256(deep(15))).is_ok());
    let rows = vec![
        ("nothing", String::new(), "jwt malformed"),
        ("dots", "..".to_owned(), "jwt malformed"),
        ("a key of a program", "sk-0123456789abcdef".to_owned(), "jwt malformed"),
        ("the five parts of a JWE", format!("{good}.{claims}.{signature}"), "jwt malformed"),
        ("four parts", format!("{good}.{signature}"), "jwt malformed"),
        ("a dot behind it", format!("{good}."), "jwt malformed"),
        ("a space", format!("{header} .{claims}.{signature}"), "jwt malformed"),
        ("padding", format!("{header}=.{claims}.{signature}"), "jwt malformed"),
        ("padding behind", format!("{good}="), "jwt malformed"),
        ("a line end", format!("{good}\n"), "jwt malformed"),
        ("the other alphabet", format!("{header}.{claims}.+{}", &signature[1..]), "jwt malformed"),
        ("no ASCII", format!("{header}.{claims}.\u{fc}"), "jwt malformed"),
        ("a huge one", fits(7000), "token too large"),
        ("a deep one", hs256(deep(16)), "jwt malformed"),
        ("a very deep one", hs256(deep(2500)), "jwt malformed"),
        ("claims that are no object", hs256("[]"), "jwt malformed"),
        ("claims that are no JSON", hs256("sub=ann"), "jwt malformed"),
        ("claims that are no text", hs256([0xff, 0xfe]), "jwt malformed"),
        ("no claims", format!("{header}..{signature}"), "jwt malformed"),
    ];
    check(&with_secret(), rows);
}

#[test]
fn claims_are_not_read_before_the_signature() {
    let key: EncodingKey = secret(b"another secret, as long as is needed");
    let foreign = |claims: &str| signed(HEADER, claims, Algorithm::HS256, &key);
    let rows = ["[]", r#"{"exp":1}"#, r#"{"exp":"x"}"#, r#"{"nbf":9999999999}"#, "{"]
        .map(|claims| ("a foreign token", foreign(claims), "invalid signature"));
    check(&with_secret(), rows.into());
}
