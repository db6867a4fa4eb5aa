//! Plans of all statements, over tables with 100,000 rows; also plans that were made when the tables
//! were empty, or before they had statistics.
//!
//! Plans are generic, as sessions use them. No statement may scan a table, and none may read more
//! rows than a page does: by an index, for a sort or for a filter.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::meter::NoMeter;
use serde_json::Value;
use support::postgres;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::connector::Purpose;
use crate::{PostgresSettings, PostgresStore};
use crate::{
    acted, asked_users, asks, changes, conversations, counts, forget, generations, history,
    key_purge, lane, list, log_writes, logs, pieces, reader, retention, search, trace_record,
    traces,
};

/// Maximum number of rows that a statement reads in one place: a page that scans has the most.
const ROWS_MAX: u64 = 5_001;

/// Maximum number of rows that the cases have added to a table: indexes still have them after the
/// transactions are undone.
const UNDONE_MAX: u64 = 100;

/// A statement, with values for its parameters.
struct Case {
    name: &'static str,
    sql: &'static str,
    values: &'static str,
    /// True if lanes run it, not the pool.
    is_of_lane: bool,
    rows_max: u64,
}

impl Case {
    const fn new(name: &'static str, sql: &'static str, values: &'static str) -> Self {
        Self { name, sql, values, is_of_lane: false, rows_max: ROWS_MAX }
    }

    /// Returns the name of the prepared statement.
    fn prepared(&self) -> String {
        self.name.replace("::", "_")
    }

    fn execution(&self) -> String {
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
const CASES: &[Case] = &[
    of!(acted::FIND, "'user 0', 0, 100"),
    of!(acted::LOCK, "1"),
    // the chunks that follow, until enough contain the bytes
    of!(acted::NEXT_CHUNKS, "1, 0, 0, '7'"),
    of!(acted::PUT_CHUNKS, "1, '{101, 102}', '{101, 102}', '{a, b}'"),
    of!(acted::ROW, "1"),
    of!(acted::FINISH, "1, 'a', 'b', 'c', 'user 0', true"),
    of!(asks::ONE, "'ask 1'"),
    of!(asks::CONTENT, "'ask 1'"),
    // counts all open ones
    of!(asks::COUNT, "").reading(20_000),
    of!(asks::DUE, "101, 50000, 0, 0"),
    of!(asks::OF_GENERATION, "'generation 6'"),
    of!(asks::OPEN, "1001, 1, 0, 0, 9223372036854775807"),
    of!(asks::OPEN_OF_WORKFLOW, "1001, 1, 0, 0, 9223372036854775807, 'workflow 1'"),
    of!(asks::OPEN_OF_AGENT, "1001, 1, 0, 0, 9223372036854775807, 'agent 1'"),
    of!(asks::OPEN_OF_USER, "1001, 1, 0, 0, 9223372036854775807, 'user 0'"),
    // behind half of those that were closed at one time
    of!(asks::CLOSED, "1001, 1000, 50000"),
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
    of!(search::APPROVED, "'=user 1', 'agent 1', 'conversation 1'"),
    of!(search::BY_KEY, "'=user 1', 'agent 1', 'conversation 1'"),
    // counts the conversations
    of!(search::OF_ALL, "NULL, NULL, 100, 0").reading(20_000 + UNDONE_MAX),
    of!(search::OF_AGENT, "NULL, 'agent 1', 100, 0"),
    of!(search::OF_OWNER, "'=user 1', NULL, 100, 0"),
    of!(search::OF_AGENT_AND_OWNER, "'=user 1', 'agent 1', 100, 0"),
    of!(search::MESSAGES, "'=user 0', 'agent 0', 'conversation 1', NULL, 100"),
    // the messages of one memory
    of!(search::FOUND, "'=user 0', 'agent 0', '%message%', 100").reading(20_000 + UNDONE_MAX),
    of!(search::FOUND_IN_NEWEST, "'=user 0', 'agent 0', 'm', 100, 1000"),
    of!(trace_record::EXECUTION_PLACES, "'execution 1', 'trace 0', NULL, NULL, 4900, 1"),
    of!(trace_record::GENERATION_PLACES, "'generation 1', 'trace 0', NULL, NULL, 4900, 1"),
    of!(trace_record::EXECUTION_CONTENT, "'{1, 11, 21, 100001}', 100"),
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

/// Statements that have no plan.
const WITHOUT_PLAN: &[&str] = &[];

/// A store whose tables are filled, and connections with the settings of the pool and of lanes.
struct Lab {
    pooled: Client,
    lane: Client,
    filling: Client,
    _store: PostgresStore,
}

impl Lab {
    /// Opens a store, whose tables are empty.
    async fn open() -> Option<Self> {
        let settings = PostgresSettings::new(postgres::fresh_url()?.parse().unwrap(), "plans");
        let store = PostgresStore::open(settings, Arc::new(NoMeter)).unwrap();
        let connect = async |purpose| {
            let connecting = store.shared.connector.connect("plans".to_owned(), purpose);
            connecting.await.unwrap().0
        };
        let [pooled, lane] = [connect(Purpose::Pooled).await, connect(Purpose::Lane).await];
        let filling = connect(Purpose::Opening).await;
        Some(Self { pooled, lane, filling, _store: store })
    }

    fn client(&self, case: &Case) -> &Client {
        if case.is_of_lane { &self.lane } else { &self.pooled }
    }

    /// Makes the plans of all statements, then fills the tables, of which there are no statistics.
    async fn make_plans_and_fill(&self) {
        self.filling.batch_execute(NO_STATISTICS).await.unwrap();
        for case in CASES {
            self.prepare(case).await;
        }
        self.filling.batch_execute(include_str!("plans/fill.sql")).await.unwrap();
    }

    /// Examines the plans of all statements, which are prepared.
    async fn examine(&self, when: &str) {
        let mut problems = Vec::new();
        for case in CASES {
            let plan = plan_of(self.client(case), case).await;
            let before = problems.len();
            examine(&plan[0]["Plan"], case, &mut problems);
            if problems.len() > before {
                eprintln!("{}: {plan:#}", case.name);
            }
        }
        assert!(problems.is_empty(), "plans {when}: {}", problems.join("\n"));
    }

    /// Makes the plan of a statement, which is kept.
    async fn prepare(&self, case: &Case) {
        let prepare = format!("PREPARE {} AS {}", case.prepared(), case.sql);
        run(self.client(case), case, &prepare).await;
        run(self.client(case), case, &format!("EXPLAIN {}", case.execution())).await;
    }
}

/// Keeps the server from making statistics by itself.
const NO_STATISTICS: &str = "DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_enabled = off)', name);
    END LOOP; END $$";

#[tokio::test]
async fn statements_find_their_rows_by_indexes() {
    let Some(lab) = Lab::open().await else { return };
    lab.make_plans_and_fill().await;
    lab.examine("made over empty tables").await;
    for client in [&lab.pooled, &lab.lane] {
        client.batch_execute("DISCARD PLANS").await.unwrap();
    }
    lab.examine("made without statistics").await;
    // plans are made anew
    lab.filling.batch_execute("ANALYZE").await.unwrap();
    lab.examine("made with statistics").await;
}

#[tokio::test]
async fn plans_over_tables_that_were_known_to_be_empty_use_indexes_later() {
    let Some(lab) = Lab::open().await else { return };
    // a table that was never examined is assumed to have rows
    lab.filling.batch_execute("VACUUM ANALYZE").await.unwrap();
    lab.make_plans_and_fill().await;
    lab.examine("made over tables that were known to be empty").await;
}

/// Runs a prepared statement in a transaction that is undone; returns its plan, with numbers of
/// rows.
async fn plan_of(client: &Client, case: &Case) -> Value {
    run(client, case, "BEGIN").await;
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {}", case.execution());
    let plan = run(client, case, &explain).await.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => serde_json::from_str(row.get(0)?).ok(),
        _ => None,
    });
    run(client, case, "ROLLBACK").await;
    plan.unwrap()
}

async fn run(client: &Client, case: &Case, sql: &str) -> Vec<SimpleQueryMessage> {
    client.simple_query(sql).await.unwrap_or_else(|error| panic!("{}: {error:?}", case.name))
}

/// Collects what is wrong with a step of a plan and those below it.
fn examine(step: &Value, case: &Case, problems: &mut Vec<String>) {
    let kind = step["Node Type"].as_str().unwrap();
    let number = |key: &str| step[key].as_f64().unwrap_or(0.0);
    if kind == "Seq Scan" {
        let table = step["Relation Name"].as_str().unwrap_or_default();
        problems.push(format!("{}: scans {table}", case.name));
    }
    let filtered = number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    let rows = (number("Actual Rows") + filtered) * number("Actual Loops");
    if rows > case.rows_max as f64 {
        problems.push(format!("{}: {kind} reads {rows} rows", case.name));
    }
    for step in step["Plans"].as_array().into_iter().flatten() {
        examine(step, case, problems);
    }
}

#[test]
fn every_statement_has_a_case() {
    let mut statements = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut statements);
    let cases = CASES.iter().map(|case| case.name).chain(WITHOUT_PLAN.iter().copied());
    let cases: BTreeSet<String> = cases.map(str::to_owned).collect();
    let missing: Vec<_> = statements.difference(&cases).collect();
    assert!(missing.is_empty(), "add them to CASES: {missing:?}");
}

/// Collects the paths of the constants that can be statements.
fn collect(directory: &Path, module: &str, statements: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "tests" {
                collect(&path, &format!("{module}{name}::"), statements);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let constants = text.lines().filter_map(|line| {
            line.trim_start().strip_prefix("pub(crate) const ")?.split_once(": &str").map(|it| it.0)
        });
        statements.extend(constants.map(|constant| format!("{module}{name}::{constant}")));
    }
}
