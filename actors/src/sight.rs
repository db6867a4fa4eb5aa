//! Whose things a caller sees.

use std::sync::Arc;

/// Whose executions, generations and traces a caller sees. Another's are to it as if they did
/// not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sight {
    #[default]
    Everything,
    /// Those of one user.
    Of(Arc<str>),
    Nothing,
}

impl Sight {
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
            (Sight::Everything, [true, true, true]),
            (Sight::Of("ann".into()), [true, false, false]),
            (Sight::Nothing, [false, false, false]),
        ];
        for (sight, expected) in rows {
            let seen = [Some("ann"), Some("ben"), None].map(|owner| sight.reaches(owner));
            assert_eq!(seen, expected, "{sight:?}");
        }
    }
}
