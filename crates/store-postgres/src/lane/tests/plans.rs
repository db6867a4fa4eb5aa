//! Plans that a lane makes while tables are empty, and keeps.

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use super::*;
use crate::connector::Purpose;
use crate::lane::statement::{CREATIONS, EVERYTHING, PROGRESS};

/// Number of parameters of the statements.
const PARAMETERS: [(&str, usize); 3] = [(CREATIONS, 32), (PROGRESS, 46), (EVERYTHING, 89)];

#[tokio::test]
async fn plans_over_empty_tables_begin_with_the_batch() {
    let Some(lab) = Lab::open().await else { return };
    // a table that was never examined is assumed to have rows
    lab.client.batch_execute("VACUUM ANALYZE executions, timers, chunks").await.unwrap();
    let connecting = lab.store.shared.connector.connect("plans".to_owned(), Purpose::Lane);
    let (client, _driving) = connecting.await.unwrap();
    for (statement, parameters) in PARAMETERS {
        client.batch_execute(&format!("PREPARE statement AS {statement}")).await.unwrap();
        let values = vec!["NULL"; parameters].join(", ");
        let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE statement({values})");
        let rows = client.simple_query(&explain).await.unwrap();
        let plan = rows.iter().find_map(|row| match row {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan: Value = serde_json::from_str(plan.unwrap()).unwrap();
        examine(&plan[0]["Plan"]);
        client.batch_execute("DEALLOCATE statement").await.unwrap();
    }
}

/// Panics if a step of a plan, or one below it, reads a whole table.
fn examine(step: &Value) {
    let kind = step["Node Type"].as_str().unwrap();
    assert_ne!(kind, "Seq Scan", "{step:#}");
    let is_bounded = !kind.starts_with("Index") || !step["Index Cond"].is_null();
    assert!(is_bounded, "{step:#}");
    step["Plans"].as_array().into_iter().flatten().for_each(examine);
}
