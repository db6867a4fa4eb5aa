//! Routes added by a program.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt;
use greenroom_actors::Runtime;
use serde::Deserialize;

use super::*;
use crate::api::ApiError;
use crate::api::access::{AccessPolicy, AccessRule, Pattern};
use crate::api::caller::Caller;
use crate::api::catalogue::Catalogue;
use crate::auth::{ApiKeyProvider, ApiKeySettings, Providers};
use crate::web::binding::Binding;
use crate::web::custom::Routes;
use crate::web::gate::{Auth, Authenticated};

#[derive(Deserialize)]
struct Order {
    n: u32,
}

fn routes() -> Routes {
    let mut routes = Routes::default();
    routes.get("/hello/:name", |name: web::Path<String>| async move { format!("hello {name}") });
    routes.get("/tail/*", |request: HttpRequest| async move {
        request.match_info().get("tail").map(str::to_owned)
    });
    routes.get(
        "/me",
        |Authenticated(user): Authenticated| async move { user.id().map(str::to_owned) },
    );
    routes.get("/who", |caller: Caller| async move {
        caller.user().and_then(|user| user.id()).unwrap_or("anonymous").to_owned()
    });
    routes.get("/count", |runtime: web::Data<Runtime>| async move {
        runtime.registry().workflows.len().to_string()
    });
    routes.post("/json", |order: web::Json<Order>| async move { order.n.to_string() });
    routes.post("/bytes", |bytes: web::Bytes| async move { bytes.len().to_string() });
    routes.post("/form", |order: web::Form<Order>| async move { order.n.to_string() });
    routes.put("/bytes", |bytes: web::Bytes| async move { bytes.len().to_string() });
    routes.delete("/bytes", |bytes: web::Bytes| async move { bytes.len().to_string() });
    routes.get("/json", |order: web::Json<Order>| async move { order.n.to_string() });
    routes.patch("/unread", || async { "not read" });
    routes.post("/careless", |mut payload: web::Payload| async move {
        while let Some(Ok(_)) = payload.next().await {}
        "made the best of it"
    });
    routes.post(
        "/echo",
        |payload: web::Payload| async move { HttpResponse::Ok().streaming(payload) },
    );
    routes.get("/refused", || async { Err::<&str, _>(ApiError::NotYours) });
    routes.get("/foreign/:status", |status: web::Path<u16>| async move {
        let status = StatusCode::from_u16(*status).unwrap();
        Err::<&str, _>(actix_web::error::InternalError::new("in its own words", status))
    });
    routes.get("/own", || async {
        HttpResponse::Found().insert_header((LOCATION, "/")).body("its own answer")
    });
    routes.get("/panic", || async { std::panic::panic_any("a bug") as &str });
    routes
        .get("/live", || async {
            let words =
                futures_util::stream::iter(["a", "b"].map(|it| Ok::<_, ApiError>(it.into())));
            HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/event-stream")).streaming(words)
        })
        .streaming();
    routes
        .get("/ticks", |shutdown: Shutdown| async move {
            let first = futures_util::stream::iter([Ok::<_, ApiError>("tick\n".into())]);
            let last = async move {
                shutdown.fired().await;
                Ok("bye\n".into())
            };
            HttpResponse::Ok().streaming(first.chain(futures_util::stream::once(last)))
        })
        .streaming();
    routes
}

fn binding(auth: Auth) -> Binding {
    let (mut catalogue, mut custom) = (Catalogue::default(), Vec::new());
    for route in routes().iter() {
        catalogue.add(route.row(custom.len())).unwrap();
        custom.push(route.handler());
    }
    Binding { catalogue: Arc::new(catalogue), auth: Arc::new(auth), custom }
}

async fn site() -> Site {
    let timeout = Duration::from_millis(300);
    let binding = binding(Auth::default());
    Site::start(WebConfig {
        binding,
        body_bytes_max: 64,
        body_timeout: timeout,
        shutdown_timeout: 10 * PATIENCE,
        ..WebConfig::default()
    })
    .await
}

#[actix_web::test]
async fn bodies_of_added_handlers_are_limited_together() {
    let config = WebConfig { requests_bytes_max: 1000, ..WebConfig::default() };
    let site = Site::start(WebConfig { binding: binding(Auth::default()), ..config }).await;
    let head = |path: &str| format!("POST {path} HTTP/1.1\r\ncontent-length: 50000");
    let part = "1".repeat(40_000);
    let mut first = site.connect().await;
    let request = format!("{}\r\nhost: {}\r\n\r\n{part}2", head("/echo"), site.address);
    first.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut first, "2").await;
    let refused = begun(&site, &head("/bytes"), &part).await;
    refused.assert_refusal(503, "Too much data of request bodies is arriving at once");
    let small = site.send("POST", "/bytes", "", Some(&part[..20_000])).await;
    assert_eq!((small.status, &*small.body), (200, "20000"));
}

#[actix_web::test]
async fn added_handlers_get_their_arguments() {
    let site = site().await;
    for (path, body) in [
        ("/hello/ann", "hello ann"),
        ("/hello/a%20b", "hello a b"),
        ("/tail/a/b", "a/b"),
        ("/tail/", ""),
        ("/who", "anonymous"),
        ("/count", "4"),
        ("/own", "its own answer"),
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.body, body, "{path}");
        assert!(answer.header("x-request-id").is_some(), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    assert_eq!(site.get("/own").await.status, 302);
    assert_eq!(site.post("/json", &json!({ "n": 7 })).await.status, 415, "no content type");
    let kind = "content-type: application/json\r\n";
    assert_eq!(site.send("POST", "/json", kind, Some("{\"n\":7}")).await.body, "7");
    let kind = "content-type: application/x-www-form-urlencoded\r\n";
    assert_eq!(site.send("POST", "/form", kind, Some("n=8")).await.body, "8");
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(site.send(method, "/bytes", "", Some("12345")).await.body, "5", "{method}");
    }
    let head = site.send("HEAD", "/hello/ann", "", None).await;
    assert_eq!(
        (head.status, head.header("content-length"), head.body.as_str()),
        (200, Some("9"), "")
    );
    let live = site.get("/live").await;
    assert_eq!((live.status, live.body.as_str()), (200, "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"));
    let head = site.send("HEAD", "/live", "", None).await;
    assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    let allow = site.send("GET", "/bytes", "", None).await;
    assert_eq!((allow.status, allow.header("allow")), (405, Some("POST, PUT, DELETE")));
}

#[actix_web::test]
async fn refusals_of_handlers_stay_in_the_envelope() {
    let site = site().await;
    let json = "content-type: application/json\r\n";
    let rows = [
        ("GET", "/refused", "", "", 403, "Only the user itself may do this"),
        ("GET", "/foreign/404", "", "", 404, "in its own words"),
        ("GET", "/foreign/409", "", "", 409, "in its own words"),
        ("GET", "/foreign/503", "", "", 500, "Internal server error"),
        ("GET", "/panic", "", "", 500, "Internal server error"),
        ("GET", "/me", "", "", 401, "Authentication required"),
        (
            "POST",
            "/json",
            json,
            "{",
            400,
            "Invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "POST",
            "/json",
            json,
            "{\"n\":\"x\"}",
            400,
            "Invalid request body: invalid type: string \"x\", expected u32 at line 1 column 8",
        ),
        (
            "POST",
            "/json",
            json,
            "",
            400,
            "Invalid JSON: EOF while parsing a value at line 1 column 0",
        ),
    ];
    for (method, path, headers, body, status, text) in rows {
        let answer = site.send(method, path, headers, Some(body)).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(answer.json(), json!({ "success": false, "error": text }), "{path}");
        assert!(answer.header("x-error-code").is_some() && answer.header("x-request-id").is_some());
    }
    let plain = site.send("POST", "/json", "content-type: text/plain\r\n", Some("{}")).await;
    assert_eq!((plain.status, plain.header("x-error-code")), (415, Some("media_type_unsupported")));
}

/// Sends a head and a part of a body, and reads the answer by its `content-length`.
async fn begun(site: &Site, head: &str, part: &str) -> Answer {
    let mut stream = site.connect().await;
    let request = format!("{head}\r\nhost: {}\r\n\r\n{part}", site.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "ended early");
            if bytes.windows(4).any(|window| window == b"\r\n\r\n") {
                let answer = answer_of(&bytes);
                let length: usize = answer.header("content-length").unwrap().parse().unwrap();
                if answer.body.len() == length {
                    return answer;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap()
}

#[actix_web::test]
async fn added_handlers_get_the_caller_when_tokens_are_checked() {
    let mut providers = Providers::default();
    let ann = ApiKeySettings::new("ann", "a-long-secret-key-of-ann");
    providers.push(Arc::new(ApiKeyProvider::new(vec![ann]).unwrap()));
    let public = ["GET /who", "GET /hello/ann", "POST /bytes"];
    let public = public.map(|route| Pattern::parse(route).unwrap()).into();
    let (route, roles) = (Pattern::parse("GET /hello/eve").unwrap(), ["admin".to_owned()].into());
    let rules = vec![AccessRule { route, roles }];
    let policy = AccessPolicy { public, rules, ..AccessPolicy::default() };
    let binding = binding(Auth { providers, policy });
    let site = Site::start(WebConfig { binding, ..WebConfig::default() }).await;
    let key = "x-api-key: a-long-secret-key-of-ann\r\n";
    let rows = [
        ("GET", "/me", "", 401, "Authentication required"),
        ("GET", "/me", "x-api-key: wrong\r\n", 401, "Invalid token: "),
        ("GET", "/me", key, 200, "ann"),
        ("GET", "/who", "", 200, "anonymous"),
        ("GET", "/who", key, 200, "ann"),
        ("GET", "/hello/ann", "", 200, "hello ann"),
        ("GET", "/hello/%61nn", "", 200, "hello ann"),
        ("GET", "/hello/ben", "", 401, "Authentication required"),
        ("GET", "/hello/a%2fnn", "", 401, "Authentication required"),
        ("GET", "/hello/ben", key, 200, "hello ben"),
        ("GET", "/hello/eve", key, 403, "One of these roles is required: admin"),
        ("GET", "/hello/%65ve", key, 403, "One of these roles is required: admin"),
        // actix-web decodes this in two steps.
        ("GET", "/hello/%%365ve", key, 403, "One of these roles is required: admin"),
        ("GET", "/tail/x/y", "", 401, "Authentication required"),
        ("GET", "/panic", "", 401, "Authentication required"),
        ("PUT", "/bytes", "", 401, "Authentication required"),
        ("POST", "/bytes", "", 200, "0"),
        ("PATCH", "/who", "", 405, "Method PATCH is not allowed here"),
    ];
    for (method, path, headers, status, text) in rows {
        let answer = site.send(method, path, headers, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert!(answer.body.contains(text), "{method} {path}: {}", answer.body);
    }
}

#[actix_web::test]
async fn bodies_for_added_handlers_are_limited_for_every_extractor() {
    let site = site().await;
    let json = "content-type: application/json\r\ntransfer-encoding: chunked";
    let large = format!("50\r\n{}\r\n", "x".repeat(80));
    for (path, kind) in [
        ("/bytes", "transfer-encoding: chunked"),
        ("/json", json),
        ("/form", "content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked"),
    ] {
        let answer = begun(&site, &format!("POST {path} HTTP/1.1\r\n{kind}"), &large).await;
        assert_eq!(answer.status, 413, "{path}: {}", answer.body);
        assert_eq!(answer.json()["error"], "Request body is larger than 64 bytes", "{path}");
        let answer = begun(&site, &format!("POST {path} HTTP/1.1\r\n{kind}"), "1\r\nx\r\n").await;
        assert_eq!(answer.status, 408, "{path}: {}", answer.body);
        assert_eq!(answer.json()["error"], "Request body was not received in time", "{path}");
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
    }
    // Behind an upgrade, the limits of the extractors apply.
    let upgrade = "GET /json HTTP/1.1\r\ncontent-type: application/json\r\nconnection: upgrade\r\n\
                   upgrade: websocket";
    let answer = begun(&site, upgrade, &"x".repeat(65)).await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert_eq!(answer.json()["error"], "Request body is larger than 64 bytes");
    // Refused before anything of it is read.
    let answer = begun(&site, "PUT /bytes HTTP/1.1\r\ncontent-length: 65", "").await;
    assert_eq!(answer.status, 413);
    // A handler that succeeds with the incomplete body keeps its answer.
    let careless = "POST /careless HTTP/1.1\r\ntransfer-encoding: chunked";
    for part in [large.as_str(), "1\r\nx\r\n"] {
        let answer = begun(&site, careless, part).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "made the best of it"));
    }
    // The rest of an unread body is not waited for.
    let unread = "PATCH /unread HTTP/1.1\r\ncontent-length: 60";
    let answer = begun(&site, unread, "only a part").await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    let answer = begun(&site, "PUT /bytes HTTP/1.1\r\ncontent-length: 1", "x").await;
    assert_eq!((answer.status, answer.header("connection")), (200, None));
}

#[actix_web::test]
async fn a_connection_is_reused_after_a_body_was_read() {
    let site = site().await;
    let mut stream = site.connect().await;
    let host = site.address;
    let put = format!("PUT /bytes HTTP/1.1\r\nhost: {host}\r\ncontent-length: 3\r\n\r\nabc");
    let last = format!("GET /who HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{put}{put}{last}").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
    assert!(text.ends_with("anonymous"), "{text}");
}

#[actix_web::test]
async fn an_answer_may_read_the_body_while_it_is_sent() {
    let site = site().await;
    let mut stream = site.connect().await;
    let head = format!(
        "POST /echo HTTP/1.1\r\nhost: {}\r\ncontent-length: 6\r\nconnection: close\r\n\r\nabc",
        site.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut stream, "abc").await;
    stream.write_all(b"def").await.unwrap();
    let mut rest = String::new();
    let reading = stream.read_to_string(&mut rest);
    tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert!(rest.contains("def") && rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

#[actix_web::test]
async fn a_stream_of_an_added_handler_ends_at_shutdown() {
    let site = site().await;
    let mut stream = site.connect().await;
    stream.write_all(b"GET /ticks HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    read_until(&mut stream, "tick").await;
    site.shutdown.fire();
    let mut rest = String::new();
    let ended = async {
        stream.read_to_string(&mut rest).await.unwrap();
        site.handle.stop(true).await;
    };
    // The grace period of connections alone is longer.
    tokio::time::timeout(PATIENCE, async { tokio::join!(ended, site.handle.stop(true)) })
        .await
        .unwrap();
    assert!(rest.contains("bye") && rest.ends_with("0\r\n\r\n"), "{rest:?}");
}
