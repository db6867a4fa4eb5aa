//! Settings of doors for clients that speak other protocols, and the names of these doors in records.

/// Default of [`OpenAiFace::tools_max`]: the limit of OpenAI's own API.
const TOOLS_MAX: usize = 128;

/// Door of clients of OpenAI, as records name it.
pub(crate) const OPENAI_DOOR: &str = "openai";

/// Door of clients of MCP at the face without a name; before the name of another face.
const MCP_DOOR: &str = "mcp";

/// Longest name of a face for MCP.
pub(crate) const FACE_NAME_CHARS_MAX: usize = 64;

/// Returns true for what a face for MCP may be called.
pub(crate) fn is_face_name(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    !name.is_empty() && name.len() <= FACE_NAME_CHARS_MAX && is_word
}

/// Returns the name in records of the door that is a face for MCP.
pub(crate) fn mcp_door(face: Option<&str>) -> String {
    face.map_or_else(|| MCP_DOOR.to_owned(), |name| format!("{MCP_DOOR}:{name}"))
}

/// Returns true for a name that records may have for a door, also of a face that is no longer there.
pub(crate) fn is_door(text: &str) -> bool {
    match text.split_once(':') {
        Some((kind, face)) => kind == MCP_DOOR && is_face_name(face),
        None => [MCP_DOOR, OPENAI_DOOR].contains(&text),
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
    fn doors_are_known_by_their_names() {
        let longest = "n".repeat(FACE_NAME_CHARS_MAX);
        for name in [None, Some("desk"), Some(&*longest)] {
            assert!(is_door(&mcp_door(name)), "{name:?}");
        }
        assert!(is_door(OPENAI_DOOR));
        let too_long = mcp_door(Some(&format!("{longest}n")));
        for other in ["", "MCP", "rest", "mcp:", "mcp:a b", "mcp:a:b", "openai:a", &too_long] {
            assert!(!is_door(other), "{other}");
        }
    }
}
