//! Lanes and a database that meets errors in itself.

use super::*;

/// Makes the database report damage when it writes chunks for which a condition holds.
async fn damage(lab: &Lab, condition: &str) {
    let trigger = format!(
        "CREATE SEQUENCE damages;
        CREATE FUNCTION report() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'invalid page' USING ERRCODE = 'XX001', TABLE = 'chunks'; END $$;
        CREATE TRIGGER reports BEFORE INSERT ON chunks FOR EACH ROW
            WHEN ({condition}) EXECUTE FUNCTION report()"
    );
    lab.client.batch_execute(&trigger).await.unwrap();
}

#[tokio::test]
async fn a_write_that_meets_damage_is_refused_alone() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    damage(&lab, "NEW.execution = 5 AND nextval('damages') > 0").await;
    for row in 1..10 {
        assert_eq!(lab.append(lab.draft(row, 0)).await, Ok(()));
    }
    let lock = lab.hold(&url).await;
    (1..10).for_each(|row| lab.store.append(lab.draft(row, 1)));
    drop(lock);
    for (row, _, result) in lab.outcomes(9).await {
        match result {
            Err(AppendError::Unavailable(reason)) => {
                assert_eq!((row, &*reason), (5, "invalid page (SQLSTATE XX001)"));
            }
            result => assert_eq!(result, Ok(()), "{row}"),
        }
    }
    assert_eq!(lab.ask("SELECT count(*) FROM chunks").await, "8");
    assert!(lab.store.is_writable());
    assert_eq!(lab.append(lab.draft(1, 2)).await, Ok(()), "the lane continues");
}

#[tokio::test]
async fn a_write_that_meets_an_error_that_passes_is_repeated() {
    let Some(url) = Server::shared().map(Server::fresh_url) else { return };
    let mut lab = Lab::open_at(&url, &url, 1).await;
    damage(&lab, "nextval('damages') < 5").await;
    assert_eq!(lab.append(lab.draft(1, 0)).await, Ok(()));
    assert_eq!(lab.append(lab.draft(1, 1)).await, Ok(()));
    assert_eq!(lab.ask("SELECT nextval('damages')").await, "6", "attempts precede");
    assert_eq!(lab.ask("SELECT count(*) FROM chunks").await, "1");
}
