//! `NODE_ENV`: development or production.

use std::fmt;

/// The variable that says it.
const VARIABLE: &str = "NODE_ENV";

/// Development or production. It decides defaults, such as whether
/// `/ui` is there, and never who may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Environment {
    /// Also whatever is not known, such as `test`.
    #[default]
    Development,
    /// `production`, in any case.
    Production,
}

impl Environment {
    /// Returns the meaning of a value of `NODE_ENV`; without one it is development.
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

    /// As it is shown.
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
