//! Warnings about users and roles in assignments that no caller is.

use std::collections::BTreeSet;

use super::{Assignment, ROLE, ownership};
use crate::auth::User;
use crate::config::Config;
use crate::config::auth::AuthConfig;
use crate::config::names::Names;
use crate::config::problem::{ConfigProblem, Spot};

/// Prefix of a user in an assignment.
pub(super) const USER: &str = "user:";

/// Users and roles that callers can be, as far as the configuration has them.
enum Known {
    /// Users as requests name them, and no roles.
    Unchecked,
    /// Users and roles of the keys.
    Keys { users: BTreeSet<String>, roles: BTreeSet<String> },
}

impl Assignment {
    /// Returns a warning if no caller can be one of those in the assignment, or if none of them
    /// sees what is asked, or else one for each entry that no caller can be. Entries with templates
    /// are not known before they are rendered.
    pub(crate) fn check(&self, config: &Config, registered: &Names) -> Vec<ConfigProblem> {
        let spaced = self.entries.iter().filter_map(|(spot, entry)| spaced(spot, entry));
        let mut warnings: Vec<ConfigProblem> = spaced.collect();
        let auth = &config.auth;
        let known = Known::of(auth, registered);
        warnings.extend(known.iter().flat_map(|known| self.unknown(known)));
        // an ask that no caller can answer needs no second reason
        if warnings.is_empty() && auth.checks_tokens(registered) {
            let has_links = config.inbox.secret.is_some();
            warnings.extend(ownership::unseen(self, auth, known.is_some(), has_links));
        }
        warnings
    }

    fn unknown(&self, known: &Known) -> Vec<ConfigProblem> {
        let named = || self.entries.iter().filter(|(_, entry)| entry != "!self");
        let idle: Vec<_> = named().filter(|(_, entry)| !known.has(entry)).collect();
        if !idle.is_empty() && idle.len() == named().count() {
            let why = known.reason();
            return vec![self.spot.warning(format!("no caller can answer this: {why}"))];
        }
        let idle = idle.into_iter();
        let warning = |(spot, entry): &(Spot, String)| {
            spot.warning(format!("no caller is {entry}: {}", known.reason()))
        };
        idle.map(warning).collect()
    }
}

/// Returns a warning of a role with spaces, which no text with roles has.
fn spaced(spot: &Spot, entry: &str) -> Option<ConfigProblem> {
    let role = entry.strip_prefix(ROLE).filter(|role| role.contains(char::is_whitespace))?;
    if has_template(role) {
        return None;
    }
    let text = "the role has spaces in it, which separate the roles of a token: only a token with \
                an array of roles can have it";
    let trimmed = role.trim();
    let is_plain = !trimmed.is_empty() && !trimmed.contains(char::is_whitespace);
    Some(spot.warning(text).meant(is_plain.then(|| format!("{ROLE}{trimmed}"))))
}

pub(super) fn has_template(entry: &str) -> bool {
    entry.contains("{{") || entry.contains("{%")
}

impl Known {
    /// Returns `None` if tokens or Rust code say who callers are.
    fn of(auth: &AuthConfig, registered: &Names) -> Option<Self> {
        if auth.has_jwt() || !registered.providers.is_empty() {
            return None;
        }
        if auth.api_keys.is_empty() {
            return Some(Self::Unchecked);
        }
        let (mut users, mut roles) = (BTreeSet::new(), BTreeSet::new());
        for key in &auth.api_keys {
            // an invalid one is reported as an error
            let user = User::new(key.user.clone()).ok()?;
            users.insert(user.id().unwrap_or(&key.id).to_owned());
            roles.extend(user.roles().iter().cloned());
        }
        Some(Self::Keys { users, roles })
    }

    fn has(&self, entry: &str) -> bool {
        if has_template(entry) {
            return true;
        }
        match (self, entry.strip_prefix(ROLE), entry.strip_prefix(USER)) {
            (Self::Unchecked, Some(_), _) => false,
            (Self::Keys { roles, .. }, Some(role), _) => roles.contains(role),
            (Self::Keys { users, .. }, None, Some(user)) => users.contains(user),
            // what is neither is reported as such
            (Self::Unchecked | Self::Keys { .. }, None, _) => true,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unchecked => "roles come with tokens, and there is no [auth]",
            Self::Keys { .. } => "no key in [[auth.api_keys]] has this user or role",
        }
    }
}
