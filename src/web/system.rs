//! Handlers about the server itself: liveness, readiness, updates, keys.

use actix_web::{HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::domain::slot::SLOTS;
use greenroom_actors::runtime::{ClusterStats, Readiness};

use crate::api::{ApiError, setup, updates};
use crate::web::body::Body;
use crate::web::local_only::Operator;
use crate::web::respond;
use crate::web::settings::Settings;

/// `GET /livez`.
pub(crate) async fn live() -> HttpResponse {
    std::future::ready(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ok\n"))
        .await
}

/// `GET /readyz`: 200 if the store accepts writes and the server is not stopping; otherwise a
/// second line gives the reason. A server that shares its database adds lines about that, and is
/// not ready if it hands its executions over. A line says whether the newest change of the configuration
/// was rejected, which does not make the server unready. The route is open to everyone, so the reason is
/// in the log alone.
pub(crate) async fn ready(
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let readiness = runtime.readiness();
    let stops = settings.shutdown.is_fired() || readiness == Readiness::Draining;
    let cluster = runtime.cluster_stats();
    let is_leaving = cluster.as_ref().is_some_and(|cluster| cluster.is_leaving);
    let (mut answer, word) = match readiness {
        _ if stops => (HttpResponse::ServiceUnavailable(), "not ready\nthe server is stopping\n"),
        Readiness::StoreRefusesWrites => (
            HttpResponse::ServiceUnavailable(),
            "not ready\nthe store accepts no writes: check the database or the disk; the cause is in \
             the log\n",
        ),
        _ if is_leaving => (
            HttpResponse::ServiceUnavailable(),
            "not ready\nthe server is leaving: its executions continue at the others\n",
        ),
        Readiness::Draining | Readiness::Ready => (HttpResponse::Ok(), "ready\n"),
    };
    let refused = match settings.config.reload_status.is_refused() {
        true => "the new configuration was rejected; see the log\n",
        false => "",
    };
    let cluster = cluster.as_ref().map(lines_of).unwrap_or_default();
    let text = format!("{word}{cluster}{refused}");
    std::future::ready(answer.content_type("text/plain; charset=utf-8").body(text)).await
}

/// Returns the lines of a server that shares its database.
fn lines_of(cluster: &ClusterStats) -> String {
    let ClusterStats { slots_served, members, is_believed, is_leaving, has_newer_tables, .. } =
        cluster;
    let lease =
        if *is_believed { "valid" } else { "over, so that other servers may have the slots" };
    let leaving = if *is_leaving { "yes" } else { "no" };
    let servers = members.len();
    let tables = match has_newer_tables {
        true => "tables: of a newer version, to which this server should be updated\n",
        false => "",
    };
    format!(
        "slots: {slots_served} of {SLOTS}\nservers: {servers}\nlease: {lease}\nleaving: {leaving}\n\
         {tables}"
    )
}

/// `GET /updates`.
pub(crate) async fn check_updates(settings: web::Data<Settings>) -> Result<HttpResponse, ApiError> {
    updates::check(&settings.config.maintenance).await.map(respond::json)
}

/// `POST /updates`. Continues if the client disconnects. A server that stops does not wait for the
/// command.
pub(crate) async fn install_updates(
    _: Operator,
    body: Body,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let maintenance = &settings.config.maintenance;
    let ((), body) = body.read_for(updates::installable(maintenance)).await?;
    tokio::select! {
        installed = updates::install(maintenance, &body) => installed.map(respond::created),
        () = settings.shutdown.fired() => Err(ApiError::Draining { recorded: None }),
    }
}

/// `POST /setup-observability`.
pub(crate) async fn set_up_observability(
    _: Operator,
    body: Body,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let ((), body) = body.read_for(Ok(())).await?;
    setup::keep_keys(&settings.config.maintenance, &body).await.map(respond::json)
}
