//! `[docs]`: the pages about the API.

use super::section::Section;

/// The pages about the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocsConfig {
    /// Whether `/ui` is served. Not said: as [`DocsConfig::ui_is_on`] decides.
    pub ui: Option<bool>,
}

impl DocsConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let ui = section.get("ui").and_then(|entry| entry.flag());
        section.close();
        Self { ui }
    }

    /// What was written, else whether this is a place for trying things out.
    pub fn ui_is_on(&self, is_production: bool) -> bool {
        self.ui.unwrap_or(!is_production)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn production_has_no_ui_unless_it_is_written() {
        let rows =
            [("", true, false), ("docs.ui = true", true, true), ("docs.ui = false", false, false)];
        for (text, in_development, in_production) in rows {
            let docs = Config::parse(text, "config.toml").unwrap().docs;
            assert_eq!(docs.ui_is_on(false), in_development, "{text}");
            assert_eq!(docs.ui_is_on(true), in_production, "{text}");
        }
    }
}
