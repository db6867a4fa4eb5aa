//! `GET /`: what runs here, the routes, and a first command to try.

mod page;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HOST, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use self::page::Page;
use crate::api::{agents, workflows};
use crate::web::server::Settings;

/// No script, nothing from elsewhere.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// `GET /`.
pub(crate) async fn page(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let binding = &settings.config.binding;
    let is_checked = !binding.auth.providers.is_empty();
    let registry = runtime.registry();
    let page = Page {
        base: format!("http://{}", host.unwrap_or("127.0.0.1:3141")),
        catalogue: &binding.catalogue,
        policy: is_checked.then_some(&binding.auth.policy),
        first: workflows::first_to_try(&registry),
        workflows: workflows::list(&runtime, &registry),
        agents: agents::list(&runtime, &registry, settings.config.is_telemetry_enabled),
        rehearsing: agents::rehearsing(&registry),
    };
    let answer = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(page.html());
    std::future::ready(answer).await
}
