//! Doors for clients that speak other protocols. They have no state of their own: each translates
//! between its protocol and the use cases of agents and workflows.

pub mod mcp;
pub mod openai;

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
