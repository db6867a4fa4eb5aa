//! Key sets: when they are fetched, and which keys are used.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Value, json};

use super::forge::{
    ED25519, GOOD, P256, P384, RSA, RSA_OTHER, SECRET, SetClock, part, private, secret, signed,
};
use super::key_server::{KeyServer, answer, keys};
use crate::auth::{AuthError, AuthProvider as _, JwtKeys, JwtProvider, JwtSettings};

const UNKNOWN: &str = "Invalid token: unknown key";
const UNAVAILABLE: &str = "The token cannot be checked at the moment";

struct Lab {
    server: KeyServer,
    clock: Arc<SetClock>,
    provider: JwtProvider,
}

impl Lab {
    async fn new(algorithms: &[Algorithm], first_answer: Vec<u8>) -> Self {
        let server = KeyServer::start(first_answer).await;
        let clock = SetClock::new();
        let settings = JwtSettings {
            keys: JwtKeys::Jwks(server.url.parse().unwrap()),
            algorithms: algorithms.to_vec(),
            ..JwtSettings::hs256(SECRET)
        };
        let provider = JwtProvider::at(settings, clock.clone()).unwrap();
        Self { server, clock, provider }
    }

    async fn with_rsa(first_answer: Vec<u8>) -> Self {
        Self::new(&[Algorithm::RS256], first_answer).await
    }

    /// Starts with the key `a`, which has been fetched.
    async fn with_known_key() -> Self {
        let lab = Self::with_rsa(keys(&[rsa("a")])).await;
        assert_eq!(lab.verified(&token("a")).await, Ok(()));
        lab
    }

    /// Starts a fetch on a runtime that is not polled.
    fn fetching_elsewhere(&self, token: &str) -> tokio::runtime::Runtime {
        let elsewhere = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let inside = elsewhere.enter();
        assert!(self.provider.verify(token).now_or_never().is_none());
        drop(inside);
        elsewhere
    }

    async fn verified(&self, token: &str) -> Result<(), String> {
        self.provider.verify(token).await.map(drop).map_err(|error| error.to_string())
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn jwk(algorithm: Algorithm, pem: &str, more: &Value) -> Value {
    let key = match algorithm {
        Algorithm::ES256 | Algorithm::ES384 => DecodingKey::from_ec_pem(pem.as_bytes()),
        Algorithm::EdDSA => DecodingKey::from_ed_pem(pem.as_bytes()),
        _ => DecodingKey::from_rsa_pem(pem.as_bytes()),
    };
    let mut key = json!(Jwk::from_decoding_key(&key.unwrap(), None).unwrap());
    let members = key.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    key
}

fn rsa(kid: &str) -> Value {
    jwk(Algorithm::RS256, RSA, &json!({ "kid": kid, "use": "sig", "alg": "RS256" }))
}

/// Returns a token of the key in `RSA`, with this key id.
fn token(kid: &str) -> String {
    of(Algorithm::RS256, Some(kid))
}

fn of(algorithm: Algorithm, kid: Option<&str>) -> String {
    let mut header = json!({ "alg": format!("{algorithm:?}") });
    if let Some(kid) = kid {
        header["kid"] = json!(kid);
    }
    signed(&header.to_string(), GOOD, algorithm, &private(algorithm))
}

fn refused(text: &str) -> Result<(), String> {
    Err(text.to_owned())
}

#[tokio::test]
async fn keys_are_fetched_once_when_first_needed() {
    let lab = Lab::with_rsa(keys(&[rsa("a"), rsa("b")])).await;
    assert_eq!(lab.server.requests(), 0);
    for kid in ["a", "b", "a"] {
        assert_eq!(lab.verified(&token(kid)).await, Ok(()));
    }
    assert_eq!(lab.server.requests(), 1);
    // a malformed token causes no fetch
    assert_eq!(lab.verified("a.b.c").await, refused("Invalid token: jwt malformed"));
}

#[tokio::test]
async fn concurrent_requests_share_one_fetch() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    lab.server.hold();
    let good = token("a");
    let all = join_all((0..20).map(|_| lab.verified(&good)));
    let release = async {
        lab.server.has_requests(1).await;
        lab.server.release();
    };
    let (answers, ()) = futures_util::future::join(all, release).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(lab.server.requests(), 1);
}

#[tokio::test]
async fn an_unknown_key_causes_a_fetch() {
    let lab = Lab::with_rsa(keys(&[rsa("old")])).await;
    assert_eq!(lab.verified(&token("old")).await, Ok(()));

    lab.server.answers(keys(&[rsa("new")]));
    lab.wait(31);
    assert_eq!(lab.verified(&token("new")).await, Ok(()));
    assert_eq!(lab.verified(&token("old")).await, refused(UNKNOWN));
    assert_eq!(lab.server.requests(), 2);
}

#[tokio::test]
async fn many_unknown_keys_cause_one_fetch() {
    let lab = Lab::with_known_key().await;
    let flood: Vec<String> = (0..40).map(|number| token(&format!("k{number}"))).collect();

    for requests in [1, 2, 3] {
        let together = join_all(flood.iter().map(|token| lab.verified(token))).await;
        assert!(together.iter().all(|answer| *answer == refused(UNKNOWN)), "{together:?}");
        for token in &flood {
            assert_eq!(lab.verified(token).await, refused(UNKNOWN));
        }
        assert_eq!(lab.server.requests(), requests);
        assert_eq!(lab.verified(&token("a")).await, Ok(()));
        lab.wait(30);
    }
}

#[tokio::test]
async fn stale_keys_are_used_while_they_are_refreshed() {
    let lab = Lab::with_known_key().await;
    lab.wait(599);
    assert_eq!(lab.verified(&token("a")).await, Ok(()));
    assert_eq!(lab.server.requests(), 1);

    lab.server.answers(keys(&[rsa("b")]));
    lab.server.hold();
    lab.wait(1);
    assert_eq!(lab.verified(&token("a")).await, Ok(()), "known keys do not wait for the refresh");
    lab.server.has_requests(2).await;
    lab.server.release();
    assert_eq!(lab.verified(&token("b")).await, Ok(()), "unknown keys wait for it");
    assert_eq!(lab.verified(&token("a")).await, refused(UNKNOWN));
    assert_eq!(lab.server.requests(), 2);
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_old_keys() {
    let lab = Lab::with_known_key().await;
    lab.clock.set_back(Duration::from_secs(3600));
    lab.server.answers(keys(&[rsa("b")]));
    assert_eq!(lab.verified(&token("b")).await, Ok(()));
}

#[tokio::test]
async fn known_keys_remain_valid_without_a_server() {
    let Lab { server, clock, provider } = Lab::with_rsa(keys(&[rsa("a")])).await;
    assert!(provider.verify(&token("a")).await.is_ok());
    drop(server);
    for _ in 0..5 {
        clock.advance(Duration::from_secs(700));
        assert!(provider.verify(&token("a")).await.is_ok());
        let refused = provider.verify(&token("b")).await.unwrap_err();
        assert_eq!(refused.to_string(), UNKNOWN);
    }
}

#[tokio::test]
async fn bad_answers_do_not_replace_known_keys() {
    let many: Vec<Value> = (0..101).map(|number| rsa(&number.to_string())).collect();
    let good = json!({ "keys": [rsa("b")] }).to_string();
    let large = format!("{}{good}", " ".repeat(256 << 10));
    let elsewhere = KeyServer::start(keys(&[rsa("b")])).await;
    let endless = format!("HTTP/1.1 200 x\r\nconnection: close\r\n\r\n{large}");
    let rows = [
        ("an error", answer(500, "", &good)),
        ("not found", answer(404, "", "")),
        ("nothing new", answer(304, "", "")),
        ("a redirect", answer(302, &format!("location: {}\r\n", elsewhere.url), "")),
        ("a page", answer(200, "content-type: text/html\r\n", "<html></html>")),
        ("nothing", answer(200, "", "")),
        ("another document", answer(200, "", r#"{"keys":{"kid":"b"}}"#)),
        ("a list", answer(200, "", "[]")),
        ("half a document", answer(200, "", &good[..good.len() - 2])),
        ("too many keys", keys(&many)),
        ("a large answer", answer(200, "", &large)),
        ("a large answer of unknown length", endless.into_bytes()),
        ("an answer that breaks off", b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n{".to_vec()),
        ("no HTTP", b"\0\0\0".to_vec()),
        ("silence", Vec::new()),
    ];
    for (name, bad) in rows {
        let lab = Lab::with_rsa(bad.clone()).await;
        assert_eq!(lab.verified(&token("b")).await, refused(UNAVAILABLE), "{name}");

        lab.server.answers(keys(&[rsa("a")]));
        lab.wait(5);
        assert_eq!(lab.verified(&token("a")).await, Ok(()), "{name}");
        lab.server.answers(bad);
        lab.wait(31);
        assert_eq!(lab.verified(&token("b")).await, refused(UNKNOWN), "{name}");
        assert_eq!(lab.verified(&token("a")).await, Ok(()), "{name}");
    }
    assert_eq!(elsewhere.requests(), 0);
}

#[tokio::test]
async fn without_keys_tokens_are_refused_as_unavailable() {
    let lab = Lab::with_rsa(answer(503, "", "")).await;
    for _ in 0..10 {
        let error = lab.provider.verify(&token("a")).await.unwrap_err();
        let reason = "no key set from 127.0.0.1 yet";
        assert_eq!(error, AuthError::Unavailable(reason.to_owned()));
    }
    assert_eq!(lab.server.requests(), 1);
    lab.server.answers(keys(&[rsa("a")]));
    lab.wait(5);
    assert_eq!(lab.verified(&token("a")).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn requests_wait_at_most_five_seconds() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    lab.server.hold();
    let begin = tokio::time::Instant::now();
    assert_eq!(lab.verified(&token("a")).await, refused(UNAVAILABLE));
    let waited = begin.elapsed().as_millis();
    assert!((4900..5100).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_fetch_does_not_block_requests() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    let good = token("a");
    let stuck = lab.fetching_elsewhere(&good);
    assert_eq!(lab.verified(&good).await, refused(UNAVAILABLE));
    assert_eq!(lab.server.requests(), 0);
    stuck.shutdown_background();
}

#[tokio::test]
async fn a_fetch_outlives_the_request_that_needed_it() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    lab.server.hold();
    let token = token("a");
    assert!(lab.provider.verify(&token).now_or_never().is_none());
    lab.server.has_requests(1).await;
    lab.server.release();
    assert_eq!(lab.verified(&token).await, Ok(()));
    assert_eq!(lab.server.requests(), 1);
}

#[tokio::test]
async fn a_fetch_that_is_lost_with_its_thread_is_repeated() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    let good = token("a");
    let elsewhere = lab.fetching_elsewhere(&good);
    let (waiting, ()) = futures_util::future::join(lab.verified(&good), async {
        elsewhere.shutdown_background();
    })
    .await;
    assert_eq!(waiting, refused(UNAVAILABLE));
    lab.wait(5);
    assert_eq!(lab.verified(&good).await, Ok(()));
}

#[tokio::test]
async fn other_threads_wait_for_the_same_fetch() {
    let lab = Lab::with_rsa(keys(&[rsa("a")])).await;
    let Lab { server, provider, .. } = lab;
    let provider = Arc::new(provider);
    server.hold();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let provider = Arc::clone(&provider);
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async { provider.verify(&token("a")).await.is_ok() })
            })
        })
        .collect();
    server.has_requests(1).await;
    let here = tokio::spawn({
        let provider = Arc::clone(&provider);
        async move { provider.verify(&token("a")).await.is_ok() }
    });
    server.release();
    assert!(here.await.unwrap());
    let joined = tokio::task::spawn_blocking(|| threads.into_iter().map(|it| it.join().unwrap()));
    assert!(joined.await.unwrap().all(|is_good| is_good));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn only_keys_for_the_configured_algorithms_are_used() {
    let oct = json!({ "kty": "oct", "kid": "a", "alg": "RS256", "k": part(SECRET) });
    let key = |more: Value| jwk(Algorithm::RS256, RSA, &more);
    let small = include_str!("keys/rsa-1024.test-public.pem");
    let rows = [
        ("the key", key(json!({ "kid": "a" })), Ok(())),
        ("for signatures", key(json!({ "kid": "a", "use": "sig" })), Ok(())),
        ("to verify", key(json!({ "kid": "a", "key_ops": ["verify"] })), Ok(())),
        ("of more members", key(json!({ "kid": "a", "x5t": "x", "own": [1] })), Ok(())),
        ("for encryption", key(json!({ "kid": "a", "use": "enc" })), refused(UNKNOWN)),
        ("to sign", key(json!({ "kid": "a", "key_ops": ["sign"] })), refused(UNKNOWN)),
        ("for another algorithm", key(json!({ "kid": "a", "alg": "RS512" })), refused(UNKNOWN)),
        ("for none of ours", key(json!({ "kid": "a", "alg": "RSA-OAEP" })), refused(UNKNOWN)),
        ("with its private half", key(json!({ "kid": "a", "d": "AQAB" })), refused(UNKNOWN)),
        ("of another name", key(json!({ "kid": "A" })), refused(UNKNOWN)),
        ("without a name", key(json!({})), refused(UNKNOWN)),
        ("a short one", jwk(Algorithm::RS256, small, &json!({ "kid": "a" })), refused(UNKNOWN)),
        ("of a curve", jwk(Algorithm::ES256, P256, &json!({ "kid": "a" })), refused(UNKNOWN)),
        ("a secret", oct, refused(UNKNOWN)),
        ("half a key", json!({ "kty": "RSA", "kid": "a", "n": "AQAB" }), refused(UNKNOWN)),
        ("no key", json!("a"), refused(UNKNOWN)),
        (
            "another one of the same name",
            jwk(Algorithm::RS256, RSA_OTHER, &json!({ "kid": "a" })),
            refused("Invalid token: invalid signature"),
        ),
    ];
    for (name, key, expected) in rows {
        let lab = Lab::with_rsa(keys(&[key])).await;
        assert_eq!(lab.verified(&token("a")).await, expected, "{name}");
    }

    let published = json!({ "kty": "oct", "kid": "a", "k": part(SECRET) });
    let lab = Lab::with_rsa(keys(&[published])).await;
    let header = r#"{"alg":"HS256","kid":"a"}"#;
    let token = signed(header, GOOD, Algorithm::HS256, &secret(SECRET));
    assert_eq!(lab.verified(&token).await, refused("Invalid token: invalid algorithm"));
}

#[tokio::test]
async fn keys_are_matched_by_curve() {
    let set = keys(&[
        jwk(Algorithm::ES256, P256, &json!({ "kid": "small" })),
        jwk(Algorithm::ES384, P384, &json!({ "kid": "large" })),
        jwk(Algorithm::EdDSA, ED25519, &json!({ "kid": "ed" })),
    ]);
    let lab = Lab::new(&[Algorithm::ES256, Algorithm::ES384], set.clone()).await;
    assert_eq!(lab.verified(&of(Algorithm::ES256, Some("small"))).await, Ok(()));
    assert_eq!(lab.verified(&of(Algorithm::ES384, Some("large"))).await, Ok(()));
    assert_eq!(lab.verified(&of(Algorithm::ES256, Some("large"))).await, refused(UNKNOWN));
    // one key per curve, so no id is needed
    assert_eq!(lab.verified(&of(Algorithm::ES256, None)).await, Ok(()));
    assert_eq!(lab.verified(&of(Algorithm::ES384, None)).await, Ok(()));
    let lab = Lab::new(&[Algorithm::EdDSA], set).await;
    assert_eq!(lab.verified(&of(Algorithm::EdDSA, Some("ed"))).await, Ok(()));
}

#[tokio::test]
async fn a_token_without_a_key_id_is_checked_with_the_only_key() {
    let nameless = of(Algorithm::RS256, None);
    let for_encryption = jwk(Algorithm::RS256, RSA_OTHER, &json!({ "kid": "b", "use": "enc" }));
    let lab = Lab::with_rsa(keys(&[rsa("a"), for_encryption])).await;
    assert_eq!(lab.verified(&nameless).await, Ok(()));

    let lab = Lab::with_rsa(keys(&[rsa("a"), rsa("b")])).await;
    assert_eq!(lab.verified(&nameless).await, refused(UNKNOWN));
    let lab = Lab::with_rsa(keys(&[])).await;
    assert_eq!(lab.verified(&nameless).await, refused(UNKNOWN));
}
