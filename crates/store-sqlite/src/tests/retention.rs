//! Deletion of ended executions.

use greenroom_actors::ports::store::{Retention as _, Row, Timer, TimerKey};

use super::super::changes::PART;
use super::*;

fn rows_of(path: &Path, table: &str) -> i64 {
    let reader = schema::open_reader(path).unwrap();
    reader.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Creates an ended execution with a chunk, a snapshot and a timer.
async fn ended(bench: &mut Bench, id: &str) -> Row {
    let first = bench.creation(id);
    bench.take(&first).await;
    let mut last = bench.continuation(&first, vec![step_started(2), completed(3)]);
    last.snapshot = Some(b"state".to_vec());
    last.status = Status::Completed;
    let (execution, key) = (last.header.id.clone(), TimerKey::Abandoned);
    last.timers = vec![TimerChange::Arm(Timer { execution, key, due: Timestamp(1) })];
    bench.take(&last).await;
    last.row
}

#[tokio::test]
async fn executions_are_deleted_in_parts_with_all_their_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    let open = bench.creation("open");
    bench.take(&open).await;
    let mut rows = vec![open.row];
    for n in 0..PART / 2 {
        rows.push(ended(&mut bench, &format!("e{n}")).await);
    }
    let (tables, ended) = (["chunks", "snapshots", "timers"], rows.len() as u64 - 1);
    for table in tables {
        assert_eq!(rows_of(&path, table), i64::try_from(ended).unwrap(), "{table}");
    }

    // four rows each: more than one part
    let paused = pause(&store);
    let dropped = store.drop_executions(rows);
    let other = bench.creation("other");
    store.append(other.append());
    let before = store.shared.faults.batches.load(Ordering::SeqCst);
    drop(paused);
    assert_eq!(bench.outcome().await.result, Ok(()));
    assert_eq!(dropped.await, Ok(ended));
    assert!(store.shared.faults.batches.load(Ordering::SeqCst) - before >= 2, "several commits");
    assert_eq!(rows_of(&path, "executions"), 2, "open executions stay");
    for table in tables {
        assert_eq!(rows_of(&path, table), 0, "{table}");
    }
}
