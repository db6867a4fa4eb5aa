//! The status of observability on the wire.

use serde::Serialize;
use utoipa::ToSchema;

/// The answer of `GET /observability/status`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservabilityStatus)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Whether anything can be observed.
    pub enabled: bool,
    pub message: &'static str,
    /// Whether it is sent over a WebSocket.
    pub websocket: bool,
    /// Whether it is sent to another service.
    pub is_telemetry_enabled: bool,
    /// `development` or `production`.
    pub environment: &'static str,
}
