//! Features of the build that parts of a configuration need.

/// A feature, and whether this program has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feature {
    name: &'static str,
    is_built: bool,
}

/// JSON Web Tokens.
pub(crate) const JWT: Feature = Feature { name: "jwt", is_built: cfg!(feature = "jwt") };
/// Tools of MCP servers.
pub(crate) const MCP: Feature = Feature { name: "mcp", is_built: cfg!(feature = "mcp") };
/// Metrics.
pub(crate) const METRICS: Feature =
    Feature { name: "metrics", is_built: cfg!(feature = "metrics") };
/// Calls of other servers.
pub(crate) const PROVIDERS: Feature =
    Feature { name: "providers", is_built: cfg!(feature = "providers") };
/// Pages and files for browsers.
pub(crate) const UI: Feature = Feature { name: "ui", is_built: cfg!(feature = "ui") };

impl Feature {
    /// Returns the refusal of what needs the feature, if this program lacks it. `what` completes
    /// "it cannot ...".
    pub(crate) fn lacking(self, what: &str) -> Option<String> {
        (!self.is_built).then(|| {
            format!("this program was built without the feature `{}`: it cannot {what}", self.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_feature() {
        let refusal = Feature { name: "jwt", is_built: false }.lacking("check tokens");
        let expected = "this program was built without the feature `jwt`: it cannot check tokens";
        assert_eq!(refusal.as_deref(), Some(expected));
        assert_eq!(Feature { name: "jwt", is_built: true }.lacking("check tokens"), None);
    }
}
