//! Which routes need a token, and which roles: the default table, and what was written over it.

mod pattern;

use std::sync::Arc;

pub use self::pattern::Pattern;
pub use crate::auth::DefaultAccess;

use self::pattern::Cover;
use crate::api::catalogue::{Access, Route};
use crate::auth::User;

/// A route that needs a token, and one of these roles when any are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    pub route: Pattern,
    pub roles: Arc<[String]>,
}

/// Which routes need a token, and which roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub default: DefaultAccess,
    /// Need none, whatever the default says.
    pub public: Vec<Pattern>,
    /// Need one, whatever else is said.
    pub rules: Vec<AccessRule>,
    /// Where executions, conversations, generations and traces are seen by their user alone: the
    /// roles that see them, too.
    pub owner_roles: Option<Arc<[String]>>,
}

impl AccessPolicy {
    /// What a route asks of its callers.
    pub fn gate(&self, route: &Route) -> Gate {
        let is_protected = match (route.access, self.default) {
            (Access::Open, _) => return Gate::default(),
            (Access::Protected, _) | (Access::Public, DefaultAccess::Private) => true,
            (Access::Page, _) => false,
            (Access::Public, DefaultAccess::Spec) => route.is_owned && self.owner_roles.is_some(),
        };
        let some = |cover: Cover| Some(cover).filter(Cover::is_some);
        let rule =
            |rule: &AccessRule| Some((some(rule.route.closed(route))?, Arc::clone(&rule.roles)));
        Gate {
            is_protected,
            public: self.public.iter().filter_map(|it| some(it.opened(route))).collect(),
            rules: self.rules.iter().filter_map(rule).collect(),
        }
    }

    /// Whether a page must not tell those without a token what runs here: other routes of its kind
    /// would not.
    pub fn is_discreet(&self, page: &Route) -> bool {
        let as_data = Route { access: Access::Public, ..page.clone() };
        self.gate(&as_data).needs_token(&page.path)
    }
}

/// What one route asks of its callers.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    is_protected: bool,
    public: Vec<Cover>,
    rules: Vec<(Cover, Arc<[String]>)>,
}

impl Gate {
    /// Whether a request to this path, which is one of the route's, needs a token. A rule counts
    /// more than a public pattern.
    pub fn needs_token(&self, path: &str) -> bool {
        self.rules_for(path).next().is_some()
            || self.is_protected && !self.public.iter().any(|cover| cover.holds(path))
    }

    /// The roles that a user lacks for this path: it needs one of them.
    pub fn missing_roles(&self, path: &str, user: &User) -> Option<&[String]> {
        let mut lacking =
            self.rules_for(path).filter(|roles| !roles.is_empty() && !user.has_one_of(roles));
        lacking.next()
    }

    /// Whether some path of the route needs no token.
    pub fn is_open_somewhere(&self) -> bool {
        let is_closed = self.rules.iter().any(|(cover, _)| *cover == Cover::All);
        !is_closed && (!self.is_protected || !self.public.is_empty())
    }

    /// Whether some path of the route needs no token, and nothing that was written says so.
    pub fn is_open_unsaid(&self) -> bool {
        let is_said = self.public.contains(&Cover::All);
        !self.is_protected && !is_said && self.is_open_somewhere()
    }

    fn rules_for(&self, path: &str) -> impl Iterator<Item = &[String]> {
        let holding = self.rules.iter().filter(move |(cover, _)| cover.may_hold(path));
        holding.map(|(_, roles)| &**roles)
    }
}

#[cfg(test)]
mod tests;
