//! Mistakes in a configuration, with their places.

use std::fmt;
use std::sync::Arc;

/// Severity of a problem: only errors stop the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration is accepted, but probably not as intended.
    Warning,
}

/// One thing wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Name of the file as given, or an option of the command line.
    pub file: Arc<str>,
    /// Counted from 1; 0 if the problem has no place in a text.
    pub line: usize,
    /// In characters, counted from 1; 0 if the problem has no place in a text.
    pub column: usize,
    /// Dotted path of the key; a step is named by its id. Empty when no key is to blame.
    pub key: String,
    /// The mistake, without a full stop.
    pub message: String,
    /// The replacement that the author probably meant.
    pub suggestion: Option<String>,
    pub severity: Severity,
}

impl ConfigProblem {
    /// Returns an error without a line, such as a missing file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Spot::nowhere(file).error(message)
    }

    /// Returns true if the problem stops the server.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        f.write_str(": ")?;
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigProblem {}

/// The place of a value. Owned, so that checks after reading can still name a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) key: String,
}

impl Spot {
    pub(crate) fn nowhere(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0, key: String::new() }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> ConfigProblem {
        self.problem(Severity::Error, message.into())
    }

    pub(crate) fn warning(&self, message: impl Into<String>) -> ConfigProblem {
        self.problem(Severity::Warning, message.into())
    }

    fn problem(&self, severity: Severity, message: String) -> ConfigProblem {
        let Self { file, line, column, key } = self.clone();
        ConfigProblem { file, line, column, key, message, suggestion: None, severity }
    }
}

impl ConfigProblem {
    pub(crate) fn meant(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_without_a_place_shows_none() {
        let problem = ConfigProblem::of_file("config.toml", "no such file");
        assert_eq!(problem.to_string(), "config.toml: no such file");
    }
}
