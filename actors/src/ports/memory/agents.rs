//! History and conversations of agents, in memory.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::MemoryStore;
use crate::domain::cluster::NodeId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, Conversation, ConversationFilter, ConversationKey, ConversationPatch,
    ConversationWrite, Conversations, GenerationEntry, GenerationPage, GenerationStatus,
    GenerationWrite, Generations, Read, Row, SCANNED_MESSAGES_MAX, StoredMessage, Written,
    is_too_short_for_index, sought_text,
};

/// Records of all agents, in the order in which they were first recorded.
#[derive(Clone, Default)]
pub(super) struct Agents {
    generations: Vec<GenerationEntry>,
    /// Rows of `generations`.
    rows: Vec<Row>,
    /// Members that work on generations, or did.
    workers: HashMap<String, NodeId>,
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
        let GenerationWrite { row, record, steps, messages } = write;
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

    /// Deletes ended generations among these rows; returns their number.
    pub(super) fn drop_ended(&mut self, rows: &[Row]) -> u64 {
        let before = self.rows.len();
        self.retain(|row, entry| {
            !rows.contains(&row) || entry.record.status == GenerationStatus::Working
        });
        (before - self.rows.len()) as u64
    }

    fn retain(&mut self, is_kept: impl Fn(Row, &GenerationEntry) -> bool) {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let entries = std::mem::take(&mut self.generations).into_iter();
        (self.rows, self.generations) =
            rows.zip(entries).filter(|(row, entry)| is_kept(*row, entry)).unzip();
    }

    fn forget_user(&mut self, user_id: &str) -> u64 {
        let before = self.conversations.len();
        self.conversations.retain(|kept| kept.conversation.key.user_id.as_deref() != Some(user_id));
        self.retain(|_, entry| entry.record.user_id.as_deref() != Some(user_id));
        (before - self.conversations.len()) as u64
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
        let recorded = self.written(|state| state.agents.record(self.own(), write));
        let Some(end) = self.faults.end_of_outage() else { return recorded };
        Box::pin(async {
            // closes without a value
            let _ = end.await;
            recorded.await
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
        self.written(|state| {
            let Agents { generations, workers, .. } = &mut state.agents;
            for GenerationEntry { record, .. } in generations {
                let worker = workers.get(&record.id).filter(|_| is_member);
                let is_at_work = worker.is_some_and(|node| state.cluster.has(*node));
                let is_working = record.status == GenerationStatus::Working;
                if is_working && !is_at_work && record.origin.is_none() {
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
            state.agents.forget_user(&user_id)
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
