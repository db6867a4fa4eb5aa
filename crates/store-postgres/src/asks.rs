//! Asks of executions and generations.
//!
//! Pages follow an index: open asks by deadline, closed ones by the time of closing. Filters that
//! the index does not serve are checked on a limited number of rows.

use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Ask, AskContent, AskCursor, AskFilter, AskPage, AskRevision, AskState, Asks, DueAsks,
    DueCursor, MissingAsks, NewAsk, OpenAskCounts, Read, Row, Written,
};
use greenroom_store_codec::ask_columns;
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::prepared::{PreparedAskRevision, PreparedMissingAsks};
use greenroom_store_codec::records::{
    ASKS_SCANNED_MAX, AskPageBuilder, NO_DEADLINE, add_due_ask, ask_content_of, ask_cursor_of,
    ask_of, ask_rules_of, count_open_asks,
};

use crate::agents::refusal;
use crate::changes::Changing;
use crate::columns::Stored;
use crate::defects::Defects;
use crate::lane::parameters::code;
use crate::pool::{Failure, Pool, Reading, Values};
use crate::store::PostgresStore;
use crate::text::Text;

/// The execution or the generation of an ask. One without either is left over from a deletion by a
/// server of an older version.
macro_rules! owners {
    () => {
        concat!(joined!(), " WHERE coalesce(e.n, g.n) IS NOT NULL")
    };
}

/// The same with those that are left over.
macro_rules! joined {
    () => {
        " LEFT JOIN executions e ON e.n = ANY (ARRAY[a.execution])
        LEFT JOIN generations g ON g.n = ANY (ARRAY[a.generation])"
    };
}

pub(crate) const ONE: &str =
    concat!("SELECT ", ask_columns!(), " FROM asks a", owners!(), " AND a.id = $1");

pub(crate) const RULES: &str = "SELECT rules FROM asks WHERE id = $1";

pub(crate) const CONTENT: &str = "SELECT details, answer FROM asks WHERE id = $1";

/// Reads every open ask.
pub(crate) const COUNT: &str = "SELECT kind, count(*), min(opened),
        (path LIKE '%:compensate')::int AS undoes
    FROM asks WHERE state = 0 GROUP BY kind, undoes ORDER BY kind, undoes";

/// Selects `$1` asks in the order of an index, and then what they belong to; with those that are left
/// over, behind which others follow.
macro_rules! page {
    ($condition:expr, $order:literal) => {
        concat!(
            "SELECT ",
            ask_columns!(),
            " FROM (SELECT * FROM asks a WHERE ",
            $condition,
            " ORDER BY ",
            $order,
            " LIMIT $1) a",
            joined!(),
            " ORDER BY ",
            $order
        )
    };
}

/// Selects open asks behind a place (`$2`, `$3`, `$4`), those due at `$5` or before.
macro_rules! open {
    ($condition:literal) => {
        page!(
            concat!(
                $condition,
                "a.state = 0 AND (a.due, a.opened, a.n) > ($2, $3, $4) AND a.due <= $5"
            ),
            "a.due, a.opened, a.n"
        )
    };
}

pub(crate) const OPEN: &str = open!("");

pub(crate) const OPEN_OF_WORKFLOW: &str = open!("a.workflow = $6 AND ");

pub(crate) const OPEN_OF_AGENT: &str = open!("a.agent = $6 AND ");

pub(crate) const OPEN_OF_USER: &str = open!("a.user_id = $6 AND ");

/// Selects closed asks before a place (`$2`, `$3`).
macro_rules! closed {
    ($condition:literal) => {
        page!(
            concat!($condition, "a.closed IS NOT NULL AND (a.closed, a.n) < ($2, $3)"),
            "a.closed DESC, a.n DESC"
        )
    };
}

pub(crate) const CLOSED: &str = closed!("");

pub(crate) const CLOSED_OF_WORKFLOW: &str = closed!("a.workflow = $4 AND ");

pub(crate) const CLOSED_OF_AGENT: &str = closed!("a.agent = $4 AND ");

pub(crate) const CLOSED_OF_USER: &str = closed!("a.user_id = $4 AND ");

/// Selects `$1` open asks with something due at `$2` or before, behind a place (`$3`, `$4`), and those
/// that are left over: the place of the last one is that of the page.
pub(crate) const DUE: &str = concat!(
    "SELECT ",
    ask_columns!(),
    ", a.next_due FROM (SELECT * FROM asks a
    WHERE a.state = 0 AND a.next_due <= $2 AND (a.next_due, a.n) > ($3, $4)
    ORDER BY a.next_due, a.n LIMIT $1) a",
    joined!(),
    " ORDER BY a.next_due, a.n"
);

/// Selects the asks of a generation, in no order: another index has that of the rows.
pub(crate) const OF_GENERATION: &str = concat!(
    "SELECT ",
    ask_columns!(),
    " FROM asks a",
    owners!(),
    " AND a.generation = ANY (ARRAY(SELECT n FROM generations WHERE id = $1))"
);

async fn one(reading: Reading, id: &str) -> Result<Option<Ask>, Failure> {
    let rows = reading.rows(ONE, &[&Text(id)]).await?;
    rows.first().map(ask_of).transpose()
}

async fn page(
    reading: Reading,
    filter: &AskFilter,
    after: Option<AskCursor>,
    limit: usize,
) -> Result<AskPage, Failure> {
    let AskFilter { is_open, kind, workflow_id, agent_id, user_id, to, is_claimed, .. } = filter;
    let text = |subject: &'_ Option<String>| subject.as_deref().map(|it| Text(it.to_owned()));
    let (workflow, agent, user) = (text(workflow_id), text(agent_id), text(user_id));
    let subjects = [&workflow, &agent, &user].into_iter().flatten().count();
    let is_indexed = kind.is_none()
        && to.is_none()
        && is_claimed.is_none()
        && subjects <= 1
        && (*is_open || filter.due_before.is_none());
    // one more, to detect another page
    let scanned = if is_indexed { limit.min(ASKS_SCANNED_MAX) } else { ASKS_SCANNED_MAX };
    let most = limit_of(scanned.saturating_add(1));
    let start = if filter.is_open { i64::MIN } else { i64::MAX };
    let (at, then, row) = after.map_or((start, start, start), |it| (it.at.0, it.then.0, it.row));
    let last = filter.due_before.map_or(i64::MAX, |time| time.0.saturating_sub(1));
    let (open, closed, subject) = match (&user, &agent, &workflow) {
        (Some(user), ..) => (OPEN_OF_USER, CLOSED_OF_USER, Some(user)),
        (None, Some(agent), _) => (OPEN_OF_AGENT, CLOSED_OF_AGENT, Some(agent)),
        (None, None, Some(workflow)) => (OPEN_OF_WORKFLOW, CLOSED_OF_WORKFLOW, Some(workflow)),
        (None, None, None) => (OPEN, CLOSED, None),
    };
    let rows = match (is_open, subject) {
        (false, Some(subject)) => reading.rows(closed, &[&most, &at, &row, subject]).await?,
        (false, None) => reading.rows(closed, &[&most, &at, &row]).await?,
        (true, Some(subject)) => {
            reading.rows(open, &[&most, &at, &then, &row, &last, subject]).await?
        }
        (true, None) => reading.rows(open, &[&most, &at, &then, &row, &last]).await?,
    };
    let mut page = AskPageBuilder::new(filter, limit);
    for row in &rows {
        if page.is_full() {
            return Ok(page.finish(false));
        }
        page.add(ask_cursor_of(row)?, owned(row, &reading.defects)?);
    }
    // rows without an ask do not fill the page, so that the last one read need not be the last
    Ok(page.finish(rows.len() <= scanned))
}

/// Decodes an ask; `None` for one that is left over, and for a damaged one, which is reported.
fn owned(row: &Stored, defects: &Defects) -> Result<Option<Ask>, Failure> {
    if row.optional_text(4)?.or(row.optional_text(12)?).is_none() {
        return Ok(None);
    }
    defects.readable(|| row.named("ask", 1), ask_of(row))
}

pub(crate) const WITHOUT: &str = "SELECT n, id FROM executions
    WHERE has_asks = 0 AND ended IS NULL AND n > $1 ORDER BY n LIMIT $2";

pub(crate) const KNOWN: &str = "SELECT count(*) FROM asks WHERE id = ANY ($1)";

/// Waits for the batches of lanes that change asks, and keeps others from beginning. A batch that
/// waited for the row of the execution instead would not see an ask that is stored meanwhile, and so
/// would not close it.
const HOLD: &str = "LOCK TABLE asks IN SHARE ROW EXCLUSIVE MODE";

/// Locks an execution at a revision against appends.
pub(crate) const LOCK: &str =
    "SELECT 1 FROM executions WHERE n = $1 AND revision = $2 FOR NO KEY UPDATE";

/// Withdraws the open asks of an execution that are not among these. A condition on the state could
/// read all open asks.
pub(crate) const WITHDRAW: &str = "UPDATE asks SET state = $4, closed = $3
    WHERE execution = $1 AND closed IS NULL AND id <> ALL ($2::text[])";

pub(crate) const PUT: &str =
    "INSERT INTO asks (execution, workflow, user_id, state, id, kind, opened, due, path, reason,
        rules, next_due, details)
    SELECT $1, $2, $3, 0, u.* FROM unnest($4::text[], $5::smallint[], $6::bigint[], $7::bigint[],
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[]) AS u
    ON CONFLICT (id) DO NOTHING";

/// Marks an execution whose asks are stored, unless a server of an older version is there, which
/// might write to it.
pub(crate) const MARK: &str = "UPDATE executions SET has_asks = 1
    WHERE n = $1 AND NOT EXISTS (SELECT FROM nodes WHERE state < 2 AND schema < 4)";

async fn without(
    reading: Reading,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, ExecutionId)>, Failure> {
    let rows = reading.rows(WITHOUT, &[&after, &limit_of(limit)]).await?;
    rows.iter().map(|row| Ok((row.integer(0)?, row.execution_id(1)?))).collect()
}

async fn put(pool: &Pool, missing: &PreparedMissingAsks) -> Result<bool, Failure> {
    let PreparedMissingAsks { header, row, revision, asks, at } = missing;
    let column =
        |of: fn(&NewAsk) -> &str| asks.iter().map(|it| Text(of(&it.ask))).collect::<Vec<_>>();
    let ids = column(|ask| &ask.id);
    let kinds: Vec<_> = asks.iter().map(|it| code(ask_kind_code(it.ask.kind))).collect();
    let opened: Vec<_> = asks.iter().map(|it| it.ask.opened_at.0).collect();
    let due: Vec<_> = asks.iter().map(|it| it.ask.deadline.unwrap_or(NO_DEADLINE).0).collect();
    let (paths, reasons) = (column(|ask| &ask.place), column(|ask| &ask.reason));
    let rules: Vec<_> = asks.iter().map(|it| it.rules.as_deref().map(Text)).collect();
    let next_due: Vec<_> = asks.iter().map(|it| it.ask.next_due.map(|at| at.0)).collect();
    let details: Vec<_> = asks.iter().map(|it| it.details.as_deref().map(Text)).collect();
    let user = header.user_id.as_deref().map(Text);
    let withdrawn = code(ask_state_code(AskState::Withdrawn));
    pool.change(async |mut changing: Changing| {
        let change = changing.begin().await?;
        let known = change.row(KNOWN, &[&ids]).await?.map_or(Ok(0), |row| row.integer(0))?;
        if known < limit_of(ids.len()) {
            change.execute(HOLD, &[]).await?;
        }
        if change.row(LOCK, &[row, &signed(*revision)]).await?.is_none() {
            return Ok(false);
        }
        change.execute(WITHDRAW, &[row, &ids, &at.0, &withdrawn]).await?;
        let workflow = Text(&*header.workflow_id);
        let values: Values<'_> = &[
            row, &workflow, &user, &ids, &kinds, &opened, &due, &paths, &reasons, &rules,
            &next_due, &details,
        ];
        change.execute(PUT, values).await?;
        change.execute(MARK, &[row]).await?;
        change.commit().await?;
        Ok(true)
    })
    .await
}

pub(crate) const REVISE: &str = "UPDATE asks SET revision = revision + 1, rules = $3,
        claimed_by = $4, claimed_until = $5, next_due = $6
    WHERE id = $1 AND revision = $2 AND closed IS NULL";

/// Finds an open ask as [`REVISE`] leaves it.
pub(crate) const REVISED: &str = "SELECT 1 FROM asks
    WHERE id = $1 AND revision = $2::bigint + 1 AND closed IS NULL
        AND (rules, claimed_by, claimed_until, next_due)
            IS NOT DISTINCT FROM ($3::text, $4::text, $5::bigint, $6::bigint)";

async fn revise(pool: &Pool, change: &PreparedAskRevision) -> Result<bool, Failure> {
    let AskRevision { id, revision, claim, next_due, .. } = &change.revision;
    let (id, revision) = (Text(&**id), signed(*revision));
    let rules = change.rules.as_deref().map(Text);
    let claimed_by = claim.as_ref().map(|claim| Text(&*claim.by));
    let claimed_until = claim.as_ref().map(|claim| claim.until.0);
    let next_due = next_due.map(|at| at.0);
    let values: Values<'_> = &[&id, &revision, &rules, &claimed_by, &claimed_until, &next_due];
    let is_repeated = AtomicBool::new(false);
    pool.change(async |changing: Changing| {
        let was_tried = is_repeated.swap(true, Ordering::Relaxed);
        if changing.execute(REVISE, values).await? == 1 {
            return Ok(true);
        }
        // a first attempt, whose answer is unknown, may have changed it
        Ok(was_tried && changing.row(REVISED, values).await?.is_some())
    })
    .await
}

async fn rules(reading: Reading, id: &str) -> Result<Option<AskRules>, Failure> {
    let row = reading.row(RULES, &[&Text(id)]).await?;
    row.map(|row| ask_rules_of(&row)).transpose()
}

async fn content(reading: Reading, id: &str) -> Result<AskContent, Failure> {
    let row = reading.row(CONTENT, &[&Text(id)]).await?;
    row.map_or_else(|| Ok(AskContent::default()), |row| ask_content_of(&row))
}

async fn due(
    reading: Reading,
    now: Timestamp,
    after: Option<DueCursor>,
    limit: usize,
) -> Result<DueAsks, Failure> {
    let (at, n) = after.map_or((i64::MIN, i64::MIN), |place| (place.at.0, place.row));
    let rows = reading.rows(DUE, &[&limit_of(limit), &now.0, &at, &n]).await?;
    let mut due = DueAsks::default();
    for row in &rows {
        add_due_ask(&mut due, row, owned(row, &reading.defects)?)?;
    }
    due.next = due.next.filter(|_| rows.len() >= limit);
    Ok(due)
}

async fn of_generation(reading: Reading, id: &str) -> Result<Vec<Ask>, Failure> {
    let mut rows = Vec::new();
    for row in reading.rows(OF_GENERATION, &[&Text(id)]).await? {
        rows.push((ask_cursor_of(&row)?.row, row));
    }
    rows.sort_by_key(|(number, _)| *number);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    readable(&rows, &reading.defects)
}

/// Decodes asks; damaged ones are reported and left out.
fn readable(rows: &[Stored], defects: &Defects) -> Result<Vec<Ask>, Failure> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.extend(defects.readable(|| row.named("ask", 1), ask_of(row))?);
    }
    Ok(all)
}

async fn counts(reading: Reading) -> Result<OpenAskCounts, Failure> {
    let mut counts = OpenAskCounts::default();
    for row in &reading.rows(COUNT, &[]).await? {
        count_open_asks(&mut counts, row)?;
    }
    Ok(counts)
}

impl Asks for PostgresStore {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>> {
        self.shared.pool.read(move || format!("ask {id}"), move |it| one(it, id))
    }

    fn ask_rules<'a>(&'a self, id: &'a str) -> Read<'a, Option<AskRules>> {
        self.shared.pool.read(move || format!("ask {id}"), move |it| rules(it, id))
    }

    fn ask_content<'a>(&'a self, id: &'a str) -> Read<'a, AskContent> {
        self.shared.pool.read(move || format!("ask {id}"), move |it| content(it, id))
    }

    fn asks_of_generation<'a>(&'a self, id: &'a str) -> Read<'a, Vec<Ask>> {
        let record = move || format!("the asks of generation {id}");
        self.shared.pool.read(record, move |it| of_generation(it, id))
    }

    fn due_asks(
        &self,
        now: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Read<'_, DueAsks> {
        let query = move |it| due(it, now, after, limit);
        self.shared.pool.read(|| "asks that are due".to_owned(), query)
    }

    fn open_ask_counts(&self) -> Read<'_, OpenAskCounts> {
        self.shared.pool.read(|| "the counts of asks".to_owned(), counts)
    }

    fn revise_ask(&self, revision: AskRevision) -> Written<bool> {
        match PreparedAskRevision::new(revision) {
            Ok(prepared) => {
                self.change(async move |shared| revise(&shared.pool, &prepared).await.map(Ok))
            }
            Err(error) => refusal(&error.to_string()),
        }
    }

    fn asks<'a>(
        &'a self,
        filter: &'a AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Read<'a, AskPage> {
        let query = move |it| page(it, filter, after, limit);
        self.shared.pool.read(|| "the list of asks".to_owned(), query)
    }

    fn executions_without_asks(
        &self,
        after: Row,
        limit: usize,
    ) -> Read<'_, Vec<(Row, ExecutionId)>> {
        let query = move |it| without(it, after, limit);
        self.shared.pool.read(|| "executions without asks".to_owned(), query)
    }

    fn put_asks(&self, missing: MissingAsks) -> Written<bool> {
        match PreparedMissingAsks::new(missing) {
            Ok(prepared) => {
                self.change(async move |shared| put(&shared.pool, &prepared).await.map(Ok))
            }
            Err(error) => refusal(&error.to_string()),
        }
    }
}
