//! Implementations of the runtime's ports; each knows one technology and none of our routes.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod crash_file;
pub(crate) mod descriptors;
pub mod env_file;
pub(crate) mod machine_memory;
pub mod mcp;
pub mod mock;
#[cfg(feature = "providers")]
pub mod models;
pub mod outbound;
mod process;
pub mod tools;
pub mod updates;
