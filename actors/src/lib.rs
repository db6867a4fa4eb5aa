//! The runtime of greenroom: workflow executions and agent generations as actors over a journal.
//!
//! Knows executions, definitions and models; knows nothing of HTTP, of configuration files or of
//! a particular database. The server and any other front end go through [`Runtime`] alone.

pub mod agent;
pub mod domain;
pub mod function;
pub mod generation;
pub mod ports;
pub mod registry;
pub mod requests;
pub mod runtime;
pub mod span;

pub use runtime::{Runtime, RuntimeLimits};
