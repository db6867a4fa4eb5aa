//! What the server tells of itself.

pub mod export;
#[cfg(feature = "otel")]
pub mod otlp;
