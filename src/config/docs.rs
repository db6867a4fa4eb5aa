//! `[docs]`: the pages about the API.

use super::environment::Environment;
use super::features::UI;
use super::keys::{Takes, section};

section! {
    /// The pages about the API.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DocsConfig {
        /// Serves `/ui`. Default: `true`, but `false` if `NODE_ENV` is `production`.
        ui: Option<bool> = None, Takes::FlagOf(UI, "serve pages about its API");
    }
}

impl DocsConfig {
    /// Returns true if `/ui` is served: as configured, else only outside of production, if
    /// this program has it.
    pub fn ui_is_on(&self, environment: Environment) -> bool {
        let default = cfg!(feature = "ui") && environment == Environment::Development;
        self.ui.unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Environment};

    #[test]
    fn production_has_no_ui_unless_it_is_configured() {
        let rows =
            [("", true, false), ("docs.ui = true", true, true), ("docs.ui = false", false, false)];
        for (text, in_development, in_production) in rows {
            let docs = Config::parse(text, "config.toml").unwrap().docs;
            assert_eq!(docs.ui_is_on(Environment::Development), in_development, "{text}");
            assert_eq!(docs.ui_is_on(Environment::Production), in_production, "{text}");
        }
    }
}
