//! The password of a database: always from the environment.

use toml::de::DeValue;

use super::StoreConfig;
use crate::config::entry::Entry;
use crate::config::keys::{Takes, Value};
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::secret_name;

/// Variable that is read if `password` is not set, as by other programs of PostgreSQL.
const DEFAULT_VARIABLE: &str = "PGPASSWORD";

/// An environment variable that has the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordSource {
    variable: String,
    spot: Spot,
}

impl PasswordSource {
    /// Names the variable.
    pub fn variable(name: impl Into<String>) -> Self {
        Self { variable: name.into(), spot: Spot::nowhere("store.password") }
    }

    /// Returns the problem of the variable, if it has no password.
    pub(crate) fn problem(&self, environment: impl Fn(&str) -> Option<String>) -> Option<String> {
        let Self { variable, .. } = self;
        match environment(variable) {
            None => Some(format!("the environment variable {variable} is not set")),
            Some(value) if value.is_empty() => {
                Some(format!("the environment variable {variable} is empty"))
            }
            Some(_) => None,
        }
    }
}

impl Value for PasswordSource {
    /// Reads the name of the variable. Errors do not repeat the text, which may be the password.
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let written = match entry.value {
            DeValue::String(text) => secret_name(text),
            _ => None,
        };
        let Some(name) = written else {
            let example = format!("\"secret:{DEFAULT_VARIABLE}\"");
            return entry.refuse(format!("must name an environment variable, e.g. {example}"));
        };
        Some(Self { variable: name.to_owned(), spot: entry.place.spot() })
    }
}

impl StoreConfig {
    /// Returns the password from the environment, unless the address has one that precedes
    /// [`DEFAULT_VARIABLE`].
    pub(crate) fn password(&self, environment: impl Fn(&str) -> Option<String>) -> Option<String> {
        // an empty one is none, as for other programs of PostgreSQL
        let given = |name: &str| environment(name).filter(|password| !password.is_empty());
        match &self.password {
            Some(source) => given(&source.variable),
            None if self.url.password().is_some() => None,
            None => given(DEFAULT_VARIABLE),
        }
    }

    /// Returns the passwords that must not appear in a log.
    pub(in crate::config) fn secrets(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        if !self.url.is_of_database() {
            return Vec::new();
        }
        let of_address = self.url.password().map(str::to_owned);
        of_address.into_iter().chain(self.password(environment)).collect()
    }

    /// Returns an error if the variable is missing.
    pub(in crate::config) fn check_password(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigProblem> {
        let source = self.password.as_ref().filter(|_| self.url.is_of_database())?;
        source.problem(environment).map(|problem| source.spot.error(problem))
    }
}
