//! Agents and workflows as models of OpenAI's Chat Completions API
//! (<https://platform.openai.com/docs/api-reference/chat>).

use crate::api::faces::Offered;

/// Default of [`OpenAiFace::tools_max`]: the limit of OpenAI's own API.
const TOOLS_MAX: usize = 128;

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
