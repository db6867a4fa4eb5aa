//! Observability: logs, metrics, redaction and export over OTLP.

pub mod export;
pub mod logs;
pub mod metrics;
#[cfg(feature = "otel")]
pub mod otlp;
pub mod redact;
