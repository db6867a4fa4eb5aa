//! Use case of the status of observability.

use crate::api::wire::observability::StatusView;

/// Shows what can be observed here, and in which environment.
pub fn status(environment: &'static str) -> StatusView {
    StatusView {
        enabled: true,
        message: "Spans are sent over /ws/observability as they happen; none are kept",
        websocket: true,
        is_telemetry_enabled: false,
        environment,
    }
}
