//! Newer versions of this program: where to hear of them, and how to get them.

mod command;
mod index;
#[cfg(test)]
mod tests;

pub use self::command::InstallCommand;
pub use self::index::{InvalidRegistryAddress, RegistryAddress, SparseIndex};
