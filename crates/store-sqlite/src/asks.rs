//! Asks of executions.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Append, Ask, AskChange, AskCursor, AskFilter, AskPage, AskState, Asks, Header, MissingAsks,
    NewAsk, Read, Row, Written,
};
use greenroom_store_codec::ask_columns as columns;
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::records::{
    ASKS_SCANNED_MAX, AskPageBuilder, NO_DEADLINE, ask_cursor_of, ask_of,
};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::SqliteStore;
use super::changes::Change;
use super::codec::{Stored, limit_of, named, signed};
use super::defects::Reading;
use super::reader::{Lane, bind};

const OPEN: &str = "INSERT INTO asks
    (id, execution, kind, state, opened, due, workflow, path, user_id, reason)
    VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";

const CLOSE: &str = "UPDATE asks SET state = ?2, closed = ?3 WHERE id = ?1 AND state = 0";

const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asks a JOIN executions e ON e.n = a.execution WHERE a.id = ?1"
);

/// Selects open asks behind a place, by deadline.
macro_rules! open {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM asks a INDEXED BY ",
            $index,
            " CROSS JOIN executions e ON e.n = a.execution WHERE a.state = 0",
            $condition,
            " AND a.due <= :last AND (a.due, a.opened, a.n) > (:at, :then, :row)
            ORDER BY a.due, a.opened, a.n LIMIT :limit"
        )
    };
}

const OPEN_ALL: &str = open!("asks_open", "");

const OPEN_OF_WORKFLOW: &str = open!("asks_open_by_workflow", " AND a.workflow = :subject");

const OPEN_OF_USER: &str = open!("asks_open_by_user", " AND a.user_id = :subject");

const CLOSED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asks a INDEXED BY asks_closed CROSS JOIN executions e ON e.n = a.execution
    WHERE a.closed IS NOT NULL AND (a.closed, a.n) < (:at, :row)
    ORDER BY a.closed DESC, a.n DESC LIMIT :limit"
);

const WITHOUT: &str = "SELECT n, id FROM executions INDEXED BY executions_without_asks
    WHERE has_asks = 0 AND ended IS NULL AND n > ?1 ORDER BY n LIMIT ?2";

const MARK: &str = "UPDATE executions SET has_asks = 1 WHERE n = ?1 AND revision = ?2";

const OPEN_OF: &str = "SELECT id FROM asks INDEXED BY asks_of WHERE execution = ?1 AND state = 0";

/// The prepared statements of the writer.
pub(super) struct AskWrites<'c> {
    open: Statement<'c>,
    close: Statement<'c>,
    open_of: Statement<'c>,
    mark: Statement<'c>,
}

impl<'c> AskWrites<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            open: connection.prepare(OPEN)?,
            close: connection.prepare(CLOSE)?,
            open_of: connection.prepare(OPEN_OF)?,
            mark: connection.prepare(MARK)?,
        })
    }

    /// Makes the changes of an append.
    pub(super) fn change(&mut self, append: &Append) -> Result<()> {
        for change in &append.asks {
            match change {
                AskChange::Open(ask) => self.open(append.row, &append.projection.header, ask)?,
                AskChange::Close { id, state, at } => self.close(id, *state, *at)?,
            }
        }
        Ok(())
    }

    /// Stores all asks of an execution; returns false if it has changed.
    pub(super) fn put(&mut self, missing: &MissingAsks) -> Result<bool> {
        let MissingAsks { header, row, revision, asks, at } = missing;
        if self.mark.execute(params![row, signed(*revision)])? == 0 {
            return Ok(false);
        }
        let open = self.open_of.query_map([row], |row| row.get::<_, String>(0))?;
        for id in open.collect::<Result<Vec<_>>>()? {
            if asks.iter().all(|ask| *ask.id != *id) {
                self.close(&id, AskState::Withdrawn, *at)?;
            }
        }
        asks.iter().try_for_each(|ask| self.open(*row, header, ask))?;
        Ok(true)
    }

    fn open(&mut self, row: Row, header: &Header, ask: &NewAsk) -> Result<()> {
        let NewAsk { id, kind, path, reason, opened_at, deadline } = ask;
        let opened = self.open.execute(params![
            id,
            row,
            ask_kind_code(*kind),
            opened_at.0,
            deadline.unwrap_or(NO_DEADLINE).0,
            header.workflow_id,
            path,
            header.user_id,
            reason,
        ]);
        opened.map(drop)
    }

    fn close(&mut self, id: &str, state: AskState, at: Timestamp) -> Result<()> {
        self.close.execute(params![id, ask_state_code(state), at.0]).map(drop)
    }
}

fn without_asks(
    reading: &Reading<'_>,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, ExecutionId)>> {
    let mut statement = reading.prepare_cached(WITHOUT)?;
    let found = statement.query_map(params![after, limit_of(limit)], |row| {
        let row = Stored(row);
        Ok((row.integer(0)?, row.execution_id(1)?))
    })?;
    found.collect()
}

fn one(reading: &Reading<'_>, id: &str) -> Result<Option<Ask>> {
    let mut statement = reading.prepare_cached(ONE)?;
    statement.query_row([id], |row| ask_of(&Stored(row))).optional()
}

fn page(
    reading: &Reading<'_>,
    filter: &AskFilter,
    after: Option<AskCursor>,
    limit: usize,
) -> Result<AskPage> {
    let (sql, subject) = match (filter.is_open, &filter.user_id, &filter.workflow_id) {
        (false, ..) => (CLOSED, None),
        (true, Some(user), _) => (OPEN_OF_USER, Some(user)),
        (true, None, Some(workflow)) => (OPEN_OF_WORKFLOW, Some(workflow)),
        (true, None, None) => (OPEN_ALL, None),
    };
    let mut statement = reading.prepare_cached(sql)?;
    let start = if filter.is_open { i64::MIN } else { i64::MAX };
    let (at, then, row) = after.map_or((start, start, start), |it| (it.at.0, it.then.0, it.row));
    let last = filter.due_before.map_or(i64::MAX, |time| time.0.saturating_sub(1));
    // one more, to detect another page; most pages are full sooner
    let most = limit_of(ASKS_SCANNED_MAX + 1);
    bind(
        &mut statement,
        &[
            (":subject", &subject),
            (":last", &last),
            (":at", &at),
            (":then", &then),
            (":row", &row),
            (":limit", &most),
        ],
    )?;
    let mut rows = statement.raw_query();
    let mut page = AskPageBuilder::new(filter, limit);
    while let Some(row) = rows.next()? {
        if page.is_full() {
            return Ok(page.finish(false));
        }
        let (place, ask) = (ask_cursor_of(&Stored(row))?, ask_of(&Stored(row)));
        page.add(place, reading.defects.readable(|| named("ask", row, 1), ask)?);
    }
    Ok(page.finish(true))
}

impl Asks for SqliteStore {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>> {
        self.read(move || format!("ask {id}"), move |it| one(it, id))
    }

    fn asks<'a>(
        &'a self,
        filter: &'a AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Read<'a, AskPage> {
        let filter = filter.clone();
        let query = move |it: &Reading<'_>| page(it, &filter, after, limit);
        self.read_aside(Lane::Lists, || "the list of asks".to_owned(), query)
    }

    fn executions_without_asks(
        &self,
        after: Row,
        limit: usize,
    ) -> Read<'_, Vec<(Row, ExecutionId)>> {
        let query = move |it: &Reading<'_>| without_asks(it, after, limit);
        self.read_aside(Lane::Lists, || "executions without asks".to_owned(), query)
    }

    fn put_asks(&self, missing: MissingAsks) -> Written<bool> {
        self.change_one(Change::PutAsks(Box::new(missing)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn asks_are_found_by_an_index() {
        for sql in
            [CLOSE, OPEN_OF, MARK, ONE, OPEN_ALL, OPEN_OF_WORKFLOW, OPEN_OF_USER, CLOSED, WITHOUT]
        {
            assert_uses_indexes(sql);
        }
    }
}
