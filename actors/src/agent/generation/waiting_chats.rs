//! Generations that wait for people in a conversation: chats, whose users may continue without answers,
//! and those of steps and sub-agents, for which something else waits.

use crate::ports::store::{ConversationKey, Generations, StoredContinuation};
use crate::requests::Unavailable;

use super::continuation::Continuation;

/// Ids of the generations that wait in a conversation, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct WaitingIn {
    /// Nothing but their users waits for them.
    pub(crate) chats: Vec<String>,
    /// A step or another generation waits for them.
    pub(crate) awaited: Vec<String>,
}

/// Finds the generations that wait in a conversation.
pub(crate) async fn waiting_in(
    store: &dyn Generations,
    key: &ConversationKey,
) -> Result<WaitingIn, Unavailable> {
    let mut waiting = WaitingIn::default();
    for id in store.suspended_in(key).await? {
        let (entry, stored) = tokio::try_join!(store.generation(&id), store.continuation(&id))?;
        let (Some(entry), Some(StoredContinuation { body, .. })) = (entry, stored) else {
            continue;
        };
        let kept = match Continuation::read(&body, &entry.record) {
            Ok(kept) => kept,
            Err(error) => {
                log::error!("the continuation of generation {id} is damaged: {error}");
                continue;
            }
        };
        match kept.is_awaited(&entry.record) {
            true => waiting.awaited.push(id),
            false => waiting.chats.push(id),
        }
    }
    Ok(waiting)
}
