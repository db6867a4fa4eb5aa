//! The rules of execution in plain Rust: no actor, no clock, no randomness, no I/O.

pub mod assignment;
pub mod call;
pub mod cluster;
pub mod definition;
pub mod effort;
pub mod event;
pub mod expression;
pub mod fact;
pub mod failure;
pub mod footprint;
pub mod foreign;
mod forgetting;
pub mod hash;
pub mod ids;
pub mod machine;
pub mod message;
pub mod nesting;
pub mod note;
pub mod outcome;
pub mod plan;
pub mod principal;
pub mod question;
pub mod schema;
pub mod slot;
pub mod state;
pub mod status;
pub mod step_state;
pub mod stored;
pub mod time;
pub mod trace;
pub mod usage;

/// Upper bound on the time of what a limit ends, also on a machine with ten times as much to do. Without
/// the limit it would take minutes, or all memory.
#[cfg(test)]
pub(crate) const SOON: std::time::Duration = std::time::Duration::from_secs(30);
