//! History and conversations of agents, in memory.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::asks::Owner;
use super::members::Cluster;
use super::{MemoryStore, State};
use crate::domain::cluster::NodeId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, AskSubject, AskedCall, ContinuationChange, Conversation, ConversationFilter,
    ConversationKey, ConversationPatch, ConversationWrite, Conversations, GenerationEntry,
    GenerationPage, GenerationRecord, GenerationStatus, GenerationWrite, Generations, NewAsk, Read,
    Row, SCANNED_MESSAGES_MAX, StoredContinuation, StoredMessage, Written, is_too_short_for_index,
    sought_text,
};

/// Records of all agents, in the order in which they were first recorded.
#[derive(Clone, Default)]
pub(super) struct Agents {
    generations: Vec<GenerationEntry>,
    /// Rows of `generations`.
    rows: Vec<Row>,
    /// Members that work on generations, or did.
    workers: HashMap<String, NodeId>,
    /// By the ids of generations.
    continuations: HashMap<String, StoredContinuation>,
    conversations: Vec<StoredConversation>,
    last_message: u64,
}

/// A conversation with its messages, oldest first.
#[derive(Clone)]
struct StoredConversation {
    conversation: Conversation,
    messages: Vec<StoredMessage>,
    /// Numbers of the messages, which order the messages of all conversations.
    numbers: Vec<u64>,
}

impl StoredConversation {
    fn new(conversation: Conversation) -> Self {
        Self { conversation, messages: Vec::new(), numbers: Vec::new() }
    }
}

impl Agents {
    fn record(&mut self, by: Option<NodeId>, write: GenerationWrite) {
        let GenerationWrite { row, record, steps, messages, continuation } = write;
        self.continue_with(&record.id, continuation);
        if let Some(by) = by {
            self.workers.insert(record.id.clone(), by);
        }
        let at = self.generations.iter().position(|kept| kept.record.id == record.id);
        let at = at.unwrap_or_else(|| {
            self.rows.push(row);
            self.generations.push(GenerationEntry { record: record.clone(), steps: Vec::new() });
            self.generations.len() - 1
        });
        let entry = &mut self.generations[at];
        entry.record = record;
        if steps.first().is_some_and(|(number, _)| *number == 0) {
            entry.steps.clear();
        }
        for (number, step) in steps {
            let number = number as usize;
            match entry.steps.get_mut(number) {
                Some(kept) => *kept = (*step).clone(),
                None => entry.steps.push((*step).clone()),
            }
        }
        if let Some(messages) = messages {
            self.add(messages);
        }
    }

    fn continue_with(&mut self, id: &str, change: ContinuationChange) {
        match change {
            ContinuationChange::Keep => {}
            ContinuationChange::Put { body, .. } => {
                let revision = self.revision_of(id) + 1;
                self.continuations.insert(id.to_owned(), StoredContinuation { revision, body });
            }
            ContinuationChange::Remove { .. } => drop(self.continuations.remove(id)),
        }
    }

    fn revision_of(&self, id: &str) -> u64 {
        self.continuations.get(id).map_or(0, |stored| stored.revision)
    }

    /// Returns generations without a process that works on them.
    fn abandoned<'a>(
        &'a self,
        cluster: &'a Cluster,
        is_member: bool,
    ) -> impl Iterator<Item = (Row, &'a GenerationRecord)> {
        self.rows.iter().zip(&self.generations).filter_map(move |(row, entry)| {
            let record = &entry.record;
            let worker = self.workers.get(&record.id).filter(|_| is_member);
            let is_at_work = worker.is_some_and(|node| cluster.has(*node));
            let is_abandoned = record.status == GenerationStatus::Working && !is_at_work;
            is_abandoned.then_some((*row, record))
        })
    }

    fn add(&mut self, write: ConversationWrite) {
        let ConversationWrite { key, cut_after, messages, at } = write;
        let index = self.position(&key).unwrap_or_else(|| {
            let conversation = Conversation {
                key,
                title: None,
                metadata: serde_json::Map::new(),
                working_memory: None,
                created_at: at,
                updated_at: at,
            };
            self.conversations.push(StoredConversation::new(conversation));
            self.conversations.len() - 1
        });
        let kept = &mut self.conversations[index];
        kept.conversation.updated_at = at;
        if let Some(last) = cut_after
            && let Some(last) = kept.messages.iter().position(|message| message.id == last)
        {
            kept.messages.truncate(last + 1);
            kept.numbers.truncate(last + 1);
        }
        for message in messages {
            match kept.messages.iter_mut().find(|known| known.id == message.id) {
                Some(known) => *known = message,
                None => {
                    self.last_message += 1;
                    kept.numbers.push(self.last_message);
                    kept.messages.push(message);
                }
            }
        }
    }

    fn position(&self, key: &ConversationKey) -> Option<usize> {
        self.conversations.iter().position(|kept| kept.conversation.key == *key)
    }

    fn find(&self, key: &ConversationKey) -> Option<&StoredConversation> {
        self.position(key).and_then(|index| self.conversations.get(index))
    }

    fn copy(
        &mut self,
        from: &ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Result<bool, AppendError> {
        let Some(index) = self.position(from) else { return Ok(false) };
        let key = ConversationKey { conversation_id: to, ..from.clone() };
        if self.position(&key).is_some() {
            return Err(AppendError::Exists);
        }
        let mut copy = self.conversations[index].clone();
        copy.conversation =
            Conversation { key, created_at: at, updated_at: at, ..copy.conversation };
        for number in &mut copy.numbers {
            self.last_message += 1;
            *number = self.last_message;
        }
        self.conversations.push(copy);
        Ok(true)
    }

    /// Returns all generations with their rows, newest first.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Row, &GenerationEntry)> {
        let mut placed: Vec<_> = self.rows.iter().copied().zip(&self.generations).collect();
        placed.sort_by_key(|(row, _)| std::cmp::Reverse(*row));
        placed.into_iter()
    }

    /// Deletes ended generations among these rows; returns their ids.
    pub(super) fn drop_ended(&mut self, rows: &[Row]) -> Vec<String> {
        self.drop_where(|row, entry| rows.contains(&row) && entry.record.status.is_final())
    }

    fn drop_where(&mut self, is_dropped: impl Fn(Row, &GenerationEntry) -> bool) -> Vec<String> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let entries = std::mem::take(&mut self.generations).into_iter();
        let (dropped, kept): (Vec<_>, Vec<_>) =
            rows.zip(entries).partition(|(row, entry)| is_dropped(*row, entry));
        (self.rows, self.generations) = kept.into_iter().unzip();
        let dropped: Vec<_> = dropped.into_iter().map(|(_, entry)| entry.record.id).collect();
        self.continuations.retain(|id, _| !dropped.contains(id));
        dropped
    }

    /// Deletes conversations and generations of a user; returns the number of the former and the ids
    /// of the latter.
    fn forget_user(&mut self, user_id: &str) -> (u64, Vec<String>) {
        let before = self.conversations.len();
        self.conversations.retain(|kept| kept.conversation.key.user_id.as_deref() != Some(user_id));
        let dropped = self.drop_where(|_, entry| entry.record.user_id.as_deref() == Some(user_id));
        ((before - self.conversations.len()) as u64, dropped)
    }
}

impl State {
    fn record_generation(&mut self, by: Option<NodeId>, write: GenerationWrite) {
        let asks = write.continuation.asks().to_vec();
        if !asks.is_empty() {
            let GenerationRecord { id, agent_id, user_id, .. } = &write.record;
            let id: Arc<str> = Arc::from(id.as_str());
            let agent_id: Arc<str> = Arc::from(agent_id.as_str());
            let call = |ask: &NewAsk| {
                AskSubject::Call(AskedCall {
                    generation_id: Arc::clone(&id),
                    agent_id: Arc::clone(&agent_id),
                    tool_call_id: Arc::clone(&ask.place),
                    tool_name: ask.tool_name.clone().unwrap_or_default(),
                })
            };
            let of = Owner::Generation(Arc::clone(&id));
            self.asks.change(&of, user_id.as_deref(), call, asks);
        }
        self.agents.record(by, write);
    }

    /// Removes the asks of deleted generations.
    pub(super) fn drop_asks_of(&mut self, generations: &[String]) {
        for id in generations {
            self.asks.drop_of(&Owner::Generation(Arc::from(id.as_str())));
        }
    }
}

impl Generations for MemoryStore {
    fn next_generation_row(&self) -> Option<Row> {
        self.faults.new_row(&self.disk.last_generation)
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        let recorded = self.written(|state| state.record_generation(self.own(), write));
        let Some(end) = self.faults.end_of_outage() else { return recorded };
        Box::pin(async {
            // closes without a value
            let _ = end.await;
            recorded.await
        })
    }

    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        self.written(|state| {
            let is_newest = state.agents.revision_of(&write.record.id) == revision;
            if is_newest {
                state.record_generation(self.own(), write);
            }
            is_newest
        })
    }

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>> {
        self.read(|state| state.agents.continuations.get(id).cloned())
    }

    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>> {
        self.read(|state| {
            let all = state.agents.generations.iter().map(|entry| &entry.record);
            let found = all.filter(|record| {
                record.status == GenerationStatus::Suspended
                    && *record.agent_id == *key.agent_id
                    && record.user_id.as_deref() == key.user_id.as_deref()
                    && record.conversation_id.as_deref() == Some(&*key.conversation_id)
            });
            found.map(|record| record.id.clone()).collect()
        })
    }

    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>> {
        let own = self.own();
        self.written(move |state| {
            let found = state.agents.abandoned(&state.cluster, own.is_some());
            let mut found: Vec<_> = found
                .filter(|(row, record)| {
                    *row > after && state.agents.continuations.contains_key(&record.id)
                })
                .map(|(row, record)| (row, record.id.clone()))
                .collect();
            found.sort();
            found.truncate(limit);
            if let Some(own) = own {
                let adopted = found.iter().map(|(_, id)| (id.clone(), own));
                state.agents.workers.extend(adopted);
            }
            found
        })
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        self.read(|state| {
            state.agents.generations.iter().find(|entry| entry.record.id == id).cloned()
        })
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        limit: usize,
    ) -> Read<'a, GenerationPage> {
        let matches = |entry: &&GenerationEntry| {
            entry.record.agent_id == agent_id
                && (user_id.is_none() || entry.record.user_id.as_deref() == user_id)
        };
        self.read(|state| {
            let all = state.agents.generations.iter().rev().filter(matches);
            let (page, total) = page_of(all.collect(), offset, limit);
            GenerationPage { entries: page.into_iter().cloned().collect(), total }
        })
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        let is_member = self.own().is_some();
        self.written(move |state| {
            let State { agents, cluster, .. } = state;
            let abandoned = agents.abandoned(cluster, is_member);
            let ended: HashSet<_> = abandoned
                .filter(|(_, record)| {
                    record.origin.is_none() && !agents.continuations.contains_key(&record.id)
                })
                .map(|(row, _)| row)
                .collect();
            for (row, GenerationEntry { record, .. }) in
                agents.rows.iter().zip(&mut agents.generations)
            {
                if ended.contains(row) {
                    record.status = GenerationStatus::Error;
                    record.end_time = Some(now);
                    record.error = Some("interrupted by a restart".to_owned());
                }
            }
        })
    }
}

impl Conversations for MemoryStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        self.read(|state| state.agents.find(key).map(|kept| kept.conversation.clone()))
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        limit: usize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        let matches = |conversation: &Conversation| {
            let key = &conversation.key;
            let by_agent = filter.agent_id.as_deref().is_none_or(|id| *key.agent_id == *id);
            by_agent && filter.owner.as_ref().is_none_or(|owner| *owner == key.user_id)
        };
        self.read(|state| {
            let all = state.agents.conversations.iter().map(|kept| &kept.conversation);
            let all = all.rev().filter(|conversation| matches(conversation));
            let mut found: Vec<_> = all.cloned().collect();
            found.sort_by_key(|conversation| std::cmp::Reverse(conversation.updated_at));
            page_of(found, offset, limit)
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        limit: usize,
    ) -> Read<'a, Vec<StoredMessage>> {
        self.read(|state| {
            let all = state.agents.find(key).map_or(&[][..], |kept| &kept.messages);
            let end = match before {
                None => all.len(),
                Some(id) => all.iter().position(|message| message.id == id).unwrap_or(0),
            };
            all[end.saturating_sub(limit)..end].to_vec()
        })
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        limit: usize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        self.read(|state| {
            let sought = sought_text(text);
            let mut own = Vec::new();
            for StoredConversation { conversation, messages, numbers } in
                &state.agents.conversations
            {
                let key = &conversation.key;
                if *key.agent_id == *agent_id && key.user_id.as_deref() == user_id {
                    own.extend(numbers.iter().zip(messages).map(|(number, it)| (number, key, it)));
                }
            }
            own.sort_by_key(|(number, ..)| std::cmp::Reverse(**number));
            if is_too_short_for_index(&sought) {
                own.truncate(SCANNED_MESSAGES_MAX);
            }
            let found = own.into_iter().filter(|(.., it)| it.searched_text().contains(&sought));
            found.take(limit).map(|(_, key, it)| (key.clone(), it.clone())).collect()
        })
    }

    fn create_conversation(&self, conversation: Conversation) -> Written<()> {
        let created = self.write(|state| match state.agents.position(&conversation.key) {
            Some(_) => Err(AppendError::Exists),
            None => {
                state.agents.conversations.push(StoredConversation::new(conversation));
                Ok(())
            }
        });
        Box::pin(ready(created.flatten()))
    }

    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool> {
        let ConversationPatch { title, metadata, working_memory } = patch;
        self.written(move |state| {
            let Some(index) = state.agents.position(&key) else { return false };
            let conversation = &mut state.agents.conversations[index].conversation;
            conversation.updated_at = at;
            if let Some(title) = title {
                conversation.title = title;
            }
            if let Some(metadata) = metadata {
                conversation.metadata = metadata;
            }
            if let Some(working_memory) = working_memory {
                conversation.working_memory = working_memory;
            }
            true
        })
    }

    fn delete_conversation(&self, key: ConversationKey) -> Written<bool> {
        self.written(|state| {
            let index = state.agents.position(&key);
            index.map(|index| state.agents.conversations.remove(index)).is_some()
        })
    }

    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool> {
        Box::pin(ready(self.write(|state| state.agents.copy(&from, to, at)).flatten()))
    }

    fn forget_user(&self, user_id: String) -> Written<u64> {
        self.written(|state| {
            state.logs.forget_user(&user_id);
            state.forget_user(&user_id);
            state.asks.forget_user(&user_id);
            let (conversations, generations) = state.agents.forget_user(&user_id);
            state.drop_asks_of(&generations);
            conversations
        })
    }
}

/// Cuts a page out of a list; returns it with the length of the list.
fn page_of<T>(all: Vec<T>, offset: u64, limit: usize) -> (Vec<T>, u64) {
    let total = all.len() as u64;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    (all.into_iter().skip(offset).take(limit).collect(), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn writes_fail_while_they_are_switched_off() {
        let store = MemoryStore::new();
        let key = ConversationKey {
            agent_id: Arc::from("clerk"),
            user_id: None,
            conversation_id: Arc::from("c1"),
        };
        let conversation = Conversation {
            key: key.clone(),
            title: None,
            metadata: serde_json::Map::new(),
            working_memory: None,
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
        };
        assert_eq!(store.create_conversation(conversation.clone()).await, Ok(()));
        store.set_writable(false);
        let is_unavailable = |refusal| matches!(refusal, AppendError::Unavailable(_));
        let made = store.create_conversation(conversation.clone()).await;
        assert!(made.is_err_and(is_unavailable));
        assert!(store.delete_conversation(key.clone()).await.is_err_and(is_unavailable));
        assert!(store.forget_user("u1".to_owned()).await.is_err_and(is_unavailable));
        assert!(store.interrupt_working(Timestamp(2)).await.is_err_and(is_unavailable));
        let kept = store.conversation(&key).await.unwrap();
        assert_eq!(kept, Some(conversation), "nothing has changed");
    }
}
