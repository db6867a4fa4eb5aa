//! Users named in stored facts, and their removal.

use std::sync::Arc;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::store::AskAnswer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Damaged;
use super::json::{parse, suspensions_json, suspensions_of};

/// Returns the users that facts name.
pub fn users_in(facts: &[Recorded]) -> Vec<Arc<str>> {
    let mut users: Vec<Arc<str>> = Vec::new();
    for recorded in facts {
        recorded.each_user(&mut |user| {
            if !users.contains(user) {
                users.push(Arc::clone(user));
            }
        });
    }
    users
}

/// Returns stored facts without the user; `None` if they do not name it. Only facts that contain
/// [`written_end`] can name it.
pub fn facts_without(events: &[u8], user: &str) -> Result<Option<Vec<u8>>, Damaged> {
    without(events, |facts: &mut Vec<Recorded>| {
        facts.iter_mut().fold(false, |any, recorded| recorded.forget(user) | any)
    })
}

/// Returns stored suspensions without the user; `None` if they do not name it.
pub fn suspensions_without(bytes: &[u8], user: &str) -> Result<Option<Vec<u8>>, Damaged> {
    let (mut shown, mut others) = suspensions_of(Some(bytes))?;
    let in_shown = shown.as_mut().is_some_and(|shown| shown.forget(user));
    let in_others = others.as_mut().is_some_and(|others| others.forget(user));
    if !in_shown && !in_others {
        return Ok(None);
    }
    suspensions_json(shown.as_ref(), others.as_ref()).map_err(Damaged::new)
}

/// Returns a stored answer without the user who gave it; `None` if it was another one.
pub fn answer_without(json: &str, user: &str) -> Result<Option<String>, Damaged> {
    let struck = without(json.as_bytes(), |answer: &mut AskAnswer| answer.forget(user))?;
    struck.map(String::from_utf8).transpose().map_err(Damaged::new)
}

/// Returns stored rules of an ask without the user; `None` if they do not name it.
pub fn rules_without(json: &str, user: &str) -> Result<Option<String>, Damaged> {
    let struck = without(json.as_bytes(), |rules: &mut AskRules| rules.forget(user))?;
    struck.map(String::from_utf8).transpose().map_err(Damaged::new)
}

/// Returns the end of the JSON of the user's id, alone or as the end of an assignee. Stores search
/// their rows for it.
pub fn written_end(user: &str) -> String {
    serde_json::Value::from(user).to_string().split_off(1)
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

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::assignment::Assignee;
    use greenroom_actors::domain::fact::{Fact, Others, Suspension};
    use greenroom_actors::domain::principal::{FORGOTTEN, Principal};
    use greenroom_actors::domain::time::Timestamp;

    use super::*;

    fn suspension(by: &str) -> Suspension {
        Suspension {
            id: None,
            reason: "approval".into(),
            suspended_at: Timestamp(1),
            step_id: "approve".into(),
            path: "approve".into(),
            step_index: 0,
            payload: None,
            deadline: None,
            by: Some(Arc::new(Principal::verified(by))),
            pause: false,
            payload_omitted: false,
        }
    }

    fn facts(by: &[&str]) -> Vec<Recorded> {
        let fact = |by: &&str| Recorded {
            seq: 1,
            at: Timestamp(1),
            fact: Fact::StepStarted {
                path: "approve".into(),
                attempt: 1,
                interrupted: false,
                opening: None,
            },
            by: Some(Arc::new(Principal::claimed(*by))),
        };
        by.iter().map(fact).collect()
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn users_of_facts_are_named_once() {
        let users = users_in(&facts(&["ann", "bob", "ann"]));
        assert_eq!(users.iter().map(|user| &**user).collect::<Vec<_>>(), ["ann", "bob"]);
    }

    #[test]
    fn a_user_is_removed_from_facts() {
        let stored = serde_json::to_vec(&facts(&["ann", "bob"])).unwrap();
        let left = text(facts_without(&stored, "ann").unwrap().unwrap());
        assert!(text(stored.clone()).contains(&written_end("ann")));
        assert!(!left.contains("ann") && left.contains("bob") && left.contains(FORGOTTEN));
        assert_eq!(facts_without(&stored, "an").unwrap(), None);
        assert!(facts_without(&stored[1..], "ann").is_err());
    }

    #[test]
    fn what_names_a_user_ends_as_it_is_searched_for() {
        for id in ["lea", "", "a \"b\" \\ c", "zoë/\n\u{1}"] {
            let by = serde_json::to_string(&Principal::verified(id)).unwrap();
            let asked = serde_json::to_string(&Assignee::User(Arc::from(id))).unwrap();
            for written in [by, asked] {
                assert!(written.contains(&written_end(id)), "{written}");
                assert!(!written.contains(&written_end(&format!("{id}x"))), "{written}");
            }
        }
    }

    #[test]
    fn a_user_is_removed_from_rules() {
        let stored = r#"{"to":["user:ann","role:ann"]}"#;
        let left = rules_without(stored, "ann").unwrap();
        assert_eq!(left.as_deref(), Some(r#"{"to":["user:(forgotten)","role:ann"]}"#));
        assert_eq!(rules_without(stored, "bob").unwrap(), None);
    }

    #[test]
    fn a_user_is_removed_from_an_answer() {
        let stored = r#"{"by":{"id":"ann","verified":true},"data":{"reason":"ann says so"}}"#;
        let left = answer_without(stored, "ann").unwrap().unwrap();
        let forgotten = r#"{"by":{"id":"(forgotten)","verified":true},"data":null}"#;
        assert_eq!(left, forgotten);
        assert_eq!(answer_without(stored, "bob").unwrap(), None);
    }

    #[test]
    fn a_user_is_removed_from_suspensions_shown_or_not() {
        let others = Others { suspensions: vec![suspension("bob")], omitted: 0 };
        let alone = serde_json::to_vec(&suspension("ann")).unwrap();
        let pair = serde_json::to_vec(&(suspension("ann"), others)).unwrap();
        for (stored, user, other) in
            [(&alone, "ann", ""), (&pair, "ann", "bob"), (&pair, "bob", "ann")]
        {
            let left = text(suspensions_without(stored, user).unwrap().unwrap());
            assert!(!left.contains(user) && left.contains(other), "{left}");
        }
        assert_eq!(suspensions_without(&alone, "bob").unwrap(), None);
        let payload = Some(Arc::new(serde_json::json!("x".repeat(9 << 10))));
        let large = serde_json::to_vec(&Suspension { payload, ..suspension("ann") }).unwrap();
        let left = text(suspensions_without(&large, "ann").unwrap().unwrap());
        assert!(left.contains("\"payload_omitted\":true") && !left.contains("xxx"), "{left}");
    }
}
