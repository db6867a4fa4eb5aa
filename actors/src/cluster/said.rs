//! Messages with which a member answers a request. On the wire, a byte for the kind and JSON.

use std::mem::take;

use serde::Serialize;

use crate::agent::event::GenerationEvent;
use crate::domain::fact::Recorded;
use crate::observe::feed::Observed;
use crate::ports::store::read_stored;
use crate::requests::ProgressBatch;

/// Bytes after which a message of events ends, so that other exchanges get their turn.
const EVENTS_BYTES: usize = 64 << 10;

/// Message of a member: the answer to a request, or what follows it if that was asked for.
#[derive(Debug)]
pub(crate) enum Said<'m> {
    /// The answer, a `Result` of the request's types.
    Answer(&'m [u8]),
    /// This member does not serve the execution, or does not understand the request, and has done
    /// nothing.
    Elsewhere,
    /// Facts of an execution.
    Facts(Vec<Recorded>),
    /// Progress of a step.
    Progress(ProgressBatch),
    /// Events of a generation.
    Events(Vec<GenerationEvent>),
    /// Spans and log records.
    Observed(Observed),
}

const ANSWER: u8 = b'a';
const ELSEWHERE: u8 = b'e';
const FACTS: u8 = b'f';
const PROGRESS: u8 = b'p';
const EVENTS: u8 = b'g';
const OBSERVED: u8 = b'o';

impl<'m> Said<'m> {
    /// Reads a message; `None` if its sender is too different a version.
    pub(crate) fn read(message: &'m [u8]) -> Option<Self> {
        match message.split_first()? {
            (&ANSWER, json) => Some(Self::Answer(json)),
            (&ELSEWHERE, _) => Some(Self::Elsewhere),
            (&FACTS, json) => read_stored(json).ok().map(Self::Facts),
            (&PROGRESS, json) => read_stored(json).ok().map(Self::Progress),
            (&EVENTS, json) => read_stored(json).ok().map(Self::Events),
            (&OBSERVED, json) => read_stored(json).ok().map(Self::Observed),
            _ => None,
        }
    }
}

/// Writes the answer to a request.
pub(crate) fn write_answer<T: Serialize, E: Serialize>(answer: &Result<T, E>) -> Vec<u8> {
    write(ANSWER, answer)
}

/// Writes that another member may serve the execution.
pub(crate) fn write_elsewhere() -> Vec<u8> {
    vec![ELSEWHERE]
}

/// Writes facts that follow the answer.
pub(crate) fn write_facts(facts: &[Recorded]) -> Vec<u8> {
    write(FACTS, &facts)
}

/// Writes progress that follows the answer.
pub(crate) fn write_progress(progress: &ProgressBatch) -> Vec<u8> {
    write(PROGRESS, progress)
}

/// Writes events that follow the answer, as messages of moderate size.
pub(crate) fn write_events(events: &[GenerationEvent]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut message = Vec::new();
    for event in events {
        message.push(if message.is_empty() { b'[' } else { b',' });
        if let Err(error) = serde_json::to_writer(&mut message, event) {
            log_unwritable(&error);
            // the other side finds a message that it cannot read
            return vec![vec![EVENTS]];
        }
        if message.len() >= EVENTS_BYTES {
            messages.push(take(&mut message));
        }
    }
    messages.push(message);
    messages.retain(|message| !message.is_empty());
    let ended = |message: Vec<u8>| [&[EVENTS], &*message, b"]"].concat();
    messages.into_iter().map(ended).collect()
}

/// Writes spans or log records that follow the answer.
pub(crate) fn write_observed(observed: &Observed) -> Vec<u8> {
    write(OBSERVED, observed)
}

fn write(kind: u8, value: &impl Serialize) -> Vec<u8> {
    let mut message = vec![kind];
    match serde_json::to_writer(&mut message, value) {
        Ok(()) => message,
        // the other side finds a message that it cannot read
        Err(error) => {
            log_unwritable(&error);
            vec![kind]
        }
    }
}

fn log_unwritable(error: &serde_json::Error) {
    log::error!("a message to another server cannot be written: {error}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn many_events_are_several_messages() {
        let word = |length: usize| GenerationEvent::TextDelta {
            id: Arc::from("text-0"),
            delta: "x".repeat(length),
        };
        let rows = [
            (vec![], 0),
            (vec![word(1), word(2)], 1),
            (vec![word(EVENTS_BYTES), word(1)], 2),
            (vec![word(1), word(EVENTS_BYTES)], 1),
            (vec![word(EVENTS_BYTES / 2); 5], 3),
        ];
        for (events, count) in rows {
            let messages = write_events(&events);
            assert_eq!(messages.len(), count);
            let read = messages.iter().flat_map(|message| match Said::read(message) {
                Some(Said::Events(events)) => events,
                other => panic!("{other:?}"),
            });
            assert_eq!(read.collect::<Vec<_>>(), events);
        }
    }

    #[test]
    fn messages_of_other_versions_are_not_read() {
        for message in [&b""[..], b"?", b"?[]", b"f", b"g{}", b"g[{\"Later\":1}]"] {
            assert!(Said::read(message).is_none(), "{message:?}");
        }
    }
}
