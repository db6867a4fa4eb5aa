//! `[auth]`: values and refusals.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_actors::domain::definition::Mapping;
use jsonwebtoken::Algorithm;
use serde_json::json;

use super::problems_of;
use super::refusals::refused;
use crate::auth::TokenSources;
use crate::config::{Config, DefaultAccess, JwtConfig, KeySource, Names};

fn jwt(text: &str) -> JwtConfig {
    let text = format!("[auth.jwt]\n{text}");
    Config::parse(&text, "c.toml").unwrap().auth.jwt.unwrap()
}

#[test]
fn a_minimal_jwt_section_has_defaults() {
    let least = jwt("");
    assert_eq!(least.keys, KeySource::Secret("JWT_SECRET".to_owned()));
    assert_eq!(least.algorithms, [Algorithm::HS256]);
    assert_eq!((least.leeway, least.require_exp), (Duration::ZERO, false));
    assert_eq!((least.user, least.sources), (None, TokenSources::default()));
    assert_eq!((least.issuer, least.audience), (vec![], vec![]));
    assert_eq!(jwt("secret = \"${KEY}\"\n").keys, KeySource::Secret("KEY".to_owned()));
    let pem = jwt("public_key = \"secret:PEM\"\n");
    assert_eq!(pem.keys, KeySource::PemVariable("PEM".to_owned()));
    assert_eq!(pem.algorithms, [Algorithm::RS256]);
}

#[test]
fn all_keys_of_jwt_are_read() {
    let jwks = "https://login.example/keys?v=1";
    let full = jwt(&format!(
        "jwks_url = \"{jwks}\"\nalgorithms = [\"ES256\", \"ES384\"]\nissuer = \"i\"\n\
         audience = [\"a\", \"b\"]\nleeway = \"5s\"\nrequire_exp = true\ncookie = \"__Host-t\"\n\
         query = \"access_token\"\nquery_anywhere = true\n\
         user = {{ id = \"claims.sub\", tags = [\"claims.a\", \"'b'\"] }}\n"
    ));
    assert_eq!(full.keys, KeySource::Jwks(jwks.parse().unwrap()));
    assert_eq!(full.algorithms, [Algorithm::ES256, Algorithm::ES384]);
    assert_eq!((full.issuer, full.audience), (vec!["i".to_owned()], vec!["a".into(), "b".into()]));
    assert_eq!((full.leeway, full.require_exp), (Duration::from_secs(5), true));
    let sources = TokenSources {
        cookie: Some("__Host-t".to_owned()),
        query: "access_token".to_owned(),
        query_anywhere: true,
    };
    assert_eq!(full.sources, sources);
    let id = ("id".to_owned(), Mapping(json!("claims.sub")));
    let tags = ("tags".to_owned(), Mapping(json!(["claims.a", "'b'"])));
    assert_eq!(full.user.unwrap(), [id, tags]);
}

#[test]
fn rules_ownership_and_api_keys_are_read() {
    let hash = "0f".repeat(32);
    let text = format!(
        "[auth]\ndefault = \"private\"\npublic = [\"GET /\", \"GET /doc\"]\n\
         rules = [{{ route = \"POST /*\" }}, {{ route = \"POST /updates\", roles = [\"a\"] }}]\n\
         ownership = {{ roles = [\"auditor\"] }}\n[auth.jwt]\n\
         [[auth.api_keys]]\nid = \"ci\"\nhash = \"sha256:{hash}\"\nuser = {{ roles = [\"a\"] }}\n\
         [[auth.api_keys]]\nid = \"bot\"\nhash = \"sha256:{}\"\n",
        hash.replace('f', "A")
    );
    let auth = Config::parse(&text, "c.toml").unwrap().auth;
    assert_eq!(auth.default, DefaultAccess::Private);
    let public: Vec<_> = auth.public.iter().map(|pattern| pattern.text.as_str()).collect();
    assert_eq!(public, ["GET /", "GET /doc"]);
    let rules: Vec<_> =
        auth.rules.iter().map(|rule| (rule.route.text.as_str(), rule.roles.concat())).collect();
    assert_eq!(rules, [("POST /*", String::new()), ("POST /updates", "a".to_owned())]);
    assert_eq!(auth.owner_roles.unwrap(), ["auditor"]);
    // What is private wants tokens that end.
    assert!(auth.jwt.unwrap().require_exp);
    let keys: Vec<_> = auth.api_keys.iter().map(|key| (key.id.as_str(), key.hash)).collect();
    assert_eq!(keys, [("ci", [0x0f; 32]), ("bot", [0x0a; 32])]);
    assert_eq!(auth.api_keys[0].user["roles"], json!(["a"]));
}

#[test]
fn mistakes_in_keys_do_not_repeat_the_value() {
    let needs = "must name an environment variable, e.g. \"secret:JWT_SECRET\"";
    let rows = [
        ("secret = \"canary\"", format!("2:10: auth.jwt.secret: {needs}")),
        ("secret = [\"canary\"]", format!("2:10: auth.jwt.secret: {needs}")),
        ("secret = \"canary secret:NAME\"", format!("2:10: auth.jwt.secret: {needs}")),
        (
            "public_key = \"-----BEGIN canary\"",
            "2:14: auth.jwt.public_key: must be the path of a PEM file, or \"secret:NAME\""
                .to_owned(),
        ),
        ("public_key = \"nowhere.pem\"", "2:14: auth.jwt.public_key: no such file".to_owned()),
        (
            "jwks_url = \"https://u:canary@h/\"",
            "2:12: auth.jwt.jwks_url: must not contain a user name or a password".to_owned(),
        ),
        (
            "jwks_url = \"file:///keys\"",
            "2:12: auth.jwt.jwks_url: must begin with http:// or https://".to_owned(),
        ),
        (
            "jwks_url = \"http://keys.example/\"",
            "2:12: warning: auth.jwt.jwks_url: plain http:// allows anyone on the network path \
             to replace the keys"
                .to_owned(),
        ),
        (
            "jwks_url = \"https://h/\"\nsecret = \"secret:KEY\"",
            "2:1: auth.jwt.jwks_url: cannot be combined with `secret`; remove one of \
             them"
                .to_owned(),
        ),
    ];
    for (text, expected) in rows {
        let problems = problems_of(&format!("[auth.jwt]\n{text}\n"));
        assert_eq!(problems, [format!("c.toml:{expected}")], "for {text}");
        assert!(!problems.concat().contains("canary"), "{problems:?}");
    }
    assert_eq!(
        problems_of("[auth.jwt]\njwks_url = \"http://127.0.0.1:1/\"\n"),
        Vec::<String>::new()
    );
}

#[test]
fn mistakes_in_jwt_settings() {
    let row = |text: &str, expected: &str| {
        let expected = [format!("c.toml:2:{expected}")];
        assert_eq!(problems_of(&format!("[auth.jwt]\n{text}\n")), expected, "for {text}");
    };
    let known = "must be one of HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, \
                 ES256, ES384, EdDSA";
    row("algorithms = [\"none\"]", &format!("15: auth.jwt.algorithms[0]: {known}"));
    row(
        "algorithms = [\"hs256\"]",
        &format!("15: auth.jwt.algorithms[0]: {known}; did you mean HS256?"),
    );
    row("algorithms = []", "14: auth.jwt.algorithms: needs at least one");
    row("algorithms = [\"RS256\"]", "15: auth.jwt.algorithms[0]: needs `public_key` or `jwks_url`");
    row(
        "algorithms = [\"HS256\"]\njwks_url = \"https://h/\"",
        "15: auth.jwt.algorithms[0]: needs `secret`",
    );
    row(
        "algorithms = [\"RS256\", \"ES256\"]\njwks_url = \"https://h/\"",
        "24: auth.jwt.algorithms[1]: needs another kind of key than the first one",
    );
    row("issuer = \"\"", "10: auth.jwt.issuer: must not be empty");
    row("audience = []", "12: auth.jwt.audience: needs at least one");
    row(
        "leeway = \"6s\"",
        "10: auth.jwt.leeway: must be at most 5s: expired tokens are accepted for that long",
    );
    row("cookie = \"a b\"", "10: auth.jwt.cookie: must be letters, digits, `_`, `-` or `.`");
    row(
        "user = { id = \"claim.sub\" }",
        "15: auth.jwt.user.id: `claim` is not in scope; in scope: claims; did you mean \
         claims?",
    );
    row(
        "user = { id = \"claims.\" }",
        "15: auth.jwt.user.id: syntax error: unexpected end of input, expected identifier or \
         integer in `claims.`",
    );
    row(
        "user = { id = \"secret:KEY\" }",
        "15: auth.jwt.user.id: `secret:KEY` is allowed in keys and headers only",
    );
    row("secrets = 1", "1: auth.jwt.secrets: unknown key; did you mean secret?");
}

#[test]
fn mistakes_in_rules_and_api_keys() {
    let hash = "0".repeat(64);
    let key = format!("id = \"a\"\nhash = \"sha256:{hash}\"\n");
    refused(&[
        (
            "[auth]\ndefault = \"open\"\nrules = [{ roles = [\"a\"] }, { route = \"GET /\", \
             roles = [] }, { route = \"GET /doc\", roles = \"a\" }]\n\
             ownership = { roles = [\"a b\"] }\npublic = [\"\"]\njwt = {}\n",
            &[
                "c.toml:2:11: auth.default: must be \"standard\" or \"private\"",
                "c.toml:3:10: auth.rules[0]: key `route` is missing",
                "c.toml:3:56: auth.rules[1].roles: needs a role; omit the key to accept any \
                 valid token",
                "c.toml:3:92: auth.rules[2].roles: must be an array, not a string",
                "c.toml:4:24: auth.ownership.roles[0]: must not contain spaces",
                "c.toml:5:11: auth.public[0]: must not be empty",
            ],
        ),
        (
            "[auth]\nprovider = \"none\"\njwt = {}\n[[auth.api_keys]]\nid = \"a/b\"\n\
             hash = \"canary\"\nuser = { id = \"\" }\n",
            &[
                "c.toml:3:1: auth.jwt: contradicts provider = \"none\"; remove one of them",
                "c.toml:4:8: auth.api_keys: contradicts provider = \"none\"; remove one of them",
                "c.toml:5:6: auth.api_keys[0].id: must be a valid user id: 1 to 200 \
                 characters without `/`",
                "c.toml:6:8: auth.api_keys[0].hash: must be \"sha256:\" and 64 hexadecimal \
                 digits, as printed by `printf %s \"$KEY\" | sha256sum`",
                "c.toml:7:8: auth.api_keys[0].user: has an invalid `id`: it must be 1 to 200 \
                 characters without `/`",
            ],
        ),
        (
            &format!("[[auth.api_keys]]\n{key}[[auth.api_keys]]\n{key}"),
            &["c.toml:4:1: auth.api_keys[1]: the id a is used by two keys"],
        ),
        (
            &format!("[[auth.api_keys]]\n{key}[[auth.api_keys]]\nid = \"b\"\n{}", &key[9..]),
            &["c.toml:4:1: auth.api_keys[1]: has the same hash as key a"],
        ),
        (
            "[[auth.api_keys]]\nid = \"a\"\nhash = \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e\
             4649b934ca495991b7852b855\"\n",
            &["c.toml:3:8: auth.api_keys[0].hash: is the hash of an empty key: $KEY was not set"],
        ),
        ("[auth]\napi_keys = []\n", &["c.toml:2:12: auth.api_keys: needs at least one key"]),
    ]);
}

#[test]
fn mistakes_in_the_inbox() {
    refused(&[
        (
            "[inbox]\nforce_roles = [\"\", \"a b\", 3]\nforce_role = [\"a\"]\n",
            &[
                "c.toml:2:16: inbox.force_roles[0]: must not be empty",
                "c.toml:2:20: inbox.force_roles[1]: must not contain spaces",
                "c.toml:2:27: inbox.force_roles[2]: must be a string, not an integer",
                "c.toml:3:1: inbox.force_role: unknown key; did you mean force_roles?",
            ],
        ),
        (
            "[inbox]\nsecret = \"canary\"\nbase_url = \"ftp://a.example\"\nlink_ttl = \"0s\"\n",
            &[
                "c.toml:2:10: inbox.secret: must name an environment variable, e.g. \
                 \"secret:INBOX_KEY\"",
                "c.toml:3:12: inbox.base_url: must begin with http:// or https://",
                "c.toml:4:12: inbox.link_ttl: must be longer than 0ms",
            ],
        ),
        (
            "[inbox]\nsecret = \"secret:INBOX_KEY\"\n",
            &["c.toml:2:1: inbox.secret: needs `base_url`, which links begin with"],
        ),
        (
            "[inbox]\nlink_ttl = \"91d\"\n",
            &["c.toml:2:1: inbox.link_ttl: must be at most 90 days (\"90d\")"],
        ),
        (
            "[inbox]\nbase_url = \"https://a.example/x?y\"\n",
            &["c.toml:2:12: inbox.base_url: must end with the host or a path, before ? and #"],
        ),
    ]);
}

#[test]
fn rules_without_a_provider_are_refused() {
    let rules = "default = \"private\"\npublic = [\"GET /\"]\nrules = [{ route = \"POST /*\" }]\n\
                 ownership = {}\n";
    let idle = "has no effect without a provider that checks tokens: [auth.jwt], \
     [[auth.api_keys]] or \
                a provider in Rust";
    let places =
        ["2:1: auth.default", "3:1: auth.public", "4:1: auth.rules", "5:1: auth.ownership"];
    let expected = places.map(|place| format!("c.toml:{place}: {idle}"));
    assert_eq!(problems_of(&format!("[auth]\n{rules}")), expected);
    assert_eq!(problems_of(&format!("[auth]\n{rules}[auth.jwt]\n")), Vec::<String>::new());
    assert_eq!(problems_of("[auth]\ndefault = \"standard\"\npublic = []\n"), Vec::<String>::new());
}

#[test]
fn a_program_may_register_a_provider() {
    let directory = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let path = directory.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        Config::load_open(&path).unwrap()
    };
    let unregistered = Names::default();
    let badge = Names { providers: BTreeSet::from(["badge".to_owned()]), ..Names::default() };

    let private = load("[server]\nhost = \"::\"\n[auth]\ndefault = \"private\"\n");
    assert_eq!(
        (private.check_names(&unregistered).len(), private.check_names(&badge).len()),
        (1, 0)
    );
    assert!(
        private.check_exposure(&unregistered).is_err() && private.check_exposure(&badge).is_ok()
    );

    let none = load("[auth]\nprovider = \"none\"\n");
    assert_eq!(none.check_names(&unregistered), []);
    let message = none.check_names(&badge)[0].to_string();
    let expected = "c.toml:2:1: auth.provider: \"none\" contradicts the providers registered in Rust: \
                badge";
    assert!(message.ends_with(expected), "{message}");

    let mut made = Config::default();
    made.auth.default = DefaultAccess::Private;
    let message = made.check_names(&unregistered)[0].to_string();
    assert!(message.starts_with("auth.default: has no effect"), "{message}");
}

#[test]
fn secrets_of_the_environment_are_checked() {
    let environment = |name: &str| match name {
        "LONG" => Some("s".repeat(32)),
        "SHORT" => Some("canary".to_owned()),
        "EMPTY" => Some(" ".to_owned()),
        _ => None,
    };
    let rows = [
        ("secret = \"secret:LONG\"", None),
        ("", Some("1:1: auth.jwt: the environment variable JWT_SECRET is not set")),
        (
            "secret = \"secret:EMPTY\"",
            Some("2:1: auth.jwt.secret: the environment variable EMPTY is empty"),
        ),
        (
            "secret = \"secret:SHORT\"",
            Some(
                "2:1: auth.jwt.secret: the environment variable SHORT: the secret has 6 bytes; it \
                 must have at least 32",
            ),
        ),
        (
            "public_key = \"secret:SHORT\"",
            Some(
                "2:1: auth.jwt.public_key: the environment variable SHORT: the PEM has no line \
                 -----BEGIN PUBLIC KEY-----",
            ),
        ),
        (
            "public_key = \"Cargo.toml\"",
            Some("2:1: auth.jwt.public_key: the PEM has no line -----BEGIN PUBLIC KEY-----"),
        ),
    ];
    for (text, expected) in rows {
        let config = Config::parse(&format!("[auth.jwt]\n{text}\n"), "c.toml").unwrap();
        let message: Vec<_> =
            config.check_secrets(environment).iter().map(ToString::to_string).collect();
        let expected: Vec<_> = expected.iter().map(|it| format!("c.toml:{it}")).collect();
        assert_eq!(message, expected, "for {text}");
    }
    let key = format!("[[auth.api_keys]]\nid = \"k\"\nhash = \"sha256:{}\"\n", "0".repeat(64));
    let both = format!("[auth.jwt]\nsecret = \"secret:LONG\"\n{key}");
    let providers = Config::parse(&both, "c.toml").unwrap().auth.providers(environment).unwrap();
    let kinds: Vec<_> = providers.iter().map(|provider| provider.kind()).collect();
    assert_eq!(kinds, ["jwt", "api-key"]);
}
