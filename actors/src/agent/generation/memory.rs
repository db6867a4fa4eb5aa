//! What a run takes from its conversation and leaves in it. No actor, no clock, no I/O.

use std::collections::HashSet;

use crate::agent::generation::GenerationRequest;
use crate::domain::message::{Message, Part, Role, keep_whole_calls};
use crate::domain::time::Timestamp;
use crate::ports::store::{ConversationKey, ConversationWrite, StoredMessage};

/// Messages of a conversation that the model sees when the caller does not say.
pub(super) const CONTEXT_LIMIT_DEFAULT: u32 = 10;

/// Messages of a conversation that the model sees at most.
pub(super) const CONTEXT_LIMIT_MAX: u32 = 1000;

/// Stored messages that are looked at beside those that a chat client lists: what it has cut off
/// is among them.
pub(super) const BESIDE_LIST_MAX: usize = 200;

/// Stored messages that are looked at beside those that the model sees, where a chat client sends
/// the newest message alone: one that it asks again is among them.
pub(super) const ASKED_AGAIN_MAX: usize = 20;

/// What a caller's messages are to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// They follow what is stored.
    New,
    /// The newest of a chat: one that is stored already is asked again.
    Newest,
    /// The caller's view of all of it.
    Whole,
}

impl Sent {
    pub(super) fn of(request: &GenerationRequest) -> Self {
        match (request.is_whole, request.is_chat) {
            (true, _) => Self::Whole,
            (false, true) => Self::Newest,
            (false, false) => Self::New,
        }
    }
}

/// What a caller asks, as memory sees it.
pub(super) struct Asked<'a> {
    pub(super) messages: &'a [Message],
    pub(super) sent: Sent,
    pub(super) context_limit: usize,
    pub(super) generation_id: &'a str,
    pub(super) at: Timestamp,
}

/// What a run has to do with its conversation.
#[derive(Debug)]
pub(super) struct Remembered {
    key: ConversationKey,
    pub(super) working_memory: Option<String>,
    /// Said before what is asked, oldest first. Taken when the prompt is made.
    pub(super) older: Vec<Message>,
    cut_after: Option<String>,
    /// What is asked, as far as it is new or has changed.
    input: Vec<StoredMessage>,
    continued: Continued,
}

/// The assistant's message that a run goes on with, or begins.
#[derive(Debug)]
struct Continued {
    message_id: String,
    parts: Vec<Part>,
    created_at: Option<Timestamp>,
}

/// Id of the assistant's message that comes of a run: that of the message that is gone on with,
/// or the run's own.
pub(super) fn message_id<'a>(messages: &'a [Message], generation_id: &'a str) -> &'a str {
    let said = messages.iter().rev().find(|message| match message.role {
        Role::User | Role::Assistant => true,
        Role::System | Role::Tool => false,
    });
    let continued = said.filter(|message| message.role == Role::Assistant);
    continued.and_then(|message| message.id.as_deref()).unwrap_or(generation_id)
}

/// Stored messages that are to be read, the newest.
pub(super) fn messages_to_read(listed: usize, sent: Sent, context_limit: usize) -> usize {
    context_limit
        + match sent {
            Sent::New => 0,
            Sent::Newest => ASKED_AGAIN_MAX,
            Sent::Whole => listed + BESIDE_LIST_MAX,
        }
}

impl Remembered {
    /// Compares what is stored with what is asked.
    pub(super) fn new(
        key: ConversationKey,
        working_memory: Option<String>,
        stored: Vec<StoredMessage>,
        asked: &Asked<'_>,
    ) -> Self {
        let mut input = as_stored(asked.messages);
        let message_id = message_id(asked.messages, asked.generation_id).to_owned();
        let known = |id: &str| stored.iter().find(|message| message.id == id);
        let continued = Continued {
            parts: match input.last() {
                Some(last) if last.role == Role::Assistant => {
                    input.pop().map(|last| last.parts).unwrap_or_default()
                }
                _ => Vec::new(),
            },
            created_at: known(&message_id).map(|message| message.created_at),
            message_id,
        };
        let input: Vec<_> = input
            .into_iter()
            .zip(0..)
            .map(|(message, number)| to_store(message, number, asked))
            .collect();
        let listed: HashSet<String> = asked
            .messages
            .iter()
            .filter_map(|message| message.id.clone())
            .chain(input.iter().map(|message| message.id.clone()))
            .chain([continued.message_id.clone()])
            .collect();
        let changed = input.into_iter().filter_map(|message| match known(&message.id) {
            Some(kept) if kept.role == message.role && kept.parts == message.parts => None,
            Some(kept) => Some(StoredMessage { created_at: kept.created_at, ..message }),
            None => Some(message),
        });
        let input = changed.collect();
        let cut_after = cut_after(&stored, &listed, asked);
        let older = older(stored, &listed, cut_after.as_deref(), asked);
        Self { key, working_memory, older, cut_after, input, continued }
    }

    /// What the conversation gets when the assistant has said something.
    pub(super) fn write(
        self,
        said: Vec<Part>,
        generation_id: &str,
        at: Timestamp,
    ) -> ConversationWrite {
        let Self { key, cut_after, input: mut messages, continued, .. } = self;
        let Continued { message_id, mut parts, created_at } = continued;
        parts.extend(said);
        if !parts.is_empty() {
            messages.push(StoredMessage {
                id: message_id,
                role: Role::Assistant,
                parts,
                created_at: created_at.unwrap_or(at),
                generation_id: Some(generation_id.to_owned()),
            });
        }
        ConversationWrite { key, cut_after, messages, at }
    }
}

/// Ids follow from the run's where the caller has none: a run that is made again, for a step of
/// a workflow, does not store its input twice.
fn to_store(message: Message, number: usize, asked: &Asked<'_>) -> StoredMessage {
    let Message { id, role, parts } = message;
    StoredMessage {
        id: id.unwrap_or_else(|| format!("{}-{number}", asked.generation_id)),
        role,
        parts,
        created_at: asked.at,
        generation_id: Some(asked.generation_id.to_owned()),
    }
}

/// Messages of users and of the assistant alone: results of tools join the message before them.
fn as_stored(messages: &[Message]) -> Vec<Message> {
    let mut kept: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match message.role {
            Role::System => {}
            Role::User | Role::Assistant => kept.push(message.clone()),
            Role::Tool => {
                if let Some(last) = kept.last_mut().filter(|last| last.role == Role::Assistant) {
                    last.parts.extend(message.parts.iter().cloned());
                }
            }
        }
    }
    keep_whole_calls(&mut kept);
    kept.retain(|message| !message.parts.is_empty());
    kept
}

/// The caller's last question, when something was said after it that the caller does not list:
/// the answer is asked for again.
fn cut_after(
    stored: &[StoredMessage],
    listed: &HashSet<String>,
    asked: &Asked<'_>,
) -> Option<String> {
    if asked.sent == Sent::New {
        return None;
    }
    let question = asked.messages.iter().rev().find(|message| message.role == Role::User)?;
    let id = question.id.as_deref()?;
    let at = stored.iter().position(|message| message.id == id)?;
    let is_dropped = |message: &StoredMessage| !listed.contains(&message.id);
    stored[at + 1..].iter().any(is_dropped).then(|| id.to_owned())
}

/// What stands before the caller's messages: at most as many as the limit says, from a question
/// on. An answer without its question would confuse a model, and some providers refuse it.
fn older(
    stored: Vec<StoredMessage>,
    listed: &HashSet<String>,
    cut_after: Option<&str>,
    asked: &Asked<'_>,
) -> Vec<Message> {
    let is_end = |message: &StoredMessage| match asked.sent {
        Sent::Whole => listed.contains(&message.id),
        Sent::New | Sent::Newest => cut_after == Some(&message.id),
    };
    let end = stored.iter().position(is_end).unwrap_or(stored.len());
    let begin = end.saturating_sub(asked.context_limit);
    stored
        .into_iter()
        .take(end)
        .skip(begin)
        .filter(|message| !listed.contains(&message.id))
        .skip_while(|message| message.role != Role::User)
        .map(|StoredMessage { id, role, parts, .. }| Message { id: Some(id), role, parts })
        .collect()
}

#[cfg(test)]
mod tests;
