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
        let Some(entry) = store.generation(&id).await? else { continue };
        if entry.record.origin.is_some() {
            waiting.awaited.push(id);
            continue;
        }
        let Some(StoredContinuation { body, .. }) = store.continuation(&id).await? else {
            continue;
        };
        let continuation = match Continuation::read(&body, &entry.record) {
            Ok(continuation) => continuation,
            Err(error) => {
                log::error!("the continuation of generation {id} is damaged: {error}");
                continue;
            }
        };
        match continuation.parent {
            Some(_) => waiting.awaited.push(id),
            None => waiting.chats.push(id),
        }
    }
    Ok(waiting)
}
