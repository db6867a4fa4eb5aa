//! Whether the process lives and takes work.

use actix_web::{HttpResponse, web};
use greenroom_actors::Runtime;

use crate::web::server::Settings;

/// `GET /livez`.
pub(crate) async fn live() -> HttpResponse {
    std::future::ready(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ok\n"))
        .await
}

/// `GET /readyz`: the store takes writes and nothing is being shut down.
pub(crate) async fn ready(
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let is_ready = runtime.is_ready() && !settings.shutdown.is_fired();
    let (mut answer, word) = if is_ready {
        (HttpResponse::Ok(), "ready\n")
    } else {
        (HttpResponse::ServiceUnavailable(), "not ready\n")
    };
    std::future::ready(answer.content_type("text/plain; charset=utf-8").body(word)).await
}
