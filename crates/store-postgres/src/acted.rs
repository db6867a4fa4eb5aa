//! Removal of a user from facts of executions, which an index of users leads to.
//!
//! An append may be under way meanwhile. Every part locks the row of the execution, which an append
//! updates before it notes the users of its facts: so it comes before a part, which then finds its
//! facts, or after it, and then the index names the execution again.

use std::sync::Arc;

use greenroom_actors::ports::store::Row;
use greenroom_store_codec::Damaged;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::users::{facts_without, suspensions_without, written_end};

use crate::changes::{Change, Changing};
use crate::columns::bytes_of;
use crate::pool::{Failure, Pool};
use crate::text::Text;

/// Maximum number of executions that are found at once.
const FOUND_MAX: usize = 100;

pub(crate) const FIND: &str = "SELECT execution, (SELECT id FROM executions WHERE n = execution)
    FROM acted WHERE user_id = $1 AND execution > $2 ORDER BY execution LIMIT $3";

pub(crate) const LOCK: &str = "SELECT 1 FROM executions WHERE n = $1 FOR UPDATE";

/// Reads the next chunks after `($2, $3)` that contain some bytes: at least one, and up to about a
/// megabyte, since an append of the execution waits until they are written back.
pub(crate) const NEXT_CHUNKS: &str = "SELECT last, revision, events FROM (
        SELECT last, revision, events, sum(octet_length(events))
            OVER (ORDER BY execution, last, revision) - octet_length(events) AS before
        FROM chunks
        WHERE execution <= $1 AND (execution, last, revision) > ($1, $2, $3)
            AND position($4::bytea IN events) > 0
        ORDER BY execution, last, revision LIMIT 64
    ) AS found WHERE before < 1048576 ORDER BY last, revision";

/// Writes chunks back. Each is looked up by its whole key: without the limit, PostgreSQL could join
/// all chunks of the execution.
pub(crate) const PUT_CHUNKS: &str = "UPDATE chunks c SET events = found.events
    FROM (
        SELECT place, u.events
        FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS u (last, revision, events),
            LATERAL (
                SELECT ctid AS place FROM chunks
                WHERE execution = $1 AND last = u.last AND revision = u.revision LIMIT 1) AS chunk
    ) AS found WHERE c.ctid = found.place";

pub(crate) const ROW: &str = "SELECT events, suspension FROM executions WHERE n = $1";

/// Writes the row back, deletes a snapshot that contains some bytes, and, if `$6`, the entry of the
/// index.
pub(crate) const FINISH: &str = "WITH struck AS (
        UPDATE executions SET events = coalesce($2::bytea, events),
            suspension = coalesce($3::bytea, suspension)
        WHERE n = $1 AND coalesce($2::bytea, $3::bytea) IS NOT NULL),
    no_snapshot AS (
        DELETE FROM snapshots WHERE execution = $1 AND position($4::bytea IN state) > 0)
    DELETE FROM acted WHERE execution = $1 AND user_id = $5 AND $6::boolean";

/// An execution that a user is removed from.
struct Record<'a> {
    pool: &'a Pool,
    execution: Row,
    id: Option<String>,
    user: &'a Arc<str>,
    /// Stored form of the user in facts.
    needle: &'a [u8],
}

/// The place of the last chunk that was read.
#[derive(Clone, Copy)]
struct Progress {
    last: i64,
    revision: i64,
    /// False if a chunk is damaged.
    is_struck: bool,
}

/// Removes a user from facts, in parts. An execution with damaged facts is reported, and stays in
/// the index.
pub(crate) async fn forget(pool: &Pool, user: &str) -> Result<(), Failure> {
    let needle = written_end(user).into_bytes();
    let user = Arc::from(user);
    let mut after = Row::MIN;
    loop {
        let find = async |changing: Changing| {
            changing.rows(FIND, &[&Text(&*user), &after, &(FOUND_MAX as i64)]).await
        };
        let found = pool.change(find).await?;
        for row in &found {
            after = row.integer(0)?;
            let (execution, id) = (after, row.optional_string(1)?);
            Record { pool, execution, id, user: &user, needle: &needle }.strike().await?;
        }
        if found.len() < FOUND_MAX {
            return Ok(());
        }
    }
}

impl Record<'_> {
    async fn strike(&self) -> Result<(), Failure> {
        let mut at = Progress { last: i64::MIN, revision: i64::MIN, is_struck: true };
        while let Some(next) = self.pool.change(|changing| self.strike_part(changing, at)).await? {
            at = next;
        }
        Ok(())
    }

    /// Strikes the user from some chunks; from the row, if there are no further chunks. Returns
    /// `None` after that.
    async fn strike_part(
        &self,
        mut changing: Changing,
        at: Progress,
    ) -> Result<Option<Progress>, Failure> {
        let change = changing.begin().await?;
        change.row(LOCK, &[&self.execution]).await?;
        let next = self.strike_chunks(&change, at).await?;
        if next.is_none() {
            self.strike_row(&change, at).await?;
        }
        change.commit().await?;
        Ok(next)
    }

    async fn strike_chunks(
        &self,
        change: &Change<'_>,
        at: Progress,
    ) -> Result<Option<Progress>, Failure> {
        let values = (self.execution, at.last, at.revision, self.needle);
        let rows = change.rows(NEXT_CHUNKS, &[&values.0, &values.1, &values.2, &values.3]).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let mut next = Progress { last: last.integer(0)?, revision: last.integer(1)?, ..at };
        let (bytes, user) = (bytes_of(&rows), Arc::clone(self.user));
        let strike = move || {
            let strike = |row| -> Result<_, Failure> {
                let row: &crate::columns::Stored = row;
                let place = (row.integer(0)?, row.integer(1)?);
                Ok((place, facts_without(row.bytes(2)?, &user)))
            };
            rows.iter().map(strike).collect::<Result<Vec<_>, _>>()
        };
        let (mut lasts, mut revisions, mut struck) = (Vec::new(), Vec::new(), Vec::new());
        for ((last, revision), read) in self.pool.decoders().decode(bytes, strike).await? {
            match self.readable(read)? {
                Some(Some(facts)) => {
                    lasts.push(last);
                    revisions.push(revision);
                    struck.push(facts);
                }
                // another text that looks like the user's id
                Some(None) => {}
                None => next.is_struck = false,
            }
        }
        if !struck.is_empty() {
            change.execute(PUT_CHUNKS, &[&self.execution, &lasts, &revisions, &struck]).await?;
        }
        Ok(Some(next))
    }

    async fn strike_row(&self, change: &Change<'_>, at: Progress) -> Result<(), Failure> {
        let (mut events, mut suspension) = (Ok(None), Ok(None));
        if let Some(row) = change.row(ROW, &[&self.execution]).await? {
            let (bytes, user) = (bytes_of(std::slice::from_ref(&row)), Arc::clone(self.user));
            let strike = move || {
                let facts = row.optional_bytes(0)?.map(|facts| facts_without(facts, &user));
                let held = row.optional_bytes(1)?.map(|held| suspensions_without(held, &user));
                Ok((facts.unwrap_or(Ok(None)), held.unwrap_or(Ok(None))))
            };
            (events, suspension) = self.pool.decoders().decode(bytes, strike).await?;
        }
        let (events, suspension) = (self.readable(events)?, self.readable(suspension)?);
        let is_struck = at.is_struck && events.is_some() && suspension.is_some();
        let (events, suspension) = (events.flatten(), suspension.flatten());
        let user = Text(&**self.user);
        change
            .execute(
                FINISH,
                &[&self.execution, &events, &suspension, &self.needle, &user, &is_struck],
            )
            .await
            .map(drop)
    }

    /// Returns `None` for damaged data, which is reported.
    fn readable<T>(&self, read: Result<T, Damaged>) -> Result<Option<T>, Failure> {
        let name = || format!("execution {}", self.id.as_deref().unwrap_or("without a name"));
        self.pool.defects().readable(name, read.map_err(Failure::from))
    }
}
