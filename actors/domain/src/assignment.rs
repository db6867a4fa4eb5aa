//! Assignment of what waits for a person: who may answer, and when people are reminded.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::principal::FORGOTTEN;
use crate::time::Timestamp;

/// Maximum bytes of a user or role in an assignment.
pub const ASSIGNEE_BYTES_MAX: usize = 256;

/// Maximum number of assignees of one ask.
pub const ASSIGNEES_MAX: usize = 32;

/// Maximum number of reminders of one ask.
pub const REMINDERS_MAX: usize = 16;

/// One entry of an assignment, written `user:<id>`, `role:<name>` or `!self`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Assignee {
    User(Arc<str>),
    Role(Arc<str>),
    /// Excludes the user who asked.
    NotSelf,
}

/// Text that is not an assignee.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be user:<id>, role:<name> or !self")]
pub struct NotAnAssignee;

impl FromStr for Assignee {
    type Err = NotAnAssignee;

    fn from_str(text: &str) -> Result<Self, NotAnAssignee> {
        if text == "!self" {
            return Ok(Self::NotSelf);
        }
        let (kind, name) = text.split_once(':').ok_or(NotAnAssignee)?;
        let fits = !name.trim().is_empty() && name.len() <= ASSIGNEE_BYTES_MAX;
        // ids of users have none, and not every store can keep them
        if !fits || name.chars().any(char::is_control) {
            return Err(NotAnAssignee);
        }
        match kind {
            "user" => Ok(Self::User(Arc::from(name))),
            "role" => Ok(Self::Role(Arc::from(name))),
            _ => Err(NotAnAssignee),
        }
    }
}

impl Assignee {
    fn bytes(&self) -> u64 {
        match self {
            Self::User(name) | Self::Role(name) => name.len() as u64,
            Self::NotSelf => 0,
        }
    }
}

impl TryFrom<String> for Assignee {
    type Error = NotAnAssignee;

    fn try_from(text: String) -> Result<Self, NotAnAssignee> {
        text.parse()
    }
}

impl fmt::Display for Assignee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user:{id}"),
            Self::Role(name) => write!(f, "role:{name}"),
            Self::NotSelf => f.write_str("!self"),
        }
    }
}

impl From<Assignee> for String {
    fn from(assignee: Assignee) -> Self {
        assignee.to_string()
    }
}

/// Rules of an ask: who is asked, when people are reminded, and who is asked in addition after a while.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskRules {
    /// Users and roles that may answer. Without users and roles: everyone who sees the ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Assignee>,
    /// Times of reminders, in milliseconds after the ask has opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remind_ms: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalation>,
}

/// Caller that answers an ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answerer {
    /// `None` if unknown.
    pub user: Option<Arc<str>>,
    pub roles: Vec<Arc<str>>,
}

/// Reminders and escalations that were due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub is_reminded: bool,
    pub is_escalated: bool,
}

/// Asks others in addition if there is no answer after a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// In milliseconds after the ask has opened.
    pub after_ms: u64,
    pub to: Vec<Assignee>,
}

impl AskRules {
    /// Returns true if nothing is ruled.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty() && self.remind_ms.is_empty() && self.escalate.is_none()
    }

    /// Returns true if users or roles are named, who alone may answer.
    pub fn names_people(&self) -> bool {
        self.to.iter().any(|assignee| *assignee != Assignee::NotSelf)
    }

    /// Returns the size of the names in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let added = self.escalate.iter().flat_map(|it| &it.to);
        self.to.iter().chain(added).map(Assignee::bytes).sum()
    }

    /// Returns true if a caller with this id and these roles may answer what `owner` asks for.
    pub fn admits(
        &self,
        user: Option<&str>,
        roles: &[impl AsRef<str>],
        owner: Option<&str>,
    ) -> bool {
        let is_named = |assignee: &Assignee| match assignee {
            // a caller may call itself that
            Assignee::User(id) => user == Some(id) && **id != *FORGOTTEN,
            Assignee::Role(name) => roles.iter().any(|role| role.as_ref() == &**name),
            Assignee::NotSelf => false,
        };
        let excludes_self = self.to.contains(&Assignee::NotSelf);
        // an unknown caller may be the one who asked; if that is unknown, anyone may but users that the
        // author named one by one
        let is_self = match (user, owner) {
            (None, _) => true,
            (Some(user), Some(owner)) => user == owner,
            (Some(user), None) => !self.users().any(|named| **named == *user),
        };
        !(excludes_self && is_self) && (!self.names_people() || self.to.iter().any(is_named))
    }

    /// Asks others. An exclusion of the user who asked stays.
    pub fn assign(&mut self, to: &[Assignee]) {
        let excludes_self = self.to.contains(&Assignee::NotSelf);
        self.to = to.to_vec();
        if excludes_self && !self.to.contains(&Assignee::NotSelf) {
            self.to.push(Assignee::NotSelf);
        }
    }

    /// Returns the users that are named, now or for later.
    pub fn users(&self) -> impl Iterator<Item = &Arc<str>> {
        let added = self.escalate.iter().flat_map(|it| &it.to);
        self.to.iter().chain(added).filter_map(|assignee| match assignee {
            Assignee::User(id) => Some(id),
            Assignee::Role(_) | Assignee::NotSelf => None,
        })
    }

    /// Replaces a user by [`FORGOTTEN`], which matches no user: without a name in its place, everyone could
    /// answer. Returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        let added = self.escalate.iter_mut().flat_map(|it| &mut it.to);
        let mut any = false;
        for assignee in self.to.iter_mut().chain(added) {
            if matches!(assignee, Assignee::User(id) if **id == *user) {
                (*assignee, any) = (Assignee::User(Arc::from(FORGOTTEN)), true);
            }
        }
        any
    }

    /// Returns the time of the next reminder or escalation behind a time.
    pub fn next_due(&self, opened_at: Timestamp, after: Timestamp) -> Option<Timestamp> {
        let escalated = self.escalate.iter().map(|it| it.after_ms);
        let times = self.remind_ms.iter().copied().chain(escalated);
        times.map(|delay| later(opened_at, delay)).filter(|at| *at > after).min()
    }

    /// Applies what is due at a time: forgets reminders that are due, and asks others in addition.
    /// The rules that remain have only what is still to come.
    pub fn pass(mut self, opened_at: Timestamp, now: Timestamp) -> (Self, Passed) {
        let reminders = self.remind_ms.len();
        self.remind_ms.retain(|delay| later(opened_at, *delay) > now);
        let is_reminded = self.remind_ms.len() < reminders;
        let is_escalated = self.escalates(opened_at, now);
        let rules = if is_escalated { self.escalated() } else { self };
        (rules, Passed { is_reminded, is_escalated })
    }

    /// Returns true if others are to be asked in addition at this time, and were not before.
    pub fn escalates(&self, opened_at: Timestamp, now: Timestamp) -> bool {
        self.escalate.as_ref().is_some_and(|it| later(opened_at, it.after_ms) <= now)
    }

    /// Returns the rules once others are asked in addition. Where none are named, everyone is
    /// asked already.
    pub fn escalated(mut self) -> Self {
        if let Some(Escalation { to, .. }) = self.escalate.take()
            && self.names_people()
        {
            let added = to.into_iter().filter(|it| !self.to.contains(it)).collect::<Vec<_>>();
            self.to.extend(added);
        }
        self
    }
}

fn later(at: Timestamp, delay_ms: u64) -> Timestamp {
    Timestamp(at.0.saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(to: &[&str]) -> AskRules {
        let to = to.iter().map(|text| text.parse().unwrap()).collect();
        AskRules { to, ..AskRules::default() }
    }

    #[test]
    fn assignees_are_read_as_they_are_written() {
        for text in ["user:ann", "role:support", "!self", "user:a:b"] {
            assert_eq!(text.parse::<Assignee>().unwrap().to_string(), text);
        }
        let long = format!("user:{}", "x".repeat(ASSIGNEE_BYTES_MAX + 1));
        let odd = ["user:\u{0}", "user:a\nb", "role:\u{7f}"];
        for text in ["", "ann", "user:", "role: ", "group:a", "self", &long].into_iter().chain(odd)
        {
            assert_eq!(text.parse::<Assignee>(), Err(NotAnAssignee), "{text:?}");
        }
    }

    #[test]
    fn an_ask_is_answered_by_those_it_is_assigned_to() {
        type Row<'a> = (&'a [&'a str], Option<&'a str>, &'a [&'a str], bool);
        let rows: [Row<'_>; 11] = [
            (&[], None, &[], true),
            (&[], Some("ann"), &[], true),
            (&["user:ann"], Some("ann"), &[], true),
            (&["user:ann"], Some("bob"), &["support"], false),
            (&["user:ann"], None, &[], false),
            (&["role:support"], Some("bob"), &["support"], true),
            (&["role:support", "user:ann"], Some("ann"), &[], true),
            (&["role:support", "!self"], Some("owner"), &["support"], false),
            (&["role:support", "!self"], Some("bob"), &["support"], true),
            (&["!self"], Some("bob"), &[], true),
            (&["!self"], None, &[], false),
        ];
        for (to, user, roles, expected) in rows {
            let admits = rules(to).admits(user, roles, Some("owner"));
            assert_eq!(admits, expected, "{to:?} {user:?} {roles:?}");
        }
    }

    #[test]
    fn if_it_is_unknown_who_asked_anyone_could_be() {
        let support = &["support"];
        let rows: [(&[&str], Option<&str>, bool); 6] = [
            (&["user:bob", "!self"], Some("bob"), true),
            (&["!self"], None, false),
            (&["!self"], Some("bob"), false),
            (&["role:support", "!self"], Some("bob"), false),
            (&["role:support"], Some("bob"), true),
            (&[], None, true),
        ];
        for (to, user, expected) in rows {
            assert_eq!(rules(to).admits(user, support, None), expected, "{to:?} {user:?}");
        }
    }

    #[test]
    fn others_who_are_asked_do_not_include_the_user_who_asked() {
        let rows = [
            (&["role:a", "!self"][..], &["user:bob"][..], &["user:bob", "!self"][..]),
            (&["!self"], &[], &["!self"]),
            (&["!self"], &["!self", "role:b"], &["!self", "role:b"]),
            (&["role:a"], &["user:bob"], &["user:bob"]),
        ];
        for (before, to, after) in rows {
            let mut changed = rules(before);
            changed.assign(&rules(to).to);
            assert_eq!(changed, rules(after), "{before:?} {to:?}");
        }
    }

    #[test]
    fn nobody_is_a_user_who_was_removed() {
        let to = vec![Assignee::User(Arc::from("ann"))];
        let escalate = Some(Escalation { after_ms: 20, to });
        let mut named = AskRules { escalate, ..rules(&["user:ann", "user:bob", "role:ann"]) };
        assert_eq!(named.users().map(|user| &**user).collect::<Vec<_>>(), ["ann", "bob", "ann"]);
        assert!(named.forget("ann") && !named.forget("ann"));
        let left: Vec<_> = named.escalated().to.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["user:(forgotten)", "user:bob", "role:ann"]);

        let mut alone = rules(&["user:ann"]);
        assert!(alone.forget("ann"));
        let nobody: &[&str] = &[];
        for user in [None, Some("ann"), Some("bob"), Some(FORGOTTEN)] {
            assert!(!alone.admits(user, nobody, None), "{user:?}");
        }
    }

    #[test]
    fn reminders_and_the_escalation_are_due_in_order() {
        let escalate = Escalation { after_ms: 20, to: vec![Assignee::Role(Arc::from("boss"))] };
        let rules =
            AskRules { remind_ms: vec![30, 10], escalate: Some(escalate), ..rules(&["user:a"]) };
        let due = |after| rules.next_due(Timestamp(100), Timestamp(after)).map(|at| at.0);
        assert_eq!(
            [due(100), due(110), due(120), due(130)],
            [Some(110), Some(120), Some(130), None]
        );
        let passed = |now| rules.clone().pass(Timestamp(100), Timestamp(now));
        let flags = |now| (passed(now).1.is_reminded, passed(now).1.is_escalated);
        assert_eq!(
            [flags(109), flags(110), flags(120), flags(140)],
            [(false, false), (true, false), (true, true), (true, true)]
        );
        assert_eq!(passed(120).0, AskRules { remind_ms: vec![30], ..passed(140).0 });
        assert_eq!(passed(140).0.pass(Timestamp(100), Timestamp(140)).1, Passed::default());
        assert!(!rules.escalates(Timestamp(100), Timestamp(119)));
        assert!(rules.escalates(Timestamp(100), Timestamp(120)));
        let rules_before = rules.clone();
        let escalated = rules.escalated();
        assert_eq!(escalated.to.len(), 2);
        assert!(!escalated.escalates(Timestamp(100), Timestamp(120)));
        let everyone = AskRules { to: vec![Assignee::NotSelf], ..rules_before };
        assert_eq!(everyone.escalated().to, [Assignee::NotSelf], "everyone is asked already");
    }
}
