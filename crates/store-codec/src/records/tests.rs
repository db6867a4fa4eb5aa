//! Decoders, over rows of plain values.

use std::borrow::Cow;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{GenerationStep, Status};

use super::*;
use crate::Damaged;
use crate::columns::Columns;
use crate::execution_columns;

/// A value of a column.
#[derive(Debug, Clone)]
enum Value {
    Null,
    Integer(i64),
    Text(&'static str),
    Bytes(&'static [u8]),
}
use Value::{Bytes, Integer, Null, Text};

/// A row of values; damage is the index of its column and its text.
struct Row(Vec<Value>);

impl Row {
    fn value<'v, T>(
        &'v self,
        column: usize,
        read: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, (usize, String)> {
        match &self.0[column] {
            Null => Ok(None),
            value => read(value).map(Some).ok_or_else(|| (column, format!("{value:?}"))),
        }
    }
}

impl Columns for Row {
    type Error = (usize, String);

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, Self::Error> {
        self.value(column, |value| if let Integer(number) = value { Some(*number) } else { None })
    }

    fn optional_text(&self, column: usize) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let text =
            self.value(column, |value| if let Text(it) = value { Some(*it) } else { None })?;
        Ok(text.map(Cow::Borrowed))
    }

    fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>, Self::Error> {
        self.value(column, |value| if let Bytes(bytes) = value { Some(*bytes) } else { None })
    }

    fn damaged(&self, column: usize, damage: Damaged) -> Self::Error {
        (column, damage.to_string())
    }
}

fn execution() -> Vec<Value> {
    vec![
        Integer(7),
        Text("e1"),
        Text("order"),
        Integer(1),
        Integer(10),
        Integer(20),
        Null,
        Integer(3),
        Text("d"),
        Text("ann"),
        Null,
        Text("p1"),
        Text("steps/1"),
        Text("t1"),
        Text("0000000000000001"),
        Text("order"),
        Null,
        Null,
        Null,
        Null,
        Null,
    ]
}

#[test]
fn the_columns_of_an_execution_are_as_many_as_its_decoder_reads() {
    assert_eq!(execution_columns!().split(',').count(), EVENTS);
    assert_eq!(execution_columns!().split(", ").nth(REPLAYED_FROM), Some("replayed_from"));
    assert_eq!(execution().len(), EVENTS);
}

#[test]
fn an_execution_is_decoded() {
    let projection = projection_of(&Row(execution())).unwrap();
    assert_eq!(projection.header.id.as_str(), "e1");
    assert_eq!(projection.header.user_id.as_deref(), Some("ann"));
    let parent = projection.header.parent.as_ref().unwrap();
    assert_eq!((parent.execution.as_str(), &*parent.path), ("p1", "steps/1"));
    assert!(projection.header.trace.parent_span.is_some());
    assert_eq!((projection.status, projection.last_seq), (Status::Suspended, 3));
    assert_eq!((projection.updated_at, projection.ended_at), (Timestamp(20), None));
}

#[test]
fn damage_names_its_column() {
    for (column, value, damage) in [
        (1, Null, "is null"),
        (2, Integer(1), "Integer(1)"),
        (3, Integer(9), "9 is not a status"),
        (7, Integer(-1), "-1 is negative"),
        (16, Bytes(b"{"), "EOF while parsing an object at line 1 column 1"),
        (17, Bytes(b"{}"), "missing field `reason` at line 1 column 2"),
        (18, Bytes(b""), "EOF while parsing a value at line 1 column 0"),
    ] {
        let mut row = execution();
        row[column] = value;
        assert_eq!(projection_of(&Row(row)), Err((column, damage.to_owned())));
    }
    assert_eq!(Row(execution()).named("execution", 1), "execution e1");
    assert_eq!(Row(execution()).named("execution", 0), "execution without a name");
}

#[test]
fn later_turns_replace_and_follow_those_of_the_row() {
    let turn = |text: &str| GenerationStep { text: text.to_owned(), ..GenerationStep::default() };
    let mut turns = vec![turn("first"), turn("second")];
    put_step(&mut turns, 1, turn("again"));
    put_step(&mut turns, 2, turn("third"));
    assert_eq!(turns, [turn("first"), turn("again"), turn("third")]);
}
