//! Handlers of the doors for clients that speak other protocols.

pub(crate) mod mcp;
pub(crate) mod openai;
