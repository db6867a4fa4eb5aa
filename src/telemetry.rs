//! What the server tells about itself.

pub mod export;
pub mod logs;
pub mod metrics;
#[cfg(feature = "otel")]
pub mod otlp;
pub mod redact;
