//! Calls of tools: requests, questions to people, tasks and results.

pub(crate) mod call;
pub(crate) mod callable;
pub(crate) mod cleaned;
pub(crate) mod memo;
pub(crate) mod request;
pub(crate) mod result;
pub(crate) mod task;
pub(crate) mod trace;
