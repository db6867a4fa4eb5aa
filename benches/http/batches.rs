//! Batches of the bare server in PostgreSQL: their rows, and statements of the shape of greenroom's.
//!
//! Each statement moves the lane to its next batch, without which it would write nothing, and takes
//! the rows as one array per column. Parts that the measured work does not need are left out: keys,
//! timers, snapshots, users.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::domain::usage::Usage;
use greenroom_actors::ports::store::{GenerationStep, Period, TurnTiming};
use serde_json::Value;
use tokio_postgres::types::ToSql;

use crate::facts::{DEFINITION, Facts, trace_of};

/// Codes of statuses.
const SUSPENDED: i16 = 1;
const COMPLETED: i16 = 4;
const GENERATION_COMPLETED: i16 = 1;

/// Revision of an execution that was created.
const CREATED: i64 = 0;

const SLOTS: i64 = 4096;

/// Rows that are committed together.
pub(crate) trait Batched: Sized {
    /// Returns the statement for a batch.
    fn statement(batch: &[Self]) -> &'static str;

    /// Adds the parameters of that statement to those that all have.
    fn columns<'b>(batch: &'b [Self], columns: Columns<'b>) -> Columns<'b>;
}

/// Parameters of a statement.
pub(crate) struct Columns<'b>(Vec<Box<dyn ToSql + Sync + 'b>>);

impl<'b> Columns<'b> {
    /// Returns the parameters that identify a batch.
    pub(crate) fn of(batch: i64, lane: i16) -> Self {
        Self(vec![Box::new(batch), Box::new(lane)])
    }

    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }

    fn add<R, T: ToSql + Sync + 'b>(&mut self, rows: &[R], value: impl Fn(&R) -> T) {
        self.0.push(Box::new(rows.iter().map(value).collect::<Vec<_>>()));
    }
}

macro_rules! fence {
    () => {
        "WITH fence AS (
            UPDATE lanes SET batch = $1::bigint
            WHERE node = 0 AND lane = $2 AND session = 1 AND batch = $1::bigint - 1 RETURNING 1),
        "
    };
}

macro_rules! created {
    () => {
        "created AS (
            INSERT INTO executions (n, created, updated, ended, last_seq, revision, status, slot,
                id, workflow, definition, trace, root_workflow, suspension, events)
            SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::smallint[], $10::smallint[], $11::text[],
                $12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[], $17::bytea[])
            WHERE EXISTS (SELECT FROM fence)),
        counted AS (
            INSERT INTO execution_counts AS c (workflow, status, node, lane, count)
            SELECT workflow, status, 0, $2, by
            FROM unnest($18::text[], $19::smallint[], $20::int[]) AS u (workflow, status, by)
            WHERE EXISTS (SELECT FROM fence)
            ON CONFLICT (workflow, status, node, lane)
                DO UPDATE SET count = c.count + excluded.count)
        "
    };
}

const CREATIONS: &str = concat!(fence!(), created!(), "SELECT count(*) FROM fence");

const CREATIONS_AND_MOVES: &str = concat!(
    fence!(),
    created!(),
    ", moved AS (
        UPDATE executions e SET revision = u.revision, status = u.status, updated = u.updated,
            ended = u.updated, last_seq = u.last_seq, suspension = NULL
        FROM unnest($21::bigint[], $22::bigint[], $23::smallint[], $24::bigint[], $25::bigint[])
            AS u (n, revision, status, updated, last_seq)
        WHERE e.n = ANY (ARRAY[u.n]) AND e.revision = u.revision - 1
            AND EXISTS (SELECT FROM fence)
        RETURNING 1),
    put AS (
        INSERT INTO chunks (execution, last, revision, events)
        SELECT * FROM unnest($21, $25, $22, $26::bytea[]) WHERE EXISTS (SELECT FROM fence))
    SELECT (SELECT count(*) FROM fence),
        1 / CASE WHEN (SELECT count(*) FROM moved) = cardinality($21) THEN 1 ELSE 0 END"
);

const GENERATIONS: &str = concat!(
    fence!(),
    "counted AS (
        INSERT INTO agents AS a (agent, last)
        SELECT agent, count(*) FROM unnest($6::text[]) AS agent
        WHERE EXISTS (SELECT FROM fence) GROUP BY agent ORDER BY agent
        ON CONFLICT (agent) DO UPDATE SET last = a.last + excluded.last RETURNING agent, last),
    made AS (
        INSERT INTO generations (n, number, started, ended, node, status, id, agent, usage, input,
            output, steps)
        SELECT n, last + 1 - row_number() OVER (PARTITION BY agent ORDER BY item DESC), at, at, 0,
            status, id, agent, usage, input, output, steps
        FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6, $7::smallint[], $8::bytea[],
            $9::bytea[], $10::bytea[], $11::bytea[]) WITH ORDINALITY
            AS u (n, at, id, agent, status, usage, input, output, steps, item)
        JOIN counted USING (agent))
    SELECT count(*) FROM fence"
);

/// Change of an execution.
pub(crate) struct Execution {
    row: i64,
    at: Timestamp,
    facts: Facts,
    /// `None` if the execution is known.
    new: Option<NewExecution>,
}

/// Columns that only a new execution has.
struct NewExecution {
    id: Arc<str>,
    trace: Trace,
    suspension: Option<Vec<u8>>,
}

impl Execution {
    /// Serializes an execution that completes at once.
    pub(crate) fn noop3(row: i64, id: Arc<str>, at: Timestamp, input: Value, n: i64) -> Self {
        let trace = trace_of(&id, "noop3", row);
        let new = NewExecution { id, trace: trace.clone(), suspension: None };
        Self { row, at, facts: Facts::noop3(trace, at, input, n), new: Some(new) }
    }

    /// Serializes an execution that waits.
    pub(crate) fn suspended(
        row: i64,
        id: Arc<str>,
        at: Timestamp,
        input: Value,
        reason: &str,
    ) -> Self {
        let trace = trace_of(&id, "approval", row);
        let (facts, suspension) = Facts::suspended(trace.clone(), at, input, reason);
        let new = NewExecution { id, trace, suspension: Some(suspension) };
        Self { row, at, facts, new: Some(new) }
    }

    /// Serializes the completion of an execution that waits.
    pub(crate) fn resumed(row: i64, at: Timestamp, data: Value, result: Value) -> Self {
        Self { row, at, facts: Facts::resumed(at, data, result), new: None }
    }

    /// Returns the numbers of executions by workflow and status that a batch adds or removes.
    fn counted(batch: &[Self]) -> BTreeMap<(&str, i16), i32> {
        let mut counted = BTreeMap::new();
        let mut count = |workflow, status, by| {
            *counted.entry((workflow, status)).or_default() += by;
        };
        for row in batch {
            match &row.new {
                Some(new) => count(&*new.trace.root_id, new.status(), 1),
                None => {
                    count("approval", SUSPENDED, -1);
                    count("approval", COMPLETED, 1);
                }
            }
        }
        counted
    }
}

impl NewExecution {
    fn status(&self) -> i16 {
        if self.suspension.is_some() { SUSPENDED } else { COMPLETED }
    }
}

impl Batched for Execution {
    fn statement(batch: &[Self]) -> &'static str {
        if batch.iter().all(|it| it.new.is_some()) { CREATIONS } else { CREATIONS_AND_MOVES }
    }

    fn columns<'b>(batch: &'b [Self], mut columns: Columns<'b>) -> Columns<'b> {
        let created = |it: &'b Self| it.new.as_ref().map(|new| (it, new));
        let created: Vec<_> = batch.iter().filter_map(created).collect();
        columns.add(&created, |(it, _)| it.row);
        columns.add(&created, |(it, _)| it.at.0);
        columns.add(&created, |(it, _)| it.at.0);
        columns.add(&created, |(it, new)| (new.status() == COMPLETED).then_some(it.at.0));
        columns.add(&created, |(it, _)| it.facts.last);
        columns.add(&created, |_| CREATED);
        columns.add(&created, |(_, new)| new.status());
        columns.add(&created, |(it, _)| (it.row % SLOTS) as i16);
        columns.add(&created, |(_, new)| &*new.id);
        columns.add(&created, |(_, new)| &*new.trace.root_id);
        columns.add(&created, |_| DEFINITION);
        columns.add(&created, |(_, new)| &*new.trace.id);
        columns.add(&created, |(_, new)| &*new.trace.root_id);
        columns.add(&created, |(_, new)| new.suspension.as_deref());
        columns.add(&created, |(it, _)| &*it.facts.events);
        let counted: Vec<_> = Self::counted(batch).into_iter().collect();
        columns.add(&counted, |((workflow, _), _)| *workflow);
        columns.add(&counted, |((_, status), _)| *status);
        columns.add(&counted, |(_, by)| *by);
        let moved: Vec<_> = batch.iter().filter(|it| it.new.is_none()).collect();
        if !moved.is_empty() {
            columns.add(&moved, |it| it.row);
            columns.add(&moved, |_| CREATED + 1);
            columns.add(&moved, |_| COMPLETED);
            columns.add(&moved, |it| it.at.0);
            columns.add(&moved, |it| it.facts.last);
            columns.add(&moved, |it| &*it.facts.events);
        }
        columns
    }
}

/// A generation that has ended.
pub(crate) struct Generation {
    row: i64,
    id: Arc<str>,
    at: Timestamp,
    agent: String,
    usage: Vec<u8>,
    /// JSON of both the prompt and the answer.
    text: Vec<u8>,
    steps: Vec<u8>,
}

impl Generation {
    /// Serializes a generation whose text repeats its prompt.
    pub(crate) fn new(
        row: i64,
        id: Arc<str>,
        at: Timestamp,
        agent: String,
        text: String,
        usage: Usage,
    ) -> Self {
        // cannot fail: every key is a text
        let json = |bytes: serde_json::Result<Vec<u8>>| bytes.unwrap_or_default();
        let prompt = json(serde_json::to_vec(&text));
        let period = Period { start: at, end: Some(at) };
        let timing = TurnTiming { chat: Some(period), ..TurnTiming::default() };
        let steps = [GenerationStep { text, usage, timing, ..GenerationStep::default() }];
        Self {
            row,
            id,
            at,
            agent,
            usage: json(serde_json::to_vec(&usage)),
            text: prompt,
            steps: json(serde_json::to_vec(&steps)),
        }
    }
}

impl Batched for Generation {
    fn statement(_: &[Self]) -> &'static str {
        GENERATIONS
    }

    fn columns<'b>(batch: &'b [Self], mut columns: Columns<'b>) -> Columns<'b> {
        let batch: Vec<_> = batch.iter().collect();
        columns.add(&batch, |it| it.row);
        columns.add(&batch, |it| it.at.0);
        columns.add(&batch, |it| &*it.id);
        columns.add(&batch, |it| &*it.agent);
        columns.add(&batch, |_| GENERATION_COMPLETED);
        columns.add(&batch, |it| &*it.usage);
        columns.add(&batch, |it| &*it.text);
        columns.add(&batch, |it| &*it.text);
        columns.add(&batch, |it| &*it.steps);
        columns
    }
}
