//! `NODE_ENV`: development or production.

use std::fmt;

const VARIABLE: &str = "NODE_ENV";

/// Development or production. It selects defaults, such as whether `/ui` is served, and never
/// affects access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Environment {
    /// The default, and every other value, such as `test`.
    #[default]
    Development,
    /// `production`, in any case.
    Production,
}

impl Environment {
    /// Returns the environment for a value of `NODE_ENV`.
    pub fn named(value: Option<&str>) -> Self {
        // `set NODE_ENV=production && ...` leaves a space behind in some shells
        let is_production =
            value.is_some_and(|value| value.trim().eq_ignore_ascii_case("production"));
        if is_production { Self::Production } else { Self::Development }
    }

    /// Reads `NODE_ENV` of this process. Called once, at the start.
    pub(crate) fn of_process() -> Self {
        let value = std::env::var_os(VARIABLE);
        Self::named(value.as_ref().and_then(|value| value.to_str()))
    }

    /// Returns the name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Production => "production",
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_production_is_production() {
        for (value, expected) in [
            (Some("production"), Environment::Production),
            (Some("PRODUCTION"), Environment::Production),
            (Some("Production "), Environment::Production),
            (Some("prod"), Environment::Development),
            (Some("test"), Environment::Development),
            (Some("development"), Environment::Development),
            (Some("non-production"), Environment::Development),
            (Some(""), Environment::Development),
            (None, Environment::Development),
        ] {
            assert_eq!(Environment::named(value), expected, "for {value:?}");
        }
    }
}
