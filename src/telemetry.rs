//! Observability: logs, metrics, redaction and export over OTLP.

pub mod export;
pub mod logs;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
pub mod no_metrics;
#[cfg(feature = "otel")]
pub mod otlp;
pub mod redact;
pub mod sources;

#[cfg(not(feature = "metrics"))]
pub use self::no_metrics as metrics;
