//! Statements of copies, by kind.
//!
//! Columns are in the order of the values of a kind. Each statement reads a table along its key, so
//! nothing is sorted.

use greenroom_store_codec::dump::Kind;

/// Columns of a table, in the order of the values of a kind.
macro_rules! table {
    ($table:literal, $columns:literal, $order:literal, $values:literal) => {
        Statements {
            select: concat!("SELECT ", $columns, " FROM ", $table, " ", $order),
            insert: concat!("INSERT INTO ", $table, " (", $columns, ") VALUES (", $values, ")"),
        }
    };
}

/// Adds the text of a message to the search.
pub(crate) const PUT_TEXT: &str = "INSERT INTO messages_text (rowid, text) VALUES (?1, ?2)";

struct Statements {
    select: &'static str,
    insert: &'static str,
}

/// Returns the statement that reads all records of a kind.
pub(crate) fn select(kind: Kind) -> &'static str {
    statements(kind).select
}

/// Returns the statement that adds a record. That of a message has its number for its memory, and no
/// place.
pub(crate) fn insert(kind: Kind) -> &'static str {
    statements(kind).insert
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn statements(kind: Kind) -> Statements {
    match kind {
        Kind::Definitions => table!("definitions", "hash, body", "ORDER BY hash", "?, ?"),
        Kind::KnownTools => table!(
            "mcp_tools",
            "server, tool, first_seen, hash, accepted, body",
            "ORDER BY server, tool",
            "?, ?, ?, ?, ?, ?"
        ),
        Kind::Executions => table!(
            "executions",
            "n, id, workflow, status, created, updated, ended, last_seq, revision, \
            definition, user_id, conversation, parent, parent_path, trace, \
            parent_span, root_workflow, joined, around, replayed_from, \
            replayed_step, suspension, error, events, has_asks",
            "ORDER BY n",
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        ),
        Kind::Chunks => table!(
            "chunks",
            "execution, last, part, events",
            "ORDER BY execution, last, part",
            "?, ?, ?, ?"
        ),
        Kind::Snapshots => table!(
            "snapshots",
            "execution, last_seq, last, part, state",
            "ORDER BY execution",
            "?, ?, ?, ?, ?"
        ),
        Kind::Timers => {
            table!("timers", "execution, key, due", "ORDER BY execution, key", "?, ?, ?")
        }
        Kind::Asks => table!(
            "asks",
            "n, id, execution, generation, kind, state, opened, due, closed, workflow, agent, path, \
            tool, user_id, reason, revision, rules, claimed_by, claimed_until, next_due, details, \
            answer, answered_by",
            "ORDER BY n",
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        ),
        Kind::Keys => table!(
            "idempotency",
            "scope, body_hash, execution, after_seq, expires",
            "ORDER BY scope",
            "?, ?, ?, ?, ?"
        ),
        Kind::Users => table!("acted", "user_id, execution", "ORDER BY user_id, execution", "?, ?"),
        Kind::Counts => table!(
            "execution_counts",
            "workflow, status, count",
            "WHERE count <> 0 ORDER BY workflow, status",
            "?, ?, ?"
        ),
        Kind::Generations => table!(
            "generations",
            "n, id, agent, number, status, started, ended, input, output, usage, \
            error, user_id, conversation, execution, path, steps, trace, joined, \
            around",
            "ORDER BY n",
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        ),
        Kind::Turns => {
            table!("steps", "generation, number, body", "ORDER BY generation, number", "?, ?, ?")
        }
        Kind::Continuations => {
            table!("continuations", "generation, revision, body", "ORDER BY generation", "?, ?, ?")
        }
        Kind::Holes => {
            table!("forgotten", "agent, block, count, last", "ORDER BY agent, block", "?, ?, ?, ?")
        }
        Kind::Memories => table!("memories", "n, agent, user", "ORDER BY n", "?, ?, ?"),
        Kind::Conversations => table!(
            "conversations",
            "n, memory, id, agent, user, title, metadata, working_memory, created, \
            updated, approved",
            "ORDER BY n",
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        ),
        Kind::Messages => Statements {
            select: "SELECT n >> 32, conversation, id, role, parts, created, generation, 0 \
                FROM messages ORDER BY n",
            insert: "INSERT INTO messages \
                (n, conversation, id, role, parts, created, generation) \
                VALUES (?, ?, ?, ?, ?, ?, ?)",
        },
        Kind::Logs => table!(
            "logs",
            "n, at, level, target, trace, span, execution, parent, workflow, \
            generation, agent, conversation, user_id, request, attributes, message",
            "ORDER BY n",
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        ),
    }
}
