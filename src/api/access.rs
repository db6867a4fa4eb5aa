//! Access rules of routes: the default table, and the configured exceptions to it.

mod pattern;

use std::sync::Arc;

pub use self::pattern::Pattern;
pub use crate::auth::DefaultAccess;

use self::pattern::Cover;
use crate::api::catalogue::{Access, Route};
use crate::auth::User;

/// A route that needs a token, and one of these roles if any are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    pub route: Pattern,
    pub roles: Arc<[String]>,
}

/// Access rules of all routes: who needs a token, and which roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub default: DefaultAccess,
    /// Routes that need no token, whatever the default is.
    pub public: Vec<Pattern>,
    /// Routes that need a token; they override `public`.
    pub rules: Vec<AccessRule>,
    /// Set if executions, conversations, generations and traces are private to their users: the
    /// roles that also see those of others.
    pub owner_roles: Option<Arc<[String]>>,
}

impl AccessPolicy {
    /// Returns the requirements of a route.
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

    /// Returns true if a page must hide what runs here from callers without a token, because a
    /// data route with the same path would need one.
    pub fn is_discreet(&self, page: &Route) -> bool {
        let as_data = Route { access: Access::Public, ..page.clone() };
        self.gate(&as_data).needs_token(&page.path)
    }
}

/// Requirements of one route.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    is_protected: bool,
    public: Vec<Cover>,
    rules: Vec<(Cover, Arc<[String]>)>,
}

impl Gate {
    /// Returns true if a request to this path of the route needs a token. A rule overrides a public
    /// pattern.
    pub fn needs_token(&self, path: &str) -> bool {
        self.rules_for(path).next().is_some()
            || self.is_protected && !self.public.iter().any(|cover| cover.matches(path))
    }

    /// Returns the roles of the first rule that the user does not meet; one of them is required.
    pub fn missing_roles(&self, path: &str, user: &User) -> Option<&[String]> {
        let mut lacking =
            self.rules_for(path).filter(|roles| !roles.is_empty() && !user.has_one_of(roles));
        lacking.next()
    }

    /// Returns the roles of the first rule for this path that a caller does not meet, with or without a
    /// token; one of them is required, or a token alone if there are none.
    pub fn unmet(&self, path: &str, user: Option<&User>) -> Option<&[String]> {
        match user {
            Some(user) => self.missing_roles(path, user),
            None => self.rules_for(path).next(),
        }
    }

    /// Returns true if some path of the route needs no token.
    pub fn is_open_somewhere(&self) -> bool {
        let is_closed = self.rules.iter().any(|(cover, _)| *cover == Cover::All);
        !is_closed && (!self.is_protected || !self.public.is_empty())
    }

    /// Returns true if some path of the route needs no token although no public pattern opens it.
    pub fn is_open_by_default(&self) -> bool {
        let is_public = self.public.contains(&Cover::All);
        !self.is_protected && !is_public && self.is_open_somewhere()
    }

    fn rules_for(&self, path: &str) -> impl Iterator<Item = &[String]> {
        let matching = self.rules.iter().filter(move |(cover, _)| cover.may_match(path));
        matching.map(|(_, roles)| &**roles)
    }
}

#[cfg(test)]
mod tests;
