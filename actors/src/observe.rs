//! Observability of executions and generations: spans, traces, live events, log records.

pub(crate) mod ask_news;
pub(crate) mod blocked;
pub mod disconnect;
pub(crate) mod feed;
pub mod forgotten;
pub mod log_record;
pub(crate) mod scope;
pub mod span;
pub(crate) mod trace;
