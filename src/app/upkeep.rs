//! The upkeep of the installation, as it is configured.

use std::sync::Arc;

use crate::adapters::env_file::EnvFile;
use crate::adapters::updates::{InstallCommand, SparseIndex};
use crate::config::{SystemConfig, UpdatesConfig};
use crate::upkeep::{Installer, PackageIndex, Upkeep};

pub(super) fn upkeep(system: &SystemConfig, updates: &UpdatesConfig) -> Upkeep {
    let index = updates.registry.clone().map(SparseIndex::new);
    let command = InstallCommand::new(&updates.install, updates.install_timeout);
    Upkeep::new(
        index.map(|index| Arc::new(index) as Arc<dyn PackageIndex>),
        command.map(|command| Arc::new(command) as Arc<dyn Installer>),
        Arc::new(EnvFile::new(system.env_file.clone())),
    )
}
