//! Traces in a file.

use greenroom_actors::domain::trace::{
    Anchor, EntityType, RootRow, Trace, TraceOrigin, own_trace_id,
};
use greenroom_actors::ports::store::{
    ContinuationChange, GenerationRecord, GenerationWrite, Root, RootFilter, TraceQuery, TraceSize,
    Traces as _,
};

use super::agents::record;
use super::*;

const ROOT: &str = "0193f0c2-7a3b-7c4d-8e5f-000000000001";
const AGENT: &str = "0193f0c2-7a3b-7c4d-8e5f-000000000002";

fn of(id: &str, kind: EntityType, row: RootRow) -> Trace {
    let trace = Trace::of(id, kind, &Arc::from("order"), TraceOrigin::New);
    Trace { anchor: Anchor::of(row), ..trace }
}

/// Creates a root and its child.
async fn family(bench: &mut Bench) -> [Draft; 2] {
    let mut root = bench.creation(ROOT);
    root.header.trace = of(ROOT, EntityType::Workflow, RootRow::Execution(root.row));
    let mut child = bench.creation("child");
    let span = root.header.trace.span(&["step"]);
    child.header.trace = root.header.trace.below(span);
    for draft in [&root, &child] {
        bench.take(draft).await;
    }
    [root, child]
}

fn generation(store: &SqliteStore) -> GenerationWrite {
    let row = store.next_generation_row().unwrap();
    let mut trace = of(AGENT, EntityType::Agent, RootRow::Generation(row));
    trace.root_id = Arc::from("clerk");
    let (start_time, end_time) = (Timestamp(2000), Some(Timestamp(2000)));
    let record = GenerationRecord { start_time, end_time, user_id: None, trace, ..record(AGENT) };
    GenerationWrite {
        row,
        record,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Keep,
    }
}

async fn ids_of(store: &SqliteStore, trace_id: &str) -> Vec<String> {
    let trace_id = trace_id.to_owned();
    let query = TraceQuery { trace_id, most: TraceSize::of_facts(100), ..TraceQuery::default() };
    let found = store.trace(&query).await.unwrap();
    let executions = found.executions.into_iter().map(|(header, _)| header.id.to_string());
    executions.chain(found.generations.into_iter().map(|entry| entry.record.id)).collect()
}

async fn roots_of(store: &SqliteStore) -> Vec<String> {
    let page = store.roots(&RootFilter::default(), None, 100).await.unwrap();
    assert_eq!(page.next, None);
    let id = |root: Root| match root {
        Root::Execution(projection) => projection.header.id.to_string(),
        Root::Generation(record) => record.id,
    };
    page.roots.into_iter().map(id).collect()
}

fn count(path: &Path, what: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {what}");
    schema::open_reader(path).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn traces_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    let [root, child] = family(&mut bench).await;
    let write = generation(&store);
    let agent = write.record.clone();
    assert_eq!(store.record_generation(write).await, Ok(()));
    drop((bench, store));

    let store = open(&path);
    assert_has(&*store, &[root.clone(), child]).await;
    assert_eq!(ids_of(&store, &root.header.trace.id).await, [ROOT, "child"]);
    assert_eq!(ids_of(&store, &agent.trace.id).await, [AGENT]);
    assert_eq!(store.generation(AGENT).await.unwrap().unwrap().record, agent);
    assert_eq!(roots_of(&store).await, [AGENT, ROOT]);
    let row = RootRow::Execution(root.row);
    assert_eq!(store.trace_of(row).await.unwrap(), Some(root.header.trace.id));
}

#[tokio::test]
async fn a_row_that_started_its_trace_has_null_trace_columns() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    family(&mut bench).await;
    assert_eq!(store.record_generation(generation(&store)).await, Ok(()));
    let quiet = "executions WHERE joined IS NULL AND around IS NULL";
    assert_eq!(count(&path, quiet), 1, "the root");
    let found = "executions INDEXED BY executions_by_trace WHERE joined IS NOT NULL";
    assert_eq!(count(&path, found), 1, "the child");
    let quiet = "generations WHERE trace IS NULL AND joined IS NULL AND around IS NULL";
    assert_eq!(count(&path, quiet), 1);
}

/// Creates a store of the third schema: a root, one with a chosen id, a child, a generation, and
/// the generation of a step.
fn third_schema(path: &Path) {
    let connection = schema::open_writer(path, Durability::Normal).unwrap();
    for step in &schema::MIGRATIONS[..3] {
        connection.execute_batch(step).unwrap();
    }
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", 3).unwrap();
    let own = own_trace_id(ROOT);
    let chosen = "0af7651916cd43dd8448eb211c80319c";
    let rows = [
        (1, ROOT, &*own, None),
        (2, "chosen", chosen, None),
        (3, "child", &*own, Some("b7ad6b7169203331")),
    ];
    let execution = "INSERT INTO executions (n, id, workflow, status, created, updated, last_seq,
        definition, trace, parent_span, root_workflow)
        VALUES (?1, ?2, 'order', 1, ?1, ?1, 1, 'd1', ?3, ?4, 'order')";
    for row in rows {
        connection.execute(execution, row).unwrap();
    }
    let generation =
        "INSERT INTO generations (n, id, agent, number, status, started, input, user_id,
        execution, path) VALUES (?1, ?2, 'clerk', ?1, 1, ?1, x'6e756c6c', 'u1', ?3, ?3)";
    for row in [(1, AGENT, None), (2, "of-step", Some("child"))] {
        connection.execute(generation, row).unwrap();
    }
}

#[tokio::test]
async fn rows_of_older_files_keep_their_traces() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    third_schema(&path);
    let store = open(&path);
    let trace = async |id: &str| {
        let found = store.describe(&ExecutionId::trusted(id)).await.unwrap().unwrap();
        found.header.trace.clone()
    };
    let old = Trace::of(ROOT, EntityType::Workflow, &Arc::from("order"), TraceOrigin::New);
    assert_eq!(trace(ROOT).await, old, "without an anchor");
    assert_eq!(trace("child").await, old.below("b7ad6b7169203331".parse().unwrap()));
    let chosen = Trace { id: Arc::from("0af7651916cd43dd8448eb211c80319c"), ..old.clone() };
    assert_eq!(trace("chosen").await, chosen);
    assert_eq!(ids_of(&store, &old.id).await, [ROOT, "child"]);
    assert_eq!(ids_of(&store, &chosen.id).await, ["chosen"]);
    assert_eq!(ids_of(&store, &own_trace_id(AGENT)).await, [AGENT]);
    assert_eq!(
        roots_of(&store).await,
        ["chosen", ROOT, AGENT],
        "of the same time, workflows first"
    );
    let agent = store.generation(AGENT).await.unwrap().unwrap().record;
    assert_eq!(
        agent.trace,
        Trace::of(AGENT, EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New)
    );
    let visibility = greenroom_actors::visibility::Visibility::Of("u1".into());
    let filter = RootFilter { visibility, ..RootFilter::default() };
    let of_user = store.roots(&filter, None, 10).await.unwrap();
    assert_eq!((of_user.roots.len(), of_user.next), (1, None), "without that of the step");
}

#[tokio::test]
async fn a_page_of_roots_scans_a_limited_number_of_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    family(&mut bench).await;
    let children =
        "WITH RECURSIVE i(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM i WHERE n < 12000)
        INSERT INTO executions (n, id, workflow, status, created, updated, last_seq, definition,
            trace, parent_span, root_workflow, joined)
        SELECT n, 'e' || n, 'order', 4, 2000, 2000, 1, 'd1', 'x', 'b7ad6b7169203331', 'order', 1
        FROM i";
    Connection::open(&path).unwrap().execute_batch(children).unwrap();
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = store.roots(&RootFilter::default(), after, 10).await.unwrap();
        pages.push(page.roots.len());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [0, 0, 1], "pages advance, however many rows are skipped");
}
