//! Models: agents and workflows.

use serde::Serialize;
use utoipa::ToSchema;

/// Answer of `GET /v1/models`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Models)]
pub struct ModelsView {
    object: &'static str,
    data: Vec<ModelView>,
}

/// An agent or a workflow.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Model)]
pub struct ModelView {
    /// Id of the agent, or `workflow/` and the id of the workflow.
    pub id: String,
    object: &'static str,
    /// Start of the server, in seconds since 1970.
    created: i64,
    owned_by: &'static str,
}

impl ModelsView {
    /// Shows models.
    pub fn of(data: Vec<ModelView>) -> Self {
        Self { object: "list", data }
    }
}

impl ModelView {
    /// Shows a model.
    pub fn of(id: String, created_s: i64) -> Self {
        Self { id, object: "model", created: created_s, owned_by: "greenroom" }
    }
}
