//! The statements of the crate, with values for their parameters.

use crate::{
    acted, asked_users, asks, changes, conversations, counts, forget, generations, history,
    key_purge, known_tools, lane, list, log_writes, logs, pieces, reader, retention, search,
    trace_record, traces,
};

/// Maximum number of rows that a statement reads in one place: a page that scans has the most.
const ROWS_MAX: u64 = 5_001;

/// Maximum number of rows that the cases have added to a table: indexes still have them after the
/// transactions are undone.
const UNDONE_MAX: u64 = 100;

/// A statement, with values for its parameters.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) values: &'static str,
    /// True if lanes run it, not the pool.
    pub(super) is_of_lane: bool,
    pub(super) rows_max: u64,
}

impl Case {
    const fn new(name: &'static str, sql: &'static str, values: &'static str) -> Self {
        Self { name, sql, values, is_of_lane: false, rows_max: ROWS_MAX }
    }

    /// Returns the name of the prepared statement.
    pub(super) fn prepared(&self) -> String {
        self.name.replace("::", "_")
    }

    pub(super) fn execution(&self) -> String {
        let values = if self.values.is_empty() { "" } else { &format!("({})", self.values) };
        format!("EXECUTE {}{values}", self.prepared())
    }

    /// Runs a statement with the settings of lanes.
    const fn in_lane(self) -> Self {
        Self { is_of_lane: true, ..self }
    }

    /// Allows a statement to read so many rows.
    const fn reading(self, rows_max: u64) -> Self {
        Self { rows_max, ..self }
    }
}

/// Makes the case of a constant, whose path becomes its name.
macro_rules! of {
    ($statement:path, $values:literal) => {
        Case::new(stringify!($statement), $statement, $values)
    };
}

/// Every statement of the crate.
pub(super) const CASES: &[Case] = &[
    of!(acted::FIND, "'user 0', 0, 100"),
    of!(acted::LOCK, "1"),
    // the chunks that follow, until enough contain the bytes
    of!(acted::NEXT_CHUNKS, "1, 0, 0, '7'"),
    of!(acted::PUT_CHUNKS, "1, '{101, 102}', '{101, 102}', '{a, b}'"),
    of!(acted::ROW, "1"),
    of!(acted::FINISH, "1, 'a', 'b', 'c', 'user 0', true"),
    of!(asks::ONE, "'ask 1'"),
    of!(asks::RULES, "'ask 1'"),
    of!(asks::CONTENT, "'ask 1'"),
    // counts all open ones
    of!(asks::COUNT, "").reading(20_000),
    of!(asks::DUE, "101, 50000, 0, 0"),
    of!(asks::OF_GENERATION, "'generation 6'"),
    of!(asks::OPEN, "501, 1, 0, 0, 9223372036854775807"),
    of!(asks::OPEN_OF_WORKFLOW, "501, 1, 0, 0, 9223372036854775807, 'workflow 1'"),
    of!(asks::OPEN_OF_AGENT, "501, 1, 0, 0, 9223372036854775807, 'agent 1'"),
    of!(asks::OPEN_OF_USER, "501, 1, 0, 0, 9223372036854775807, 'user 0'"),
    // behind half of those that were closed at one time
    of!(asks::CLOSED, "501, 1000, 50000"),
    of!(asks::CLOSED_OF_WORKFLOW, "501, 1000, 50000, 'workflow 1'"),
    of!(asks::CLOSED_OF_AGENT, "501, 1000, 50000, 'agent 1'"),
    of!(asks::CLOSED_OF_USER, "501, 1000, 50000, 'user 0'"),
    of!(asks::WITHOUT, "0, 100"),
    of!(asks::KNOWN, "'{ask 1, new}'"),
    of!(asks::LOCK, "1, 1"),
    of!(asks::WITHDRAW, "1, '{new}', 1, 3::smallint"),
    of!(
        asks::PUT,
        "1, 'workflow 1', NULL, '{ask 1, new}', '{0, 0}', '{1, 1}', '{1, 1}', '{a, a}', '{a, a}',
        '{NULL, a}', '{NULL, 1}', '{NULL, a}'"
    ),
    of!(asks::MARK, "1"),
    of!(asks::REVISE, "'ask 1', 0, NULL, 'user 1', 1, NULL"),
    of!(asks::REVISED, "'ask 1', 0, NULL, 'user 1', 1, NULL"),
    of!(asked_users::END_CLAIMS, "'user 0', 500"),
    of!(asked_users::ANSWERED, "'user 0', 0, 500"),
    of!(asked_users::STRIKE, "'{1, 2}', '{a, a}'"),
    of!(asked_users::ASSIGNED, "0, 500"),
    of!(asked_users::REASSIGN, "'{1, 2}', '{a, a}', '{b, b}'"),
    of!(changes::MARK, ""),
    of!(conversations::NEXT_NUMBER, ""),
    of!(conversations::FIND, "'=user 1', 'agent 1', 'conversation 1'"),
    of!(conversations::CREATE, "'=user 1', 'agent 1', 'new', 999999, 1, 1, NULL, '{}', NULL"),
    of!(
        conversations::PATCH,
        "'=user 1', 'agent 1', 'conversation 1', 1, true, 'title', NULL, false, NULL"
    ),
    of!(conversations::COPY, "'=user 1', 'agent 1', 'conversation 1', 999999, 1, 'copy'"),
    of!(conversations::LOCK, "'{1, 2}'"),
    of!(conversations::DROP_MESSAGES, "1, 500"),
    of!(conversations::DROP, "1"),
    of!(conversations::LOCK_MEMORIES, "'{1, 2}'"),
    of!(conversations::DROP_EMPTY_MEMORIES, "'{1, 2}'"),
    of!(counts::COUNTS, ""),
    of!(counts::COUNTS_OF_USER, "'user 0', 1000"),
    of!(forget::OF_OWNER, "'=user 1', 100"),
    of!(generations::INTERRUPT, "2, 1, 1"),
    of!(generations::continuations::CHECK, "'{generation 6, new}', '{1, 0}'").in_lane(),
    of!(generations::continuations::PUT, "'{generation 1, generation 6}', '{a, a}'").in_lane(),
    of!(generations::continuations::REMOVE, "'{generation 6, new}'").in_lane(),
    of!(
        generations::continuations::CLOSE_ASKS,
        "'{ask 11, new}', '{1, 1}', '{1, 1}', '{NULL, a}', '{NULL, a}'"
    )
    .in_lane(),
    of!(
        generations::continuations::OPEN_ASKS,
        "'{ask 1, new}', '{1, 1}', '{1, 1}', '{NULL, 2}', '{0, 0}', '{0, 1}', '{a, a}',
        '{NULL, user 1}', '{a, a}', '{NULL, a}', '{NULL, 1}', '{NULL, a}', '{NULL, a}', '{NULL, a}',
        '{generation 1, generation 6}', '{agent 1, agent 1}', '{a, NULL}', '{execution 1, NULL}'"
    )
    .in_lane(),
    of!(generations::continuations::FIND, "'generation 6'"),
    of!(generations::continuations::UNFINISHED_OF_USER, "'user 0', 'agent 1', 0, 100"),
    of!(generations::continuations::SUSPENDED_IN, "'conversation 1', 'agent 1', NULL"),
    of!(generations::continuations::ABANDONED, "0, 1, 100"),
    of!(generations::continuations::ADOPT, "'{6, 400}', 1, NULL"),
    of!(
        generations::messages::CREATE,
        "'{=user 1, new}', '{agent 1, new}', '{new, new}', '{1, 1}'"
    )
    .in_lane(),
    // the messages of two conversations
    of!(generations::messages::CUT, "'{1, 2}', '{message 4000, message 1}'")
        .in_lane()
        .reading(10_000 + UNDONE_MAX),
    of!(
        generations::messages::LOCK,
        "'{=user 1, new}', '{agent 1, new}', '{conversation 1, conversation 1}'"
    )
    .in_lane(),
    of!(
        generations::messages::PUT,
        "'{1, 2}', '{9000, 9000}', '{1, 1}', '{1, 1}', '{1, 1}', '{message 1, new}', '{NULL, g}',
        '{a, b}', '{a, b}'"
    )
    .in_lane(),
    of!(generations::messages::TOUCH, "'{1, 2}', '{1, 1}', '{9001, 9001}', '{NULL, NULL}'").in_lane(),
    of!(
        generations::statement::STORE,
        "1, 1, -2::smallint, 0, '{900001, 6, 900003}', '{new, generation 6, new too}',
        '{agent 1, agent 1, new}', '{0, 1, 1}', '{1, 1, 1}', '{NULL, 2, 2}', '{NULL, NULL, 1}',
        '{user 0, NULL, NULL}', '{NULL, NULL, NULL}', '{NULL, NULL, NULL}', '{NULL, NULL, NULL}',
        '{NULL, NULL, t}', '{NULL, NULL, NULL}', '{NULL, NULL, a}', '{NULL, NULL, NULL}',
        '{a, a, a}', '{NULL, a, NULL}', '{NULL, NULL, a}', '{f, t, t}',
        '{1, 2, 2}', '{0, 0, 1}', '{a, a, a}'"
    )
    .in_lane(),
    of!(history::BY_ID, "'generation 1'"),
    of!(history::PAGE, "'agent 1', 20000, 100, 500"),
    // counts the generations of the user
    of!(history::PAGE_OF_USER, "'user 0', 'agent 1', 100, 500").reading(20_000),
    of!(history::HOLES, "'agent 1'"),
    of!(key_purge::PURGE, "100000, 500"),
    of!(
        lane::statement::CREATIONS,
        "1, 999, 0, 1, '{200001}', '{1}', '{1}', '{NULL}', '{1}', '{0}', '{0}', '{0}', '{NULL}',
        '{new}', '{workflow 1}', '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{NULL}',
        '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{workflow 1}', '{0}', '{1}'"
    )
    .in_lane(),
    of!(
        lane::statement::PROGRESS,
        "1, 999, 0, 1, '{200001}', '{1}', '{1}', '{NULL}', '{1}', '{0}', '{0}', '{0}', '{NULL}',
        '{new}', '{workflow 1}', '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{NULL}',
        '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{workflow 1}', '{0}', '{1}',
        '{1, 11}', '{1, 1}', '{2, 2}', '{0, 4}', '{1, 1}', '{NULL, 1}', '{2, 2}', '{NULL, NULL}',
        '{NULL, NULL}', '{1, 11}', '{900000, 50}', '{2, 2}', '{a, b}', '{execution 11}'"
    )
    .in_lane(),
    of!(
        lane::statement::EVERYTHING,
        "1, 999, 0, 1, '{200001}', '{1}', '{1}', '{NULL}', '{1}', '{0}', '{0}', '{0}', '{NULL}',
        '{new}', '{workflow 1}', '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{NULL}',
        '{a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{a}', '{workflow 1}', '{0}', '{1}',
        '{1, 11}', '{1, 1}', '{2, 2}', '{0, 4}', '{1, 1}', '{NULL, 1}', '{2, 2}', '{NULL, NULL}',
        '{NULL, NULL}', '{1, 11}', '{900000, 50}', '{2, 2}', '{a, b}', '{execution 11}',
        '{new}', '{a}', '{new}', '{1}', '{1}', 1, '{1}', '{1}', '{1}', '{2}', '{a}', '{21}', '{1}',
        '{a}', '{execution 1}', '{node:b}', '{1}', '{1}', '{execution 1}', '{node:a}', '{user 1}',
        '{1}', '{ask 1, new}', '{1, 1}', '{1, 1}', '{NULL, 2}', '{0, 0}', '{0, 1}', '{a, a}',
        '{NULL, user 1}', '{a, a}', '{NULL, a}', '{NULL, 1}', '{NULL, a}', '{NULL, a}', '{NULL, a}',
        '{1, 1}', '{workflow 1, workflow 1}', '{ask 11, ask 2}', '{1, 2}', '{1, 1}', '{NULL, a}',
        '{NULL, a}'"
    )
    .in_lane(),
    of!(known_tools::FIND, "'server 1', '{tool 1, tool 2}'"),
    of!(known_tools::SEE, "'server 1', 'tool x', 1, 'h', 1, '{}', 2000"),
    of!(known_tools::ACCEPT, "'server 1', 'tool 1', 'h', 1, '{}', 'hash'"),
    of!(lane::statement::REASON, "'scope 1', 1, 'execution 1'"),
    of!(list::OF_ALL, "0, 900000, 1, 101"),
    of!(list::OF_STATUS, "0, 900000, 1, 101, 3"),
    of!(list::OF_WORKFLOW, "0, 900000, 1, 101, 'workflow 1'"),
    of!(list::OF_WORKFLOW_AND_STATUS, "0, 900000, 1, 101, 'workflow 1', 3"),
    of!(list::OF_USER, "0, 900000, 1, 101, 'user 0', NULL, NULL"),
    of!(list::OF_REPLAYS, "0, 900000, 1, 101, 'execution 50', NULL, NULL, NULL"),
    of!(list::OF_CHILDREN, "0, 900000, 1, 101, 'execution 50', NULL, NULL, NULL"),
    of!(list::OF_IDS, "'execution 5', 'execution 6', 1001"),
    of!(list::ENDED, "0, 900000, 1, 101, 0, 900000, 'no workflow', NULL, NULL, NULL"),
    of!(list::ENDS, "4, 0, 900000, 5001"),
    of!(list::STARTS, "'workflow 1', 3, 2001"),
    of!(list::ENDED_AS, "0, 900000, 1, 101, 0, 900000, NULL, 'no user', NULL, NULL, 4"),
    of!(log_writes::NEXT_NUMBERS, "500"),
    of!(
        log_writes::PUT,
        "'{200001}', '{1}', '{1}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}',
        '{a}', '{a}', '{a}', '{a}'"
    ),
    of!(log_writes::PRUNE, "500, 1000000, 500"),
    of!(log_writes::FORGET, "'user 0', 500"),
    of!(logs::OF_ALL, "4, 4, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 900000, 100, 5000"),
    of!(
        logs::OF_TRACE,
        "4, 4, 0, 0, 'trace 0', NULL, NULL, NULL, NULL, NULL, NULL, 900000, 100, 5000"
    ),
    of!(
        logs::OF_USER,
        "4, 4, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'user 0', 900000, 100, 5000"
    ),
    of!(
        logs::OF_EXECUTION,
        "4, 4, 0, 0, NULL, NULL, 'execution 0', NULL, NULL, NULL, NULL, 900000, 100, 5000"
    ),
    of!(logs::COUNT, "").reading(100_000),
    of!(pieces::OWN_AND_CHUNKS, "'execution 1', 0, 0, 1, 70000, 70000, 64, 2"),
    of!(pieces::CHUNKS, "'execution 1', 5000, 5000, 1, 70000, 70000, 64, 2"),
    of!(pieces::OWN_WINDOW, "'execution 1', 1, 100"),
    of!(pieces::CHUNK_WINDOW, "'execution 1', 5000, 5000, 1, 100"),
    of!(reader::DESCRIBE, "'execution 1'"),
    of!(reader::LOAD, "'execution 11', true"),
    of!(reader::RUNNING, "0, 100"),
    of!(reader::RUNNING_IN, "0, 100, '{1}'"),
    of!(reader::RUNNING_IN_FEW, "0, 100, '{1, 2, 3}'"),
    of!(reader::TIMERS_DUE, "900000, 100"),
    of!(reader::TIMERS_DUE_IN, "900000, 100, '{1}'"),
    of!(reader::TIMERS_OF, "'execution 1'"),
    of!(reader::KEY, "'scope 1', 0"),
    of!(reader::DEFINITION, "'definition 1'"),
    of!(reader::PUT_DEFINITION, "'definition 1', '{}'"),
    of!(retention::WORKFLOW_AFTER, "'workflow 1'"),
    of!(retention::ENDED, "'workflow 1', 4, 0, 0, 900000, 100"),
    of!(retention::AGENT_AFTER, "'agent 1'"),
    of!(retention::ENDED_GENERATIONS, "'agent 1', 0, 100"),
    of!(retention::DROP_EXECUTIONS, "'{1, 2, 3, 4, 5}', 1"),
    of!(retention::DROP_GENERATIONS, "'{1, 2, 3, 4, 5}'"),
    of!(retention::FORGET_GENERATIONS, "'user 0', 100"),
    of!(retention::DISOWN_GENERATIONS, "'user 0', 100"),
    of!(search::APPROVED, "'=user 1', 'agent 1', 'conversation 1'"),
    of!(search::BY_KEY, "'=user 1', 'agent 1', 'conversation 1'"),
    // counts the conversations
    of!(search::OF_ALL, "NULL, NULL, 100, 0").reading(20_000 + UNDONE_MAX),
    of!(search::OF_AGENT, "NULL, 'agent 1', 100, 0"),
    of!(search::OF_OWNER, "'=user 1', NULL, 100, 0"),
    of!(search::OF_AGENT_AND_OWNER, "'=user 1', 'agent 1', 100, 0"),
    of!(search::MESSAGES, "'=user 0', 'agent 0', 'conversation 1', NULL, 100"),
    of!(search::PLACE, "'=user 0', 'agent 0', 'conversation 1', 'message 1'"),
    // the messages of one memory
    of!(search::FOUND, "'=user 0', 'agent 0', '%message%', 100").reading(20_000 + UNDONE_MAX),
    of!(search::FOUND_IN_NEWEST, "'=user 0', 'agent 0', 'm', 100, 1000"),
    of!(trace_record::EXECUTION_PLACES, "'execution 1', 'trace 0', NULL, NULL, 4900, 1"),
    of!(trace_record::GENERATION_PLACES, "'generation 1', 'trace 0', NULL, NULL, 4900, 1"),
    of!(trace_record::EXECUTION_CONTENT, "'{1, 11, 21, 100001}', 100, 1000000"),
    of!(trace_record::GENERATION_CONTENT, "'{1, 6, 11, 100001}'"),
    of!(traces::EXECUTIONS, "0, 900000, 1, 101"),
    of!(traces::EXECUTIONS_OF_WORKFLOW, "0, 900000, 1, 101, 'workflow 1'"),
    of!(traces::EXECUTIONS_OF_USER, "0, 900000, 1, 101, 'user 0'"),
    of!(traces::GENERATIONS, "900000, 101"),
    of!(traces::GENERATIONS_OF_AGENT, "900000, 101, 'agent 1'"),
    of!(traces::GENERATIONS_OF_USER, "900000, 101, 'user 0'"),
    of!(traces::EXECUTION_ROOTS, "'{1, 11, 21, 100001}'"),
    of!(traces::GENERATION_ROOTS, "'{1, 6, 11, 100001}'"),
    of!(traces::TRACE_OF_EXECUTION, "1"),
    of!(traces::TRACE_OF_GENERATION, "1"),
];
