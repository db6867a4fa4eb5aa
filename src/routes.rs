//! What handlers of a program's own routes are made of; [`crate::Greenroom::routes`] adds them.

pub use crate::api::caller::Caller;
pub use crate::web::custom::{AddedRoute, Routes};
pub use crate::web::gate::Authenticated;
pub use crate::web::shutdown::Shutdown;
