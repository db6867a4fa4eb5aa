//! MCP servers whose tools are tools of agents and steps.
//!
//! Their connections live on one thread with a separate runtime. Calls are made from the threads of
//! their callers.

#[cfg(feature = "mcp")]
mod calls;
#[cfg(feature = "mcp")]
mod connection;
#[cfg(feature = "mcp")]
mod counts;
#[cfg(feature = "mcp")]
mod failed;
#[cfg(feature = "mcp")]
pub mod hub;
#[cfg(feature = "mcp")]
mod oauth;
#[cfg(feature = "mcp")]
mod question;
#[cfg(feature = "mcp")]
mod reasons;
#[cfg(feature = "mcp")]
mod refusal;
#[cfg(feature = "mcp")]
mod secrets;
pub mod settings;
#[cfg(feature = "mcp")]
mod tools;
