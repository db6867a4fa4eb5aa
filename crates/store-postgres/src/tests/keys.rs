//! Expired idempotency keys.

use std::sync::atomic::Ordering;

use greenroom_actors::domain::time::Timestamp;

use super::Fresh;
use crate::key_purge::purge;

#[tokio::test]
async fn expired_keys_are_deleted_at_the_time_of_the_newest_append() {
    let Some(fresh) = Fresh::open() else { return };
    let shared = &fresh.store.shared;
    fresh.sql(
        "INSERT INTO idempotency SELECT 'key ' || at, 'hash', 'x', 0, at
            FROM generate_series(1, 1200) AS at",
    );
    let oldest = || fresh.sql("SELECT count(*), min(expires) FROM idempotency");
    purge(shared).await.unwrap();
    assert_eq!(oldest(), "1200|1", "nothing was appended, so no time is known");
    shared.newest_append.note(Timestamp(1100));
    shared.newest_append.note(Timestamp(7));
    purge(shared).await.unwrap();
    assert_eq!(oldest(), "100|1101", "more than one part");
    assert_eq!(fresh.tally.0.load(Ordering::SeqCst), 0);
}
