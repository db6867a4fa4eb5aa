//! Variables of the environment, and of the environment file the two keys that are kept there.

use std::cell::OnceCell;
use std::path::PathBuf;

use crate::adapters::env_file::EnvFile;
use crate::upkeep::ServiceKeys;

/// Answers for variables; reads the file at most once, and only when a key is asked for.
pub(in crate::app) struct Variables {
    file: EnvFile,
    in_file: OnceCell<Vec<Option<String>>>,
}

impl Variables {
    pub(in crate::app) fn new(env_file: PathBuf) -> Self {
        Self { file: EnvFile::new(env_file), in_file: OnceCell::new() }
    }

    /// What the environment says; of the keys also what the file says.
    pub(in crate::app) fn value(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        value.or_else(|| {
            let index = ServiceKeys::VARIABLES.iter().position(|key| *key == name)?;
            self.in_file.get_or_init(|| self.read()).get(index)?.clone()
        })
    }

    fn read(&self) -> Vec<Option<String>> {
        self.file.values(&ServiceKeys::VARIABLES).unwrap_or_else(|error| {
            log::warn!("the environment file and the keys in it are not used: {error}");
            Vec::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_file_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, "SERVICE_PUBLIC_KEY=pk\nOTEL_OF_NOBODY=1\n").unwrap();
        let variables = Variables::new(path);
        assert_eq!(variables.value("SERVICE_PUBLIC_KEY").as_deref(), Some("pk"));
        assert_eq!(variables.value("SERVICE_SECRET_KEY"), None);
        assert_eq!(variables.value("OTEL_OF_NOBODY"), None);
        assert!(variables.value("CARGO_PKG_NAME").is_some());
        assert_eq!(Variables::new(folder.path().to_owned()).value("SERVICE_PUBLIC_KEY"), None);
    }
}
