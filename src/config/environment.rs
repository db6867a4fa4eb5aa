//! Variables of the process that no key names: `NODE_ENV`, and those of proxies.

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

/// Variables that send calls to other machines through a proxy. They are read by the HTTP client.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxies {
    /// Names of those that are set; never their values, which can have passwords.
    pub(crate) variables: Vec<&'static str>,
    /// True if some hosts are reached without the proxy.
    pub(crate) has_exceptions: bool,
}

#[cfg(feature = "cli")]
impl Proxies {
    /// Reads the variables of this process; `None` without a proxy.
    pub(crate) fn of_process() -> Option<Self> {
        Self::of(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    }

    fn of(is_set: impl Fn(&str) -> bool) -> Option<Self> {
        let names =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        let variables: Vec<_> = names.into_iter().filter(|name| is_set(name)).collect();
        let has_exceptions = ["NO_PROXY", "no_proxy"].into_iter().any(&is_set);
        (!variables.is_empty()).then_some(Self { variables, has_exceptions })
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

    #[test]
    fn proxies_are_named_without_their_values() {
        let of = |set: &[&str]| Proxies::of(|name| set.contains(&name));
        assert_eq!(of(&["NO_PROXY"]), None);
        let found = of(&["https_proxy", "ALL_PROXY", "no_proxy"]).unwrap();
        assert_eq!(found.variables, ["https_proxy", "ALL_PROXY"]);
        assert!(found.has_exceptions);
    }
}
