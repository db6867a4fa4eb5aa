//! Implementations of the runtime's ports; each knows one technology and none of our routes.

pub(crate) mod crash_file;
pub(crate) mod descriptors;
pub mod env_file;
pub(crate) mod machine_memory;
pub mod mock;
pub mod models;
mod process;
pub mod tools;
pub mod updates;
