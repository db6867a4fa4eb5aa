//! The catalogue as the framework sees it, without a port.

use actix_web::body::BoxBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::{ALLOW, HOST, ORIGIN};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, http};
use greenroom_actors::registry::Registry;

use super::*;
use crate::api::catalogue::ROUTES;
use crate::telemetry::metrics::Metrics;
use crate::web::request_metrics::count_requests;
use crate::web::settings::{Settings, WebConfig};
use crate::web::shutdown::Shutdown;

/// Sends a request to the application without a runtime.
async fn answer(request: TestRequest) -> (u16, http::header::HeaderMap, String) {
    let metrics = Metrics::new(&Registry::default(), 1_000).unwrap();
    let config = WebConfig { metrics: Some(Arc::new(metrics)), ..WebConfig::default() };
    let settings = web::Data::new(Settings::of(config.clone(), Shutdown::new()));
    let panicking = web::resource("/panic").to(broken);
    let app = App::new()
        .app_data(settings)
        .wrap(from_fn(count_requests))
        .service(panicking)
        .configure(|service| bind(service, &config));
    let app = init_service(app).await;
    let response: ServiceResponse<BoxBody> = match app.call(request.to_request()).await {
        Ok(response) => response.map_into_boxed_body(),
        Err(error) => {
            let request = TestRequest::default().to_http_request();
            ServiceResponse::new(request, error.error_response())
        }
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    (status, headers, body)
}

async fn broken() -> &'static str {
    std::future::ready(()).await;
    std::panic::panic_any("a bug")
}

fn method_of(row: &Route) -> http::Method {
    match row.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
    }
}

fn request(method: http::Method, path: &str) -> TestRequest {
    let peer = std::net::SocketAddr::from(([127, 0, 0, 1], 5000));
    TestRequest::with_uri(path).method(method).peer_addr(peer)
}

#[actix_web::test]
async fn every_row_of_the_catalogue_is_bound() {
    for row in ROUTES.iter() {
        // The row of files needs an existing file.
        let path = row.path.replace("/ui/:file", "/ui/swagger-ui.css").replace(':', "x");
        let (status, _, body) = answer(request(method_of(row), &path)).await;
        // there are no MCP servers, and no faces
        let is_of_none = matches!(
            row.name,
            RouteName::RestartServer
                | RouteName::AcceptTools
                | RouteName::DescribeMcp
                | RouteName::DescribeNamedMcp
        );
        let is_answered = status == 404 && is_of_none;
        // Handlers that need the runtime fail with 500.
        let is_answered = is_answered || matches!(status, 200 | 400 | 426 | 500);
        assert!(is_answered, "{path}: {status} {body}");
    }
}

#[actix_web::test]
async fn a_panic_is_counted_at_its_route() {
    let metrics = Metrics::new(&Registry::default(), 1_000).unwrap();
    let metrics = Arc::new(metrics);
    let config = WebConfig { metrics: Some(Arc::clone(&metrics)), ..WebConfig::default() };
    let settings = web::Data::new(Settings::of(config, Shutdown::new()));
    // Bound instead of the route's own handler.
    let app = App::new()
        .app_data(settings)
        .wrap(from_fn(count_requests))
        .service(web::resource("/livez").to(broken));
    let app = init_service(app).await;
    let refused = app.call(request(http::Method::GET, "/livez").to_request()).await;
    assert_eq!(refused.unwrap_err().error_response().status(), 500);
    let text = metrics.text(&Default::default()).unwrap();
    let counted = r#"http_requests_total{method="GET",route="/livez",status="500"} 1"#;
    assert!(String::from_utf8(text).unwrap().contains(counted));
}

#[actix_web::test]
async fn a_wrong_method_is_405_with_allow() {
    for row in ROUTES.iter() {
        let path = row.path.replace(':', "x");
        let (status, headers, body) = answer(request(http::Method::PUT, &path)).await;
        assert_eq!(status, 405, "{path}");
        assert_eq!(
            headers.get(ALLOW).unwrap(),
            Catalogue::default().allow_of(&row.path).as_str(),
            "{path}"
        );
        assert!(body.starts_with("{\"success\":false,\"error\":\""), "{body}");
    }
}

#[actix_web::test]
async fn an_unknown_path_is_404_in_the_envelope() {
    for path in ["/nope", "/workflows/a/b/c", "/workflows/", "/agents/a%2Fb/c", "/%ff"] {
        let (status, headers, body) = answer(request(http::Method::GET, path)).await;
        assert_eq!(status, 404, "{path}");
        let expected = format!("{{\"success\":false,\"error\":\"Not found: GET {path}\"}}");
        assert_eq!(body, expected);
        assert_eq!(headers.get("x-error-code").unwrap(), "not_found");
        assert!(headers.contains_key("x-request-id"));
    }
}

#[actix_web::test]
async fn a_panic_and_a_framework_error_stay_in_the_envelope() {
    let (status, headers, body) = answer(request(http::Method::GET, "/panic")).await;
    let expected = "{\"success\":false,\"error\":\"Internal server error\"}";
    assert_eq!((status, body.as_str()), (500, expected));
    assert!(headers.contains_key("x-request-id"));
    // Without a runtime, the extractor of actix-web fails.
    let (status, _, body) = answer(request(http::Method::GET, "/workflows")).await;
    assert_eq!((status, body.as_str()), (500, expected));
    let (status, _, body) = answer(request(http::Method::GET, "/ws")).await;
    assert_eq!(status, 426);
    assert!(
        body.starts_with("{\"success\":false,\"error\":\"This route is a WebSocket: "),
        "{body}"
    );
}

#[actix_web::test]
async fn a_valid_request_id_is_echoed() {
    let with_id =
        |id: &str| request(http::Method::GET, "/livez").insert_header(("x-request-id", id));
    let (_, headers, _) = answer(with_id("abc-1")).await;
    assert_eq!(headers.get("x-request-id").unwrap(), "abc-1");
    let too_long = "x".repeat(129);
    for bad in ["", "a b", too_long.as_str()] {
        let (_, headers, _) = answer(with_id(bad)).await;
        let id = headers.get("x-request-id").unwrap().to_str().unwrap();
        assert!(id != bad && (18..=33).contains(&id.len()), "{bad:?} gave {id}");
    }
}

#[actix_web::test]
async fn foreign_pages_may_neither_change_nor_read() {
    let from = |method, path, origin: &str| {
        request(method, path).insert_header((ORIGIN, origin.to_owned()))
    };
    let evil = "https://evil.example";
    let path = "/workflows/a/execute";
    let (status, headers, body) = answer(from(http::Method::POST, path, evil)).await;
    assert_eq!(status, 403);
    assert_eq!(body, "{\"success\":false,\"error\":\"Origin not allowed\"}");
    assert!(!headers.contains_key("access-control-allow-origin"));
    let upgrade = from(http::Method::GET, "/ws", evil).insert_header(("upgrade", "WebSocket"));
    assert_eq!(answer(upgrade).await.0, 403);
    let plain = request(http::Method::GET, "/livez");
    for request in [plain, from(http::Method::GET, "/livez", evil)] {
        let (status, headers, _) = answer(request).await;
        assert_eq!(status, 200);
        assert!(!headers.contains_key("access-control-allow-origin"));
        // a cache must not give this answer to a page that may read it
        assert_eq!(headers.get("vary").unwrap(), "origin");
    }

    let local = "http://localhost:5173";
    let (_, headers, _) = answer(from(http::Method::GET, "/livez", local)).await;
    assert_eq!(headers.get("access-control-allow-origin").unwrap(), local);
    assert_eq!(headers.get("vary").unwrap(), "origin");
    let rebound = from(http::Method::POST, path, "http://evil.example:3141")
        .insert_header((HOST, "evil.example:3141"));
    assert_eq!(answer(rebound).await.0, 403);
}

#[actix_web::test]
async fn foreign_hosts_are_refused_on_loopback() {
    let named =
        |method, path, host: &str| request(method, path).insert_header((HOST, host.to_owned()));
    let refusal = "{\"success\":false,\"error\":\"Host not allowed\"}";
    for (method, path) in [
        (http::Method::GET, "/workflows/executions"),
        (http::Method::GET, "/ws"),
        (http::Method::POST, "/workflows/a/execute"),
        (http::Method::OPTIONS, "/"),
    ] {
        let (status, headers, body) = answer(named(method, path, "evil.example:3141")).await;
        assert_eq!((status, body.as_str()), (403, refusal), "{path}");
        assert_eq!(headers.get("x-error-code").unwrap(), "host_not_allowed");
    }
    assert_eq!(answer(named(http::Method::GET, "/livez", "evil.example")).await.0, 200);
    assert_eq!(answer(named(http::Method::GET, "/nope", "localhost:3141")).await.0, 404);
}

#[actix_web::test]
async fn a_preflight_is_answered_before_any_route() {
    let ask = |origin: &str| {
        request(http::Method::OPTIONS, "/workflows/a/execute")
            .insert_header((ORIGIN, origin.to_owned()))
            .insert_header(("access-control-request-method", "POST"))
            .insert_header(("access-control-request-headers", "content-type"))
    };
    let (status, headers, _) = answer(ask("http://127.0.0.1:8080")).await;
    assert_eq!(status, 204);
    assert_eq!(headers.get("access-control-allow-origin").unwrap(), "http://127.0.0.1:8080");
    assert_eq!(headers.get("access-control-allow-headers").unwrap(), "content-type");
    let methods = headers.get("access-control-allow-methods").unwrap().to_str().unwrap();
    for method in Method::ALL.map(Method::as_str) {
        assert!(methods.split(", ").any(|allowed| allowed == method), "{method}");
    }
    assert_eq!(answer(ask("https://evil.example")).await.0, 403);
}
