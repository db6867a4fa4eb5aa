//! The table of each kind.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::slot_of;
use greenroom_store_codec::dump::{
    EXECUTION_ID, Kind, MESSAGE_PARTS, Record, TIMER_EXECUTION, Type, Value,
};
use greenroom_store_codec::prepared::folded_text_of;

use super::Places;
use crate::lane::register::GENERATIONS;

/// A table, as records of a kind are read from and added to it.
pub(crate) struct Table {
    kind: Kind,
    pub(super) name: &'static str,
    /// Columns in the order of the values of the kind.
    columns: &'static str,
    /// End of the statement that reads the columns, in the order of an index.
    order: &'static str,
    /// Column of the value that [`complete`] adds to a record, and its type.
    added: Option<(&'static str, Type)>,
    /// Columns that are the same in all records, and their values.
    same: Option<(&'static str, &'static str)>,
}

impl Table {
    const fn new(
        kind: Kind,
        name: &'static str,
        columns: &'static str,
        order: &'static str,
    ) -> Self {
        Self { kind, name, columns, order, added: None, same: None }
    }

    const fn adding(self, column: &'static str, of: Type) -> Self {
        Self { added: Some((column, of)), ..self }
    }

    const fn with(self, columns: &'static str, values: &'static str) -> Self {
        Self { same: Some((columns, values)), ..self }
    }

    /// Returns the table of a kind.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Definitions => Self::new(kind, "definitions", "hash, body", "ORDER BY hash"),
            Kind::KnownTools => Self::new(
                kind,
                "mcp_tools",
                "server, tool, first_seen, hash, accepted, body",
                "ORDER BY server, tool",
            ),
            Kind::Executions => Self::new(
                kind,
                "executions",
                "n, id, workflow, status, created, updated, ended, last_seq, revision, \
            definition, user_id, conversation, parent, parent_path, trace, \
            parent_span, root_workflow, joined, around, replayed_from, \
            replayed_step, suspension, error, events, has_asks",
                "ORDER BY n",
            )
            .adding("slot", Type::Integer),
            Kind::Chunks => Self::new(
                kind,
                "chunks",
                "execution, last, revision, events",
                "ORDER BY execution, last, revision",
            ),
            Kind::Snapshots => Self::new(
                kind,
                "snapshots",
                "execution, last_seq, last, revision, state",
                "ORDER BY execution",
            ),
            Kind::Timers => {
                Self::new(kind, "timers", "execution, key, due", "ORDER BY execution, key")
                    .adding("slot", Type::Integer)
            }
            Kind::Asks => Self::new(
                kind,
                "asks",
                "n, id, execution, generation, kind, state, opened, due, closed, workflow, agent, \
            path, tool, user_id, reason, revision, rules, claimed_by, claimed_until, next_due, \
            details, answer, answered_by",
                "ORDER BY n",
            ),
            Kind::Keys => Self::new(
                kind,
                "idempotency",
                "scope, body_hash, execution, after_seq, expires",
                "ORDER BY scope",
            ),
            Kind::Users => {
                Self::new(kind, "acted", "user_id, execution", "ORDER BY user_id, execution")
            }
            Kind::Counts => Self::new(kind, "execution_counts", "workflow, status, count", "")
                .with("node, lane", "0, 0"),
            Kind::Generations => Self::new(
                kind,
                "generations",
                "n, id, agent, number, status, started, ended, input, output, usage, \
            error, user_id, conversation, execution, path, steps, trace, joined, \
            around",
                "ORDER BY n",
            )
            .with("node", "0"),
            Kind::Turns => {
                Self::new(kind, "steps", "generation, number, body", "ORDER BY generation, number")
            }
            Kind::Continuations => Self::new(
                kind,
                "continuations",
                "generation, revision, body",
                "ORDER BY generation",
            ),
            Kind::Holes => {
                Self::new(kind, "forgotten", "agent, block, count, last", "ORDER BY agent, block")
            }
            Kind::Memories => Self::new(kind, "memories", "n, agent, owner", "ORDER BY n"),
            Kind::Conversations => Self::new(
                kind,
                "conversations",
                "n, memory, id, agent, owner, title, metadata, working_memory, created, \
            updated, approved",
                "ORDER BY n",
            )
            .with("next", "1"),
            Kind::Messages => Self::new(
                kind,
                "messages",
                "memory, conversation, id, role, parts, created, generation, place",
                "ORDER BY memory, n",
            )
            .adding("folded", Type::Text),
            Kind::Logs => Self::new(
                kind,
                "logs",
                "n, at, level, target, trace, span, execution, parent, workflow, \
            generation, agent, conversation, user_id, request, attributes, message",
                "ORDER BY n",
            ),
        }
    }

    /// Returns the statement that reads all records.
    pub(super) fn select(&self) -> String {
        let Self { name, columns, order, .. } = self;
        if self.kind == Kind::Counts {
            return SELECT_COUNTS.to_owned();
        }
        format!("SELECT {columns} FROM {name} {order}")
    }

    /// Returns the statement that adds records, which [`complete`] has completed, unless another
    /// process has taken the database over; its parameters are an array for each column of
    /// [`Table::types`], and the number of this process.
    pub(crate) fn insert(&self) -> String {
        let Self { name, columns, .. } = self;
        let added = self.added.map(|(column, _)| format!(", {column}")).unwrap_or_default();
        let (same, values) = self.same.map_or_else(Default::default, |(columns, values)| {
            (format!(", {columns}"), format!(", {values}"))
        });
        let array = |(index, of): (usize, Type)| {
            let of = match of {
                Type::Integer => "bigint",
                Type::Text => "text",
                Type::Bytes => "bytea",
            };
            format!("${}::{of}[]", index + 1)
        };
        let arrays: Vec<_> = self.types().enumerate().map(array).collect();
        let node = arrays.len() + 1;
        let arrays = arrays.join(", ");
        format!(
            "WITH held AS MATERIALIZED (
                SELECT FROM lanes WHERE node = ${node} AND lane = {GENERATIONS} FOR KEY SHARE)
            INSERT INTO {name} ({columns}{added}{same}) OVERRIDING SYSTEM VALUE
            SELECT *{values} FROM unnest({arrays}) WHERE EXISTS (SELECT FROM held)"
        )
    }

    /// Returns the types of the values of a record, with the one that is added.
    pub(super) fn types(&self) -> impl Iterator<Item = Type> {
        self.kind.types().iter().copied().chain(self.added.map(|(_, of)| of))
    }
}

/// Adds the counts of all lanes up.
const SELECT_COUNTS: &str = "SELECT workflow, status, sum(count)::bigint FROM execution_counts
    GROUP BY workflow, status HAVING sum(count) <> 0";

/// Adds the value that the database derives from a record, and numbers messages within their
/// conversation.
pub(super) fn complete(kind: Kind, record: &mut Record, places: &mut Places) {
    if kind == Kind::Messages {
        if let [memory, conversation, .., place] = &mut record[..] {
            *place = Value::Integer(places.next(memory, conversation));
        }
        let parts = record.get(MESSAGE_PARTS).and_then(Value::as_bytes);
        record.push(Value::Text(parts.map(folded_text_of).unwrap_or_default()));
    } else if kind == Kind::Executions {
        add_slot(record, EXECUTION_ID);
    } else if kind == Kind::Timers {
        add_slot(record, TIMER_EXECUTION);
    }
}

fn add_slot(record: &mut Record, id: usize) {
    let id = record.get(id).and_then(Value::as_text).map(ExecutionId::trusted);
    let slot = id.map(|id| Value::Integer(slot_of(&id).number().into()));
    record.push(slot.unwrap_or(Value::Null));
}

/// Returns the statement that finds the kinds of which there are records.
pub(crate) fn occupied() -> String {
    let found = Kind::ALL.map(|kind| {
        let name = Table::of(kind).name;
        format!("SELECT '{kind}' AS kind WHERE EXISTS (SELECT FROM {name})")
    });
    format!("SELECT array(SELECT kind FROM ({}) AS found)", found.join(" UNION ALL "))
}

/// Returns the statements that derive what is not in the records: places after which messages and
/// numbers continue, and the statistics of the planner.
pub(super) fn derive() -> String {
    let mut statements = DERIVE.to_owned();
    for (sequence, table) in SEQUENCES {
        statements.push_str(&format!(
            "SELECT setval('{sequence}', max(n)) FROM {table} HAVING max(n) > 0;"
        ));
    }
    for kind in Kind::ALL {
        statements.push_str(&format!("ANALYZE {};", Table::of(kind).name));
    }
    statements.push_str("ANALYZE agents");
    statements
}

const DERIVE: &str = "
    INSERT INTO agents (agent, last) SELECT agent, max(last) FROM (
        SELECT agent, number AS last FROM generations UNION ALL SELECT agent, last FROM forgotten
    ) AS numbers GROUP BY agent;
    UPDATE conversations c SET next = m.last + 1
    FROM (SELECT conversation, max(place) AS last FROM messages GROUP BY conversation) AS m
    WHERE c.n = m.conversation;";

/// Sequences of the numbers of rows, with their tables. That of messages has given their numbers.
const SEQUENCES: [(&str, &str); 6] = [
    ("execution_rows", "executions"),
    ("generation_rows", "generations"),
    ("log_rows", "logs"),
    ("asks_n_seq", "asks"),
    ("memories_n_seq", "memories"),
    ("conversations_n_seq", "conversations"),
];

/// Tables without records of a kind.
pub(super) const DERIVED: [&str; 1] = ["agents"];
