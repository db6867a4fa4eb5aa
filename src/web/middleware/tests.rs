//! Refusals of handlers and gates, without a port.

use std::fmt;
use std::sync::Arc;

use actix_web::body::to_bytes;
use actix_web::dev::Service;
use actix_web::http::header::RETRY_AFTER;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::web::{self, Data};
use actix_web::{App, error};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::*;
use crate::auth::{AuthError, AuthProvider, User};
use crate::web::binding::Binding;
use crate::web::gate::Auth;
use crate::web::routes::bind;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// Accepts the token `ann`; `expired` and `away` have their own errors.
struct Doorman;

impl AuthProvider for Doorman {
    fn kind(&self) -> &str {
        "doorman"
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        Box::pin(std::future::ready(match token {
            "ann" => User::new(Map::new()),
            "expired" => Err(AuthError::Expired),
            "away" => Err(AuthError::Unavailable("asleep".to_owned())),
            _ => Err(AuthError::invalid("bad signature")),
        }))
    }
}

/// Error without a status.
#[derive(Debug)]
struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("/secret/path of the cause")
    }
}

impl ResponseError for Odd {}

/// Handlers as in programs that use the library.
fn handlers(config: &mut web::ServiceConfig) {
    let sold = || async { Err::<&str, _>(error::ErrorGone("Sold already")) };
    let odd = || async { Err::<&str, _>(Odd) };
    let file = || async { Err::<&str, io::Error>(io::ErrorKind::NotFound.into()) };
    let busy = || async { Err::<&str, _>(ApiError::Busy { execution: None }) };
    let teapot = || async { HttpResponse::ImATeapot().body("short and stout") };
    let answered = || async {
        let response = HttpResponse::Conflict().body("own");
        Err::<&str, _>(InternalError::from_response("two at once", response))
    };
    let json = |_: web::Json<Map<String, Value>>| async { "taken" };
    config
        .route("/x/sold", web::get().to(sold))
        .route("/x/odd", web::get().to(odd))
        .route("/x/file", web::get().to(file))
        .route("/x/busy", web::get().to(busy))
        .route("/x/teapot", web::get().to(teapot))
        .route("/x/answered", web::get().to(answered))
        .route("/x/json", web::get().to(json))
        .route("/x/panic", web::get().to(panicking));
}

async fn panicking() -> &'static str {
    std::future::ready(()).await;
    std::panic::panic_any("a bug")
}

async fn ask(request: TestRequest) -> HttpResponse {
    let mut auth = Auth::default();
    auth.providers.push(Arc::new(Doorman));
    let binding = Binding { auth: Arc::new(auth), ..Binding::default() };
    let config = WebConfig { binding, ..WebConfig::default() };
    let settings = Data::new(Settings::of(config, Shutdown::new()));
    let app = App::new()
        .app_data(settings.clone())
        .wrap(from_fn(around))
        .configure(handlers)
        .configure(|service| bind(service, &settings.config));
    let app = init_service(app).await;
    match app.call(request.to_request()).await {
        Ok(response) => response.into_parts().1.map_into_boxed_body(),
        Err(error) => error.error_response(),
    }
}

/// Status, head and body of an answer.
async fn answer(request: TestRequest) -> (u16, HeaderMap, Vec<u8>) {
    let response = ask(request).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, to_bytes(response.into_body()).await.unwrap().to_vec())
}

#[actix_web::test]
async fn refusals_of_gates_and_handlers_have_both_formats() {
    const NO_TYPE: &str = "Content type none is not supported, send application/json";
    let protected = "/workflows/a/execute";
    let rows = [
        (protected, "", 401, "auth_required", "Authentication required"),
        (protected, "expired", 401, "token_expired", "Token expired"),
        (protected, "forged", 401, "token_invalid", "Invalid token: bad signature"),
        (protected, "away", 503, "auth_unavailable", "The token cannot be checked at the moment"),
        // Without a runtime, the extractor of actix-web fails.
        ("/workflows", "ann", 500, "internal", "Internal server error"),
        ("/x/panic", "", 500, "internal", "Internal server error"),
        ("/x/odd", "", 500, "internal", "Internal server error"),
        ("/x/sold", "", 410, "request_refused", "Sold already"),
        ("/x/answered", "", 409, "request_refused", "two at once"),
        ("/x/json", "", 415, "media_type_unsupported", NO_TYPE),
        ("/x/file", "", 404, "not_found", "Not found: GET /x/file"),
        ("/x/busy", "", 503, "busy", "The server is busy"),
    ];
    for (path, token, status, code, text) in rows {
        let asking = |accept: &str| {
            let method = if path == protected { Method::POST } else { Method::GET };
            let request = TestRequest::with_uri(path)
                .method(method)
                .insert_header((ACCEPT, accept.to_owned()))
                .insert_header(("x-request-id", "r-1"));
            match token {
                "" => request,
                token => request.insert_header(("authorization", format!("Bearer {token}"))),
            }
        };
        let (plain, head, body) = answer(asking("*/*")).await;
        let what = format!("{path} {token}: {}", String::from_utf8_lossy(&body));
        assert_eq!(plain, status, "{what}");
        assert_eq!(head.get("x-error-code").unwrap(), code, "{what}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body, json!({ "success": false, "error": text }), "{what}");

        let (status, problem_head, body) = answer(asking("application/problem+json")).await;
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["title"].take().is_string(), "{what}");
        let expected = json!({
            "type": format!("urn:greenroom:error:{code}"),
            "title": null, "status": status, "detail": text, "error": text, "code": code, "requestId": "r-1",
        });
        assert_eq!((status, body), (plain, expected), "{what}");
        assert_eq!(problem_head.get("content-type").unwrap(), "application/problem+json");
        for name in ["www-authenticate", RETRY_AFTER.as_str(), "x-content-type-options", "vary"] {
            assert_eq!(head.get(name), problem_head.get(name), "{what}: {name}");
        }
        assert_eq!(head.contains_key("www-authenticate"), status == 401, "{what}");
        assert_eq!(head.contains_key(RETRY_AFTER), status == 503, "{what}");
    }
}

#[actix_web::test]
async fn answers_of_added_handlers_are_not_changed() {
    let request =
        TestRequest::with_uri("/x/teapot").insert_header((ACCEPT, "application/problem+json"));
    let (status, headers, body) = answer(request).await;
    assert_eq!((status, body.as_slice()), (418, &b"short and stout"[..]));
    assert!(headers.contains_key("x-request-id") && !headers.contains_key("x-error-code"));
}

#[actix_web::test]
async fn a_refused_body_closes_its_connection() {
    for token in ["", "forged", "away"] {
        let request = TestRequest::post()
            .uri("/workflows/a/execute")
            .insert_header(("authorization", format!("Bearer {token}")))
            .insert_header((CONTENT_LENGTH, 2));
        let response = ask(request).await;
        assert!(matches!(response.status().as_u16(), 401 | 503), "{token}");
        assert_eq!(response.head().connection_type(), ConnectionType::Close, "{token}");
    }
}
