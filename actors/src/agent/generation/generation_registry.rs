//! Registry of live generations, by id and by conversation.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;
use tokio::sync::Notify;

use crate::agent::AgentDefinition;
use crate::mailbox::force_send;
use crate::ports::store::ConversationKey;
use crate::shard::messages::KillForTest;
use crate::visibility::Visibility;

use super::active::ActiveGenerations;
use super::actor::{GenerationActor, Interrupt};

/// Finds live generations; shared by all arbiters.
#[derive(Default)]
pub struct GenerationRegistry {
    entries: Mutex<Entries>,
    /// Notified when a generation has left.
    left: Notify,
    /// Counter of subscribers of chats of other processes.
    pub(crate) followed: Arc<ActiveGenerations>,
}

#[derive(Default)]
struct Entries {
    generations: HashMap<Arc<str>, Entry>,
    chats: HashMap<ConversationKey, Addr<GenerationActor>>,
    /// True once the process shuts down; a generation that starts now is interrupted at once.
    is_closed: bool,
}

/// A live generation.
pub(super) struct Entry {
    pub(super) agent: Arc<AgentDefinition>,
    pub(super) user_id: Option<Arc<str>>,
    pub(super) actor: Addr<GenerationActor>,
}

impl GenerationRegistry {
    /// Registers a generation until the guard is dropped. If `is_id_ours` (the server made the id),
    /// it replaces an earlier attempt of the same step; otherwise returns `None` if the id is
    /// taken.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: Arc<str>,
        entry: Entry,
        is_id_ours: bool,
    ) -> Option<RegistryGuard> {
        let actor = entry.actor.clone();
        let mut entries = self.entries();
        if entries.is_closed {
            force_send(&actor, Interrupt);
        }
        if !is_id_ours && entries.generations.contains_key(&id) {
            return None;
        }
        entries.generations.insert(Arc::clone(&id), entry);
        drop(entries);
        Some(RegistryGuard { live: Arc::clone(self), id, chat: None, actor })
    }

    /// Returns the agent's generation of this id, if it is visible.
    pub(crate) fn find(
        &self,
        agent_id: &str,
        id: &str,
        visibility: &Visibility,
    ) -> Option<Addr<GenerationActor>> {
        let entries = self.entries();
        let entry = entries.generations.get(id).filter(|entry| {
            entry.agent.id == agent_id && visibility.allows(entry.user_id.as_deref())
        })?;
        Some(entry.actor.clone())
    }

    /// Returns the generation of this id.
    pub(crate) fn actor(&self, id: &str) -> Option<Addr<GenerationActor>> {
        self.entries().generations.get(id).map(|entry| entry.actor.clone())
    }

    /// Waits until this run of a generation has left.
    pub(crate) async fn left(&self, id: &str, run: &Addr<GenerationActor>) {
        loop {
            let mut left = pin!(self.left.notified());
            // before the look, so that no notification is missed
            left.as_mut().enable();
            if self.entries().generations.get(id).is_none_or(|entry| entry.actor != *run) {
                return;
            }
            left.await;
        }
    }

    /// Returns all generations for a user.
    pub(crate) fn of_user(&self, user_id: &str) -> Vec<Addr<GenerationActor>> {
        let entries = self.entries();
        entries
            .generations
            .values()
            .filter(|entry| entry.user_id.as_deref() == Some(user_id))
            .map(|entry| entry.actor.clone())
            .collect()
    }

    /// Returns the newest resumable chat of a conversation.
    pub(crate) fn chat(&self, key: &ConversationKey) -> Option<Addr<GenerationActor>> {
        self.entries().chats.get(key).cloned()
    }

    /// Interrupts all generations, and those that start later.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.is_closed = true;
        for Entry { actor, .. } in entries.generations.values() {
            force_send(actor, Interrupt);
        }
    }

    /// Returns true once the process shuts down.
    pub(super) fn is_closed(&self) -> bool {
        self.entries().is_closed
    }

    /// Kills all without recording anything, like a crash: for tests of recovery.
    pub(crate) fn vanish(&self) {
        for Entry { actor, .. } in self.entries().generations.values() {
            force_send(actor, KillForTest);
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

/// Registration of one generation; removed on drop, also during unwinding.
pub(super) struct RegistryGuard {
    live: Arc<GenerationRegistry>,
    id: Arc<str>,
    chat: Option<ConversationKey>,
    actor: Addr<GenerationActor>,
}

impl RegistryGuard {
    /// Registers the generation for its conversation too, replacing an earlier one.
    pub(super) fn show_chat(&mut self, key: ConversationKey) {
        self.live.entries().chats.insert(key.clone(), self.actor.clone());
        self.chat = Some(key);
    }
}

impl Drop for RegistryGuard {
    fn drop(&mut self) {
        let mut entries = self.live.entries();
        // a later generation may have replaced this one
        if entries.generations.get(&self.id).is_some_and(|entry| entry.actor == self.actor) {
            entries.generations.remove(&self.id);
        }
        if let Some(key) = &self.chat
            && entries.chats.get(key) == Some(&self.actor)
        {
            entries.chats.remove(key);
        }
        drop(entries);
        self.live.left.notify_waiters();
    }
}
