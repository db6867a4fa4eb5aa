//! What the process tells of itself.

pub mod metrics;
