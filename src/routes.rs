//! Types for handlers of added routes, see [`crate::Greenroom::routes`].

pub use crate::api::caller::Caller;
pub use crate::web::custom::{AddedRoute, Routes};
pub use crate::web::gate::Authenticated;
pub use crate::web::shutdown::Shutdown;
