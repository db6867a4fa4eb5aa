//! MCP servers whose tools are tools of agents and steps.
//!
//! Their connections live on one thread with a separate runtime. Calls are made from the threads of
//! their callers.

#[cfg(feature = "mcp")]
mod answers;
#[cfg(feature = "mcp")]
mod call;
#[cfg(feature = "mcp")]
mod changes;
#[cfg(feature = "mcp")]
mod child;
#[cfg(feature = "mcp")]
mod cleaning;
#[cfg(feature = "mcp")]
mod connect;
#[cfg(feature = "mcp")]
mod counts;
#[cfg(feature = "mcp")]
mod elicit;
#[cfg(feature = "mcp")]
mod events;
#[cfg(feature = "mcp")]
mod findings;
#[cfg(feature = "mcp")]
pub mod hub;
#[cfg(feature = "mcp")]
mod keeping;
#[cfg(feature = "mcp")]
mod legacy;
#[cfg(feature = "mcp")]
mod lines;
#[cfg(feature = "mcp")]
mod link;
#[cfg(feature = "mcp")]
mod listen;
#[cfg(feature = "mcp")]
mod names;
#[cfg(feature = "mcp")]
mod oauth;
#[cfg(feature = "mcp")]
mod outbox;
#[cfg(feature = "mcp")]
mod peered;
#[cfg(feature = "mcp")]
mod progress;
#[cfg(feature = "mcp")]
mod reasons;
#[cfg(feature = "mcp")]
mod records;
#[cfg(feature = "mcp")]
mod request;
#[cfg(feature = "mcp")]
mod result;
#[cfg(feature = "mcp")]
mod review;
pub mod settings;
#[cfg(feature = "mcp")]
mod silence;
#[cfg(feature = "mcp")]
mod tasks;
#[cfg(feature = "mcp")]
mod traced;
