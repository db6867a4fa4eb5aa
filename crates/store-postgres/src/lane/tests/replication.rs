//! Lanes whose waits for replicas are canceled.

use super::outages::assert_stored;
use super::*;
use crate::replication::explained;
use crate::tests::replication::{FIRST_LANE, Replicated};

async fn until_writable(lab: &Lab) {
    let waiting = async {
        while !lab.store.is_writable() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "writes succeed again");
}

/// Returns a laboratory whose second append waits for a replica, and that wait.
async fn waiting(replicated: &Replicated) -> (Lab, String) {
    let url = replicated.server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    replicated.demand_a_replica();
    lab.store.append(lab.draft(1, 1));
    let wait = replicated.wait_of(FIRST_LANE, "");
    (lab, wait)
}

#[tokio::test]
async fn a_commit_whose_wait_was_canceled_is_acknowledged_when_a_replica_has_it() {
    let Some(replicated) = Replicated::start() else { return };
    let (mut lab, wait) = waiting(&replicated).await;
    let wait = replicated.cancel(FIRST_LANE, &wait);
    assert_eq!(lab.ask("SELECT revision FROM executions").await, "1");
    // the lane commits nothing but its row, as often as that wait is canceled too
    let wait = replicated.cancel(FIRST_LANE, &wait);
    replicated.cancel(FIRST_LANE, &wait);
    assert!(lab.outcomes.try_recv().is_err(), "no replica has it");
    assert!(!lab.store.is_writable());
    replicated.demand_none();
    assert_eq!(lab.outcome().await, (1, 2, Ok(())));
    until_writable(&lab).await;
    assert_eq!(lab.append(lab.draft(1, 2)).await, Ok(()));
    assert_stored(&lab, 1, 3).await;
    assert_eq!(lab.ask("SELECT batch FROM lanes WHERE lane = 0").await, "3");
}

#[tokio::test]
async fn a_commit_whose_connection_ended_while_it_waited_is_acknowledged_when_a_replica_has_it() {
    let Some(replicated) = Replicated::start() else { return };
    let (mut lab, wait) = waiting(&replicated).await;
    // the next session begins by a commit, which waits as well
    let wait = replicated.terminate(FIRST_LANE, &wait);
    assert_eq!(lab.ask("SELECT revision FROM executions").await, "1");
    replicated.cancel(FIRST_LANE, &wait);
    assert!(lab.outcomes.try_recv().is_err(), "no replica has it");
    replicated.demand_none();
    assert_eq!(lab.outcome().await, (1, 2, Ok(())));
    assert_eq!(lab.append(lab.draft(1, 2)).await, Ok(()));
    assert_stored(&lab, 1, 3).await;
    assert_eq!(lab.tally.settled(), (1, 0));
}

#[tokio::test]
async fn a_lock_of_a_commit_that_waits_for_a_replica_is_explained() {
    let Some(replicated) = Replicated::start() else { return };
    let url = replicated.server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    let lock = "SELECT FROM lanes WHERE lane = 0 FOR UPDATE NOWAIT";
    let held = lab.hold(&url).await;
    let error = lab.client.execute(lock, &[]).await.unwrap_err();
    let advice = explained(&lab.client, error, "greenroom/").await.advice();
    assert!(advice.starts_with("could not obtain lock on row"), "{advice}");
    held.batch_execute("ROLLBACK").await.unwrap();
    replicated.demand_a_replica();
    lab.store.append(lab.draft(1, 0));
    replicated.wait_of(FIRST_LANE, "");
    let error = lab.client.execute(lock, &[]).await.unwrap_err();
    let advice = explained(&lab.client, error, "greenroom/").await.advice();
    assert!(advice.starts_with("no synchronous replica has confirmed an earlier"), "{advice}");
    replicated.demand_none();
    assert_eq!(lab.outcome().await, (1, 1, Ok(())));
}
