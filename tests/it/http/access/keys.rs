//! Keys of every source, and their order of precedence.

use jsonwebtoken::{Algorithm, EncodingKey, Header};

use super::*;
use support::provider::{Provider, whole};

/// A key pair of the tests in the three forms that are needed.
const PRIVATE: &[u8] = include_bytes!("../../../../src/auth/tests/keys/ed25519.test-private.pem");
const PUBLIC: &str = include_str!("../../../../src/auth/tests/keys/ed25519.test-public.pem");
const JWK_X: &str = "rOZVtC-eCuy8Ux-CjtJyw7l7nLqcv1ZMLf5gF_FwPQo";
/// Output of `printf %s nightly-key | sha256sum`.
const KEY_HASH: &str = "e198c5f7983c4203ea69ae42bda1972643038432d07e5bf2b13dab5812988052";

fn signed_with_key(id: &str, kid: &str) -> String {
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::EdDSA) };
    let claims = json!({ "sub": id, "exp": now() + 600 });
    jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_pem(PRIVATE).unwrap()).unwrap()
}

fn execute(server: &Server, headers: &[(&str, &str)]) -> Reply {
    let body = Some(&b"{\"input\":{\"n\":1}}"[..]);
    server.send("POST", "/workflows/add/execute", headers, body)
}

/// Returns the user of a token, from the state of an execution that it started.
fn user_of(server: &Server, headers: &[(&str, &str)]) -> Value {
    let id = execute(server, headers).data()["executionId"].as_str().unwrap().to_owned();
    server.state("add", &id)["userId"].take()
}

#[test]
fn a_public_key_file_is_found_next_to_the_configuration() {
    let home = Home::new("");
    std::fs::create_dir(home.path("conf")).unwrap();
    home.write("conf/issuer.pem", PUBLIC);
    let auth = "[auth.jwt]\npublic_key = \"issuer.pem\"\nalgorithms = [\"EdDSA\"]\n";
    let base = "server.port = 0\nstore.url = \"memory:\"\n";
    home.write("conf/other.toml", &format!("{base}{auth}{CONFIG}"));
    let server = Server::start(home.greenroom(&["--config", "conf/other.toml"]));
    let token = bearer(&signed_with_key("ann", "any"));
    assert_eq!(user_of(&server, &[("authorization", &token)]), "ann");
    // The public key is not secret: it must not verify HMAC signatures.
    let confused = bearer(&signed(&json!({ "sub": "eve" }), PUBLIC));
    let refused = execute(&server, &[("authorization", &confused)]);
    let expected = (401, "token_invalid", "Invalid token: invalid algorithm", INVALID);
    assert_eq!(refusal_of(&refused), owned(expected));
}

#[test]
fn a_key_set_is_fetched_on_first_use() {
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": JWK_X, "kid": "k1", "use": "sig" });
    let json = [("content-type", "application/json")];
    let issuer = Provider::start([whole(200, &json, &json!({ "keys": [jwk] }).to_string())]);
    let url = format!("{}keys.json", issuer.base_url());
    let home =
        Home::new(&format!("[auth.jwt]\njwks_url = \"{url}\"\nalgorithms = [\"EdDSA\"]\n{CONFIG}"));
    let server = Server::start(home.greenroom(&[]));
    assert_eq!(issuer.asked().len(), 0);
    for _ in 0..3 {
        let token = bearer(&signed_with_key("ann", "k1"));
        assert_eq!(user_of(&server, &[("authorization", &token)]), "ann");
    }
    let asked: Vec<_> = issuer.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(asked, ["/v1/keys.json"]);
}

#[test]
fn an_unreachable_key_set_is_a_server_error() {
    let issuer = Provider::start([]);
    let url = format!("{}keys.json", issuer.base_url());
    let home =
        Home::new(&format!("[auth.jwt]\njwks_url = \"{url}\"\nalgorithms = [\"EdDSA\"]\n{CONFIG}"));
    let server = Server::start(home.greenroom(&[]));
    let token = bearer(&signed_with_key("ann", "k1"));
    let refused = execute(&server, &[("authorization", &token)]);
    let expected = (503, "auth_unavailable", "The token cannot be checked at the moment", "");
    assert_eq!(refusal_of(&refused), owned(expected));
    assert!(refused.header("retry-after").is_some());
    assert!(server.says("cannot fetch the key set").contains("WARN"));
}

#[test]
fn api_keys_work_alongside_tokens() {
    let home = Home::new(&format!(
        "[auth]\nrules = [{{ route = \"GET /workflows\", roles = [\"admin\"] }}]\n[auth.jwt]\n\
         [[auth.api_keys]]\nid = \"nightly\"\nhash = \"sha256:{KEY_HASH}\"\n\
         user = {{ roles = [\"admin\"], email = \"ops@example.com\" }}\n{CONFIG}"
    ));
    let mut command = home.greenroom(&[]);
    command.env("JWT_SECRET", SECRET);
    let server = Server::start(command);
    let (key, ann) = (bearer("nightly-key"), bearer(&token("ann", &[])));
    let rows: [(Headers<'_>, &str, u16); 4] = [
        (&[("x-api-key", "nightly-key")], "nightly", 200),
        (&[("authorization", &key)], "nightly", 200),
        (&[("authorization", &ann)], "ann", 403),
        // The first key that verifies the token determines the user.
        (&[("authorization", &ann), ("x-api-key", "nightly-key")], "ann", 403),
    ];
    for (headers, user, listed) in rows {
        assert_eq!(user_of(&server, headers), user, "{headers:?}");
        assert_eq!(server.send("GET", "/workflows", headers, None).status, listed, "{headers:?}");
    }
    let forged = bearer(&signed(&json!({ "sub": "ann" }), &SECRET.replace('a', "b")));
    let wrong = [
        ("x-api-key", "nightly-kez", "Invalid token: not recognized"),
        ("authorization", "Bearer nightly-kez", "Invalid token: not recognized"),
        ("authorization", &*forged, "Invalid token: invalid signature"),
    ];
    for (name, value, text) in wrong {
        let refused = execute(&server, &[(name, value)]);
        assert_eq!(refusal_of(&refused), owned((401, "token_invalid", text, INVALID)), "{value}");
    }
}
