//! `GET /`: workflows, agents and tools, the routes, and a first command to try.

mod page;

use std::sync::LazyLock;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::Runtime;
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::Activity;
use sha2::{Digest, Sha256};

use self::page::{Page, SIGN_IN};
use crate::api::caller::Caller;
use crate::api::catalogue::RouteName;
use crate::api::{agents, tools, workflows};
use crate::web::settings::Settings;

/// Allows no scripts and no further files; the icon is in the page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Also allows the script that takes a token and loads the page. The browser submits no form, so
/// that the token does not appear in an address.
static POLICY_OF_FORM: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(SIGN_IN));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self'; \
         style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(POLICY)
});

/// `GET /`. If all routes are private, callers without a token get a sign-in form only.
pub(crate) async fn page(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let binding = &settings.config.binding;
    let catalogue = &binding.catalogue;
    let policy = (!binding.auth.providers.is_empty()).then_some(&binding.auth.policy);
    let own = catalogue.rows().iter().find(|row| row.name == RouteName::Landing);
    let is_discreet = policy.zip(own).is_some_and(|(policy, own)| policy.is_discreet(own));
    let is_stranger = is_discreet && caller.user().is_none();
    let (html, policy) = if is_stranger {
        (page::sign_in(), POLICY_OF_FORM.clone())
    } else {
        let activity = runtime.activity().await;
        (whole(&request, &activity, &runtime.registry(), &settings), POLICY)
    };
    let mut answer = HttpResponse::Ok();
    answer
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, policy));
    if is_discreet {
        // Two pages share this address.
        answer.insert_header((CACHE_CONTROL, "no-store"));
    }
    answer.body(html)
}

fn whole(
    request: &HttpRequest,
    activity: &Activity,
    registry: &Registry,
    settings: &Settings,
) -> String {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let binding = &settings.config.binding;
    let is_checked = !binding.auth.providers.is_empty();
    let page = Page {
        base: format!("http://{}", host.unwrap_or("127.0.0.1:3141")),
        catalogue: &binding.catalogue,
        policy: is_checked.then_some(&binding.auth.policy),
        first: workflows::first_to_try(registry),
        workflows: workflows::list(activity, registry),
        agents: agents::list(activity, registry, settings.config.is_telemetry_enabled),
        rehearsing: agents::rehearsing(registry),
        tools: tools::list(registry),
    };
    page.html()
}
