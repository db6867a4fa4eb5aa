//! Warnings about asks that those who are asked do not see, because of `ownership`.

use super::warnings::{USER, has_template};
use super::{Assignment, ROLE};
use crate::auth::{ApiKeySettings, User};
use crate::config::auth::AuthConfig;
use crate::config::problem::ConfigProblem;

/// Returns a warning if `ownership` hides an ask from everyone who is asked but the user of the
/// execution, which `!self` excludes. `by_keys_alone`: all callers are known; otherwise tokens may
/// have any roles, also one that sees everything beside the one that is asked.
pub(super) fn unseen(
    asked: &Assignment,
    auth: &AuthConfig,
    by_keys_alone: bool,
    has_links: bool,
) -> Option<ConfigProblem> {
    let seeing = auth.owner_roles.as_deref()?;
    // those of an escalation are asked beside those of `to`
    if asked.spot.key.ends_with("escalate.to") {
        return None;
    }
    let mut named = Vec::new();
    let mut excludes_self = false;
    for (_, entry) in &asked.entries {
        match entry.as_str() {
            "!self" => excludes_self = true,
            entry if has_template(entry) => return None,
            entry => named.push(entry),
        }
    }
    if named.is_empty() && !excludes_self {
        return None;
    }
    let keys = by_keys_alone.then_some(auth.api_keys.as_slice());
    let is_seen = named.iter().any(|entry| sees(entry, seeing, keys))
        || named.is_empty() && !seeing.is_empty();
    // a link shows what its user does not see; one for a role has no user, so `!self` excludes it
    let has_user = named.iter().any(|entry| entry.starts_with(USER));
    if is_seen || has_links && (has_user || !excludes_self) {
        return None;
    }
    let who = if excludes_self { "no caller" } else { "only the user who asks" };
    let cure = match named.iter().find_map(|entry| entry.strip_prefix(ROLE)) {
        Some(role) => {
            let instead = match seeing {
                [] => String::new(),
                [first, ..] => format!(", or ask a role that is in it, such as role:{first}"),
            };
            format!("add {role} to auth.ownership.roles{instead}")
        }
        None if named.is_empty() => "add a role to auth.ownership.roles".to_owned(),
        None => "give those who answer a role of auth.ownership.roles".to_owned(),
    };
    let hidden = match named.as_slice() {
        [] => "no role sees".to_owned(),
        [one] => format!("{one} alone does not see"),
        several => format!("{} alone do not see", several.join(", ")),
    };
    let message = format!(
        "{who} can answer this: with [auth] ownership, {hidden} what belongs to other users; {cure}"
    );
    Some(asked.spot.warning(message))
}

/// Returns true if a caller who is this user or has this role may see what belongs to others.
/// `keys`: all callers; `None` if there are more.
fn sees(entry: &str, seeing: &[String], keys: Option<&[ApiKeySettings]>) -> bool {
    let role = entry.strip_prefix(ROLE);
    if role.is_some_and(|role| seeing.iter().any(|it| it == role)) {
        return true;
    }
    // a token may have several roles
    let Some(keys) = keys else { return role.is_none() || !seeing.is_empty() };
    keys.iter().any(|key| {
        // an invalid profile is reported as an error
        let Ok(user) = User::new(key.user.clone()) else { return true };
        let has = |name: &str| user.roles().iter().any(|role| role == name);
        let is_asked = match (role, entry.strip_prefix(USER)) {
            (Some(role), _) => has(role),
            (None, Some(id)) => user.id().unwrap_or(&key.id) == id,
            // what is neither is reported as such
            (None, None) => true,
        };
        is_asked && seeing.iter().any(|role| has(role))
    })
}
