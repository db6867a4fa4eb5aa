//! What an installation needs beside its work: to hear of newer versions, to install them, and
//! the keys of its telemetry. Here is what happens in which order; how it is done is up to
//! adapters. Knows neither the web framework nor the routes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use semver::Version;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::threads;

/// The one package that is looked for and installed: this program.
pub const PACKAGE: &str = env!("CARGO_PKG_NAME");
/// The version of this program.
pub const INSTALLED: &str = env!("CARGO_PKG_VERSION");

/// How long an answer of the registry counts.
const ANSWER_COUNTS: Duration = Duration::from_secs(60);
/// The same for an answer that did not come.
const SILENCE_COUNTS: Duration = Duration::from_secs(5);

/// A registry of packages.
pub trait PackageIndex: Send + Sync {
    /// The versions of [`PACKAGE`] that can be installed, in any order. None when it is not
    /// published.
    fn versions(&self) -> BoxFuture<'_, Result<Vec<Version>, IndexError>>;
}

/// Why a registry said nothing. The texts name no address: it may be nobody else's business.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("the registry cannot be reached")]
    Unreachable,
    #[error("the registry did not answer within {} seconds", .0.as_secs())]
    Silent(Duration),
    #[error("the registry broke the connection")]
    Broken,
    #[error("the registry answered with status {0}")]
    Status(u16),
    #[error("the registry's answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the registry's answer is no index of {PACKAGE}")]
    NoIndex,
}

/// Whatever installs packages on this machine.
pub trait Installer: Send + Sync {
    /// Installs a package. Dropping the future ends the work.
    fn install(&self, package: &str) -> BoxFuture<'static, Result<(), InstallError>>;
}

/// Why a package was not installed. The texts repeat nothing of the command.
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
    #[error("the command was given up")]
    GivenUp,
}

/// The file with the variables of the process.
pub trait VariableFile: Send + Sync {
    /// Gives variables these values and leaves the rest as it is. Blocks.
    fn set(&self, variables: &[(&str, &str)]) -> Result<(), FileError>;
}

/// Why the file was not written, for the log: without its path, without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(pub String);

/// The keys of the service that takes telemetry.
pub struct ServiceKeys {
    /// Sent as `x-public-key`.
    pub public: String,
    /// Sent as `x-secret-key`.
    pub secret: String,
}

impl ServiceKeys {
    const PUBLIC_VARIABLE: &str = "SERVICE_PUBLIC_KEY";
    const SECRET_VARIABLE: &str = "SERVICE_SECRET_KEY";

    /// The variables that hold them.
    pub const VARIABLES: [&str; 2] = [Self::PUBLIC_VARIABLE, Self::SECRET_VARIABLE];
}

/// The upkeep of this installation, as far as it is configured.
pub struct Upkeep {
    index: Option<Arc<dyn PackageIndex>>,
    installer: Option<Arc<dyn Installer>>,
    variables: Arc<dyn VariableFile>,
    /// Held while the registry is asked: whoever comes then waits for the same answer.
    answer: Mutex<Option<Answer>>,
    /// One permit: two installations at once would disturb each other.
    installing: Arc<Semaphore>,
    writing: Arc<Mutex<()>>,
}

struct Answer {
    versions: Result<Arc<[Version]>, IndexError>,
    counts_until: Instant,
}

/// What became of an order to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    Done(Result<(), InstallError>),
    /// Another one is under way.
    Busy,
    /// No command is configured.
    Off,
}

impl Upkeep {
    /// Without an index nothing is looked for, without an installer nothing is installed.
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

    /// The published versions, at most a minute old; `None` without a registry.
    pub async fn published(&self) -> Option<Result<Arc<[Version]>, IndexError>> {
        let index = self.index.as_ref()?;
        let mut kept = self.answer.lock().await;
        if let Some(answer) = kept.as_ref().filter(|answer| Instant::now() < answer.counts_until) {
            return Some(answer.versions.clone());
        }
        let versions = index.versions().await.map(Arc::from);
        let counts = if versions.is_ok() { ANSWER_COUNTS } else { SILENCE_COUNTS };
        *kept = Some(Answer { versions: versions.clone(), counts_until: Instant::now() + counts });
        Some(versions)
    }

    /// Whether there is a command that installs.
    pub fn can_install(&self) -> bool {
        self.installer.is_some()
    }

    /// Installs the newest version. Goes on when the caller does not wait for it.
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
                Ok(()) => log::info!("{PACKAGE} was installed; a restart takes it into use"),
                Err(error) => log::error!("{PACKAGE} was not installed: {error}"),
            }
            drop(permit);
            outcome
        });
        Installation::Done(task.await.unwrap_or(Err(InstallError::GivenUp)))
    }

    /// Writes the keys into the environment file, one caller after the other.
    pub async fn keep_keys(&self, keys: ServiceKeys) -> Result<(), FileError> {
        // Held by the work itself: a caller that leaves does not end it.
        let turn = Arc::clone(&self.writing).lock_owned().await;
        let file = Arc::clone(&self.variables);
        let work = threads::aside(move || {
            let public = (ServiceKeys::PUBLIC_VARIABLE, keys.public.as_str());
            let secret = (ServiceKeys::SECRET_VARIABLE, keys.secret.as_str());
            let written = file.set(&[public, secret]);
            drop(turn);
            written
        });
        work.await.unwrap_or_else(|error| Err(FileError(format!("it was not written: {error}"))))
    }
}

impl fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upkeep")
            .field("index", &self.index.is_some())
            .field("installer", &self.installer.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
