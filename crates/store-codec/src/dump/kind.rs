//! Kinds of records, and their values.

use std::fmt;

/// Type of a value, which may also be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Integer,
    Text,
    Bytes,
}

/// Kind of a record, about one table of each store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Hash, body.
    Definitions,
    /// Server, tool, first seen, hash, accepted, body.
    KnownTools,
    /// Number, id, workflow, status, created, updated, ended, last number of an event, revision,
    /// hash of the definition, user, conversation, parent, path in the parent, trace, parent span,
    /// root, `joined`, `around`, replayed execution, replayed step, suspensions, error, facts, 1 if its
    /// asks are stored.
    Executions,
    /// Execution, number of the last fact, revision, facts.
    Chunks,
    /// Execution, last number of an event, last chunk, revision, state.
    Snapshots,
    /// Execution, key, due.
    Timers,
    /// Number, id, execution, generation, kind, state, opened, deadline, closed, workflow, agent, path
    /// or id of the call, tool, user, reason, revision, rules, user who claims it, end of the claim,
    /// next time, details, answer, user who gave it.
    Asks,
    /// Scope, hash of the body, execution, event before the answer, expiry.
    Keys,
    /// User, execution that names it.
    Users,
    /// Workflow, status, number of executions.
    Counts,
    /// Number, id, agent, place in the agent's history, status, started, ended, input, output,
    /// usage, error, user, conversation, execution, path, turns, trace, `joined`, `around`.
    Generations,
    /// Generation, number, turn.
    Turns,
    /// Generation, revision, body.
    Continuations,
    /// Agent, block of places in its history, number of deleted ones, last of them.
    Holes,
    /// Number, agent, owner.
    Memories,
    /// Number, memory, id, agent, owner, title, metadata, working memory, created, updated,
    /// approved tools.
    Conversations,
    /// Memory, conversation, id, role, parts, created, generation, place among the messages of the
    /// memory from 1 on.
    Messages,
    /// Number, time, level, target, trace, span, execution, parent, workflow, generation, agent,
    /// conversation, user, request, attributes, message.
    Logs,
}

/// Index of the id in the values of an execution.
pub const EXECUTION_ID: usize = 1;
/// Index of the execution's id in the values of a timer.
pub const TIMER_EXECUTION: usize = 0;
/// Index of the parts in the values of a message.
pub const MESSAGE_PARTS: usize = 4;
/// Index of the place in the values of a message.
pub const MESSAGE_PLACE: usize = 7;

impl Kind {
    /// All kinds, in the order in which they are copied.
    pub const ALL: [Self; 18] = [
        Self::Definitions,
        Self::KnownTools,
        Self::Executions,
        Self::Chunks,
        Self::Snapshots,
        Self::Timers,
        Self::Asks,
        Self::Keys,
        Self::Users,
        Self::Counts,
        Self::Generations,
        Self::Turns,
        Self::Continuations,
        Self::Holes,
        Self::Memories,
        Self::Conversations,
        Self::Messages,
        Self::Logs,
    ];

    /// Returns the types of the values, in order.
    pub fn types(self) -> &'static [Type] {
        use Type::{Bytes, Integer as Int, Text};
        match self {
            Self::Definitions => &[Text, Bytes],
            Self::KnownTools => &[Text, Text, Int, Text, Int, Text],
            Self::Executions => &[
                Int, Text, Text, Int, Int, Int, Int, Int, Int, Text, Text, Text, Text, Text, Text,
                Text, Text, Int, Bytes, Text, Text, Bytes, Bytes, Bytes, Int,
            ],
            Self::Chunks => &[Int, Int, Int, Bytes],
            Self::Snapshots => &[Int, Int, Int, Int, Bytes],
            Self::Timers => &[Text, Text, Int],
            Self::Asks => &[
                Int, Text, Int, Int, Int, Int, Int, Int, Int, Text, Text, Text, Text, Text, Text,
                Int, Text, Text, Int, Int, Text, Text, Text,
            ],
            Self::Keys => &[Text, Text, Text, Int, Int],
            Self::Users => &[Text, Int],
            Self::Counts => &[Text, Int, Int],
            Self::Generations => &[
                Int, Text, Text, Int, Int, Int, Int, Bytes, Bytes, Bytes, Text, Text, Text, Text,
                Text, Bytes, Text, Int, Bytes,
            ],
            Self::Turns => &[Int, Int, Bytes],
            Self::Continuations => &[Int, Int, Text],
            Self::Holes => &[Text, Int, Int, Int],
            Self::Memories => &[Int, Text, Text],
            Self::Conversations => &[Int, Int, Text, Text, Text, Text, Bytes, Text, Int, Int, Text],
            Self::Messages => &[Int, Int, Text, Int, Bytes, Int, Text, Int],
            Self::Logs => &[
                Int, Int, Int, Text, Text, Text, Text, Text, Text, Text, Text, Text, Text, Text,
                Bytes, Text,
            ],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Definitions => "definitions",
            Self::KnownTools => "known tools of MCP servers",
            Self::Executions => "executions",
            Self::Chunks => "later facts of executions",
            Self::Snapshots => "snapshots",
            Self::Timers => "timers",
            Self::Asks => "asks",
            Self::Keys => "idempotency keys",
            Self::Users => "users in facts",
            Self::Counts => "counts of executions",
            Self::Generations => "generations",
            Self::Turns => "turns of generations",
            Self::Continuations => "continuations of generations",
            Self::Holes => "holes in histories",
            Self::Memories => "memories",
            Self::Conversations => "conversations",
            Self::Messages => "messages",
            Self::Logs => "log records",
        })
    }
}
