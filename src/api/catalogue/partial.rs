//! Catalogues of servers that do not serve everything.

use super::{Catalogue, RouteName, Tag};

impl Catalogue {
    /// Removes the pages of `/ui`.
    #[must_use]
    pub fn without_ui(mut self) -> Self {
        let is_ui = |name| matches!(name, RouteName::BrowseApi | RouteName::BrowseApiFile);
        self.rows.retain(|row| !is_ui(row.name));
        self
    }

    /// Removes the routes for clients of OpenAI.
    #[must_use]
    pub fn without_openai(mut self) -> Self {
        self.rows.retain(|row| row.tag != Tag::OpenAi);
        self
    }

    /// Removes `/console`.
    #[must_use]
    pub fn without_console(mut self) -> Self {
        let is_console = |name| {
            matches!(name, RouteName::Console | RouteName::ConsoleAsset | RouteName::ConsolePlace)
        };
        self.rows.retain(|row| !is_console(row.name));
        self
    }

    /// Removes the faces for MCP that are not there.
    #[must_use]
    pub fn with_mcp(mut self, has_unnamed: bool, has_named: bool) -> Self {
        self.rows.retain(|row| match row.name {
            RouteName::CallMcp | RouteName::DescribeMcp => has_unnamed,
            RouteName::CallNamedMcp | RouteName::DescribeNamedMcp => has_named,
            _ => true,
        });
        self
    }

    /// Removes `/metrics`.
    #[must_use]
    pub fn without_metrics(mut self) -> Self {
        self.rows.retain(|row| row.name != RouteName::ShowMetrics);
        self
    }
}
