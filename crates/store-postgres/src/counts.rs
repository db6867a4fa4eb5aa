//! Counts of executions by workflow and status.

use greenroom_actors::ports::store::{CountsOfUser, ExecutionCount};
use greenroom_store_codec::codes::status_of;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::limit_of;

use crate::columns::Stored;
use crate::pool::{Failure, Reading};
use crate::text::Text;

/// Adds up the counts of all lanes; the count of one lane may be negative.
pub(crate) const COUNTS: &str = "SELECT workflow, status, sum(count)::bigint FROM execution_counts
    GROUP BY workflow, status HAVING sum(count) > 0 ORDER BY workflow, status";

/// Counts a user's newest executions, and whether there are more than `$2`.
pub(crate) const COUNTS_OF_USER: &str = "SELECT workflow, status,
        count(*) FILTER (WHERE place <= $2), bool_or(place > $2)
    FROM (SELECT workflow, status, row_number() OVER (ORDER BY created DESC, n DESC) AS place
        FROM executions WHERE user_id = $1 ORDER BY created DESC, n DESC LIMIT $2::bigint + 1) newest
    GROUP BY workflow, status ORDER BY workflow, status";

/// Reads all counts, by workflow.
pub(crate) async fn all(reading: Reading) -> Result<Vec<ExecutionCount>, Failure> {
    let rows = reading.rows(COUNTS, &[]).await?;
    let name = |row: &Stored| row.named("the counts of workflow", 0);
    reading.defects.readable_rows(&rows, name, count_of)
}

/// Counts a user's newest executions.
pub(crate) async fn of_user(
    reading: Reading,
    user: &str,
    limit: usize,
) -> Result<CountsOfUser, Failure> {
    // less than the maximum, because the statement reads one row more
    let limit = limit_of(limit).min(i64::MAX - 1);
    let rows = reading.rows(COUNTS_OF_USER, &[&Text(user), &limit]).await?;
    let name = |_: &Stored| format!("an execution of user {user}");
    let mut counts = reading.defects.readable_rows(&rows, name, count_of)?;
    counts.retain(|counted| counted.count > 0);
    let mut is_complete = true;
    for row in &rows {
        is_complete &= !row.value::<bool>(3)?;
    }
    Ok(CountsOfUser { counts, is_complete })
}

fn count_of(row: &Stored) -> Result<ExecutionCount, Failure> {
    Ok(ExecutionCount {
        workflow_id: row.shared(0)?,
        status: row.code(1, status_of)?,
        count: row.unsigned(2)?,
    })
}
