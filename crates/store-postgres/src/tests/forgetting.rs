//! Removal of a user from facts, beside damage and appends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::time::Timestamp;

use super::Fresh;
use crate::acted;

/// Returns stored facts with these numbers that a user caused, as SQL.
fn facts(user: &str, numbers: std::ops::Range<u64>) -> String {
    let fact = |seq| Recorded {
        seq,
        at: Timestamp(1),
        fact: Fact::StepStarted { path: "a".into(), attempt: 1, interrupted: false, opening: None },
        by: Some(Arc::new(Principal::verified(user))),
    };
    let json = serde_json::to_string(&numbers.map(fact).collect::<Vec<_>>()).unwrap();
    format!("convert_to('{json}', 'UTF8')")
}

/// Adds an execution with some chunks, whose facts name a user.
fn add(fresh: &Fresh, row: i64, user: &str, chunks: u64) {
    let mut sql = format!(
        "INSERT INTO executions (n, created, updated, last_seq, revision, status, slot, id,
            workflow, definition, trace, root_workflow, events)
        VALUES ({row}, 1, 1, 1, {chunks}, 1, 0, 'id-{row}', 'w', 'd', 't', 'w', {});
        INSERT INTO acted VALUES ('{user}', {row});",
        facts(user, 1..2)
    );
    for last in 1..=chunks {
        sql += &format!(
            "INSERT INTO chunks VALUES ({row}, {last}, {last}, {});",
            facts(user, last..last + 1)
        );
    }
    fresh.sql(&sql);
}

/// Returns how many chunks and rows of executions contain a user's name, and the index entries.
fn named(fresh: &Fresh, user: &str) -> String {
    let contains = format!("position('\"{user}\"'::bytea IN events) > 0");
    fresh.sql(&format!(
        "SELECT (SELECT count(*) FROM chunks WHERE {contains}),
            (SELECT count(*) FROM executions WHERE {contains}),
            (SELECT count(*) FROM acted WHERE user_id = '{user}')"
    ))
}

#[tokio::test]
async fn users_are_removed_in_parts_and_damaged_facts_are_passed_over() {
    let Some(fresh) = Fresh::open() else { return };
    add(&fresh, 1, "lea", 150);
    add(&fresh, 2, "lea", 3);
    add(&fresh, 3, "lea", 0);
    add(&fresh, 4, "ann", 1);
    let damage = "UPDATE chunks SET events = substr(events, 1, octet_length(events) - 1)
        WHERE execution = 2 AND last = 2; INSERT INTO acted VALUES ('lea', 99)";
    fresh.sql(damage);
    let lea = serde_json::to_string(&Principal::verified("lea")).unwrap();
    let snapshots = format!(
        "INSERT INTO snapshots SELECT n, 1, 0, 1, convert_to('{lea}', 'UTF8') FROM executions"
    );
    fresh.sql(&snapshots.replace("executions", "executions WHERE n < 4"));
    fresh.sql("INSERT INTO snapshots VALUES (4, 1, 0, 1, 'ann')");
    assert_eq!(named(&fresh, "lea"), "153|3|4");

    acted::forget(&fresh.store.shared.pool, "lea").await.unwrap();
    assert_eq!(named(&fresh, "lea"), "1|0|1", "the damaged chunk, which the index still leads to");
    assert_eq!(fresh.sql("SELECT execution FROM acted WHERE user_id = 'lea'"), "2");
    assert_eq!(fresh.tally.0.load(Ordering::SeqCst), 1, "it is reported");
    assert_eq!(fresh.sql("SELECT execution FROM snapshots"), "4");
    assert_eq!(named(&fresh, "ann"), "1|1|1");
}

#[tokio::test]
async fn facts_of_an_append_under_way_are_not_missed() {
    let Some(fresh) = Fresh::open() else { return };
    add(&fresh, 1, "lea", 2);
    // an append like that of a lane, which stands still after it has updated the row
    let mut client = fresh.client().await;
    let append = client.transaction().await.unwrap();
    let update = "UPDATE executions SET revision = 5, last_seq = 5 WHERE n = 1";
    append.execute(update, &[]).await.unwrap();
    let pool = fresh.store.shared.pool.clone();
    let forgetting = tokio::spawn(async move { acted::forget(&pool, "lea").await });
    let waits = "SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND EXISTS (
        SELECT FROM pg_locks t WHERE t.pid = l.pid AND t.relation = 'executions'::regclass)";
    while fresh.sql(waits) == "0" {
        assert!(!forgetting.is_finished(), "it waits for the append");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let rest = format!(
        "INSERT INTO chunks VALUES (1, 5, 5, {});
        INSERT INTO acted VALUES ('lea', 1) ON CONFLICT DO NOTHING",
        facts("lea", 5..6)
    );
    append.batch_execute(&rest).await.unwrap();
    append.commit().await.unwrap();
    forgetting.await.unwrap().unwrap();
    assert_eq!(named(&fresh, "lea"), "0|0|0");
    assert_eq!(fresh.sql("SELECT revision, last_seq FROM executions"), "5|5", "the append stays");
}
