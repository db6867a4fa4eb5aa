//! Refusals of the routes about updates and the environment file.

use crate::api::error::{ApiError, ErrorCode};
use crate::maintenance::{IndexError, InstallError};

/// Failure to check or install updates, or to write keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SystemFailure {
    #[error("Failed to check for updates: {0}")]
    Unchecked(IndexError),
    #[error("No command is configured to install updates; set install under [updates]")]
    NoCommand,
    #[error("Package {0} not found")]
    UnknownPackage(String),
    #[error("Updates are already being installed")]
    Installing,
    #[error("Failed to install updates: {0}")]
    NotInstalled(InstallError),
    /// The cause goes to the log, not to the caller.
    #[error("Failed to write the environment file")]
    FileNotWritten,
}

impl SystemFailure {
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Unchecked(_) => ErrorCode::UpdatesUnchecked,
            Self::NoCommand => ErrorCode::InstallOff,
            Self::UnknownPackage(_) => ErrorCode::PackageNotFound,
            Self::Installing => ErrorCode::InstallRunning,
            Self::NotInstalled(_) => ErrorCode::InstallFailed,
            Self::FileNotWritten => ErrorCode::EnvironmentFileFailed,
        }
    }
}

impl From<SystemFailure> for ApiError {
    fn from(failure: SystemFailure) -> Self {
        Self::System(failure)
    }
}
