//! The routes of a server and their access rules.

use std::sync::Arc;

use crate::api::catalogue::Catalogue;
use crate::web::custom::handler::CustomHandler;
use crate::web::gate::Auth;

/// Route catalogue with the access policy and the handlers of added routes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Binding {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) auth: Arc<Auth>,
    /// Handlers of added routes, by the index in [`crate::api::catalogue::RouteName::Custom`].
    pub(crate) custom: Vec<CustomHandler>,
}
