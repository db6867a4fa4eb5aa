//! Doors for clients that speak other protocols. They have no state of their own: each translates
//! between its protocol and the use cases of agents and workflows.

pub mod mcp;
pub mod openai;

pub use crate::faces::Offered;
