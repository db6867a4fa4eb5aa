//! An answer while it arrives: content from the reader of a wire format, as events.
//!
//! All limits of an answer are here. Servers are not trusted: a number that one sends is a key,
//! never a size.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use greenroom_actors::domain::foreign;
use greenroom_actors::domain::hash::short_hash;
use greenroom_actors::domain::message::{Part, ToolCall};
use greenroom_actors::ports::model::{
    FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, ProviderState, Served, Usage,
};
use serde_json::{Map, Value};

use super::names::ToolNames;

/// Text, reasoning and arguments of one answer together.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest accepted id of an answer or name of a model.
const NAME_BYTES_MAX: usize = 256;

/// Tool calls in one answer; more than any model makes.
const CALLS_MAX: usize = 128;

/// The known part of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    names: Arc<ToolNames>,
    ids: CallIds,
    /// Calls whose arguments still arrive, in order of their start.
    open: Vec<OpenCall>,
    calls: usize,
    bytes: usize,
    events: VecDeque<ModelEvent>,
    served: Served,
    /// Newest count of tokens, set by the reader.
    pub(super) usage: Usage,
    /// `None` until the provider gives a reason.
    pub(super) finish_reason: Option<FinishReason>,
}

#[derive(Debug)]
struct OpenCall {
    /// Number by which the server refers to the call while it arrives.
    key: u64,
    /// Id from the server.
    given: String,
    id: String,
    name: String,
    arguments: String,
}

impl Answer {
    /// Starts an answer of the model that `served` names.
    pub(super) fn new(names: Arc<ToolNames>, messages: Arc<Vec<Message>>, served: Served) -> Self {
        Self {
            names,
            ids: CallIds { messages, used: None, prompt: None },
            open: Vec::new(),
            calls: 0,
            bytes: 0,
            events: VecDeque::new(),
            served,
            usage: Usage::default(),
            finish_reason: None,
        }
    }

    /// Takes the next event.
    pub(super) fn take(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    /// Records the server's id of the answer and name of the model; the first of each counts.
    pub(super) fn set_names(&mut self, id: &str, model: &str) {
        for (name, given) in
            [(&mut self.served.response_id, id), (&mut self.served.response_model, model)]
        {
            if name.is_none() && (1..=NAME_BYTES_MAX).contains(&given.len()) {
                *name = Some(given.to_owned());
            }
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), ModelError> {
        self.grow(text.len())?;
        if !text.is_empty() {
            self.events.push_back(ModelEvent::TextDelta(text.to_owned()));
        }
        Ok(())
    }

    pub(super) fn reasoning(&mut self, text: &str) -> Result<(), ModelError> {
        self.grow(text.len())?;
        if !text.is_empty() {
            self.events.push_back(ModelEvent::ReasoningDelta(text.to_owned()));
        }
        Ok(())
    }

    /// Returns true if a call of this key is open; with another id it is another call.
    pub(super) fn has_open(&self, key: u64, given: &str) -> bool {
        let is_it = |call: &OpenCall| call.key == key && (given.is_empty() || call.given == given);
        self.open.iter().rev().any(is_it)
    }

    /// Returns the key of the newest open call.
    pub(super) fn newest_open(&self) -> Option<u64> {
        self.open.last().map(|call| call.key)
    }

    /// Begins a call. An open one with the same key is complete.
    pub(super) fn begin_call(
        &mut self,
        key: u64,
        given: &str,
        name: &str,
    ) -> Result<(), ModelError> {
        self.end_call(key)?;
        let (id, name) = self.admitted(given, name)?;
        self.events.push_back(ModelEvent::ToolInputStart {
            tool_call_id: id.clone(),
            tool_name: name.clone(),
        });
        let given = given.to_owned();
        self.open.push(OpenCall { key, given, id, name, arguments: String::new() });
        Ok(())
    }

    /// Appends to the arguments of a call; ignored without an open call.
    pub(super) fn more_of_call(&mut self, key: u64, piece: &str) -> Result<(), ModelError> {
        self.grow(piece.len())?;
        let Some(call) = self.open.iter_mut().rev().find(|call| call.key == key) else {
            return Ok(());
        };
        if !piece.is_empty() {
            call.arguments.push_str(piece);
            let tool_call_id = call.id.clone();
            self.events
                .push_back(ModelEvent::ToolInputDelta { tool_call_id, delta: piece.to_owned() });
        }
        Ok(())
    }

    /// Completes a call.
    pub(super) fn end_call(&mut self, key: u64) -> Result<(), ModelError> {
        let Some(at) = self.open.iter().position(|call| call.key == key) else { return Ok(()) };
        let OpenCall { id, name, arguments, .. } = self.open.remove(at);
        self.events.push_back(ModelEvent::ToolCall(ToolCall {
            tool_call_id: id,
            tool_name: name,
            input: arguments_of(arguments),
        }));
        Ok(())
    }

    /// Adds a call that arrived whole, and returns its id.
    pub(super) fn whole_call(
        &mut self,
        given: &str,
        name: &str,
        input: Value,
    ) -> Result<String, ModelError> {
        let (tool_call_id, tool_name) = self.admitted(given, name)?;
        let id = tool_call_id.clone();
        self.events.push_back(ModelEvent::ToolCall(ToolCall { tool_call_id, tool_name, input }));
        Ok(id)
    }

    /// Returns true if the model calls tools.
    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Completes open calls and the answer.
    pub(super) fn finish(&mut self, state: Option<ProviderState>) -> Result<(), ModelError> {
        while let Some(call) = self.open.first() {
            self.end_call(call.key)?;
        }
        self.events.extend(state.map(ModelEvent::ProviderState));
        let finish_reason = match self.finish_reason.unwrap_or_default() {
            // several providers report `stop` also if they stop for tool calls
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        };
        let served = Some(Box::new(std::mem::take(&mut self.served)));
        self.events.push_back(ModelEvent::Finished { usage: self.usage, finish_reason, served });
        Ok(())
    }

    fn admitted(&mut self, given: &str, name: &str) -> Result<(String, String), ModelError> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            return Err(too_much(&format!("more than {CALLS_MAX} tool calls")));
        }
        self.grow(given.len() + name.len())?;
        Ok((self.ids.unique(given), self.names.own(name)))
    }

    /// Counts bytes stored for the answer, here or by its reader.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(too_much(&format!("more than {ANSWER_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

fn too_much(what: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Other, format!("the model's answer has {what}"))
}

/// Parses arguments as JSON, or returns them as a text.
fn arguments_of(written: String) -> Value {
    if written.trim().is_empty() {
        return Value::Object(Map::new());
    }
    foreign::from_str(&written).unwrap_or(Value::String(written))
}

/// Makes ids of calls unique in a generation: servers may omit them, or number each turn from 0.
#[derive(Debug)]
struct CallIds {
    messages: Arc<Vec<Message>>,
    /// Read from the messages on the first call.
    used: Option<HashSet<String>>,
    /// Fingerprint of the messages, computed when the first id has to be made.
    prompt: Option<String>,
}

impl CallIds {
    fn unique(&mut self, given: &str) -> String {
        let messages = &self.messages;
        let used = self.used.get_or_insert_with(|| ids_of(messages));
        if !given.is_empty() && used.insert(given.to_owned()) {
            return given.to_owned();
        }
        let prompt = self.prompt.get_or_insert_with(|| fingerprint(messages));
        let mut count = used.len();
        loop {
            let id = format!("call_{}", short_hash(&[prompt, given, &count.to_string()]));
            if used.insert(id.clone()) {
                return id;
            }
            count += 1;
        }
    }
}

fn fingerprint(messages: &[Message]) -> String {
    short_hash(&[&serde_json::to_string(messages).unwrap_or_default()])
}

fn ids_of(messages: &[Message]) -> HashSet<String> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let ids = parts.filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.tool_call_id.clone()),
        _ => None,
    });
    ids.collect()
}
