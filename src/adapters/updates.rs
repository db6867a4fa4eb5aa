//! Newer versions of this program: the registry that lists them, and the command that installs
//! them.

mod address;
mod command;
#[cfg(feature = "providers")]
mod index;
#[cfg(test)]
#[cfg(feature = "providers")]
mod tests;

pub use self::address::{InvalidRegistryAddress, RegistryAddress};
pub use self::command::InstallCommand;
#[cfg(feature = "providers")]
pub use self::index::SparseIndex;
