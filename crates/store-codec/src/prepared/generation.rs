//! Generations, with their turns and messages.

use std::ops::Range;
use std::sync::Arc;

use greenroom_actors::ports::store::{
    ContinuationChange, GenerationRecord, GenerationStep, GenerationWrite, Row,
};

use super::{PreparedAskChange, PreparedMessages};
use crate::trace::{TraceColumns, generation_columns};

/// A serialized generation.
#[derive(Debug)]
pub struct PreparedGeneration {
    /// Number of its row, if it is new.
    pub row: Row,
    /// Without input and output, which are serialized.
    pub record: GenerationRecord,
    /// JSON, `null` if there is none.
    pub input: Vec<u8>,
    pub output: Option<Vec<u8>>,
    pub usage: Option<Vec<u8>>,
    /// Turns that are new or rewritten.
    pub steps: PreparedSteps,
    /// Columns of its trace.
    pub trace: TraceColumns,
    /// Messages that the generation adds to a conversation.
    pub messages: Option<PreparedMessages>,
    pub continuation: PreparedContinuation,
}

/// A serialized change of a continuation and the asks of a generation.
#[derive(Debug)]
pub enum PreparedContinuation {
    Keep,
    Put { body: Arc<str>, asks: Vec<PreparedAskChange> },
    Remove { asks: Vec<PreparedAskChange> },
}

impl PreparedContinuation {
    fn new(change: ContinuationChange) -> serde_json::Result<Self> {
        Ok(match change {
            ContinuationChange::Keep => Self::Keep,
            ContinuationChange::Put { body, asks } => {
                Self::Put { body, asks: PreparedAskChange::all(asks)? }
            }
            ContinuationChange::Remove { asks } => {
                Self::Remove { asks: PreparedAskChange::all(asks)? }
            }
        })
    }

    /// Returns the size of its largest parts, in bytes.
    pub fn size(&self) -> usize {
        let body = match self {
            Self::Put { body, .. } => body.len(),
            Self::Keep | Self::Remove { .. } => 0,
        };
        let details = self.asks().iter().map(|change| match change {
            PreparedAskChange::Open(ask) => ask.details.as_ref().map_or(0, String::len),
            PreparedAskChange::Close { answer, .. } => {
                answer.as_ref().map_or(0, |answer| answer.json.len())
            }
        });
        body + details.sum::<usize>()
    }

    /// Returns the changes of asks.
    pub fn asks(&self) -> &[PreparedAskChange] {
        match self {
            Self::Keep => &[],
            Self::Put { asks, .. } | Self::Remove { asks } => asks,
        }
    }
}

impl PreparedGeneration {
    /// Serializes a generation.
    pub fn new(write: GenerationWrite) -> serde_json::Result<Self> {
        let GenerationWrite { row, mut record, steps, messages, continuation } = write;
        // taken, so that the writer's thread need not free them
        let (input, output) = (record.input.take(), record.output.take());
        Ok(Self {
            row,
            input: serde_json::to_vec(&input)?,
            output: output.as_ref().map(serde_json::to_vec).transpose()?,
            usage: record.usage.as_ref().map(serde_json::to_vec).transpose()?,
            steps: PreparedSteps::new(&steps)?,
            trace: generation_columns(&record, row)?,
            messages: messages.map(PreparedMessages::new).transpose()?,
            continuation: PreparedContinuation::new(continuation)?,
            record,
        })
    }

    /// Returns the turns for the generation's own row: all of them, if it has ended and no more
    /// are expected.
    pub fn inline_steps(&self) -> Option<&[u8]> {
        self.steps.whole().filter(|_| self.record.status.is_final())
    }

    /// Returns the name of the trace, unless it is named after the id.
    pub fn trace_name(&self) -> Option<&str> {
        self.trace.joined.map(|_| &*self.record.trace.id)
    }
}

/// Turns as one JSON array, and the range of each in it.
#[derive(Debug)]
pub struct PreparedSteps {
    array: Vec<u8>,
    places: Vec<(u32, Range<usize>)>,
}

impl PreparedSteps {
    fn new(steps: &[(u32, Arc<GenerationStep>)]) -> serde_json::Result<Self> {
        let mut array = Vec::new();
        let mut places = Vec::with_capacity(steps.len());
        for (number, step) in steps {
            array.push(if places.is_empty() { b'[' } else { b',' });
            let start = array.len();
            serde_json::to_writer(&mut array, &**step)?;
            places.push((*number, start..array.len()));
        }
        array.push(b']');
        Ok(Self { array, places })
    }

    /// Returns true if they replace all earlier turns.
    pub fn replace_all(&self) -> bool {
        self.places.first().is_some_and(|(number, _)| *number == 0)
    }

    /// Iterates over the number and the JSON of every turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u8])> {
        self.places.iter().map(|(number, place)| (*number, &self.array[place.clone()]))
    }

    /// Returns the array if it has all turns from the first on, in order.
    fn whole(&self) -> Option<&[u8]> {
        let numbers = self.places.iter().map(|(number, _)| *number);
        let is_whole = !self.places.is_empty() && numbers.eq(0..self.places.len() as u32);
        is_whole.then_some(&self.array)
    }
}
