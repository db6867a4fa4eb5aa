//! The runtime of greenroom: workflow executions and agent generations as actors over a journal.
//!
//! Knows executions, definitions and models; knows nothing of HTTP, of configuration files or of
//! a particular database. The server and any other front end go through [`Runtime`] alone.

pub mod agent;
mod ask_alarm;
pub mod causes;
mod cluster;
mod commands;
mod counters;
mod execution;
pub mod function;
mod home;
mod limits;
mod mailbox;
pub mod observe;
pub mod ports;
pub mod registry;
mod replay;
pub mod requests;
pub mod runtime;
mod runtime_ports;
pub mod shard;
mod shared;
#[doc(hidden)]
pub mod testkit;
pub mod threads;
pub mod visibility;
pub mod wait_report;

/// The rules of execution.
pub use greenroom_domain as domain;

pub use home::Host;
pub use limits::{RetentionRules, RuntimeLimits};
pub use runtime::Runtime;
pub use runtime_ports::RuntimePorts;
pub use shard::arbiters::Placement;
pub use shard::evaluation::evaluation_threads;
