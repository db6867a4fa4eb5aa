//! Calls of tools: requests, questions to people, tasks and results.

pub(crate) mod call;
pub(crate) mod callable;
pub(crate) mod cleaned;
pub(crate) mod failed;
pub(crate) mod legacy;
pub(crate) mod progress;
pub(crate) mod question;
pub(crate) mod request;
pub(crate) mod result;
pub(crate) mod task;
pub(crate) mod trace;
