//! Settings of APIs for clients that speak other protocols, and the names of these APIs in records.

/// Default of [`OpenAiFace::tools_max`]: the limit of OpenAI's own API.
const TOOLS_MAX: usize = 128;

/// API for clients of OpenAI, as records name it.
pub(crate) const OPENAI_VIA: &str = "openai";

/// The face for MCP without a name; before the name of another face.
const MCP_VIA: &str = "mcp";

/// Longest name of a face for MCP.
pub(crate) const FACE_NAME_CHARS_MAX: usize = 64;

/// Returns true for what a face for MCP may be called.
pub(crate) fn is_face_name(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    !name.is_empty() && name.len() <= FACE_NAME_CHARS_MAX && is_word
}

/// Returns the name of a face for MCP in records.
pub(crate) fn mcp_via(face: Option<&str>) -> String {
    face.map_or_else(|| MCP_VIA.to_owned(), |name| format!("{MCP_VIA}:{name}"))
}

/// Returns true for a name that records may have for an API, also of a face that is no longer there.
pub(crate) fn is_via(text: &str) -> bool {
    match text.split_once(':') {
        Some((kind, face)) => kind == MCP_VIA && is_face_name(face),
        None => [MCP_VIA, OPENAI_VIA].contains(&text),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_known_by_their_names() {
        let longest = "n".repeat(FACE_NAME_CHARS_MAX);
        for name in [None, Some("desk"), Some(&*longest)] {
            assert!(is_via(&mcp_via(name)), "{name:?}");
        }
        assert!(is_via(OPENAI_VIA));
        let too_long = mcp_via(Some(&format!("{longest}n")));
        for other in ["", "MCP", "rest", "mcp:", "mcp:a b", "mcp:a:b", "openai:a", &too_long] {
            assert!(!is_via(other), "{other}");
        }
    }
}
