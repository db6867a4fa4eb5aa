//! Reads of asks of executions and generations.

#[cfg(test)]
mod tests;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Ask, AskContent, AskCursor, AskFilter, AskPage, AskRevision, Asks, DueAsks, DueCursor,
    MissingAsks, OpenAskCounts, Read, Row, Written,
};
use greenroom_store_codec::ask_columns as columns;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::prepared::{PreparedAskRevision, PreparedMissingAsks};
use greenroom_store_codec::records::{
    ASKS_SCANNED_MAX, AskPageBuilder, add_due_ask, ask_content_of, ask_cursor_of, ask_of,
    ask_rules_of, count_open_asks,
};
use rusqlite::{OptionalExtension, Result, params};

use super::SqliteStore;
use super::agents::refusal;
use super::changes::Change;
use super::codec::{Stored, limit_of, named};
use super::defects::Reading;
use super::reader::{Lane, bind};

/// The execution or the generation of an ask.
macro_rules! owners {
    () => {
        " LEFT JOIN executions e ON e.n = a.execution
        LEFT JOIN generations g ON g.n = a.generation "
    };
}

const ONE: &str = concat!("SELECT ", columns!(), " FROM asks a", owners!(), "WHERE a.id = ?1");

const RULES: &str = "SELECT rules FROM asks WHERE id = ?1";

const CONTENT: &str = "SELECT details, answer FROM asks WHERE id = ?1";

const OF_GENERATION: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM asks a INDEXED BY asks_of_generation",
    owners!(),
    "WHERE a.generation = (SELECT n FROM generations WHERE id = ?1) ORDER BY a.n"
);

const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", a.next_due FROM asks a INDEXED BY asks_due",
    owners!(),
    "WHERE a.state = 0 AND a.next_due <= ?1 AND (a.next_due, a.n) > (?2, ?3)
    ORDER BY a.next_due, a.n LIMIT ?4"
);

/// Reads every open ask.
const COUNT: &str = "SELECT kind, count(*), min(opened), path LIKE '%:compensate' AS undoes
    FROM asks INDEXED BY asks_open WHERE state = 0 GROUP BY kind, undoes ORDER BY kind, undoes";

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

fn rules(reading: &Reading<'_>, id: &str) -> Result<Option<AskRules>> {
    let mut statement = reading.prepare_cached(RULES)?;
    statement.query_row([id], |row| ask_rules_of(&Stored(row))).optional()
}

fn content(reading: &Reading<'_>, id: &str) -> Result<AskContent> {
    let mut statement = reading.prepare_cached(CONTENT)?;
    let found = statement.query_row([id], |row| ask_content_of(&Stored(row))).optional()?;
    Ok(found.unwrap_or_default())
}

fn due(
    reading: &Reading<'_>,
    now: Timestamp,
    after: Option<DueCursor>,
    limit: usize,
) -> Result<DueAsks> {
    let mut statement = reading.prepare_cached(DUE)?;
    let (at, n) = after.map_or((i64::MIN, i64::MIN), |place| (place.at.0, place.row));
    let mut rows = statement.query(params![now.0, at, n, limit_of(limit)])?;
    let (mut due, mut count) = (DueAsks::default(), 0);
    while let Some(row) = rows.next()? {
        let ask = reading.defects.readable(|| named("ask", row, 1), ask_of(&Stored(row)))?;
        add_due_ask(&mut due, &Stored(row), ask)?;
        count += 1;
    }
    due.next = due.next.filter(|_| count >= limit);
    Ok(due)
}

fn of_generation(reading: &Reading<'_>, id: &str) -> Result<Vec<Ask>> {
    let mut statement = reading.prepare_cached(OF_GENERATION)?;
    let mut rows = statement.query([id])?;
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

    fn ask_rules<'a>(&'a self, id: &'a str) -> Read<'a, Option<AskRules>> {
        self.read(move || format!("ask {id}"), move |it| rules(it, id))
    }

    fn ask_content<'a>(&'a self, id: &'a str) -> Read<'a, AskContent> {
        self.read(move || format!("ask {id}"), move |it| content(it, id))
    }

    fn asks_of_generation<'a>(&'a self, id: &'a str) -> Read<'a, Vec<Ask>> {
        self.read(move || format!("the asks of generation {id}"), move |it| of_generation(it, id))
    }

    fn due_asks(
        &self,
        now: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Read<'_, DueAsks> {
        let query = move |it: &Reading<'_>| due(it, now, after, limit);
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
