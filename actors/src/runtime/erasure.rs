//! Erasure of users and conversations, with the generations that wait for people.

use std::sync::Arc;

use crate::agent::generation::waiting_chats::{WaitingIn, waiting_in};
use crate::domain::trace::EntityType;
use crate::ports::store::{
    ContinuationChange, ConversationKey, GenerationEntry, GenerationStatus, GenerationWrite,
};
use crate::requests::Unavailable;

use super::Runtime;
use super::suspended::ATTEMPTS_MAX;

/// Generations that are read at once.
const PAGE: usize = 100;

/// Part that a waiting generation forgets.
#[derive(Clone, Copy)]
enum Forgets {
    Conversation,
    /// The user too.
    User,
}

impl Runtime {
    /// Deletes all conversations and the history of a user, for all agents; returns the number of
    /// conversations. Executions keep what the user did, without its name and without the data of
    /// its resumes; generations for which a step waits continue without the user, all others are
    /// cancelled first. Refused if another process cannot be reached, which could bring the name
    /// back.
    pub async fn forget_user(&self, user_id: &str) -> Result<u64, Unavailable> {
        self.shared.accepts_writes()?;
        let forgotten = self.forget_user_once(user_id).await?;
        // what was loaded, continued or begun in between
        Ok(forgotten + self.forget_user_once(user_id).await?)
    }

    async fn forget_user_once(&self, user_id: &str) -> Result<u64, Unavailable> {
        // before the store, so that memory records the name nowhere after the store has erased it
        self.shared.forget_everywhere(&Arc::from(user_id)).await?;
        let settled = self.settle_unfinished(user_id).await;
        // also if some of it cannot be read
        let forgotten = self.shared.store.forget_user(user_id.to_owned()).await?;
        settled.map(|()| forgotten)
    }

    /// Deletes a conversation with its messages, and withdraws what is asked in it. Returns false if
    /// there is none.
    pub async fn delete_conversation(&self, key: ConversationKey) -> Result<bool, Unavailable> {
        self.shared.accepts_writes()?;
        let WaitingIn { chats, awaited } = waiting_in(&*self.shared.store, &key).await?;
        for id in awaited {
            self.strike(&id, Forgets::Conversation).await?;
        }
        for id in chats {
            let (from, to) = (Some(GenerationStatus::Suspended), GenerationStatus::Cancelled);
            self.end_idle(&id, from, to, None, "the conversation was deleted").await?;
        }
        self.shared.store.delete_conversation(key).await.map_err(Unavailable::from)
    }

    /// Removes a user from generations that have not ended and for which a step waits in the end;
    /// ends the others.
    async fn settle_unfinished(&self, user_id: &str) -> Result<(), Unavailable> {
        let (mut after, mut unread) = (None, None);
        loop {
            let store = &self.shared.store;
            let mut page = store.unfinished_of_user(user_id, after.as_ref(), PAGE).await?;
            for (_, id) in &page {
                let settled = match self.settle_one(id).await {
                    // logged
                    Err(Unavailable::Corrupt(_)) => self.end_unread(id).await,
                    settled => settled,
                };
                match settled {
                    Err(why @ Unavailable::Corrupt(_)) => unread = Some(why),
                    settled => settled?,
                }
            }
            let is_full = page.len() == PAGE;
            after = page.pop().map(|(place, _)| place).filter(|_| is_full);
            if after.is_none() {
                return unread.map_or(Ok(()), Err);
            }
        }
    }

    async fn settle_one(&self, id: &str) -> Result<(), Unavailable> {
        if self.is_for_step(id).await? {
            return self.strike(id, Forgets::User).await;
        }
        // one that has begun since
        if self.shared.forget_user_of(id).await? {
            return Ok(());
        }
        let to = GenerationStatus::Cancelled;
        self.end_idle(id, None, to, None, "the user was erased").await.map(drop)
    }

    /// Returns true if a step waits for a generation, or for one that waits for it.
    async fn is_for_step(&self, id: &str) -> Result<bool, Unavailable> {
        let mut next: Option<Arc<str>> = Some(Arc::from(id));
        while let Some(id) = next {
            let Some(entry) = self.shared.store.generation(&id).await? else { return Ok(false) };
            if entry.record.origin.is_some() {
                return Ok(true);
            }
            next = match self.continuable(&id).await? {
                Some(found) => found.continuation.parent,
                // that of a sub-agent whose first turn is under way, maybe in another process
                None => return Ok(entry.record.trace.root_type == EntityType::Workflow),
            };
        }
        Ok(false)
    }

    /// Ends a generation whose continuation cannot be read, so that it is deleted.
    async fn end_unread(&self, id: &str) -> Result<(), Unavailable> {
        let store = &self.shared.store;
        let (entry, stored) = tokio::try_join!(store.generation(id), store.continuation(id))?;
        let Some(GenerationEntry { mut record, .. }) = entry else { return Ok(()) };
        let revision = stored.map_or(0, |stored| stored.revision);
        record.status = GenerationStatus::Cancelled;
        record.end_time = Some(self.shared.clock.now());
        let write = GenerationWrite {
            // the entry exists and keeps its row
            row: 0,
            record,
            steps: Vec::new(),
            messages: None,
            continuation: ContinuationChange::Remove { asks: Vec::new() },
        };
        self.shared.store.settle_generation(revision, write).await?;
        Ok(())
    }

    /// Has a generation that waits forget its conversation, and its user.
    async fn strike(&self, id: &str, what: Forgets) -> Result<(), Unavailable> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut found) = self.continuable(id).await? else { return Ok(()) };
            let continuation = found.continuation.clone();
            let continuation = match what {
                Forgets::Conversation => continuation.without_memory(),
                Forgets::User => {
                    // a conversation without a user is another one
                    let record = &mut found.entry.record;
                    (record.user_id, record.conversation_id) = (None, None);
                    continuation.without_user()
                }
            };
            if self.put_continuation(found, &continuation, Vec::new()).await? {
                return Ok(());
            }
        }
        Err(Unavailable::Busy { execution: None })
    }
}
