//! Maintenance of the installation as configured.

use std::sync::Arc;

use crate::adapters::env_file::EnvFile;
use crate::adapters::updates::InstallCommand;
#[cfg(feature = "providers")]
use crate::adapters::updates::SparseIndex;
use crate::config::{SystemConfig, UpdatesConfig};
use crate::maintenance::{Installer, Maintenance, PackageIndex};

pub(super) fn maintenance(system: &SystemConfig, updates: &UpdatesConfig) -> Maintenance {
    #[cfg(feature = "providers")]
    let index = updates.registry.clone().map(SparseIndex::new);
    #[cfg(feature = "providers")]
    let index = index.map(|index| Arc::new(index) as Arc<dyn PackageIndex>);
    // no registry can be configured then
    #[cfg(not(feature = "providers"))]
    let index: Option<Arc<dyn PackageIndex>> = None;
    let command = InstallCommand::new(&updates.install, updates.install_timeout);
    Maintenance::new(
        index,
        command.map(|command| Arc::new(command) as Arc<dyn Installer>),
        Arc::new(EnvFile::new(system.env_file.clone())),
    )
}
