//! Maintenance of the installation: finding and installing newer versions, and storing the keys of
//! the telemetry service. Adapters do the work; this module knows no web framework and no routes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use semver::Version;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::threads;

/// The package to look for and to install: this program.
pub const PACKAGE: &str = env!("CARGO_PKG_NAME");
/// The version of this program.
pub const INSTALLED: &str = env!("CARGO_PKG_VERSION");

/// Time for which an answer of the registry is cached.
const ANSWER_CACHED: Duration = Duration::from_secs(60);
/// Time for which a failure of the registry is cached.
const FAILURE_CACHED: Duration = Duration::from_secs(5);

/// A registry of packages.
pub trait PackageIndex: Send + Sync {
    /// Returns the installable versions of [`PACKAGE`], unsorted; empty if it is not published.
    fn versions(&self) -> BoxFuture<'_, Result<Vec<Version>, IndexError>>;
}

/// Failure of a registry. The texts contain no URL, which may be confidential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("the registry cannot be reached")]
    Unreachable,
    #[error("the registry did not answer within {} seconds", .0.as_secs())]
    Silent(Duration),
    #[error("the registry closed the connection early")]
    Broken,
    #[error("the registry answered with status {0}")]
    Status(u16),
    #[error("the registry's answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the registry's answer is not an index of {PACKAGE}")]
    NoIndex,
}

/// Installer of packages on this machine.
pub trait Installer: Send + Sync {
    /// Installs a package. Dropping the future stops the installation.
    fn install(&self, package: &str) -> BoxFuture<'static, Result<(), InstallError>>;
}

/// Failure of an installation. The texts contain no part of the command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    #[error("the command is not on this machine")]
    Missing,
    #[error("the command cannot be started: {0}")]
    NotStarted(String),
    #[error("the command ended with exit code {0}")]
    ExitCode(i32),
    #[error("the command was ended by signal {0}")]
    Signal(i32),
    #[error("the command did not end within {}", humantime::format_duration(*.0))]
    TooSlow(Duration),
    #[error("the installation failed unexpectedly")]
    GivenUp,
}

/// The environment file.
pub trait VariableFile: Send + Sync {
    /// Sets variables and leaves the rest of the file as it is. Blocks.
    fn set(&self, variables: &[(&str, &str)]) -> Result<(), FileError>;
}

/// Failure to write the file, for the log: without its path and without values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(pub String);

/// Keys of the telemetry service.
pub struct ServiceKeys {
    /// Sent as `x-public-key`.
    pub public: String,
    /// Sent as `x-secret-key`.
    pub secret: String,
}

impl ServiceKeys {
    const PUBLIC_VARIABLE: &str = "SERVICE_PUBLIC_KEY";
    const SECRET_VARIABLE: &str = "SERVICE_SECRET_KEY";

    /// Names of the variables of both keys.
    pub const VARIABLES: [&str; 2] = [Self::PUBLIC_VARIABLE, Self::SECRET_VARIABLE];
}

/// Maintenance of this installation, as far as it is configured.
pub struct Maintenance {
    index: Option<Arc<dyn PackageIndex>>,
    installer: Option<Arc<dyn Installer>>,
    variables: Arc<dyn VariableFile>,
    /// Locked during a request to the registry, so that concurrent callers share its answer.
    answer: Mutex<Option<Answer>>,
    /// One permit, because concurrent installations would conflict.
    installing: Arc<Semaphore>,
    writing: Arc<Mutex<()>>,
}

struct Answer {
    versions: Result<Arc<[Version]>, IndexError>,
    valid_until: Instant,
}

/// Outcome of a request to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    Done(Result<(), InstallError>),
    /// Another installation is running.
    Busy,
    /// No command is configured.
    Off,
}

impl Maintenance {
    /// Creates the maintenance. Without an index there are no versions, without an installer
    /// installations are off.
    pub fn new(
        index: Option<Arc<dyn PackageIndex>>,
        installer: Option<Arc<dyn Installer>>,
        variables: Arc<dyn VariableFile>,
    ) -> Self {
        let (answer, writing) = (Mutex::default(), Arc::default());
        Self {
            index,
            installer,
            variables,
            answer,
            installing: Arc::new(Semaphore::new(1)),
            writing,
        }
    }

    /// Returns the published versions, at most a minute old; `None` without a registry.
    pub async fn published(&self) -> Option<Result<Arc<[Version]>, IndexError>> {
        let index = self.index.as_ref()?;
        let mut cached = self.answer.lock().await;
        if let Some(answer) = cached.as_ref().filter(|answer| Instant::now() < answer.valid_until) {
            return Some(answer.versions.clone());
        }
        let versions = index.versions().await.map(Arc::from);
        let valid = if versions.is_ok() { ANSWER_CACHED } else { FAILURE_CACHED };
        *cached = Some(Answer { versions: versions.clone(), valid_until: Instant::now() + valid });
        Some(versions)
    }

    /// Returns true if installations are configured.
    pub fn can_install(&self) -> bool {
        self.installer.is_some()
    }

    /// Installs the newest version. The installation continues if the future is dropped.
    pub async fn install(&self) -> Installation {
        let Some(installer) = &self.installer else { return Installation::Off };
        let Ok(permit) = Arc::clone(&self.installing).try_acquire_owned() else {
            return Installation::Busy;
        };
        let work = installer.install(PACKAGE);
        log::info!("installing {PACKAGE}");
        let task = tokio::spawn(async move {
            let outcome = work.await;
            match &outcome {
                Ok(()) => log::info!("installed {PACKAGE}; restart the server to use it"),
                Err(error) => log::error!("cannot install {PACKAGE}: {error}"),
            }
            drop(permit);
            outcome
        });
        Installation::Done(task.await.unwrap_or(Err(InstallError::GivenUp)))
    }

    /// Writes the keys to the environment file, one caller after the other.
    pub async fn keep_keys(&self, keys: ServiceKeys) -> Result<(), FileError> {
        // held by the work itself, which continues if this future is dropped
        let turn = Arc::clone(&self.writing).lock_owned().await;
        let file = Arc::clone(&self.variables);
        let work = threads::aside(move || {
            let public = (ServiceKeys::PUBLIC_VARIABLE, keys.public.as_str());
            let secret = (ServiceKeys::SECRET_VARIABLE, keys.secret.as_str());
            let written = file.set(&[public, secret]);
            drop(turn);
            written
        });
        work.await.unwrap_or_else(|error| Err(FileError(format!("cannot write it: {error}"))))
    }
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maintenance")
            .field("index", &self.index.is_some())
            .field("installer", &self.installer.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
