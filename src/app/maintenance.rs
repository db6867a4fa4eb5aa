//! Maintenance of the installation as configured.

use std::sync::Arc;

use crate::adapters::env_file::EnvFile;
use crate::adapters::updates::{InstallCommand, SparseIndex};
use crate::config::{SystemConfig, UpdatesConfig};
use crate::maintenance::{Installer, Maintenance, PackageIndex};

pub(super) fn maintenance(system: &SystemConfig, updates: &UpdatesConfig) -> Maintenance {
    let index = updates.registry.clone().map(SparseIndex::new);
    let command = InstallCommand::new(&updates.install, updates.install_timeout);
    Maintenance::new(
        index.map(|index| Arc::new(index) as Arc<dyn PackageIndex>),
        command.map(|command| Arc::new(command) as Arc<dyn Installer>),
        Arc::new(EnvFile::new(system.env_file.clone())),
    )
}
