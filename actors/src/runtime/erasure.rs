//! Erasure of users and conversations, with the generations that wait for people.

use std::sync::Arc;

use crate::agent::generation::waiting_chats::{WaitingIn, waiting_in};
use crate::ports::store::{AskFilter, ConversationKey, GenerationStatus};
use crate::requests::Unavailable;

use super::Runtime;
use super::orphans::generations_of;
use super::suspended::ATTEMPTS_MAX;

/// Open asks that are read at once.
const ASKS: usize = 100;

/// Part that a waiting generation forgets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forgets {
    Conversation,
    /// The user too.
    User,
}

impl Runtime {
    /// Deletes all conversations and the history of a user, for all agents; returns the number of
    /// conversations. Running generations of the user are cancelled first, because their last
    /// record would restore deleted data. Executions keep what the user did, without its name and
    /// without the data of its resumes, and their agents still ask. Refused if another process
    /// cannot be reached, which could bring the name back.
    pub async fn forget_user(&self, user_id: &str) -> Result<u64, Unavailable> {
        self.shared.accepts_writes()?;
        let user: Arc<str> = Arc::from(user_id);
        // Before, so that memory records the name nowhere after the store has erased it; and
        // after, for executions loaded in between.
        self.shared.forget_everywhere(&user, true).await?;
        self.strike_from_steps(user_id).await?;
        let forgotten = self.shared.store.forget_user(user_id.to_owned()).await;
        self.shared.forget_everywhere(&user, false).await?;
        forgotten.map_err(Unavailable::from)
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
            self.end_kept(&id, from, to, None, "the conversation was deleted").await?;
        }
        self.shared.store.delete_conversation(key).await.map_err(Unavailable::from)
    }

    /// Removes a user from generations of steps that wait for people, and from those below, which
    /// would be deleted otherwise: their executions stay, and wait for them.
    async fn strike_from_steps(&self, user_id: &str) -> Result<(), Unavailable> {
        let user_id = Some(user_id.to_owned());
        let filter = AskFilter { is_open: true, user_id, ..AskFilter::default() };
        let mut after = None;
        loop {
            let page = self.shared.store.asks(&filter, after, ASKS).await?;
            for id in generations_of(page.asks) {
                match self.strike_line(id).await {
                    // logged; it is deleted with the rest
                    Ok(()) | Err(Unavailable::Corrupt(_)) => {}
                    Err(why) => return Err(why),
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn strike_line(&self, id: Arc<str>) -> Result<(), Unavailable> {
        for id in self.line_to_step(id).await? {
            self.strike(&id, Forgets::User).await?;
        }
        Ok(())
    }

    /// Returns a generation and those that wait for it, one for the other, if a step waits for the
    /// last one.
    async fn line_to_step(&self, id: Arc<str>) -> Result<Vec<Arc<str>>, Unavailable> {
        let (mut line, mut next) = (Vec::new(), Some(id));
        while let Some(id) = next {
            let Some(found) = self.kept(&id).await? else { return Ok(Vec::new()) };
            line.push(id);
            if found.entry.record.origin.is_some() {
                return Ok(line);
            }
            next = found.kept.parent;
        }
        Ok(Vec::new())
    }

    /// Has a generation that waits forget its conversation, and its user.
    async fn strike(&self, id: &str, what: Forgets) -> Result<(), Unavailable> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut found) = self.kept(id).await? else { return Ok(()) };
            if what == Forgets::User {
                // a conversation without a user is another one
                let record = &mut found.entry.record;
                (record.user_id, record.conversation_id) = (None, None);
            }
            let kept = found.kept.clone().without_memory();
            if self.put_kept(found, &kept, Vec::new()).await? {
                return Ok(());
            }
        }
        Err(Unavailable::Busy { execution: None })
    }
}
