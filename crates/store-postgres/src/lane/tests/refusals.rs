//! Appends that do not fit.

use super::outages::until_it_waits;
use super::*;

#[tokio::test]
async fn appends_that_do_not_fit_are_refused_with_the_reason() {
    let Some(mut lab) = Lab::open().await else { return };
    assert_eq!(lab.append(keyed(lab.draft(1, 0), "k")).await, Ok(()));
    assert_eq!(lab.append(draft("e1", 2, 0)).await, Err(AppendError::Exists));
    assert_eq!(lab.append(lab.draft(1, 0)).await, Err(AppendError::Exists));
    assert_eq!(lab.append(lab.draft(1, 2)).await, Err(AppendError::Stale));
    assert_eq!(lab.append(lab.draft(7, 1)).await, Err(AppendError::Stale));
    // the key precedes the rest
    assert_eq!(lab.append(keyed(lab.draft(1, 0), "k")).await, Err(AppendError::KeyTaken));
    assert_eq!(lab.append(keyed(lab.draft(1, 1), "k")).await, Err(AppendError::KeyTaken));
    let mut late = keyed(lab.draft(3, 0), "k");
    late.projection.updated_at = Timestamp(4999);
    assert_eq!(lab.append(late).await, Err(AppendError::KeyTaken));
    let mut later = keyed(lab.draft(3, 0), "k");
    later.projection.updated_at = Timestamp(5000);
    assert_eq!(lab.append(later).await, Ok(()), "the key has expired");
    let stored = "SELECT concat_ws(' ', n, revision) FROM executions ORDER BY n";
    assert_eq!(lab.ask(stored).await, "1 0\n3 0");
    assert_eq!(lab.ask("SELECT execution FROM idempotency").await, "e3");
    assert_eq!(lab.ask("SELECT count(*) FROM chunks").await, "0");
    assert!(lab.store.is_writable(), "a refusal is no failure");
}

#[tokio::test]
async fn others_of_a_batch_are_stored_in_order() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    assert_eq!(lab.append(keyed(lab.draft(1, 0), "k")).await, Ok(()));
    let lock = lab.hold(&url).await;
    let mut expected = Vec::new();
    for row in 2..300 {
        let (append, result) = match row {
            50 => (draft("e1", row, 0), Err(AppendError::Exists)),
            51 => (lab.draft(row, 3), Err(AppendError::Stale)),
            120 | 250 => (keyed(lab.draft(row, 0), "k"), Err(AppendError::KeyTaken)),
            200 => (keyed(lab.draft(row, 0), "of two"), Ok(())),
            210 => (keyed(lab.draft(row, 0), "of two"), Err(AppendError::KeyTaken)),
            _ => (lab.draft(row, 0), Ok(())),
        };
        expected.push((row, append.projection.last_seq, result));
        lab.store.append(append);
        if row % 7 == 0 {
            let follows = expected.last().is_some_and(|(.., result)| result.is_ok());
            let result = if follows { Ok(()) } else { Err(AppendError::Stale) };
            expected.push((row, 2, result));
            lab.store.append(lab.draft(row, 1));
        }
    }
    drop(lock);
    let outcomes = lab.outcomes(expected.len()).await;
    assert_eq!(outcomes, expected);
    let stored = expected.iter().filter(|(_, upto, result)| *upto == 1 && result.is_ok()).count();
    assert_eq!(lab.ask("SELECT count(*) FROM executions").await, (stored + 1).to_string());
}

#[tokio::test]
async fn one_of_many_takes_a_key() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 4).await;
    for round in 0..10_i64 {
        for index in 0..8 {
            let row = 1 + round * 8 + index;
            let mut append = keyed(lab.draft(row, 0), &format!("k{round}"));
            append.ticket.shard = index as usize;
            lab.store.append(append);
        }
        let outcomes = lab.outcomes(8).await;
        let stored = outcomes.iter().filter(|(.., result)| result.is_ok()).count();
        assert_eq!(stored, 1, "{outcomes:?}");
        let refused = |result: &Result<(), AppendError>| *result == Err(AppendError::KeyTaken);
        assert_eq!(outcomes.iter().filter(|(.., result)| refused(result)).count(), 7);
    }
    assert_eq!(lab.ask("SELECT count(*) FROM executions").await, "10");
}

#[tokio::test]
async fn a_request_at_fault_is_refused_alone() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    let rule = "ALTER TABLE chunks ADD CHECK (execution <> 5)";
    lab.client.batch_execute(rule).await.unwrap();
    for row in 1..10 {
        assert_eq!(lab.append(lab.draft(row, 0)).await, Ok(()));
    }
    let lock = lab.hold(&url).await;
    (1..10).for_each(|row| lab.store.append(lab.draft(row, 1)));
    drop(lock);
    for (row, _, result) in lab.outcomes(9).await {
        match result {
            Err(AppendError::Unavailable(reason)) => {
                assert_eq!(row, 5);
                assert!(reason.contains("violates check constraint"), "{reason}");
            }
            result => assert_eq!(result, Ok(()), "{row}"),
        }
    }
    assert_eq!(lab.ask("SELECT count(*) FROM chunks").await, "8");
    assert!(lab.store.is_writable());
}

/// Returns an append that is large enough to be at fault for the time that it takes.
fn large(lab: &Lab, row: Row) -> Append {
    let mut append = lab.draft(row, 0);
    append.snapshot = Some(vec![0; 2 * 1024 * 1024]);
    append
}

#[tokio::test]
async fn a_large_request_that_takes_too_long_is_at_fault_unless_beats_fail_too() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let mut lab = Lab::open_at(&url, &url, 1).await;
    let lane = "FROM pg_stat_activity WHERE application_name ~ '^greenroom/\\d+/0/'
        AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'lanes'::regclass)";
    let cancel = format!("SELECT pg_cancel_backend(pid) {lane}");
    // it has a connection from then on
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    let lock = lab.hold(&url).await;
    lab.store.append(large(&lab, 2));
    until_it_waits(&lab).await;
    assert_eq!(lab.ask(&cancel).await, "true");
    let (_, _, refused) = lab.outcome().await;
    let Err(AppendError::Unavailable(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("canceling statement"), "{reason}");

    let beats = client(&url).await;
    beats.batch_execute("BEGIN; SELECT FROM nodes FOR UPDATE").await.unwrap();
    lab.store.append(large(&lab, 3));
    let silence = async {
        while lab.store.shared.outages.is_beating() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, silence).await.is_ok(), "the beats fail");
    until_it_waits(&lab).await;
    let begun = lab.ask(&format!("SELECT query_start {lane}")).await;
    lab.until(&cancel, "true").await;
    let again = format!("SELECT count(*) {lane} AND query_start > '{begun}'");
    lab.until(&again, "1").await;
    drop((lock, beats));
    assert_eq!(lab.outcome().await, (3, 1, Ok(())));
}
