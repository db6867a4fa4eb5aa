//! Lanes and a database that does not answer.

use greenroom_actors::ports::store::Executions as _;
use support::postgres::Auth;
use support::proxy::{Proxy, Way};

use super::*;

const KILL_LANES: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name ~ '^greenroom/\\d+/\\d+/'";
const REVISIONS: &str = "SELECT concat_ws(' ', count(*), min(revision), max(revision))
    FROM executions";

/// Appends each of the revisions to executions, each after the one before; panics at a refusal.
async fn append_all(lab: &mut Lab, rows: std::ops::Range<Row>, revisions: u64) {
    let append = |lab: &Lab, row: Row, revision| {
        let mut append = lab.draft(row, revision);
        append.ticket.shard = row as usize % 4;
        lab.store.append(append);
    };
    let mut open = 0;
    for row in rows {
        append(lab, row, 0);
        open += 1;
    }
    while open > 0 {
        let (row, upto, result) = lab.outcome().await;
        assert_eq!(result, Ok(()), "append {upto} of {row}");
        if upto < revisions {
            append(lab, row, upto);
        } else {
            open -= 1;
        }
    }
}

/// Checks that each append of these is stored once.
pub(super) async fn assert_stored(lab: &Lab, rows: i64, revisions: u64) {
    let last = revisions - 1;
    assert_eq!(lab.ask(REVISIONS).await, format!("{rows} {last} {last}"));
    let chunks = "SELECT count(*) FROM chunks";
    assert_eq!(lab.ask(chunks).await, (rows * last as i64).to_string());
    let counts = "SELECT sum(count) FROM execution_counts";
    assert_eq!(lab.ask(counts).await, rows.to_string());
}

#[tokio::test]
async fn killed_connections_lose_nothing_and_repeat_nothing() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 2).await;
    let killer = client(&server.url().replace("greenroom@", "postgres@")).await;
    let killing = tokio::spawn(async move {
        let mut killed = 0_i64;
        loop {
            killed += killer.query_one(KILL_LANES, &[]).await.unwrap().get::<_, i64>(0);
            // pauses of many lengths: connections die before, in and after their statements
            tokio::time::sleep(Duration::from_micros(1_000 + (killed as u64 * 9_770) % 60_000))
                .await;
            if killed >= 60 {
                return;
            }
        }
    });
    let mut rows = 1;
    while !killing.is_finished() {
        append_all(&mut lab, rows..rows + 64, 4).await;
        rows += 64;
    }
    killing.await.unwrap();
    append_all(&mut lab, rows..rows + 64, 4).await;
    assert_stored(&lab, rows + 63, 4).await;
    assert!(lab.store.is_writable());
}

async fn until_not_writable(lab: &Lab) {
    let waiting = async {
        while lab.store.is_writable() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "the outage is noticed");
}

async fn until_writable(lab: &Lab) {
    let waiting = async {
        while !lab.store.is_writable() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "the end is noticed");
}

#[tokio::test]
async fn appends_wait_for_a_database_that_restarts() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 2).await;
    append_all(&mut lab, 1..9, 2).await;
    server.stop_immediate();
    for row in 9..17 {
        lab.store.append(lab.draft(row, 0));
    }
    until_not_writable(&lab).await;
    assert!(lab.outcomes.try_recv().is_err(), "what is queued waits");
    assert_eq!(lab.store.queued(), 8, "also the batches that the lanes have taken");
    server.start_again();
    for (row, _, result) in lab.outcomes(8).await {
        assert_eq!(result, Ok(()), "{row}");
    }
    (9..17).for_each(|row| lab.store.append(lab.draft(row, 1)));
    assert!(lab.outcomes(8).await.iter().all(|(.., result)| *result == Ok(())));
    lab.client = client(&url).await;
    assert_stored(&lab, 16, 2).await;
    until_writable(&lab).await;
}

#[tokio::test]
async fn appends_wait_for_a_database_that_accepts_no_writes() {
    let Some(server) = Server::start_with(Auth::Trust, &[]) else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let superuser = server.url().replace("greenroom@", "postgres@");
    let set = |value| {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
        server.answer(&superuser, &set).unwrap();
        server.answer(&superuser, "SELECT pg_reload_conf()").unwrap();
    };
    set("on");
    lab.until("SELECT current_setting('transaction_read_only')", "on").await;
    until_not_writable(&lab).await;
    lab.store.append(lab.draft(1, 1));
    for _ in 0..50 {
        lab.ask("SELECT 1").await;
    }
    assert!(lab.outcomes.try_recv().is_err(), "it waits");
    assert!(!lab.store.is_writable());
    set("off");
    assert_eq!(lab.outcome().await, (1, 2, Ok(())));
    assert_stored(&lab, 1, 2).await;
}

#[tokio::test]
async fn appends_wait_for_what_an_administrator_took_away() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    for (row, (taken, given)) in (2..).zip([
        ("REVOKE INSERT ON executions FROM greenroom", "GRANT INSERT ON executions TO greenroom"),
        ("ALTER TABLE executions RENAME TO lost", "ALTER TABLE lost RENAME TO executions"),
        (
            "ALTER TABLE executions RENAME status TO lost",
            "ALTER TABLE executions RENAME lost TO status",
        ),
    ]) {
        lab.client.batch_execute(taken).await.unwrap();
        lab.store.append(lab.draft(row, 0));
        until_not_writable(&lab).await;
        lab.client.batch_execute(given).await.unwrap();
        assert_eq!(lab.outcome().await, (row, 1, Ok(())), "{taken}");
        until_writable(&lab).await;
    }
}

/// Takes a key in an open transaction, so that a statement that takes it waits.
async fn take_key(url: &str) -> Client {
    let lock = client(url).await;
    let take = "BEGIN; INSERT INTO idempotency VALUES ('k', 'h', 'x', 1, 5000)";
    lock.batch_execute(take).await.unwrap();
    lock
}

/// Waits until a statement of a lane waits for a transaction.
pub(super) async fn until_it_waits(lab: &Lab) {
    let waits = "SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
        WHERE a.application_name ~ '^greenroom/\\d+/0/' AND NOT l.granted
            AND l.locktype = 'transactionid'";
    lab.until(waits, "1").await;
}

#[tokio::test]
async fn a_connection_that_breaks_inside_a_statement_holds_none_up() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let proxy = Proxy::to(server.port());
    let mut lab = Lab::open_at(&proxy.through(&url), &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let lock = take_key(&url).await;
    lab.store.append(keyed(lab.draft(2, 0), "k"));
    until_it_waits(&lab).await;
    // the old statement keeps the row of the lane locked until the new session ends it
    proxy.cut();
    let sessions = "SELECT session FROM lanes WHERE lane = 0";
    lab.until(sessions, "2").await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(lab.outcome().await, (2, 1, Ok(())));
    assert_stored(&lab, 2, 1).await;
    assert_eq!(lab.tally.settled(), (0, 1));
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_acknowledged_once() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let proxy = Proxy::to(server.port());
    let mut lab = Lab::open_at(&proxy.through(&url), &url, 1).await;
    // the next statement follows no new plan, for whose answer it would wait
    for revision in 0..3 {
        assert_eq!(lab.append(lab.draft(1, revision)).await, Ok(()));
    }
    proxy.blackhole(Way::ToClient);
    lab.store.append(keyed(lab.draft(1, 3), "k"));
    lab.until("SELECT revision FROM executions", "3").await;
    assert!(lab.outcomes.try_recv().is_err());
    // the answer does not arrive any later either
    proxy.cut();
    proxy.resume();
    assert_eq!(lab.outcome().await, (1, 4, Ok(())));
    assert_eq!(lab.append(lab.draft(1, 4)).await, Ok(()));
    assert_stored(&lab, 1, 5).await;
    assert_eq!(lab.tally.settled(), (1, 0));
    assert!(lab.tally.reconnects.load(Ordering::SeqCst) >= 1);
}

#[tokio::test]
async fn a_locked_table_is_noticed_without_any_write() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let lab = Lab::open_at(&url, &url, 1).await;
    let lock = client(&url).await;
    lock.batch_execute("BEGIN; LOCK TABLE executions").await.unwrap();
    until_not_writable(&lab).await;
    let reason = lab.store.shared.outages.reason().unwrap();
    assert!(reason.contains("another session has locked what writes need"), "{reason}");
    let beat = lab.ask("SELECT beat FROM nodes").await;
    lab.until(&format!("SELECT beat > {beat} FROM nodes"), "true").await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    until_writable(&lab).await;
}

#[tokio::test]
async fn a_writer_without_room_for_its_connection_gets_that_of_a_reader() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    // the pool has a connection that is not in use
    lab.store.describe(&ExecutionId::trusted("e1")).await.unwrap().unwrap();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'greenroom'";
    let connections: i32 = lab.ask(count).await.parse().unwrap();
    server.sql(&format!("ALTER ROLE greenroom CONNECTION LIMIT {}", connections - 1));
    server.sql(KILL_LANES);
    assert_eq!(lab.append(lab.draft(1, 1)).await, Ok(()));
    assert_stored(&lab, 1, 2).await;
}
