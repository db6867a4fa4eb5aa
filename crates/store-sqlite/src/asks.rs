//! Asks of executions and generations.

#[cfg(test)]
mod tests;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Ask, AskContent, AskCursor, AskFilter, AskPage, AskRevision, AskState, Asks, GenerationRecord,
    Header, MissingAsks, OpenAskCounts, Read, Row, Written,
};
use greenroom_store_codec::ask_columns as columns;
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::prepared::{
    PreparedAnswer, PreparedAsk, PreparedAskChange, PreparedAskRevision, PreparedMissingAsks,
};
use greenroom_store_codec::records::{
    ASKS_SCANNED_MAX, AskPageBuilder, NO_DEADLINE, ask_content_of, ask_cursor_of, ask_of,
    count_open_asks,
};
use greenroom_store_codec::users::answer_without;
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::SqliteStore;
use super::agents::refusal;
use super::changes::Change;
use super::codec::{Stored, damage_in_part, limit_of, named, signed};
use super::defects::{Defects, Reading};
use super::reader::{Lane, bind};

const OPEN: &str = "INSERT INTO asks
    (id, execution, generation, kind, state, opened, due, workflow, agent, path, tool, user_id,
    reason, rules, next_due, details)
    VALUES (?1, ?2, (SELECT n FROM generations WHERE id = ?3), ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
        ?12, ?13, ?14, ?15)
    ON CONFLICT DO NOTHING";

const CLOSE: &str = "UPDATE asks SET state = ?2, closed = ?3, answer = ?4, answered_by = ?5
    WHERE id = ?1 AND state = 0";

const REVISE: &str = "UPDATE asks SET revision = revision + 1, rules = ?3, claimed_by = ?4,
    claimed_until = ?5, next_due = ?6 WHERE id = ?1 AND revision = ?2 AND state = 0";

const END_CLAIMS: &str = "UPDATE asks
    SET revision = revision + 1, claimed_by = NULL, claimed_until = NULL
    WHERE n IN (SELECT n FROM asks WHERE claimed_by = ?1 LIMIT ?2)";

const ANSWERED: &str = "SELECT n, id, answer FROM asks WHERE answered_by = ?1 AND n > ?2
    ORDER BY n LIMIT 1";

const STRIKE: &str = "UPDATE asks SET answer = ?2, answered_by = NULL WHERE n = ?1";

/// The execution or the generation of an ask.
macro_rules! owners {
    () => {
        " LEFT JOIN executions e ON e.n = a.execution
        LEFT JOIN generations g ON g.n = a.generation "
    };
}

const ONE: &str = concat!("SELECT ", columns!(), " FROM asks a", owners!(), "WHERE a.id = ?1");

const CONTENT: &str = "SELECT details, answer FROM asks WHERE id = ?1";

const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asks a INDEXED BY asks_due",
    owners!(),
    "WHERE a.state = 0 AND a.next_due <= ?1 ORDER BY a.next_due, a.n LIMIT ?2"
);

/// Reads every open ask.
const COUNT: &str = "SELECT kind, count(*), min(opened) FROM asks INDEXED BY asks_open
    WHERE state = 0 GROUP BY kind ORDER BY kind";

/// Selects open asks behind a place, by deadline.
macro_rules! open {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM asks a INDEXED BY ",
            $index,
            owners!(),
            "WHERE a.state = 0",
            $condition,
            " AND a.due <= :last AND (a.due, a.opened, a.n) > (:at, :then, :row)
            ORDER BY a.due, a.opened, a.n LIMIT :limit"
        )
    };
}

const OPEN_ALL: &str = open!("asks_open", "");

const OPEN_OF_WORKFLOW: &str = open!("asks_open_by_workflow", " AND a.workflow = :subject");

const OPEN_OF_AGENT: &str = open!("asks_open_by_agent", " AND a.agent = :subject");

const OPEN_OF_USER: &str = open!("asks_open_by_user", " AND a.user_id = :subject");

/// Selects closed asks before a place, the last closed first.
macro_rules! closed {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM asks a INDEXED BY ",
            $index,
            owners!(),
            "WHERE a.closed IS NOT NULL",
            $condition,
            " AND (a.closed, a.n) < (:at, :row)
            ORDER BY a.closed DESC, a.n DESC LIMIT :limit"
        )
    };
}

const CLOSED_ALL: &str = closed!("asks_closed", "");

const CLOSED_OF_WORKFLOW: &str = closed!("asks_closed_by_workflow", " AND a.workflow = :subject");

const CLOSED_OF_AGENT: &str = closed!("asks_closed_by_agent", " AND a.agent = :subject");

const CLOSED_OF_USER: &str = closed!("asks_closed_by_user", " AND a.user_id = :subject");

const WITHOUT: &str = "SELECT n, id FROM executions INDEXED BY executions_without_asks
    WHERE has_asks = 0 AND ended IS NULL AND n > ?1 ORDER BY n LIMIT ?2";

const MARK: &str = "UPDATE executions SET has_asks = 1 WHERE n = ?1 AND revision = ?2";

const OPEN_OF: &str = "SELECT id FROM asks INDEXED BY asks_of WHERE execution = ?1 AND state = 0";

/// The execution or the generation that asks belong to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    Execution { row: Row, header: &'a Header },
    Generation(&'a GenerationRecord),
}

/// The prepared statements of the writer.
pub(super) struct AskWrites<'c> {
    open: Statement<'c>,
    close: Statement<'c>,
    revise: Statement<'c>,
    open_of: Statement<'c>,
    mark: Statement<'c>,
    end_claims: Statement<'c>,
    answered: Statement<'c>,
    strike: Statement<'c>,
}

impl<'c> AskWrites<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            open: connection.prepare(OPEN)?,
            close: connection.prepare(CLOSE)?,
            revise: connection.prepare(REVISE)?,
            open_of: connection.prepare(OPEN_OF)?,
            mark: connection.prepare(MARK)?,
            end_claims: connection.prepare(END_CLAIMS)?,
            answered: connection.prepare(ANSWERED)?,
            strike: connection.prepare(STRIKE)?,
        })
    }

    /// Makes the changes of a write. A generation is stored before its asks.
    pub(super) fn change(&mut self, of: Owner<'_>, changes: &[PreparedAskChange]) -> Result<()> {
        for change in changes {
            match change {
                PreparedAskChange::Open(ask) => self.open(of, ask)?,
                PreparedAskChange::Close { id, state, at, answer } => {
                    self.close(id, *state, *at, answer.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Stores all asks of an execution; returns false if it has changed.
    pub(super) fn put(&mut self, missing: &PreparedMissingAsks) -> Result<bool> {
        let PreparedMissingAsks { header, row, revision, asks, at } = missing;
        if self.mark.execute(params![row, signed(*revision)])? == 0 {
            return Ok(false);
        }
        let open = self.open_of.query_map([row], |row| row.get::<_, String>(0))?;
        for id in open.collect::<Result<Vec<_>>>()? {
            if asks.iter().all(|known| *known.ask.id != *id) {
                self.close(&id, AskState::Withdrawn, *at, None)?;
            }
        }
        let of = Owner::Execution { row: *row, header };
        asks.iter().try_for_each(|ask| self.open(of, ask))?;
        Ok(true)
    }

    /// Changes rules and claim; returns false if the ask is closed or has another revision.
    pub(super) fn revise(&mut self, change: &PreparedAskRevision) -> Result<bool> {
        let PreparedAskRevision { revision, rules } = change;
        let AskRevision { id, revision, claim, next_due, .. } = revision;
        let revised = self.revise.execute(params![
            id,
            signed(*revision),
            rules,
            claim.as_ref().map(|claim| &*claim.by),
            claim.as_ref().map(|claim| claim.until.0),
            next_due.map(|at| at.0),
        ])?;
        Ok(revised == 1)
    }

    /// Ends claims of a user and removes the user from answers; returns the number of changed rows.
    /// The work is complete when that is less than `limit`. A damaged answer is reported to
    /// `defects` and stays; it does not count.
    pub(super) fn forget(&mut self, user: &str, limit: usize, defects: &Defects) -> Result<usize> {
        let mut rows = self.end_claims.execute(params![user, limit_of(limit)])?;
        let mut after = Row::MIN;
        while rows < limit {
            let found = self.answered.query_row(params![user, after], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
            });
            let Some((n, id, answer)) = found.optional()? else { break };
            after = n;
            let struck = answer_without(answer.as_deref().unwrap_or_default(), user);
            let read = struck.map_err(damage_in_part);
            let Some(struck) = defects.readable(|| format!("ask {id}"), read)? else { continue };
            self.strike.execute(params![n, struck.or(answer)])?;
            rows += 1;
        }
        Ok(rows)
    }

    fn open(&mut self, of: Owner<'_>, prepared: &PreparedAsk) -> Result<()> {
        let PreparedAsk { ask, rules, details } = prepared;
        let (execution, generation, workflow, agent, user) = match of {
            Owner::Execution { row, header } => {
                (Some(row), None, Some(&*header.workflow_id), None, header.user_id.as_deref())
            }
            Owner::Generation(of) => {
                (None, Some(&*of.id), None, Some(&*of.agent_id), of.user_id.as_deref())
            }
        };
        let opened = self.open.execute(params![
            ask.id,
            execution,
            generation,
            ask_kind_code(ask.kind),
            ask.opened_at.0,
            ask.deadline.unwrap_or(NO_DEADLINE).0,
            workflow,
            agent,
            ask.place,
            ask.tool_name,
            user,
            ask.reason,
            rules,
            ask.next_due.map(|at| at.0),
            details,
        ]);
        opened.map(drop)
    }

    fn close(
        &mut self,
        id: &str,
        state: AskState,
        at: Timestamp,
        answer: Option<&PreparedAnswer>,
    ) -> Result<()> {
        let (json, by) = (answer.map(|it| &*it.json), answer.and_then(|it| it.by.as_deref()));
        self.close.execute(params![id, ask_state_code(state), at.0, json, by]).map(drop)
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

fn content(reading: &Reading<'_>, id: &str) -> Result<AskContent> {
    let mut statement = reading.prepare_cached(CONTENT)?;
    let found = statement.query_row([id], |row| ask_content_of(&Stored(row))).optional()?;
    Ok(found.unwrap_or_default())
}

fn due(reading: &Reading<'_>, now: Timestamp, limit: usize) -> Result<Vec<Ask>> {
    let mut statement = reading.prepare_cached(DUE)?;
    let mut rows = statement.query(params![now.0, limit_of(limit)])?;
    let name = |row: &rusqlite::Row<'_>| named("ask", row, 1);
    reading.defects.readable_rows(&mut rows, name, |row| ask_of(&Stored(row)))
}

fn counts(reading: &Reading<'_>) -> Result<OpenAskCounts> {
    let mut statement = reading.prepare_cached(COUNT)?;
    let mut rows = statement.query([])?;
    let mut counts = OpenAskCounts::default();
    while let Some(row) = rows.next()? {
        count_open_asks(&mut counts, &Stored(row))?;
    }
    Ok(counts)
}

fn page(
    reading: &Reading<'_>,
    filter: &AskFilter,
    after: Option<AskCursor>,
    limit: usize,
) -> Result<AskPage> {
    let AskFilter { user_id, agent_id, workflow_id, .. } = filter;
    let (open, closed, subject) = match (user_id, agent_id, workflow_id) {
        (Some(user), ..) => (OPEN_OF_USER, CLOSED_OF_USER, Some(user)),
        (None, Some(agent), _) => (OPEN_OF_AGENT, CLOSED_OF_AGENT, Some(agent)),
        (None, None, Some(workflow)) => (OPEN_OF_WORKFLOW, CLOSED_OF_WORKFLOW, Some(workflow)),
        (None, None, None) => (OPEN_ALL, CLOSED_ALL, None),
    };
    let sql = if filter.is_open { open } else { closed };
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

    fn ask_content<'a>(&'a self, id: &'a str) -> Read<'a, AskContent> {
        self.read(move || format!("ask {id}"), move |it| content(it, id))
    }

    fn due_asks(&self, now: Timestamp, limit: usize) -> Read<'_, Vec<Ask>> {
        let query = move |it: &Reading<'_>| due(it, now, limit);
        self.read_aside(Lane::Lists, || "asks that are due".to_owned(), query)
    }

    fn open_ask_counts(&self) -> Read<'_, OpenAskCounts> {
        self.read_aside(Lane::Lists, || "the counts of asks".to_owned(), counts)
    }

    fn revise_ask(&self, revision: AskRevision) -> Written<bool> {
        match PreparedAskRevision::new(revision) {
            Ok(prepared) => self.change_one(Change::ReviseAsk(Box::new(prepared))),
            Err(error) => refusal(&error),
        }
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
        match PreparedMissingAsks::new(missing) {
            Ok(prepared) => self.change_one(Change::PutAsks(Box::new(prepared))),
            Err(error) => refusal(&error),
        }
    }
}
