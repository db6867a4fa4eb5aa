//! Settings of doors for clients that speak other protocols.

/// Default of [`OpenAiFace::tools_max`]: the limit of OpenAI's own API.
const TOOLS_MAX: usize = 128;

/// Agents or workflows that a face offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// All that there are, also those that a reload adds.
    All,
    /// These ids.
    Only(Vec<String>),
}

impl Offered {
    /// Returns true if the face offers this id.
    pub fn has(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.iter().any(|own| own == id),
        }
    }
}

/// Settings of the routes `/v1/models` and `/v1/chat/completions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiFace {
    /// Agents that are models, by their id.
    pub agents: Offered,
    /// Workflows that are models, by `workflow/` and their id.
    pub workflows: Offered,
    /// Maximum number of tools of the client in one request.
    pub tools_max: usize,
}

impl Default for OpenAiFace {
    fn default() -> Self {
        let (agents, workflows) = (Offered::All, Offered::Only(Vec::new()));
        Self { agents, workflows, tools_max: TOOLS_MAX }
    }
}
