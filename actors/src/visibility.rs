//! Whose things a caller sees.

use std::sync::Arc;

/// Whose executions, generations and traces a caller sees. Another's are to it as if they did
/// not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Visibility {
    #[default]
    Everything,
    /// Those of one user.
    Of(Arc<str>),
    Nothing,
}

impl Visibility {
    /// Whether what belongs to this user, or to nobody, is seen.
    pub fn reaches(&self, owner: Option<&str>) -> bool {
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
    fn what_belongs_to_nobody_is_seen_by_those_who_see_everything() {
        let rows = [
            (Visibility::Everything, [true, true, true]),
            (Visibility::Of("ann".into()), [true, false, false]),
            (Visibility::Nothing, [false, false, false]),
        ];
        for (visibility, expected) in rows {
            let seen = [Some("ann"), Some("ben"), None].map(|owner| visibility.reaches(owner));
            assert_eq!(seen, expected, "{visibility:?}");
        }
    }
}
