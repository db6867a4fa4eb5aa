//! Appends that do not fit.

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
