//! Visibility of resources to a caller.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The owners whose executions, generations and traces a caller sees. The rest does not exist for
/// that caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    #[default]
    Everything,
    /// Resources of one user.
    Of(Arc<str>),
    Nothing,
}

impl Visibility {
    /// Returns true if a resource of this owner, or without one, is visible.
    pub fn allows(&self, owner: Option<&str>) -> bool {
        match self {
            Self::Everything => true,
            Self::Of(user) => owner == Some(&**user),
            Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_without_owner_are_visible_only_with_full_visibility() {
        let rows = [
            (Visibility::Everything, [true, true, true]),
            (Visibility::Of("ann".into()), [true, false, false]),
            (Visibility::Nothing, [false, false, false]),
        ];
        for (visibility, expected) in rows {
            let seen = [Some("ann"), Some("ben"), None].map(|owner| visibility.allows(owner));
            assert_eq!(seen, expected, "{visibility:?}");
        }
    }
}
