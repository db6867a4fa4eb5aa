//! The answers that tell of a generation while it runs, as bytes.

use std::io::Write as _;

use greenroom_actors::agent::generation::GenerationEvent;
use serde::Serialize;

use crate::api::wire::object_stream::ObjectFrames;
use crate::api::wire::object_text::{CutShort, ObjectText};
use crate::api::wire::raw_stream::raw_event;
use crate::api::wire::ui_stream::{DONE, ui_chunk};

/// Who reads, and so what an event looks like.
#[derive(Debug)]
pub enum GenerationStream {
    /// Numbered events, each thing that is said.
    Raw(Numbered),
    /// Chunks of the AI SDK for a chat.
    Chat,
    /// Numbered events with partial objects and the whole one.
    Object(Numbered, Box<ObjectFrames>),
    /// The JSON of an object and nothing else.
    ObjectText(Box<ObjectText>),
}

/// Counts events from 1.
#[derive(Debug, Default)]
pub struct Numbered {
    last: u64,
}

impl GenerationStream {
    /// The stream of `POST /agents/:id/stream`.
    pub fn raw() -> Self {
        Self::Raw(Numbered::default())
    }

    /// The stream of `POST /agents/:id/stream-object`.
    pub fn object() -> Self {
        Self::Object(Numbered::default(), Box::default())
    }

    /// The same as the bare text of the JSON.
    pub fn object_text() -> Self {
        Self::ObjectText(Box::default())
    }

    /// Whether it consists of server-sent events; else of text.
    pub fn is_events(&self) -> bool {
        match self {
            Self::Raw(_) | Self::Chat | Self::Object(..) => true,
            Self::ObjectText(_) => false,
        }
    }

    /// Adds to `out` what an event gives to send. A reader that `is_behind` is spared what later
    /// events say again.
    pub fn write(
        &mut self,
        event: &GenerationEvent,
        is_behind: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), CutShort> {
        match self {
            Self::Raw(numbered) => numbered.write(&raw_event(event), out),
            Self::Chat => {
                if let Some(chunk) = ui_chunk(event) {
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
        }
        Ok(())
    }
}

impl Numbered {
    fn write(&mut self, data: &impl Serialize, out: &mut Vec<u8>) {
        self.last += 1;
        // Writing to memory does not fail.
        let _ = writeln!(out, "id: {}", self.last);
        write_data(data, out);
    }
}

fn write_data(data: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    // Fails only where a value cannot be JSON, and these came from JSON.
    let written = serde_json::to_writer(&mut *out, data);
    debug_assert!(written.is_ok(), "an event could not be written: {written:?}");
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests;
