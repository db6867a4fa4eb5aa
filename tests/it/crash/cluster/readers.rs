//! Readers of event streams: each follows executions from their first event to their last one, at
//! any of the servers, one after the other.

use std::io;

use super::Cluster;
use super::callers::RETRY_AFTER;
use crate::crash::client::Named;
use crate::crash::rng::Rng;
use support::client::{Event, Events};

/// Executions, newest first, among which a reader chooses the next one.
const RECENT: usize = 64;
/// A reader leaves one of so many events for another server.
const LEAVES: u64 = 12;

/// The events that one reader has captured of an execution.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) execution: Named,
    pub(super) events: Vec<Event>,
    /// Number of streams that showed them.
    pub(super) streams: u64,
}

/// Reason for which a reader does not read on.
enum End {
    /// The execution has ended.
    Ended,
    /// The stream has ended, or is left.
    Stream,
}

impl Cluster<'_> {
    /// Reads streams until the faults are over, and then the last one to its end.
    pub(super) fn read_streams(&self, place: usize, rng: &mut Rng) -> Vec<Captured> {
        let mut all = Vec::new();
        while !self.is_over() {
            self.assert_not_failed();
            let Some(execution) = self.recent(rng) else {
                std::thread::sleep(RETRY_AFTER);
                continue;
            };
            let mut captured = Captured { execution, events: Vec::new(), streams: 0 };
            loop {
                self.assert_not_failed();
                self.readers.lock().unwrap()[place] = Some(captured.place());
                match self.read_stream(&mut captured, rng) {
                    Ok(End::Ended) => break,
                    Ok(End::Stream) => {}
                    Err(error) => self.note(&error),
                }
            }
            all.push(captured);
        }
        self.readers.lock().unwrap()[place] = None;
        all
    }

    /// Returns one of the executions that were begun last.
    fn recent(&self, rng: &mut Rng) -> Option<Named> {
        let begun = self.begun.lock().unwrap();
        let first = begun.len().saturating_sub(RECENT);
        let among = begun.len() - first;
        (among > 0).then(|| begun[first + rng.below(among as u64) as usize].clone())
    }

    /// Reads one stream from the last captured event on.
    fn read_stream(&self, captured: &mut Captured, rng: &mut Rng) -> io::Result<End> {
        let (workflow, id) = &captured.execution;
        let path = format!("/workflows/{workflow}/executions/{id}/stream");
        let last = captured.last();
        let mut wire = self.open(rng)?;
        wire.send("GET", &format!("{path}?fromSequence={last}"), &[], None)?;
        let head = wire.head()?;
        match head.status {
            200 => {}
            204 if captured.is_ended() => return Ok(End::Ended),
            // its start is still under way
            404 if captured.events.is_empty() => {
                std::thread::sleep(RETRY_AFTER);
                return Ok(End::Stream);
            }
            _ => {
                self.note_refusal(&wire.rest_of(head)?);
                return Ok(End::Stream);
            }
        }
        let mut events = Events::after(head, wire)?;
        captured.streams += 1;
        loop {
            let Some(event) = events.next_while(|| self.assert_not_failed())? else {
                return Ok(if captured.is_ended() { End::Ended } else { End::Stream });
            };
            assert_eq!(event.id, captured.last() + 1, "{event:?} follows in {captured:#?}");
            captured.events.push(event);
            if rng.below(LEAVES) == 0 {
                return Ok(End::Stream);
            }
        }
    }
}

impl Captured {
    /// Returns the number of the last event.
    fn last(&self) -> u64 {
        self.events.last().map_or(0, |event| event.id)
    }

    fn is_ended(&self) -> bool {
        self.events.last().is_some_and(|event| event.kind() == "workflow-result")
    }

    fn place(&self) -> String {
        format!("{} after {}", self.execution.1, self.last())
    }
}
