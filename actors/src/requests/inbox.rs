//! Asks, as callers see and answer them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::assignment::{Answerer, Assignee};
use crate::domain::principal::Principal;
use crate::domain::schema::Schema;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskState, AskSubject, Claim, ConversationKey};
use crate::requests::{IdempotencyKey, Unavailable};
use crate::visibility::Visibility;

/// An ask with what a person needs to answer it.
#[derive(Debug, Clone)]
pub struct AskDetail {
    pub ask: Ask,
    /// Data that the step shows.
    pub payload: Option<Arc<Value>>,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// Schema of the arguments of the call, if people may change them.
    pub arguments: Option<Arc<Schema>>,
    /// True if `{"action": "decline"}` is an answer too.
    pub can_decline: bool,
    /// The answer, once there is one.
    pub answer: Option<Answered>,
}

/// The end of an ask by an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// `None` if unknown.
    pub by: Option<Arc<Principal>>,
    pub data: Arc<Value>,
}

/// An answer to an ask.
#[derive(Debug, Default)]
pub struct AnswerAsk {
    pub data: Value,
    pub by: Option<Principal>,
    pub access: AskAccess,
    pub idempotency: Option<IdempotencyKey>,
}

/// An answer about a call of a generation.
#[derive(Debug)]
pub struct ApproveCall {
    pub agent_id: String,
    pub generation_id: String,
    pub tool_call_id: String,
    pub visibility: Visibility,
    pub answer: AnswerAsk,
}

/// Answers in a message of a chat.
#[derive(Debug)]
pub struct ContinueChat {
    pub agent_id: String,
    /// `None` if the chat has no stored conversation.
    pub conversation: Option<ConversationKey>,
    pub replies: Vec<ChatReply>,
    pub visibility: Visibility,
    pub by: Option<Principal>,
    /// Caller that has to be among those who are asked. `None`: the program itself.
    pub answerer: Option<Answerer>,
    pub permissions: Permissions,
}

/// An answer in a message of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    pub tool_call_id: String,
    /// Id of the ask.
    pub approval_id: Option<String>,
    pub reply: Reply,
}

/// Answer of a chat client about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Decided {
        approved: bool,
        reason: Option<String>,
    },
    /// The result of a call that asks a person.
    Given(Value),
}

/// Duration of a claim that names none.
pub const CLAIM_DEFAULT: Duration = Duration::from_secs(30 * 60);

/// Maximum duration of a claim.
pub const CLAIM_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A change of who is asked, or of who is about to answer.
#[derive(Debug, Clone)]
pub enum AskUpdate {
    /// Keeps others away while this user is about to answer; at most [`CLAIM_MAX`].
    Claim { by: Arc<str>, lasts: Duration },
    /// Ends a claim.
    Release,
    /// Asks these in place of those before.
    Assign { to: Vec<Assignee> },
}

/// Conditions of an answer or a change of an ask. By default there are none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AskAccess {
    /// Caller that has to be among those who are asked, and respects the claims of others. `None`:
    /// the program itself.
    pub answerer: Option<Answerer>,
    /// Passes over claims of others, and assigns what others are asked.
    pub is_forced: bool,
    /// The revision that the caller has seen; the ask must not have changed since.
    pub revision: Option<u64>,
    /// Requests that the caller may make, for approvals that count for more than a call. They are checked in
    /// the process that takes the answer.
    #[serde(skip)]
    pub permissions: Permissions,
}

/// Requests that a caller may make, by whose names approvals say what they need beside being asked. By
/// default all of them: the caller is the program itself.
#[derive(Clone, Default)]
pub struct Permissions(Option<Arc<PermissionCheck>>);

/// Allows a request; the error says what it needs.
type PermissionCheck = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl Permissions {
    /// Allows the requests that a function allows; its error says what a request needs, such as `the role
    /// admin`.
    pub fn of(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Checks that a request is allowed.
    pub(crate) fn check(&self, request: &Arc<str>) -> Result<(), AskError> {
        let checked = self.0.as_ref().map_or(Ok(()), |check| check(request));
        checked.map_err(|needs| AskError::NotPermitted { request: Arc::clone(request), needs })
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Permissions(some)" } else { "Permissions(all)" })
    }
}

impl AskAccess {
    /// Checks the conditions of an answer: revision, assignment, claim and deadline, in this order.
    pub fn check(&self, ask: &Ask, now: Timestamp) -> Result<(), AskError> {
        self.check_asked(ask)?;
        self.check_claim(ask, now)?;
        // the deadline of a step is a timer of its execution, which decides
        let deadline = ask.deadline.filter(|deadline| *deadline <= now);
        match (deadline, &ask.subject) {
            (Some(at), AskSubject::Call(_)) => {
                Err(AskError::Closed { state: AskState::Expired, at, by: None })
            }
            (Some(_), AskSubject::Step(_)) | (None, _) => Ok(()),
        }
    }

    /// Checks that the caller is one of those who are asked, and has seen the newest revision.
    pub fn check_asked(&self, ask: &Ask) -> Result<(), AskError> {
        self.check_revision(ask)?;
        self.check_assigned(ask)
    }

    pub(crate) fn check_revision(&self, ask: &Ask) -> Result<(), AskError> {
        let is_known = self.revision.is_none_or(|seen| seen == ask.revision);
        if is_known { Ok(()) } else { Err(AskError::Changed { revision: ask.revision }) }
    }

    /// Returns the user who answers or changes the ask, if known.
    pub fn user(&self) -> Option<&str> {
        self.answerer.as_ref()?.user.as_deref()
    }

    pub(crate) fn check_assigned(&self, ask: &Ask) -> Result<(), AskError> {
        let Some(Answerer { user, roles }) = &self.answerer else { return Ok(()) };
        let is_asked = ask.rules.admits(user.as_deref(), roles, ask.user_id.as_deref());
        if is_asked {
            return Ok(());
        }
        Err(AskError::NotAssigned {
            to: ask.rules.to.clone(),
            is_nameless: user.is_none(),
            is_of_nobody: ask.user_id.is_none(),
        })
    }

    pub(crate) fn check_claim(&self, ask: &Ask, now: Timestamp) -> Result<(), AskError> {
        match ask.claim_at(now).filter(|claim| !self.is_forced && !self.is_own(claim)) {
            Some(Claim { by, until }) => {
                Err(AskError::Claimed { by: Arc::clone(by), until: *until })
            }
            None => Ok(()),
        }
    }

    /// Returns true if no other user has the claim.
    pub(crate) fn is_own(&self, claim: &Claim) -> bool {
        self.answerer.as_ref().is_none_or(|answerer| answerer.user.as_ref() == Some(&claim.by))
    }
}

/// Reason why an ask was not answered, or not found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    #[error("ask not found")]
    NotFound,
    #[error("the ask is {}", .state.as_str())]
    Closed {
        state: AskState,
        at: Timestamp,
        /// Principal that answered it, if known.
        by: Option<Arc<Principal>>,
    },
    /// It has changed since the revision that the caller has seen.
    #[error("the ask has changed")]
    Changed { revision: u64 },
    #[error("others are asked")]
    NotAssigned {
        /// Users and roles that are asked.
        to: Vec<Assignee>,
        /// True if the answer names no user.
        is_nameless: bool,
        /// True if [`Assignee::NotSelf`] excludes a user that is not known: where it is one of `to`,
        /// only users that are named one by one may answer.
        is_of_nobody: bool,
    },
    /// The approval counts for more than its call, and the caller may not make the request that does the same.
    #[error("the approval needs what {request} needs: {needs}")]
    NotPermitted { request: Arc<str>, needs: String },
    /// The program's own check refused the answer.
    #[error("the answer was refused: {0}")]
    Refused(String),
    /// The call shows several asks of a sub-agent, or has shown them: these are open.
    #[error("several are asked at this call")]
    Ambiguous { asks: Vec<Arc<str>> },
    #[error("{by} is about to answer")]
    Claimed { by: Arc<str>, until: Timestamp },
    /// The data does not match the schema, or is too deep.
    #[error("{0}")]
    InvalidData(String),
    #[error("the idempotency key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
