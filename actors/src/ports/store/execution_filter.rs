//! Filters of lists of executions.

use serde::{Deserialize, Serialize};

use crate::domain::status::Status;
use crate::domain::time::Timestamp;

use super::Projection;

/// Filter of a list of executions. All conditions must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecutionFilter {
    pub workflow_id: Option<String>,
    pub status: Option<Status>,
    pub user_id: Option<String>,
    /// Created at or after.
    pub from: Option<Timestamp>,
    /// Created before.
    pub to: Option<Timestamp>,
    /// Ended at or after.
    pub ended_from: Option<Timestamp>,
    /// Ended before.
    pub ended_to: Option<Timestamp>,
    /// Id of the execution replayed.
    pub replay_of: Option<String>,
    /// Id of the execution whose step started it.
    pub parent_id: Option<String>,
    /// Prefix of the id. Without a workflow, user, parent or original, of more than
    /// [`IDS_SEARCHED_MAX`] executions those with the greatest ids are listed.
    pub id_prefix: Option<String>,
    /// Lists all of those, by a search.
    #[serde(skip)]
    pub is_exhaustive: bool,
    /// Text in the message of the failure, in upper or lower case.
    pub error: Option<String>,
    /// Hash of the definition that the execution began with.
    pub definition_hash: Option<String>,
    /// The API through which the root of the trace was started.
    pub via: Option<String>,
}

/// Maximum number of executions among which those with a begin of the id are searched.
pub const IDS_SEARCHED_MAX: usize = 1_000;

/// Maximum number of rows that one page of a list searches for a text.
pub const LIST_SEARCHED_MAX: usize = 1_000;

impl ExecutionFilter {
    /// Returns true for a list by end: last ended first, without running executions. A search is by
    /// creation.
    pub fn is_of_ends(&self) -> bool {
        !self.is_search() && (self.ended_from.is_some() || self.ended_to.is_some())
    }

    /// Returns true if no index leads to the executions alone: a page may be shorter than asked for
    /// although more follow.
    pub fn is_search(&self) -> bool {
        self.id_prefix.is_some()
            || self.error.is_some()
            || self.definition_hash.is_some()
            || self.via.is_some()
            || (self.parent_id.is_some() && self.replay_of.is_some())
    }

    /// Returns true if no execution can be found: only those that failed have an error.
    pub fn is_of_none(&self) -> bool {
        self.error.is_some() && self.status.is_some_and(|status| status != Status::Error)
    }

    /// Returns the begin of the ids, if the list is found by them. Others are searched for it.
    pub fn ids(&self) -> Option<&str> {
        let Self { workflow_id, user_id, replay_of, parent_id, .. } = self;
        let others = [workflow_id, user_id, replay_of, parent_id];
        let is_alone = !self.is_exhaustive && others.iter().all(|it| it.is_none());
        self.id_prefix.as_deref().filter(|_| is_alone)
    }

    /// Returns true if all conditions hold for an execution.
    pub fn admits(&self, execution: &Projection) -> bool {
        let header = &execution.header;
        let Self { workflow_id, status, user_id, from, to, ended_from, ended_to, .. } = self;
        let Self { replay_of, parent_id, id_prefix, error, definition_hash, via, .. } = self;
        let ended = execution.ended_at;
        let replayed = execution.replayed_from.as_ref().map(|from| from.execution.as_str());
        let parent = header.parent.as_ref().map(|parent| parent.execution.as_str());
        let has_failed_with = |text: &str| {
            let failure = execution.error.as_ref();
            failure.is_some_and(|it| it.message.to_lowercase().contains(&text.to_lowercase()))
        };
        workflow_id.as_deref().is_none_or(|wanted| wanted == &*header.workflow_id)
            && status.is_none_or(|wanted| wanted == execution.status)
            && user_id.as_deref().is_none_or(|wanted| header.user_id.as_deref() == Some(wanted))
            && from.is_none_or(|from| header.created_at >= from)
            && to.is_none_or(|to| header.created_at < to)
            && ended_from.is_none_or(|from| ended.is_some_and(|at| at >= from))
            && ended_to.is_none_or(|to| ended.is_some_and(|at| at < to))
            && replay_of.as_deref().is_none_or(|wanted| replayed == Some(wanted))
            && parent_id.as_deref().is_none_or(|wanted| parent == Some(wanted))
            && id_prefix.as_deref().is_none_or(|begin| header.id.as_str().starts_with(begin))
            && error.as_deref().is_none_or(has_failed_with)
            && definition_hash.as_deref().is_none_or(|wanted| wanted == &*header.definition_hash)
            && via.as_deref().is_none_or(|wanted| header.trace.via.as_deref() == Some(wanted))
    }
}
