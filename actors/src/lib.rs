//! The runtime of greenroom: workflow executions and agent generations as actors over a journal.
//!
//! Knows executions, definitions and models; knows nothing of HTTP, of configuration files or of
//! a particular database. The server and any other front end go through [`Runtime`] alone.

pub mod agent;
mod arbiters;
mod core;
mod evaluation;
mod execution;
mod feed;
pub mod function;
pub mod generation;
pub mod log_record;
mod mailbox;
mod memory_budget;
mod orders;
pub mod outlook;
pub mod ports;
pub mod pulse;
mod quarantine;
pub mod registry;
pub mod requests;
mod retention;
pub mod runtime;
mod scheduler;
pub mod sight;
pub mod span;
mod supervisor;
#[doc(hidden)]
pub mod testkit;
pub mod threads;
pub mod tool;
mod trace;
pub mod watchdog;

/// The rules of execution.
pub use greenroom_domain as domain;

pub use arbiters::Placement;
pub use evaluation::evaluation_threads;
pub use retention::RetentionRules;
pub use runtime::{Runtime, RuntimeLimits, RuntimePorts};
