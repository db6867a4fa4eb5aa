//! What the service offers, free of any web framework: the routes, their use cases, their
//! refusals and their words on the wire.

pub mod agents;
pub mod catalogue;
pub mod error;
pub mod executions;
pub mod json;
pub mod partial_json;
pub mod query;
pub mod wire;
pub mod workflows;

pub use error::ApiError;
