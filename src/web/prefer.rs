//! Requests whose clients prefer an answer before the outcome (`Prefer: respond-async`).

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use tokio::time::timeout;

use crate::api::{ApiError, prefer};
use crate::web::peer::stop_waiting_on_disconnect;

/// Preferences of the client (RFC 7240).
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Returns the time for which a client waits for the outcome, if it prefers an answer before it.
pub(crate) fn wait_of(request: &HttpRequest) -> Option<Duration> {
    let preferences = request.headers().get_all(PREFER);
    prefer::wait_of(preferences.map(|value| value.as_bytes()))
}

/// Waits for an outcome for at most `wait`, and until the client disconnects. `None`: it is not
/// there. Dropping `outcome` must not stop the work.
pub(crate) async fn outcome_within<T>(
    request: &HttpRequest,
    wait: Duration,
    outcome: impl Future<Output = T>,
) -> Result<Option<T>, ApiError> {
    if wait.is_zero() {
        return Ok(None);
    }
    let waiting = async { Ok(timeout(wait, outcome).await.ok()) };
    stop_waiting_on_disconnect(request, waiting).await
}
