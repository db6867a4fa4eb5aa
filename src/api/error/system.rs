//! Refusals of the routes about the installation itself.

use crate::api::error::ApiError;
use crate::upkeep::{IndexError, InstallError};

/// What keeps updates and keys from where they belong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SystemFailure {
    #[error("Failed to check for updates: {0}")]
    Unchecked(IndexError),
    #[error("No command is configured that installs updates; name one as install under [updates]")]
    NoCommand,
    #[error("Package {0} not found")]
    UnknownPackage(String),
    #[error("Updates are being installed already")]
    Installing,
    #[error("Failed to install updates: {0}")]
    NotInstalled(InstallError),
    /// The cause goes to the log, not to the caller.
    #[error("Failed to write the environment file")]
    FileNotWritten,
}

impl SystemFailure {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::NoCommand => 400,
            Self::UnknownPackage(_) => 404,
            Self::Installing => 409,
            Self::Unchecked(_) | Self::NotInstalled(_) | Self::FileNotWritten => 500,
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unchecked(_) => "updates_unchecked",
            Self::NoCommand => "install_off",
            Self::UnknownPackage(_) => "package_not_found",
            Self::Installing => "install_running",
            Self::NotInstalled(_) => "install_failed",
            Self::FileNotWritten => "environment_file_failed",
        }
    }
}

impl From<SystemFailure> for ApiError {
    fn from(failure: SystemFailure) -> Self {
        Self::System(failure)
    }
}
