//! Migration of databases that an older version has written.

use std::sync::Arc;

use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::ports::conformance::{Bench, step_started};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::{Asks as _, Executions as _, Status};

use super::Fresh;
use crate::schema::STEPS;
use crate::{PostgresSettings, PostgresStore};

#[tokio::test]
async fn a_database_of_version_1_keeps_its_rows() {
    let Some(fresh) = Fresh::open() else { return };
    let mut bench = Bench::new(fresh.store.clone());
    let mut draft = bench.creation("01932f6c-9d1e-7a3b-8c4d-5e6f70800001");
    draft.status = Status::Running;
    bench.take(&draft).await;
    // its tables, in another schema, without what later versions add
    let source = fresh.sql("SELECT current_schema()");
    let url = fresh.server.fresh_url();
    let older = format!(
        "{}; UPDATE meta SET schema = 1;
        ALTER TABLE executions ADD COLUMN has_asks smallint;
        INSERT INTO executions SELECT * FROM {source}.executions;
        ALTER TABLE executions DROP COLUMN has_asks;
        INSERT INTO execution_counts SELECT * FROM {source}.execution_counts;
        INSERT INTO nodes VALUES (1000, 'test', '0.0.1', 0, 77);
        INSERT INTO lanes VALUES (1000, 0, 0, 0)",
        STEPS[0].sql
    );
    fresh.server.answer(&url, &older).unwrap();

    let settings = PostgresSettings::new(url.parse().unwrap(), "test");
    let store = Arc::new(PostgresStore::open(settings, Arc::new(NoMeter)).unwrap());
    let ask = |sql: &str| fresh.server.answer(&url, sql).unwrap();
    assert_eq!(ask("SELECT schema, map > 0 FROM meta"), format!("{}|t", STEPS.len()));
    let without = store.executions_without_asks(0, 10).await.unwrap();
    assert_eq!(without, [(draft.row, draft.header.id.clone())], "its asks are unknown");
    let slots = "SELECT count(*), min(slot), max(slot), count(node) FROM slots";
    assert_eq!(ask(slots), "4096|0|4095|0");
    assert_eq!(ask("SELECT state FROM nodes ORDER BY node"), "0\n2", "of this name, so fenced");
    assert_eq!(store.secret().len(), 32);
    assert_ne!(store.secret(), fresh.store.secret(), "each database has another");
    let stored = store.load(&draft.header.id).await.unwrap().unwrap();
    assert_eq!(stored.projection, draft.projection());
    for slots in [SlotSet::all(), [slot_of(&draft.header.id)].into_iter().collect()] {
        let running = store.running(&slots, 0, 10).await.unwrap();
        assert_eq!(running, [(draft.row, draft.header.id.clone())]);
    }
    let mut bench = Bench::new(store);
    let next = bench.continuation(&draft, vec![step_started(2)]);
    bench.take(&next).await;
}
