//! The password of a database: always from the environment.

use super::StoreConfig;
use crate::config::entry::Entry;
use crate::config::keys::{Takes, Value};
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::{read_variable, value_of};

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
        value_of(&self.variable, environment).err()
    }
}

impl Value for PasswordSource {
    /// Reads the name of the variable. Errors do not repeat the text, which may be the password.
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let variable = read_variable(entry, DEFAULT_VARIABLE)?;
        Some(Self { variable, spot: entry.place.spot() })
    }
}

impl StoreConfig {
    /// Returns the password from the environment, unless the address has one that precedes
    /// [`DEFAULT_VARIABLE`].
    pub(crate) fn password(&self, environment: impl Fn(&str) -> Option<String>) -> Option<String> {
        // an empty one is none, as for other programs of PostgreSQL
        let given = |name: &str| environment(name).filter(|password| !password.trim().is_empty());
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
