//! Calls out of the process, of steps and tools: HTTP calls and programs.

mod clients;
pub mod command;
pub mod http;
pub mod outgoing;
mod scope;
pub mod secrets;

pub use self::clients::OutboundClients;
