//! Origin of a model's answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::stored::is_zero;

/// Origin of a model's answer, as far as the adapter knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// The model asked, by its provider's name. With fallbacks, the last one asked.
    pub model: Arc<str>,
    /// Provider, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// Host of the provider's server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Arc<str>>,
    /// Port, unless it is the scheme's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Model according to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// Failed requests before this one, including those to other models.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: u32,
    /// The configured model, if a fallback answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Arc<str>>,
}

impl Served {
    /// Creates the origin of a model known only by name.
    pub fn of(model: &str) -> Self {
        Self { model: Arc::from(model), ..Self::default() }
    }
}
