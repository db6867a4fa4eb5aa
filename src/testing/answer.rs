//! Answers in worlds: who gives them, and why one is not taken.

use std::sync::Arc;

use greenroom_actors::domain::assignment;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::store::AskState;
use greenroom_actors::requests::AskError;

/// A user or a service that answers, as the rules of an ask (`to`) and the program's check of
/// answers see it. A text is the id of one that is signed in and has no roles.
///
/// ```
/// use greenroom::testing::Answerer;
///
/// assert_eq!(Answerer::from("ann"), Answerer::new("ann"));
/// let lead = Answerer::new("bob").role("lead");
/// # drop(lead);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    user: Option<Arc<str>>,
    roles: Vec<Arc<str>>,
    is_verified: bool,
}

impl Answerer {
    /// Creates one whose id authentication has established.
    pub fn new(user: impl Into<Arc<str>>) -> Self {
        Self { user: Some(user.into()), roles: Vec::new(), is_verified: true }
    }

    /// Creates one that only claims an id, as `options.userId` does on a server without `[auth]`.
    pub fn claimed(user: impl Into<Arc<str>>) -> Self {
        Self { is_verified: false, ..Self::new(user) }
    }

    /// Creates one without an id, as of a request that names no user.
    pub fn unknown() -> Self {
        Self { user: None, roles: Vec::new(), is_verified: false }
    }

    /// Adds a role.
    #[must_use]
    pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Returns the caller that has to be among those who are asked.
    pub(super) fn caller(&self) -> assignment::Answerer {
        assignment::Answerer { user: self.user.clone(), roles: self.roles.clone() }
    }

    /// Returns what is recorded with the answer.
    pub(super) fn principal(&self) -> Option<Principal> {
        let id = self.user.clone()?;
        Some(Principal { id, verified: self.is_verified })
    }
}

impl From<&str> for Answerer {
    fn from(user: &str) -> Self {
        Self::new(user)
    }
}

/// Reason why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Nothing of this name waits.
    #[error("{about} waits for no answer; {}", .waiting.join(", ") + if .waiting.is_empty() { "nothing does" } else { " does" })]
    NotWaiting {
        about: String,
        /// Paths of the steps that wait, and `a call of` tools.
        waiting: Vec<String>,
    },
    /// The rules of the ask name others.
    #[error("others are asked: {}", .to.join(", "))]
    NotAsked {
        /// Users and roles that are asked, as in `to`.
        to: Vec<String>,
    },
    /// A user is about to answer, and others have to wait.
    #[error("{by} is about to answer")]
    Claimed { by: String },
    /// The check of answers of the program refused it, with this reason.
    #[error("the answer was refused: {0}")]
    Refused(String),
    /// The data does not match the schema, or cannot be written as JSON.
    #[error("{0}")]
    InvalidData(String),
    /// It has been answered, or the wait has ended.
    #[error("the ask is {}", .0.as_str())]
    Closed(AskState),
    /// The world takes no answers, such as one whose process was killed.
    #[error("{0}")]
    Failed(String),
}

impl From<AskError> for AnswerError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NotAssigned { to, .. } => {
                Self::NotAsked { to: to.iter().map(ToString::to_string).collect() }
            }
            AskError::Claimed { by, until: _ } => Self::Claimed { by: by.to_string() },
            AskError::Refused(why) => Self::Refused(why),
            AskError::InvalidData(why) => Self::InvalidData(why),
            AskError::Closed { state, .. } => Self::Closed(state),
            AskError::NotFound => Self::Closed(AskState::Withdrawn),
            AskError::Changed { .. }
            | AskError::NotPermitted { .. }
            | AskError::Ambiguous { .. }
            | AskError::KeyReused
            | AskError::Unavailable(_) => Self::Failed(error.to_string()),
        }
    }
}
