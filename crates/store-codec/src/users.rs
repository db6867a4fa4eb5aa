//! Users named in stored facts, and their removal.

use std::sync::Arc;

use greenroom_actors::domain::fact::{Others, Recorded, Suspension};
pub use greenroom_actors::domain::principal::written_prefix;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Damaged;
use super::json::{is_pair, parse};

/// Returns the users that facts name.
pub fn users_in(facts: &[Recorded]) -> Vec<Arc<str>> {
    let mut users: Vec<Arc<str>> = Vec::new();
    for recorded in facts {
        recorded.each_principal(&mut |principal| {
            if !users.contains(&principal.id) {
                users.push(Arc::clone(&principal.id));
            }
        });
    }
    users
}

/// Returns stored facts without the user; `None` if they do not name it. Only facts that contain
/// [`written_prefix`] can name it.
pub fn facts_without(events: &[u8], user: &str) -> Result<Option<Vec<u8>>, Damaged> {
    without(events, |facts: &mut Vec<Recorded>| {
        facts.iter_mut().fold(false, |any, recorded| recorded.forget(user) | any)
    })
}

/// Returns stored suspensions without the user; `None` if they do not name it.
pub fn suspensions_without(bytes: &[u8], user: &str) -> Result<Option<Vec<u8>>, Damaged> {
    if is_pair(bytes) {
        return without(bytes, |(shown, others): &mut (Suspension, Others)| {
            shown.forget(user) | others.forget(user)
        });
    }
    without(bytes, |shown: &mut Suspension| shown.forget(user))
}

fn without<T: DeserializeOwned + Serialize + Send>(
    bytes: &[u8],
    forget: impl FnOnce(&mut T) -> bool,
) -> Result<Option<Vec<u8>>, Damaged> {
    let mut read: T = parse(bytes)?;
    if !forget(&mut read) {
        return Ok(None);
    }
    serde_json::to_vec(&read).map(Some).map_err(Damaged::new)
}
