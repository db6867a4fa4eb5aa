//! Implementations of the runtime's ports; each knows one technology and nothing of our
//! routes.

pub(crate) mod descriptors;
pub mod env_file;
pub(crate) mod machine_memory;
pub mod models;
mod process;
pub mod rehearsal;
pub mod tools;
pub mod updates;
