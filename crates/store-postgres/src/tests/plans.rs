//! Plans of all statements, over tables with 100,000 rows; also plans that were made when the tables
//! were empty, or before they had statistics.
//!
//! Plans are generic, as sessions use them. No statement may scan a table, and none may read more
//! rows than a page does: by an index, for a sort or for a filter.

mod cases;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::meter::NoMeter;
use serde_json::Value;
use support::postgres;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::connector::Purpose;
use crate::{PostgresSettings, PostgresStore};

use cases::{CASES, Case};

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
