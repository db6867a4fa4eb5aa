//! What leaves the process for steps and tools: HTTP calls and programs.

pub mod command;
pub mod http;
pub mod keyring;
pub mod outgoing;
mod outside;
mod scope;

pub use self::outside::Ways;
