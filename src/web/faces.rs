//! Handlers of the APIs for clients that speak other protocols.

pub(crate) mod mcp;
pub(crate) mod openai;
