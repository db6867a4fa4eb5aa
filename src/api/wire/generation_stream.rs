//! Streamed responses of a running generation, as bytes.

use std::io::Write as _;

use greenroom_actors::agent::generation::GenerationEvent;
use serde::Serialize;

use crate::api::wire::object_stream::ObjectFrames;
use crate::api::wire::object_text::{CutShort, ObjectText};
use crate::api::wire::openai::CompletionChunks;
use crate::api::wire::pending_ask::ApprovalForm;
use crate::api::wire::raw_stream::raw_event;
use crate::api::wire::server_sent::write_data;
use crate::api::wire::ui_stream::{DONE, refusal_chunk, ui_chunk};

/// Format of a stream of a generation.
#[derive(Debug)]
pub enum GenerationStream {
    /// Numbered events of everything that happens.
    Raw(Numbered),
    /// Chunks of the AI SDK for a chat.
    Chat(ApprovalForm),
    /// Numbered events with partial objects and the complete one.
    Object(Numbered, Box<ObjectFrames>),
    /// Only the JSON of an object, as text.
    ObjectText(Box<ObjectText>),
    /// Chunks of a completion for clients of OpenAI.
    Completion(Box<CompletionChunks>),
}

/// Numbers events from 1.
#[derive(Debug, Default)]
pub struct Numbered {
    last: u64,
}

impl GenerationStream {
    /// Creates the stream of `POST /agents/:id/stream`.
    pub fn raw() -> Self {
        Self::Raw(Numbered::default())
    }

    /// Creates the stream of `POST /agents/:id/stream-object`.
    pub fn object() -> Self {
        Self::Object(Numbered::default(), Box::default())
    }

    /// Creates the same stream as plain text.
    pub fn object_text() -> Self {
        Self::ObjectText(Box::default())
    }

    /// Returns true for server-sent events, false for plain text.
    pub fn is_events(&self) -> bool {
        match self {
            Self::Raw(_) | Self::Chat(_) | Self::Object(..) | Self::Completion(_) => true,
            Self::ObjectText(_) => false,
        }
    }

    /// Appends the bytes of an event to `out`. A subscriber that `is_behind` skips partial objects,
    /// which later events repeat.
    pub fn write(
        &mut self,
        event: &GenerationEvent,
        is_behind: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), CutShort> {
        match self {
            Self::Raw(numbered) => numbered.write(&raw_event(event), out),
            Self::Chat(approvals) => {
                for chunk in ui_chunk(event, *approvals).into_iter().chain(refusal_chunk(event)) {
                    write_data(&chunk, out);
                }
                if event.is_last() {
                    out.extend_from_slice(format!("data: {DONE}\n\n").as_bytes());
                }
            }
            Self::Object(numbered, frames) => {
                if let Some(frame) = frames.frame(event, is_behind) {
                    numbered.write(&frame, out);
                }
            }
            Self::ObjectText(text) => return text.write(event, out),
            Self::Completion(chunks) => chunks.write(event, out),
        }
        Ok(())
    }
}

impl Numbered {
    fn write(&mut self, data: &impl Serialize, out: &mut Vec<u8>) {
        self.last += 1;
        // Writing to memory cannot fail.
        let _ = writeln!(out, "id: {}", self.last);
        write_data(data, out);
    }
}

#[cfg(test)]
mod ask_tests;
#[cfg(test)]
mod tests;
