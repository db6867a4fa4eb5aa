//! Access with tokens, with a provider for tests.

use actix_web::rt::time::timeout;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, ready};
use greenroom_actors::ports::clock::Clock as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error as SocketError;

use super::sockets::{next, open};
use super::*;
use crate::api::access::{AccessPolicy, DefaultAccess};
use crate::auth::{AuthError, AuthProvider, Providers, RequestHead, User};
use crate::web::gate::Auth;

/// Accepts `<id>` and `<id>:<milliseconds to live>`, from the header or `?token=`.
struct Names;

impl AuthProvider for Names {
    fn kind(&self) -> &str {
        "names"
    }

    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<std::borrow::Cow<'r, str>> {
        let header = crate::auth::bearer(request).map(Into::into);
        header.or_else(|| request.query("token").map(Into::into))
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        let (id, life) = token.split_once(':').unwrap_or((token, ""));
        let ends = |ms: u64| SystemClock.now().plus_ms(ms);
        let user = match id {
            "down" => Err(AuthError::Unavailable("no keys".to_owned())),
            "no-id" => User::new(serde_json::Map::new()),
            _ => User::new(json!({ "id": id }).as_object().cloned().unwrap()),
        };
        ready(user.map(|user| user.until(life.parse().ok().map(ends)))).boxed()
    }
}

async fn site(default: DefaultAccess) -> Site {
    let mut config = WebConfig::default();
    let mut providers = Providers::default();
    providers.push(Arc::new(Names));
    let policy = AccessPolicy { default, ..AccessPolicy::default() };
    config.binding.auth = Arc::new(Auth { providers, policy });
    Site::start(config).await
}

#[actix_web::test]
async fn a_socket_ends_with_its_token() {
    let site = site(DefaultAccess::Spec).await;
    for path in ["/ws?token=ann:300", "/ws/observability?token=ann:300"] {
        let mut socket = open(&site, path).await;
        next(&mut socket).await;
        let last = timeout(PATIENCE, socket.next()).await.expect("it stays open");
        let Message::Close(Some(frame)) = last.unwrap().unwrap() else { panic!("{path}") };
        assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1008, "the token has expired"));
    }
}

#[actix_web::test]
async fn a_stream_of_the_inbox_ends_with_its_token() {
    let site = site(DefaultAccess::Spec).await;
    let token = "authorization: Bearer ann:300\r\n";
    let answer = timeout(PATIENCE, site.send("GET", "/inbox/stream", token, None));
    let answer = answer.await.expect("it stays open");
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains(": the token has expired\n\n"), "{}", answer.body);
    assert!(answer.body.ends_with("\r\n0\r\n\r\n"), "a proper end: {}", answer.body);
}

#[actix_web::test]
async fn the_echo_names_the_user() {
    let site = site(DefaultAccess::Spec).await;
    let rows = [
        ("/ws", json!(false), json!(null)),
        ("/ws?token=ann", json!(true), json!("ann")),
        ("/ws?token=no-id", json!(true), json!(null)),
        // If no token is needed, an invalid one counts as none.
        ("/ws?token=down", json!(false), json!(null)),
    ];
    for (path, authenticated, id) in rows {
        let mut socket = open(&site, path).await;
        let data = next(&mut socket).await["data"].take();
        assert_eq!((&data["authenticated"], &data["userId"]), (&authenticated, &id), "{path}");
        assert_eq!(data.get("userId").is_some(), !id.is_null(), "{path}");
    }
}

#[actix_web::test]
async fn a_socket_that_needs_a_token_is_refused_before_the_handshake() {
    let site = site(DefaultAccess::Private).await;
    for (path, status) in [("/ws", 401), ("/ws/observability", 401), ("/ws?token=down", 503)] {
        let address = format!("ws://{}{path}", site.address);
        let refused = tokio_tungstenite::connect_async(address).await.unwrap_err();
        let SocketError::Http(answer) = refused else { panic!("{path}: {refused}") };
        assert_eq!(answer.status().as_u16(), status, "{path}");
        let body: Value = serde_json::from_slice(answer.body().as_ref().unwrap()).unwrap();
        assert_eq!(body["success"], false);
    }
    next(&mut open(&site, "/ws?token=ann").await).await;
}

#[actix_web::test]
async fn a_token_that_cannot_be_verified_is_refused() {
    let site = site(DefaultAccess::Spec).await;
    let token = "authorization: Bearer down\r\n";
    let path = "/workflows/noop/execute";
    let refused = site.send("POST", path, token, Some("{\"input\":{\"n\":1}}")).await;
    assert_eq!((refused.status, refused.header("x-error-code")), (503, Some("auth_unavailable")));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("www-authenticate"), None);
    assert_eq!(refused.json()["error"], "The token cannot be checked at the moment");
}
