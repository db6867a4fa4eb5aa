//! Tools that Rust code adds to a configuration.

use super::ToolConfig;
use crate::config::Config;

impl Config {
    /// Adds a tool of Rust code, in place of one of the file. Returns false if Rust code has added
    /// one of this name before.
    pub(crate) fn add_tool(&mut self, name: &str, tool: ToolConfig) -> bool {
        self.tools.insert(name.to_owned(), tool);
        self.coded_tools.insert(name.to_owned())
    }

    /// Returns the tools of Rust code.
    pub(crate) fn coded_tools(&self) -> impl Iterator<Item = (&String, &ToolConfig)> {
        self.coded_tools.iter().filter_map(|name| self.tools.get_key_value(name))
    }

    /// Returns a tool of Rust code.
    pub(crate) fn coded_tool(&mut self, name: &str) -> Option<&mut ToolConfig> {
        self.coded_tools.contains(name).then(|| self.tools.get_mut(name)).flatten()
    }
}
