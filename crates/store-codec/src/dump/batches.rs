//! Batches of records.

use super::{Kind, MESSAGE_PLACE, Record, Value};

/// Maximum number of records of a batch.
const RECORDS_MAX: usize = 1_000;
/// Bytes from which on a batch is passed on.
const BYTES_MIN: usize = 4 * 1024 * 1024;

/// Collects records of a kind, and returns them in batches.
#[derive(Debug)]
pub struct Batches {
    records: Vec<Record>,
    bytes: usize,
    /// Numbers messages.
    places: Option<Places>,
}

/// Number of the last message of a memory.
#[derive(Debug, Default)]
struct Places {
    memory: Option<i64>,
    last: i64,
}

impl Places {
    /// Numbers a message within its memory.
    fn put(&mut self, record: &mut Record) {
        let memory = record.first().and_then(Value::as_integer);
        if memory != self.memory {
            *self = Self { memory, last: 0 };
        }
        self.last += 1;
        if let Some(place) = record.get_mut(MESSAGE_PLACE) {
            *place = Value::Integer(self.last);
        }
    }
}

impl Batches {
    /// Starts without records.
    pub fn new(kind: Kind) -> Self {
        let places = (kind == Kind::Messages).then(Places::default);
        Self { records: Vec::new(), bytes: 0, places }
    }

    /// Adds a record; returns a batch once it is full. Messages are numbered here: they must come in
    /// the order of their memories, and within a memory in the order in which they were recorded.
    pub fn add(&mut self, mut record: Record) -> Option<Vec<Record>> {
        if let Some(places) = &mut self.places {
            places.put(&mut record);
        }
        self.bytes += record.iter().map(Value::size).sum::<usize>();
        self.records.push(record);
        let is_full = self.records.len() >= RECORDS_MAX || self.bytes >= BYTES_MIN;
        is_full.then(|| self.take())
    }

    /// Returns the last batch, unless there is none.
    pub fn rest(mut self) -> Option<Vec<Record>> {
        (!self.records.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Vec<Record> {
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(kind: Kind, records: impl IntoIterator<Item = Record>) -> Vec<Vec<Record>> {
        let mut batches = Batches::new(kind);
        let mut full: Vec<_> =
            records.into_iter().filter_map(|record| batches.add(record)).collect();
        full.extend(batches.rest());
        full
    }

    #[test]
    fn batches_are_limited_by_records_and_bytes() {
        let small = std::iter::repeat_n(vec![Value::Integer(1)], RECORDS_MAX + 1);
        let large = vec![Value::Bytes(vec![0; BYTES_MIN])];
        let found = batches(Kind::Logs, small.chain([large, vec![Value::Null]]));
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [RECORDS_MAX, 2, 1]);
        assert!(batches(Kind::Logs, []).is_empty());
    }

    #[test]
    fn messages_are_numbered_within_their_memory() {
        let messages = [3, 3, 5, 7, 7].map(|memory| {
            let mut record = vec![Value::Null; Kind::Messages.types().len()];
            record[0] = Value::Integer(memory);
            record
        });
        let found = batches(Kind::Messages, messages);
        let places = found[0].iter().map(|record| record[MESSAGE_PLACE].clone());
        let places: Vec<_> = places.collect();
        assert_eq!(places, [1, 2, 1, 1, 2].map(Value::Integer));
    }
}
