//! Changes of conversations and asks, and deletions.
//!
//! Long changes are made in parts, one per commit, so that other requests wait only for a part.

use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AppendError, ConversationKey, KnownTool, Row};
use greenroom_store_codec::prepared::{
    PreparedAskRevision, PreparedConversation, PreparedGeneration, PreparedMissingAsks,
    PreparedPatch,
};
use rusqlite::Result;

use super::defects::Defects;
use super::session::{Session, Verdict};

/// Maximum number of rows that a commit deletes for one request, so that others wait for about ten
/// milliseconds at most.
pub(super) const PART: usize = 500;

/// A change.
#[derive(Debug)]
pub(super) enum Change {
    Create(Box<PreparedConversation>),
    Patch {
        key: ConversationKey,
        patch: Box<PreparedPatch>,
        at: Timestamp,
    },
    Delete(ConversationKey),
    Copy {
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    },
    ForgetUser(String),
    PruneLogs {
        before: Timestamp,
        rows_max: u64,
    },
    /// Deletes those of the rows that have ended.
    DropExecutions(Vec<Row>),
    DropGenerations(Vec<Row>),
    PutAsks(Box<PreparedMissingAsks>),
    ReviseAsk(Box<PreparedAskRevision>),
    SeeTools {
        seen: Vec<KnownTool>,
        tools_max: usize,
    },
    AcceptTool {
        accepted: Box<KnownTool>,
        replaced: Arc<str>,
    },
    /// Writes a generation if its continuation has this revision.
    Settle {
        revision: u64,
        write: Box<PreparedGeneration>,
    },
}

/// Result of one part of a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Number of changed conversations, or of deleted or written rows.
    pub changed: u64,
    pub is_last: bool,
}

impl Part {
    /// Returns the result of a change that was made in one part.
    pub(super) fn whole(changed: u64) -> Self {
        Self { changed, is_last: true }
    }
}

impl Session<'_> {
    /// Makes a part of a change in the open transaction. A refusal has changed nothing.
    pub(super) fn change(&mut self, change: &Change, defects: &Defects) -> Result<Verdict<Part>> {
        let conversations = &mut self.conversations;
        let whole = |was_there: bool| Part::whole(u64::from(was_there));
        match change {
            Change::Create(conversation) => {
                Ok(conversations.create(conversation)?.map(|()| Part::whole(1)))
            }
            Change::Patch { key, patch, at } => {
                conversations.change(key, patch, *at).map(|was_there| Ok(whole(was_there)))
            }
            Change::Delete(key) => {
                let deleted = conversations.delete(key, PART)?;
                let is_last = deleted.is_none_or(|messages| messages < PART);
                Ok(Ok(Part { changed: u64::from(deleted.is_some() && is_last), is_last }))
            }
            Change::Copy { from, to, at } => {
                let to = ConversationKey { conversation_id: Arc::clone(to), ..from.clone() };
                Ok(conversations.copy(from, &to, *at)?.map(whole))
            }
            Change::ForgetUser(user) => self.forget_user(user, defects).map(Ok::<_, AppendError>),
            Change::PruneLogs { before, rows_max } => {
                let dropped = self.logs.prune(*before, *rows_max, PART)?;
                Ok(Ok(Part { changed: dropped as u64, is_last: dropped < PART }))
            }
            Change::DropExecutions(rows) => self.drops.executions(rows, &mut self.counts).map(Ok),
            Change::DropGenerations(rows) => self.generations.drop_ended(rows, PART).map(Ok),
            Change::PutAsks(missing) => self.asks.put(missing).map(|was_put| Ok(whole(was_put))),
            Change::ReviseAsk(change) => self.asks.revise(change).map(|it| Ok(whole(it))),
            Change::SeeTools { seen, tools_max } => {
                self.known_tools.see(seen, *tools_max).map(|()| Ok(Part::whole(0)))
            }
            Change::AcceptTool { accepted, replaced } => {
                self.known_tools.accept(accepted, replaced).map(|it| Ok(whole(it)))
            }
            Change::Settle { revision, write } => {
                self.settle(*revision, write).map(|was_newest| Ok(whole(was_newest)))
            }
        }
    }

    fn forget_user(&mut self, user: &str, defects: &Defects) -> Result<Part> {
        let (mut rows, changed) = self.conversations.forget(user, PART)?;
        if rows < PART {
            rows += self.generations.disown(user, PART - rows)?;
        }
        if rows < PART {
            rows += self.generations.forget(user, PART - rows)?;
        }
        if rows < PART {
            rows += self.logs.forget(user, PART - rows)?;
        }
        if rows < PART {
            rows += self.acted.forget(user, PART - rows, defects)?;
        }
        if rows < PART {
            rows += self.asks.forget(user, PART - rows, defects)?;
        }
        Ok(Part { changed, is_last: rows < PART })
    }
}
