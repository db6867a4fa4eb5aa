//! What the server tells about itself.

pub mod logs;
pub mod metrics;
pub mod redact;
