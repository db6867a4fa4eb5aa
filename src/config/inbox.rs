//! `[inbox]`: the inbox.

use super::auth::roles_of;
use super::keys::{Takes, section};

section! {
    /// The inbox.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct InboxConfig {
        /// Roles that may pass over the claims of others, and assign what others are asked, with
        /// `"force": true`.
        force_roles: Vec<String> = Vec::new(), Takes::Texts(roles_of, "an array of roles");
    }
}
