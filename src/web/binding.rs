//! The routes of a server, and who may call them.

use std::sync::Arc;

use crate::api::catalogue::Catalogue;
use crate::web::custom::handler::CustomHandler;
use crate::web::gate::Auth;

/// The catalogue and what its rows are bound with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Binding {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) auth: Arc<Auth>,
    /// What the rows of added routes lead to, by their places.
    pub(crate) custom: Vec<CustomHandler>,
}
