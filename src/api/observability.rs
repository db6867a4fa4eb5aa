//! Use case of the status of observability.

use crate::api::wire::observability::StatusView;

/// Shows what can be observed here, in which environment, and whether it is exported, too.
pub fn status(environment: &'static str, is_telemetry_on: bool) -> StatusView {
    StatusView {
        enabled: true,
        message: "Spans are sent over /ws/observability as they happen; none are kept",
        websocket: true,
        is_telemetry_enabled: is_telemetry_on,
        environment,
    }
}
