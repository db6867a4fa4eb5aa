//! Rules for reading a conversation before a run and writing it afterwards. No actor, no clock, no
//! I/O.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::agent::generation::GenerationRequest;
use crate::domain::message::{Message, Part, Role, keep_whole_calls};
use crate::domain::time::Timestamp;
use crate::ports::store::{ApprovedTools, ConversationKey, ConversationWrite, StoredMessage};

/// Default number of stored messages given to the model.
pub(super) const CONTEXT_LIMIT_DEFAULT: u32 = 10;

/// Maximum number of stored messages given to the model.
pub(super) const CONTEXT_LIMIT_MAX: u32 = 1000;

/// Stored messages read in addition to those that a chat client lists, to find those it dropped.
pub(super) const BESIDE_LIST_MAX: usize = 200;

/// Stored messages read in addition to those given to the model if a chat client sends only its
/// newest message, to find that message when it is asked again.
pub(super) const ASKED_AGAIN_MAX: usize = 20;

/// Relation of the caller's messages to the stored conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Messages that follow the stored ones.
    New,
    /// The newest message of a chat; asked again if it is stored already.
    Newest,
    /// The caller's view of the whole conversation.
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

/// The caller's messages, and the values that memory needs.
pub(super) struct MemoryInput<'a> {
    pub(super) messages: &'a [Message],
    pub(super) sent: Sent,
    pub(super) context_limit: usize,
    pub(super) generation_id: &'a str,
    pub(super) at: Timestamp,
}

/// Conversation of a run, as it was read.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) working_memory: Option<String>,
    /// Stored messages before the caller's, oldest first.
    pub(super) older: Vec<Message>,
    pub(super) memory: RunMemory,
}

/// The conversation of a run, as far as the run or one that continues it has to write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunMemory {
    key: ConversationKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_after: Option<String>,
    /// The caller's messages that are new or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    input: Vec<StoredMessage>,
    continued: Continued,
}

/// The assistant's message that a run continues or begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Continued {
    message_id: String,
    parts: Vec<Part>,
    created_at: Option<Timestamp>,
}

/// Returns the id of the assistant's message that the run produces: that of the message it
/// continues, or the run's own.
pub(super) fn message_id<'a>(messages: &'a [Message], generation_id: &'a str) -> &'a str {
    let said = messages.iter().rev().find(|message| match message.role {
        Role::User | Role::Assistant => true,
        Role::System | Role::Tool => false,
    });
    let continued = said.filter(|message| message.role == Role::Assistant);
    continued.and_then(|message| message.id.as_deref()).unwrap_or(generation_id)
}

/// Returns the number of newest stored messages to read.
pub(super) fn messages_to_read(listed: usize, sent: Sent, context_limit: usize) -> usize {
    context_limit
        + match sent {
            Sent::New => 0,
            Sent::Newest => ASKED_AGAIN_MAX,
            Sent::Whole => listed + BESIDE_LIST_MAX,
        }
}

impl Remembered {
    /// Compares the stored messages with the caller's.
    pub(super) fn new(
        key: ConversationKey,
        working_memory: Option<String>,
        stored: Vec<StoredMessage>,
        asked: &MemoryInput<'_>,
    ) -> Self {
        let mut input = as_stored(asked.messages);
        let message_id = message_id(asked.messages, asked.generation_id).to_owned();
        let known = |id: &str| stored.iter().find(|message| message.id == id);
        for message in &mut input {
            if let Some(kept) = message.id.as_deref().and_then(known) {
                restore_approvals(&mut message.parts, &kept.parts);
            }
        }
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
        Self { working_memory, older, memory: RunMemory { key, cut_after, input, continued } }
    }
}

impl RunMemory {
    /// Returns the write that adds the assistant's parts and approved tools to the conversation.
    pub(super) fn write(
        self,
        said: Vec<Part>,
        approved_tools: ApprovedTools,
        generation_id: &str,
        at: Timestamp,
    ) -> ConversationWrite {
        let Self { key, cut_after, input: mut messages, continued } = self;
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
        ConversationWrite { key, cut_after, messages, approved_tools, at }
    }

    /// Returns the same without the caller's messages, which are stored now.
    pub(super) fn stored(self) -> Self {
        Self { cut_after: None, input: Vec::new(), ..self }
    }
}

/// Replaces approvals in a message of the caller by those that are stored: what a client sends back
/// decides nothing, and may be older or say more.
fn restore_approvals(parts: &mut Vec<Part>, stored: &[Part]) {
    parts.retain(|part| !matches!(part, Part::ToolApproval(_)));
    for part in stored {
        let Part::ToolApproval(approval) = part else { continue };
        let is_its_call = |part: &Part| match part {
            Part::ToolCall(call) => call.tool_call_id == approval.tool_call_id,
            _ => false,
        };
        if let Some(call) = parts.iter().position(is_its_call) {
            parts.insert(call + 1, part.clone());
        }
    }
}

/// Converts a message for the store. A missing id is derived from the run's, so that a repeated run
/// of a workflow step does not store its input twice.
fn to_store(message: Message, number: usize, asked: &MemoryInput<'_>) -> StoredMessage {
    let Message { id, role, parts } = message;
    StoredMessage {
        id: id.unwrap_or_else(|| format!("{}-{number}", asked.generation_id)),
        role,
        parts,
        created_at: asked.at,
        generation_id: Some(asked.generation_id.to_owned()),
    }
}

/// Keeps messages of users and of the assistant; tool results join the message before them.
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

/// Returns the id of the caller's last question if messages after it are stored that the caller
/// does not list: the answer is being regenerated.
fn cut_after(
    stored: &[StoredMessage],
    listed: &HashSet<String>,
    asked: &MemoryInput<'_>,
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

/// Returns the stored messages before the caller's: at most `context_limit`, beginning with a
/// question. An answer without its question would confuse a model, and some providers refuse it.
fn older(
    stored: Vec<StoredMessage>,
    listed: &HashSet<String>,
    cut_after: Option<&str>,
    asked: &MemoryInput<'_>,
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
