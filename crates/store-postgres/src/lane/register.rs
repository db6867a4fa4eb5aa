//! Rows of the lanes of a process.

use tokio_postgres::{Error, GenericClient};

/// Lane of generations.
pub(crate) const GENERATIONS: i16 = -2;

const ADD: &str = "INSERT INTO lanes (node, lane, session, batch)
    SELECT $1, lane, 0, 0 FROM unnest($2::smallint[]) AS lane";

/// Merges the counts of processes that no longer write, of which there is one row per lane.
const MERGE_COUNTS: &str = "WITH left_over AS (
        DELETE FROM execution_counts c
        WHERE c.node <> 0 AND NOT EXISTS (SELECT FROM lanes l WHERE l.node = c.node)
        RETURNING workflow, status, count)
    INSERT INTO execution_counts AS c (workflow, status, node, lane, count)
    SELECT workflow, status, 0, 0, sum(count) FROM left_over GROUP BY workflow, status
    ON CONFLICT (workflow, status, node, lane) DO UPDATE SET count = c.count + excluded.count";

/// Adds the lanes of a process.
pub(crate) async fn register(
    client: &impl GenericClient,
    node: i64,
    writers: usize,
) -> Result<(), Error> {
    let lanes: Vec<i16> = std::iter::once(GENERATIONS).chain(lanes(writers)).collect();
    client.execute(ADD, &[&node, &lanes]).await?;
    client.execute(MERGE_COUNTS, &[]).await.map(drop)
}

/// Returns the numbers of the lanes that write executions, at least one.
pub(super) fn lanes(writers: usize) -> impl Iterator<Item = i16> {
    (0..i16::MAX).take(writers.max(1))
}
