//! Lanes of a process that loses the database.

use greenroom_actors::ports::store::{Snapshot, Timer, TimerChange, TimerKey};
use support::proxy::Proxy;
use tokio::task::JoinHandle;

use super::outages::until_it_waits;
use super::*;

const TAKE_OVER: &str = "DELETE FROM lanes";

async fn lost(lab: &Lab) -> String {
    tokio::time::timeout(PATIENCE, lab.store.lost()).await.expect("the loss").to_string()
}

#[tokio::test]
async fn nothing_is_stored_after_a_takeover() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 2).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    assert_eq!(lab.append(lab.draft(2, 0)).await, Ok(()));
    lab.client.execute(TAKE_OVER, &[]).await.unwrap();
    let (execution, state) = (ExecutionId::trusted("e1"), b"state".to_vec());
    lab.store.store_snapshot(0, Snapshot { execution, row: 1, revision: 0, state });
    let execution = ExecutionId::trusted("e1");
    let timer = Timer { execution, key: TimerKey::Abandoned, due: Timestamp(1) };
    lab.store.change_timers(0, vec![TimerChange::Arm(timer)]);
    let mut elsewhere = lab.draft(3, 0);
    elsewhere.ticket.shard = 1;
    let refused = [lab.draft(1, 1), keyed(lab.draft(2, 1), "k"), lab.draft(4, 0), elsewhere];
    for append in refused {
        assert_eq!(lab.append(append).await, Err(AppendError::Lost));
    }
    assert!(!lab.store.is_writable());
    let stored = "SELECT concat_ws(' ', n, revision) FROM executions ORDER BY n";
    assert_eq!(lab.ask(stored).await, "1 0\n2 0");
    for table in ["chunks", "snapshots", "timers", "idempotency"] {
        assert_eq!(lab.ask(&format!("SELECT count(*) FROM {table}")).await, "0", "{table}");
    }
    assert!(lost(&lab).await.contains("no longer knows this server"));
    assert_eq!(lab.append(lab.draft(5, 0)).await, Err(AppendError::Lost), "and later");
}

#[tokio::test]
async fn the_loss_of_one_lane_is_that_of_the_database() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 2).await;
    lab.client.execute("DELETE FROM lanes WHERE lane = 0", &[]).await.unwrap();
    assert_eq!(lab.append(lab.draft(1, 0)).await, Err(AppendError::Lost));
    assert!(!lab.store.is_writable());
    assert!(lost(&lab).await.contains("no longer knows this server"), "the process ends");
}

/// Begins a commit that waits for a lock, and a takeover that waits for the commit.
async fn open_commit_and_taker(
    lab: &Lab,
    url: &str,
) -> (Client, JoinHandle<Result<u64, tokio_postgres::Error>>) {
    let lock = client(url).await;
    let take = "BEGIN; INSERT INTO idempotency VALUES ('k', 'h', 'x', 1, 5000)";
    lock.batch_execute(take).await.unwrap();
    lab.store.append(keyed(lab.draft(1, 1), "k"));
    // the statement holds the row of the lane as soon as it waits for the key
    let is_held = "SELECT count(*) FROM lanes WHERE lane = 0 AND xmax <> 0";
    lab.until(is_held, "1").await;
    let taker = client(&format!("{url}&application_name=taker-that-waits")).await;
    let taking = tokio::spawn(async move { taker.execute(TAKE_OVER, &[]).await });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'taker-that-waits' AND wait_event_type = 'Lock'";
    lab.until(waits, "1").await;
    (lock, taking)
}

#[tokio::test]
async fn a_takeover_waits_for_an_open_commit() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let (lock, taking) = open_commit_and_taker(&lab, &url).await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(lab.outcome().await, (1, 2, Ok(())));
    taking.await.unwrap().unwrap();
    assert_eq!(lab.append(lab.draft(1, 2)).await, Err(AppendError::Lost));
    assert_eq!(lab.ask("SELECT revision FROM executions").await, "1");
}

#[tokio::test]
async fn an_append_whose_outcome_is_unknown_at_a_takeover_may_be_stored() {
    let Some(server) = Server::start() else { return };
    let (url, proxy) = (server.fresh_url(), Proxy::to(server.port()));
    let mut lab = Lab::open_at(&proxy.through(&url), &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let (lock, taking) = open_commit_and_taker(&lab, &url).await;
    // it is committed although nothing receives the answer
    proxy.cut();
    lock.batch_execute("ROLLBACK").await.unwrap();
    taking.await.unwrap().unwrap();
    assert_eq!(lab.outcome().await, (1, 2, Err(AppendError::Unsettled)));
    assert_eq!(lab.ask("SELECT revision FROM executions").await, "1");
    assert_eq!(lab.append(lab.draft(2, 0)).await, Err(AppendError::Lost), "it was not tried");
}

#[tokio::test]
async fn a_database_that_lost_commits_is_given_up() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 2).await;
    for revision in 0..3 {
        assert_eq!(lab.append(lab.draft(1, revision)).await, Ok(()));
    }
    // as a replica without the last commits
    lab.client.batch_execute("UPDATE lanes SET batch = batch - 1 WHERE lane = 0").await.unwrap();
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name ~ '^greenroom/\\d+/0/'";
    lab.client.query(kill, &[]).await.unwrap();
    assert_eq!(lab.append(lab.draft(1, 3)).await, Err(AppendError::Lost));
    let mut elsewhere = lab.draft(2, 0);
    elsewhere.ticket.shard = 1;
    assert_eq!(lab.append(elsewhere).await, Err(AppendError::Lost));
    assert!(lost(&lab).await.contains("lost commits that it had confirmed"));
    assert!(!lab.store.is_writable());
    assert_eq!(lab.tally.losses.load(Ordering::SeqCst), 1);
    assert_eq!(lab.ask("SELECT revision FROM executions").await, "2");
}

#[tokio::test]
async fn a_database_that_lost_commits_is_given_up_by_a_server_that_writes_nothing() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 2).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    // another connection alone is no loss
    kill(&lab, "beat").await;
    assert_eq!(lab.append(lab.draft(1, 1)).await, Ok(()));
    lab.client.batch_execute("UPDATE lanes SET batch = batch - 1 WHERE lane = 0").await.unwrap();
    kill(&lab, "beat").await;
    assert!(lost(&lab).await.contains("lost commits that it had confirmed"));
    assert_eq!(lab.tally.losses.load(Ordering::SeqCst), 1);
}

/// Ends the connections of lane 0, or of the beats.
async fn kill(lab: &Lab, connection: &str) {
    let kill = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name ~ '^greenroom/\\d+/{connection}'"
    );
    lab.client.query(&kill, &[]).await.unwrap();
}

#[tokio::test]
async fn a_lane_that_panics_ends_the_process_and_holds_nothing_up() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 2).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    lab.tally.is_poisoned.store(true, Ordering::SeqCst);
    let lock = lab.hold(&url).await;
    lab.store.append(lab.draft(1, 1));
    until_it_waits(&lab).await;
    kill(&lab, "0/").await;
    // queued behind the batch that is under way
    lab.store.append(lab.draft(2, 0));
    drop(lock);
    let outcomes: Vec<_> =
        lab.outcomes(2).await.into_iter().map(|(row, _, it)| (row, it)).collect();
    let expected = [(1, Err(AppendError::Unsettled)), (2, Err(AppendError::Lost))];
    assert_eq!(outcomes, expected, "the second one was not tried");
    let lost = lost(&lab).await;
    assert!(lost.starts_with("lane 0 of the store of this server (test) panicked"), "{lost}");
    assert!(lost.ends_with(": poisoned"), "{lost}");
    assert!(!lab.store.is_writable(), "it is not ready");
    assert_eq!(lab.append(lab.draft(3, 0)).await, Err(AppendError::Lost), "and later");
    let mut elsewhere = lab.draft(4, 0);
    elsewhere.ticket.shard = 1;
    assert_eq!(lab.append(elsewhere).await, Err(AppendError::Lost), "by any lane");
    lab.store.close();
    assert_eq!(lab.ask("SELECT concat_ws(' ', n, revision) FROM executions").await, "1 0");
    assert_eq!(lab.ask("SELECT count(*) FROM nodes").await, "0", "the next server need not wait");
}

#[tokio::test]
async fn beats_that_panic_end_the_process() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let lab = Lab::open_at(&url, &url, 1).await;
    lab.tally.is_poisoned.store(true, Ordering::SeqCst);
    lab.until("SELECT count(*) FROM nodes WHERE beat > 0", "1").await;
    kill(&lab, "beat").await;
    let lost = lost(&lab).await;
    assert!(lost.starts_with("the beats of the store of this server (test) panicked"), "{lost}");
    assert!(!lab.store.is_writable());
}
