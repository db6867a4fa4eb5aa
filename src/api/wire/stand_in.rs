//! Models and providers that answer in place of others.

use greenroom_actors::ports::model::Served;
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// Model or provider that answered in place of the configured one.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StandIn)]
#[serde(rename_all = "camelCase")]
pub struct StandInView<'a> {
    model: &'a str,
    provider: Option<&'a str>,
    /// The model that was asked first and failed.
    #[schema(required)]
    #[serialize_always]
    instead_of: Option<&'a str>,
}

impl<'a> StandInView<'a> {
    /// Shows the model and provider that answered.
    pub fn of(served: &'a Served) -> Self {
        let Served { model, provider, instead_of, .. } = served;
        Self { model, provider: provider.as_deref(), instead_of: instead_of.as_deref() }
    }
}
