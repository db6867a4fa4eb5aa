//! Newer versions of this program: the registry that lists them, and the command that installs
//! them.

mod command;
mod index;
#[cfg(test)]
mod tests;

pub use self::command::InstallCommand;
pub use self::index::{InvalidRegistryAddress, RegistryAddress, SparseIndex};
