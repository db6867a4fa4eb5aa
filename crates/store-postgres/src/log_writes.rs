//! Writes of log records.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogRecord, LogScope};
use greenroom_store_codec::codes::level_code;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::prepared::PreparedLog;

use crate::changes::{Changing, PART, Part};
use crate::pool::{Failure, Pool};
use crate::text::Text;

/// Maximum bytes of the records that a statement writes, beside the last one.
const PART_BYTES: usize = 1024 * 1024;

pub(crate) const NEXT_NUMBERS: &str =
    "SELECT nextval('log_rows') FROM generate_series(1, $1::bigint)";

/// Writes records under numbers that were taken before, so that a repetition writes none twice.
pub(crate) const PUT: &str = "INSERT INTO logs (n, at, level, target, trace, span, execution,
        parent, workflow, generation, agent, conversation, user_id, request, attributes, message)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]::smallint[], $4::text[],
        $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
        $12::text[], $13::text[], $14::text[], $15::bytea[], $16::text[])
    ON CONFLICT (n) DO NOTHING";

/// Deletes up to `$3` of the oldest records, up to the first one to keep: its time is not before
/// `$1`, and it has one of the newest `$2` numbers.
pub(crate) const PRUNE: &str = "WITH oldest AS (SELECT n, at FROM logs ORDER BY n LIMIT $3),
    kept AS MATERIALIZED (
        SELECT min(n) AS first FROM oldest
        WHERE at >= $1 AND n > (SELECT max(n) FROM logs) - $2::bigint)
    DELETE FROM logs WHERE n <= (
        SELECT max(n) FROM oldest, kept WHERE kept.first IS NULL OR n < kept.first)";

/// Deletes up to `$2` records about a user.
///
/// The range of the two columns has the same rows as an equality; see the queries of logs.
pub(crate) const FORGET: &str = "DELETE FROM logs WHERE n = ANY (ARRAY(
        SELECT n FROM logs WHERE user_id <= $1 AND (user_id, n) > ($1, 0)
        ORDER BY user_id, n LIMIT $2))";

/// Writes records, in parts.
pub(crate) async fn write(pool: &Pool, logs: &[PreparedLog]) -> Result<(), Failure> {
    let mut left = logs;
    while !left.is_empty() {
        let (part, rest) = left.split_at(length_of_part(left));
        let numbers = pool.change(|changing| next_numbers(changing, part.len())).await?;
        pool.change(|changing| put(changing, &numbers, part)).await?;
        left = rest;
    }
    Ok(())
}

/// Returns the number of records of the next part, at least one.
fn length_of_part(logs: &[PreparedLog]) -> usize {
    let mut bytes = 0;
    let fitting = logs.iter().take(PART).take_while(|log| {
        let fits = bytes < PART_BYTES;
        bytes += log.record.message.len() + log.attributes.as_ref().map_or(0, Vec::len);
        fits
    });
    fitting.count()
}

async fn next_numbers(changing: Changing, count: usize) -> Result<Vec<i64>, Failure> {
    let rows = changing.rows(NEXT_NUMBERS, &[&limit_of(count)]).await?;
    rows.iter().map(|row| row.integer(0)).collect()
}

async fn put(changing: Changing, numbers: &[i64], logs: &[PreparedLog]) -> Result<(), Failure> {
    fn column<'l, T>(logs: &'l [PreparedLog], value: impl Fn(&'l PreparedLog) -> T) -> Vec<T> {
        logs.iter().map(value).collect()
    }
    fn texts<'l>(
        logs: &'l [PreparedLog],
        value: impl Fn(&'l LogScope) -> Option<&'l str>,
    ) -> Vec<Option<Text<&'l str>>> {
        column(logs, |log| value(&log.record.scope).map(Text))
    }
    let of_record = |value: fn(&LogRecord) -> i64| column(logs, |log| value(&log.record));
    changing
        .execute(
            PUT,
            &[
                &numbers,
                &of_record(|it| it.at.0),
                &of_record(|it| level_code(it.level)),
                &column(logs, |log| Text(&*log.record.target)),
                &texts(logs, |it| it.trace_id.as_deref()),
                &column(logs, |log| log.span.as_deref()),
                &texts(logs, |it| it.execution_id.as_ref().map(ExecutionId::as_str)),
                &texts(logs, |it| it.parent_execution_id.as_ref().map(ExecutionId::as_str)),
                &texts(logs, |it| it.workflow_id.as_deref()),
                &texts(logs, |it| it.generation_id.as_deref()),
                &texts(logs, |it| it.agent_id.as_deref()),
                &texts(logs, |it| it.conversation_id.as_deref()),
                &texts(logs, |it| it.user_id.as_deref()),
                &texts(logs, |it| it.request_id.as_deref()),
                &column(logs, |log| log.attributes.as_deref()),
                &column(logs, |log| Text(&*log.record.message)),
            ],
        )
        .await
        .map(drop)
}

/// Deletes the oldest records: those before a time, and those beyond the newest `rows_max`
/// numbers. Returns their number.
pub(crate) async fn prune(pool: &Pool, before: Timestamp, rows_max: u64) -> Result<u64, Failure> {
    let prune = async |changing: Changing| {
        let (rows_max, limit) = (signed(rows_max), limit_of(PART));
        Ok(part_of(changing.execute(PRUNE, &[&before.0, &rows_max, &limit]).await?))
    };
    pool.change_in_parts(prune).await
}

/// Deletes the records about a user.
pub(crate) async fn forget(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let forget = async |changing: Changing| {
        Ok(part_of(changing.execute(FORGET, &[&Text(user), &limit_of(PART)]).await?))
    };
    pool.change_in_parts(forget).await
}

/// Returns the part of a deletion of up to [`PART`] rows.
fn part_of(deleted: u64) -> Part {
    Part { changed: deleted, is_last: deleted < PART as u64 }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::observe::log_record::LogLevel;

    use super::*;

    fn log(length: usize) -> PreparedLog {
        let record = LogRecord {
            at: Timestamp(0),
            level: LogLevel::Info,
            target: Arc::from("test"),
            message: "x".repeat(length),
            attributes: Vec::new(),
            scope: Arc::default(),
        };
        PreparedLog::new(Arc::new(record)).unwrap()
    }

    #[test]
    fn parts_are_limited_by_rows_and_bytes() {
        let small: Vec<_> = (0..PART + 1).map(|_| log(10)).collect();
        assert_eq!(length_of_part(&small), PART);
        assert_eq!(length_of_part(&small[..3]), 3);
        let large = [log(3 * PART_BYTES), log(1), log(1)];
        assert_eq!(length_of_part(&large), 1, "a large one stands alone");
        assert_eq!(length_of_part(&large[1..]), 2);
    }
}
