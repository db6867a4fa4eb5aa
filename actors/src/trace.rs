//! Spans from what is recorded: pure.

pub(crate) mod execution;
pub(crate) mod generation;
