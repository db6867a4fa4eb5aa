//! Environment variables, and the two keys in the environment file.

use std::cell::OnceCell;
use std::path::PathBuf;

use crate::adapters::env_file::EnvFile;
use crate::config::{Config, ConfigProblem};
use crate::maintenance::ServiceKeys;

/// Lookup of variables. Reads the file at most once, and only for a key.
pub(crate) struct Variables {
    file: EnvFile,
    in_file: OnceCell<Vec<Option<String>>>,
}

impl Variables {
    /// Creates the lookup for a configuration, which names the file.
    pub(crate) fn of(config: &Config) -> Self {
        Self::new(config.system.env_file.clone())
    }

    fn new(env_file: PathBuf) -> Self {
        Self { file: EnvFile::new(env_file), in_file: OnceCell::new() }
    }

    /// Returns the value of a variable, also if it is empty.
    pub(crate) fn found(&self, name: &str) -> Option<String> {
        self.value(name).or_else(|| std::env::var(name).ok())
    }

    /// Returns a non-blank value from the environment or, for the keys, from the file.
    pub(in crate::app) fn value(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        value.or_else(|| {
            let index = ServiceKeys::VARIABLES.iter().position(|key| *key == name)?;
            self.in_file.get_or_init(|| self.read()).get(index)?.clone()
        })
    }

    /// Replaces variables in the values of a configuration that may contain some.
    pub(in crate::app) fn fill(config: &mut Config) -> Result<(), ConfigProblem> {
        let variables = Self::of(config);
        config.fill_variables(|name| variables.value(name))
    }

    fn read(&self) -> Vec<Option<String>> {
        self.file.values(&ServiceKeys::VARIABLES).unwrap_or_else(|error| {
            log::warn!("ignoring the environment file and its keys: {error}");
            Vec::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Registered;
    use crate::app::checks::problems;
    use crate::config::Names;

    #[test]
    fn only_keys_are_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, "SERVICE_PUBLIC_KEY=pk\nOTEL_OF_NONE=1\n").unwrap();
        let variables = Variables::new(path);
        assert_eq!(variables.value("SERVICE_PUBLIC_KEY").as_deref(), Some("pk"));
        assert_eq!(variables.value("SERVICE_SECRET_KEY"), None);
        assert_eq!(variables.value("OTEL_OF_NONE"), None);
        assert!(variables.value("CARGO_PKG_NAME").is_some());
        assert_eq!(Variables::new(folder.path().to_owned()).value("SERVICE_PUBLIC_KEY"), None);
    }

    #[test]
    fn the_configuration_names_the_environment_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "SERVICE_SECRET_KEY=from-the-file\n").unwrap();
        let text = format!(
            "[system]\nenv_file = {path:?}\n[[workflows.w.steps]]\nid = \"a\"\n\
             command = {{ argv = [\"x\"], env = {{ A = \"secret:SERVICE_SECRET_KEY\" }} }}\n"
        );
        let config = Config::parse(&text, "c.toml").unwrap();
        assert!(problems(&config, &Registered::default(), &Names::default()).is_empty());
        std::fs::remove_file(path).unwrap();
        assert_eq!(problems(&config, &Registered::default(), &Names::default()).len(), 1);
    }
}
