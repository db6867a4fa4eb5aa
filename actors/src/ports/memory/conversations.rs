//! Conversations of agents, in memory.

use std::future::ready;
use std::sync::Arc;

use super::MemoryStore;
use super::agents::{fitting, json_bytes, page_of};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, ApprovedTools, Conversation, ConversationFilter, ConversationKey,
    ConversationPatch, ConversationWrite, Conversations, PageSize, Read, SCANNED_MESSAGES_MAX,
    StoredMessage, Written, is_too_short_for_index, sought_text,
};

/// Conversations of all agents, in the order of their creation.
#[derive(Clone, Default)]
pub(super) struct StoredConversations {
    all: Vec<StoredConversation>,
    last_message: u64,
}

/// A conversation with its messages, oldest first.
#[derive(Clone)]
struct StoredConversation {
    conversation: Conversation,
    messages: Vec<StoredMessage>,
    /// Numbers of the messages, which order the messages of all conversations.
    numbers: Vec<u64>,
    approved_tools: ApprovedTools,
}

impl StoredConversation {
    fn new(conversation: Conversation) -> Self {
        Self {
            conversation,
            messages: Vec::new(),
            numbers: Vec::new(),
            approved_tools: ApprovedTools::new(),
        }
    }
}

impl StoredConversations {
    pub(super) fn add(&mut self, write: ConversationWrite) {
        let ConversationWrite { key, cut_after, messages, approved_tools, at } = write;
        let index = self.position(&key).unwrap_or_else(|| {
            let conversation = Conversation {
                key,
                title: None,
                metadata: serde_json::Map::new(),
                working_memory: None,
                created_at: at,
                updated_at: at,
            };
            self.all.push(StoredConversation::new(conversation));
            self.all.len() - 1
        });
        let kept = &mut self.all[index];
        kept.conversation.updated_at = at;
        kept.approved_tools.extend(approved_tools);
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
        self.all.iter().position(|kept| kept.conversation.key == *key)
    }

    fn find(&self, key: &ConversationKey) -> Option<&StoredConversation> {
        self.position(key).and_then(|index| self.all.get(index))
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
        let mut copy = self.all[index].clone();
        // approvals concern the conversation in which they were given
        copy.approved_tools = ApprovedTools::new();
        copy.conversation =
            Conversation { key, created_at: at, updated_at: at, ..copy.conversation };
        for number in &mut copy.numbers {
            self.last_message += 1;
            *number = self.last_message;
        }
        self.all.push(copy);
        Ok(true)
    }

    /// Deletes the conversations of a user; returns their number.
    fn forget_user(&mut self, user_id: &str) -> u64 {
        let before = self.all.len();
        self.all.retain(|kept| kept.conversation.key.user_id.as_deref() != Some(user_id));
        (before - self.all.len()) as u64
    }
}

impl Conversations for MemoryStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        self.read(|state| {
            state.agents.conversations.find(key).map(|kept| kept.conversation.clone())
        })
    }

    fn approved_tools<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, ApprovedTools> {
        self.read(|state| {
            let found = state.agents.conversations.find(key);
            found.map(|kept| kept.approved_tools.clone()).unwrap_or_default()
        })
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        let matches = |conversation: &Conversation| {
            let key = &conversation.key;
            let by_agent = filter.agent_id.as_deref().is_none_or(|id| *key.agent_id == *id);
            by_agent && filter.owner.as_ref().is_none_or(|owner| *owner == key.user_id)
        };
        let bytes = |it: &Conversation| {
            let texts = [&it.title, &it.working_memory].into_iter().flatten();
            json_bytes(&it.metadata) + texts.map(String::len).sum::<usize>()
        };
        self.read_page(|state| {
            let all = state.agents.conversations.all.iter().map(|kept| &kept.conversation);
            let all = all.rev().filter(|conversation| matches(conversation));
            let mut found: Vec<_> = all.cloned().collect();
            found.sort_by_key(|conversation| std::cmp::Reverse(conversation.updated_at));
            let (page, total) = page_of(found, offset, size.records);
            Ok((fitting(page, size, bytes)?, total))
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        size: PageSize,
    ) -> Read<'a, Vec<StoredMessage>> {
        self.read_page(|state| {
            let all = state.agents.conversations.find(key).map_or(&[][..], |kept| &kept.messages);
            let end = match before {
                None => all.len(),
                Some(id) => all.iter().position(|message| message.id == id).unwrap_or(0),
            };
            let newest = all[end.saturating_sub(size.records)..end].iter().rev().collect();
            Ok(fitting(newest, size, json_bytes)?.into_iter().rev().cloned().collect())
        })
    }

    fn has_message<'a>(&'a self, key: &'a ConversationKey, id: &'a str) -> Read<'a, bool> {
        self.read(|state| {
            let kept = state.agents.conversations.find(key);
            kept.is_some_and(|kept| kept.messages.iter().any(|message| message.id == id))
        })
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        size: PageSize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        self.read_page(|state| {
            let sought = sought_text(text);
            let mut own = Vec::new();
            for StoredConversation { conversation, messages, numbers, .. } in
                &state.agents.conversations.all
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
            let found =
                fitting(found.take(size.records).collect(), size, |(.., it)| json_bytes(it))?;
            Ok(found.into_iter().map(|(_, key, it)| (key.clone(), it.clone())).collect())
        })
    }

    fn create_conversation(&self, conversation: Conversation) -> Written<()> {
        let created =
            self.write(|state| match state.agents.conversations.position(&conversation.key) {
                Some(_) => Err(AppendError::Exists),
                None => {
                    state.agents.conversations.all.push(StoredConversation::new(conversation));
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
            let Some(index) = state.agents.conversations.position(&key) else { return false };
            let conversation = &mut state.agents.conversations.all[index].conversation;
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
            let index = state.agents.conversations.position(&key);
            index.map(|index| state.agents.conversations.all.remove(index)).is_some()
        })
    }

    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool> {
        Box::pin(ready(
            self.write(|state| state.agents.conversations.copy(&from, to, at)).flatten(),
        ))
    }

    fn forget_user(&self, user_id: String) -> Written<u64> {
        self.written(|state| {
            state.logs.forget_user(&user_id);
            state.forget_user(&user_id);
            state.asks.forget_user(&user_id);
            let generations = state.agents.forget_user(&user_id);
            state.drop_asks_of(&generations);
            state.agents.conversations.forget_user(&user_id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::Generations as _;

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
