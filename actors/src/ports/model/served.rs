//! Who gave an answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::stored::is_zero;

/// Who gave an answer, as far as the model's adapter knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// The model that was asked, by its provider's name. Of several that stand in for one
    /// another, the one that answered or was to answer.
    pub model: Arc<str>,
    /// As the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// Host of the server that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Arc<str>>,
    /// Its port, when it is not that of its scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that answered, as the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// Questions that had failed before this one, those to other models included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: u32,
    /// The model that had been asked first, where another one stood in for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Arc<str>>,
}

impl Served {
    /// By a model of which nothing else is known.
    pub fn of(model: &str) -> Self {
        Self { model: Arc::from(model), ..Self::default() }
    }
}

// by reference: serde asks so
