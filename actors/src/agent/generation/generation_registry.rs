//! The generations that are at work, by id and by conversation, for those who come from outside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;

use crate::agent::AgentDefinition;
use crate::mailbox::tell;
use crate::ports::store::ConversationKey;
use crate::shard::messages::KillForTest;
use crate::visibility::Visibility;

use super::actor::{GenerationActor, Interrupt};

/// Finds live generations; shared by all arbiters.
#[derive(Default)]
pub struct GenerationRegistry {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    generations: HashMap<Arc<str>, Entry>,
    chats: HashMap<ConversationKey, Addr<GenerationActor>>,
    /// The process is about to end: what starts now is interrupted at once.
    is_closed: bool,
}

/// What is known of a live generation.
pub(super) struct Entry {
    pub(super) agent: Arc<AgentDefinition>,
    pub(super) user_id: Option<Arc<str>>,
    pub(super) actor: Addr<GenerationActor>,
}

impl GenerationRegistry {
    /// Lets a generation be found by its id until the guard goes. One whose id is its own takes the
    /// place of an earlier attempt of the same step; else none when another one has this id.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: Arc<str>,
        entry: Entry,
        is_id_ours: bool,
    ) -> Option<LiveGuard> {
        let actor = entry.actor.clone();
        let mut entries = self.entries();
        if entries.is_closed {
            tell(&actor, Interrupt);
        }
        if !is_id_ours && entries.generations.contains_key(&id) {
            return None;
        }
        entries.generations.insert(Arc::clone(&id), entry);
        drop(entries);
        Some(LiveGuard { live: Arc::clone(self), id, chat: None, actor })
    }

    /// The agent's generation of this id, for those who see it.
    pub(crate) fn find(
        &self,
        agent_id: &str,
        id: &str,
        visibility: &Visibility,
    ) -> Option<Addr<GenerationActor>> {
        let entries = self.entries();
        let is_it =
            |it: &&Entry| it.agent.id == agent_id && visibility.reaches(it.user_id.as_deref());
        entries.generations.get(id).filter(is_it).map(|entry| entry.actor.clone())
    }

    /// All generations for a user.
    pub(crate) fn of_user(&self, user_id: &str) -> Vec<Addr<GenerationActor>> {
        let entries = self.entries();
        let of_user = entries.generations.values();
        of_user
            .filter(|entry| entry.user_id.as_deref() == Some(user_id))
            .map(|entry| entry.actor.clone())
            .collect()
    }

    /// The newest chat in a conversation that can be picked up again.
    pub(crate) fn chat(&self, key: &ConversationKey) -> Option<Addr<GenerationActor>> {
        self.entries().chats.get(key).cloned()
    }

    /// Interrupts all, and those that come.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.is_closed = true;
        for Entry { actor, .. } in entries.generations.values() {
            tell(actor, Interrupt);
        }
    }

    /// Ends all without a word, as the end of the process would: for tests of recovery.
    pub(crate) fn vanish(&self) {
        for Entry { actor, .. } in self.entries().generations.values() {
            tell(actor, KillForTest);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for GenerationRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.entries().generations.len();
        f.debug_struct("GenerationRegistry").field("generations", &count).finish_non_exhaustive()
    }
}

/// One live generation; is not found any more when dropped, also while a panic unwinds.
pub(super) struct LiveGuard {
    live: Arc<GenerationRegistry>,
    id: Arc<str>,
    chat: Option<ConversationKey>,
    actor: Addr<GenerationActor>,
}

impl LiveGuard {
    /// Lets readers find the generation by its conversation as well, in place of an earlier one.
    pub(super) fn show_chat(&mut self, key: ConversationKey) {
        self.live.entries().chats.insert(key.clone(), self.actor.clone());
        self.chat = Some(key);
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        let mut entries = self.live.entries();
        // a later one may have taken the place
        if entries.generations.get(&self.id).is_some_and(|entry| entry.actor == self.actor) {
            entries.generations.remove(&self.id);
        }
        if let Some(key) = &self.chat
            && entries.chats.get(key) == Some(&self.actor)
        {
            entries.chats.remove(key);
        }
    }
}
