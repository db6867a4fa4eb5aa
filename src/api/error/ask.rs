//! Refusals of the inbox.

use greenroom_actors::domain::assignment::Assignee;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::AskState;
use greenroom_actors::requests::AskError;

use crate::api::error::{ApiError, ErrorCode};

/// Refusal to describe or answer an ask.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskRefusal {
    #[error("Ask {0} not found")]
    NotFound(String),
    #[error("Ask {id} was answered {}{}", at_time(*.at), by_user(.by.as_deref()))]
    Answered { id: String, at: Timestamp, by: Option<String> },
    #[error("The deadline of ask {id} passed {}", at_time(*.at))]
    Expired { id: String, at: Timestamp },
    #[error("Ask {id} was withdrawn {}: what waited for it has ended", at_time(*.at))]
    Withdrawn { id: String, at: Timestamp },
    #[error(
        "Others are asked, not this caller{}{}", may_answer(.to, *.is_of_nobody), nameless(*.is_nameless)
    )]
    NotAssigned {
        /// Users and roles that are asked, if known.
        to: Vec<Assignee>,
        /// True if the request names no user.
        is_nameless: bool,
        /// True if `!self` excludes a user that is not known.
        is_of_nobody: bool,
    },
    /// The approval counts for more than its call.
    #[error(
        "Approving this call counts for later calls too, and needs what {request} needs: {needs}. The ask \
         stays open, and can be declined"
    )]
    NotPermitted {
        /// Request that does the same as the approval.
        request: String,
        needs: String,
    },
    /// Reason of the program that serves.
    #[error("The answer was refused: {0}")]
    Refused(String),
    /// `of`: what the request names in place of an ask.
    #[error("There are, or were, several asks {of}: answer {} in the inbox", which(.asks))]
    Ambiguous { of: String, asks: Vec<String> },
    #[error("{by} is about to answer ask {id}, until {}", .until.to_iso())]
    Claimed { id: String, by: String, until: Timestamp },
    #[error("Ask {id} has changed: its revision is {revision}")]
    Changed { id: String, revision: u64 },
    /// Answers in a chat whose generation has gone on.
    #[error("Nothing waits for these answers: they were given before, or withdrawn")]
    NothingWaits,
    #[error("Invalid answer: {0}")]
    InvalidData(String),
    #[error("This server makes no links: inbox.secret is not set")]
    LinksOff,
    #[error("This link is not valid: it is incomplete, or the secret has changed")]
    LinkInvalid,
    #[error("This link was good until {}", .at.to_iso())]
    LinkExpired { at: Timestamp },
}

fn at_time(at: Timestamp) -> String {
    format!("at {}", at.to_iso())
}

/// Names those who may answer.
fn may_answer(to: &[Assignee], is_of_nobody: bool) -> String {
    let people = to.iter().filter(|it| **it != Assignee::NotSelf).map(ToString::to_string);
    let people: Vec<_> = people.collect();
    let excludes_self = to.contains(&Assignee::NotSelf);
    if excludes_self && is_of_nobody {
        let users = to.iter().filter(|it| matches!(it, Assignee::User(_))).map(ToString::to_string);
        let users: Vec<_> = users.collect();
        let who = if users.is_empty() { "nobody".to_owned() } else { users.join(", ") };
        return format!(
            ": {who} may answer; the user who started this is not known, so that `!self` leaves only \
             users that are named one by one"
        );
    }
    match (people.as_slice(), excludes_self) {
        ([], false) => String::new(),
        ([], true) => ": every user but the one who started this may answer".to_owned(),
        (people, false) => format!(": {} may answer", people.join(", ")),
        (people, true) => {
            format!(": {} may answer, but not the user who started this", people.join(", "))
        }
    }
}

fn nameless(is_nameless: bool) -> &'static str {
    if is_nameless { "; this request names no user" } else { "" }
}

/// Names the asks that are open.
fn which(asks: &[String]) -> String {
    if asks.is_empty() { "its asks".to_owned() } else { asks.join(" or ") }
}

fn by_user(user: Option<&str>) -> String {
    user.map(|user| format!(" by {user}")).unwrap_or_default()
}

impl AskRefusal {
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound(_) => ErrorCode::AskNotFound,
            Self::Answered { .. } | Self::NothingWaits => ErrorCode::AskAnswered,
            Self::Expired { .. } => ErrorCode::AskExpired,
            Self::Withdrawn { .. } => ErrorCode::AskWithdrawn,
            Self::NotAssigned { .. } | Self::NotPermitted { .. } => ErrorCode::NotAssigned,
            Self::Refused(_) => ErrorCode::AnswerRefused,
            Self::Ambiguous { .. } => ErrorCode::AskAmbiguous,
            Self::Claimed { .. } => ErrorCode::AskClaimed,
            Self::Changed { .. } => ErrorCode::AskChanged,
            Self::InvalidData(_) => ErrorCode::AnswerInvalid,
            Self::LinksOff => ErrorCode::LinksOff,
            Self::LinkInvalid => ErrorCode::LinkInvalid,
            Self::LinkExpired { .. } => ErrorCode::LinkExpired,
        }
    }
}

impl ApiError {
    /// Converts the refusal of a request about an ask.
    pub fn from_ask(id: &str, error: AskError) -> Self {
        let id = id.to_owned();
        Self::Ask(match error {
            AskError::NotFound => AskRefusal::NotFound(id),
            AskError::Closed { state, at, by } => match state {
                AskState::Answered => {
                    AskRefusal::Answered { id, at, by: by.map(|by| by.id.to_string()) }
                }
                AskState::Expired => AskRefusal::Expired { id, at },
                AskState::Withdrawn | AskState::Open => AskRefusal::Withdrawn { id, at },
            },
            AskError::NotAssigned { to, is_nameless, is_of_nobody } => {
                AskRefusal::NotAssigned { to, is_nameless, is_of_nobody }
            }
            AskError::NotPermitted { request, needs } => {
                AskRefusal::NotPermitted { request: request.to_string(), needs }
            }
            AskError::Refused(why) => AskRefusal::Refused(why),
            AskError::Ambiguous { asks } => {
                let asks = asks.iter().map(ToString::to_string).collect();
                AskRefusal::Ambiguous { of: id, asks }
            }
            AskError::Claimed { by, until } => {
                AskRefusal::Claimed { id, by: by.to_string(), until }
            }
            AskError::Changed { revision } => AskRefusal::Changed { id, revision },
            AskError::InvalidData(why) => AskRefusal::InvalidData(why),
            AskError::KeyReused => return Self::KeyReused,
            AskError::Unavailable(why) => return why.into(),
        })
    }
}
