//! Calls out of the process, of steps and tools: HTTP calls and programs.

pub mod command;
mod hosts;
#[cfg(feature = "providers")]
pub mod http;
#[cfg(any(feature = "mcp", feature = "providers"))]
pub mod outgoing;
mod scope;
pub mod secrets;

pub use self::hosts::{InvalidOutgoingHost, OutgoingHost};
