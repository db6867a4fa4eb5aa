//! Keys as text: timers, and users in keys that cannot be null.

use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::TimerKey;

use super::Damaged;

const NODE: &str = "node:";
const ASK: &str = "ask:";
const ABANDONED: &str = "abandoned";

/// Encodes the key of a timer. The keys of nodes are those from `node:` up to and without `node;`.
pub fn timer_key_text(key: &TimerKey) -> String {
    match key {
        TimerKey::Node(path) => format!("{NODE}{path}"),
        TimerKey::AskChild(child) => format!("{ASK}{child}"),
        TimerKey::Abandoned => ABANDONED.to_owned(),
    }
}

/// Decodes the key of a timer.
pub fn timer_key_of(text: &str) -> Result<TimerKey, Damaged> {
    if let Some(path) = text.strip_prefix(NODE) {
        Ok(TimerKey::Node(path.into()))
    } else if let Some(child) = text.strip_prefix(ASK) {
        Ok(TimerKey::AskChild(ExecutionId::trusted(child)))
    } else if text == ABANDONED {
        Ok(TimerKey::Abandoned)
    } else {
        Err(Damaged::new(format_args!("{text:?} is not a timer")))
    }
}

/// Encodes a user in keys, which cannot be null. The prefix distinguishes the user with an empty
/// name from none.
pub fn user_text(user: Option<&str>) -> String {
    user.map(|user| format!("={user}")).unwrap_or_default()
}

/// Decodes a user.
pub fn user_of(text: &str) -> Option<Arc<str>> {
    text.strip_prefix('=').map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_timers_are_read_back() {
        let keys = [
            TimerKey::Node("steps/1".into()),
            TimerKey::AskChild(ExecutionId::trusted("child")),
            TimerKey::Abandoned,
        ];
        for key in keys {
            let text = timer_key_text(&key);
            assert_eq!(timer_key_of(&text).unwrap(), key);
            let is_in_range = ("node:".."node;").contains(&text.as_str());
            assert_eq!(is_in_range, matches!(key, TimerKey::Node(_)), "{text}");
        }
        assert!(timer_key_of("abandoned?").is_err());
    }

    #[test]
    fn the_user_with_an_empty_name_is_not_none() {
        for user in [None, Some(""), Some("u1"), Some("=u")] {
            assert_eq!(user_of(&user_text(user)).as_deref(), user);
        }
    }
}
