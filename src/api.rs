//! The service without a web framework: routes, use cases, refusals and wire format.

pub mod accept;
pub mod access;
pub mod agents;
pub mod bulk;
pub mod caller;
pub mod catalogue;
pub mod error;
pub mod examples;
pub mod executions;
pub mod faces;
pub mod history;
pub mod ids;
pub mod inbox;
pub mod json;
pub mod logs;
pub mod mcp_servers;
pub mod memory;
pub mod observability;
pub mod openapi;
pub mod partial_json;
pub mod prefer;
pub mod query;
pub mod setup;
pub mod tools;
pub mod updates;
pub mod wire;
pub mod workflows;

pub use error::{ApiError, ErrorCode};
