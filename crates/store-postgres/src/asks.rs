//! Asks of executions, for lists.
//!
//! Pages follow an index: open asks by deadline, closed ones by the time of closing. Filters that
//! the index does not serve are checked on a limited number of rows.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{
    Ask, AskCursor, AskFilter, AskPage, AskState, Asks, MissingAsks, NewAsk, Read, Row, Written,
};
use greenroom_store_codec::ask_columns;
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::records::{
    ASKS_SCANNED_MAX, AskPageBuilder, NO_DEADLINE, ask_cursor_of, ask_of,
};

use crate::changes::Changing;
use crate::columns::Stored;
use crate::defects::Defects;
use crate::lane::parameters::code;
use crate::pool::{Failure, Pool, Reading, Values};
use crate::store::PostgresStore;
use crate::text::Text;

pub(crate) const ONE: &str = concat!(
    "SELECT ",
    ask_columns!(),
    " FROM asks a JOIN executions e ON e.n = ANY (ARRAY[a.execution]) WHERE a.id = $1"
);

/// Selects `$1` asks in the order of an index, and then their executions.
macro_rules! page {
    ($condition:expr, $order:literal) => {
        concat!(
            "SELECT ",
            ask_columns!(),
            " FROM (SELECT * FROM asks a WHERE ",
            $condition,
            " ORDER BY ",
            $order,
            " LIMIT $1) a JOIN executions e ON e.n = ANY (ARRAY[a.execution]) ORDER BY ",
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

pub(crate) const OPEN_OF_USER: &str = open!("a.user_id = $6 AND ");

/// Selects closed asks before a place (`$2`, `$3`).
pub(crate) const CLOSED: &str =
    page!("a.closed IS NOT NULL AND (a.closed, a.n) < ($2, $3)", "a.closed DESC, a.n DESC");

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
    let workflow = filter.workflow_id.as_deref().map(Text);
    let user = filter.user_id.as_deref().map(Text);
    let is_indexed = filter.kind.is_none()
        && if filter.is_open {
            workflow.is_none() || user.is_none()
        } else {
            workflow.is_none() && user.is_none() && filter.due_before.is_none()
        };
    // one more, to detect another page
    let scanned = if is_indexed { limit.min(ASKS_SCANNED_MAX) } else { ASKS_SCANNED_MAX };
    let most = limit_of(scanned.saturating_add(1));
    let start = if filter.is_open { i64::MIN } else { i64::MAX };
    let (at, then, row) = after.map_or((start, start, start), |it| (it.at.0, it.then.0, it.row));
    let last = filter.due_before.map_or(i64::MAX, |time| time.0.saturating_sub(1));
    let rows = match (filter.is_open, &user, &workflow) {
        (false, ..) => reading.rows(CLOSED, &[&most, &at, &row]).await?,
        (true, Some(user), _) => {
            reading.rows(OPEN_OF_USER, &[&most, &at, &then, &row, &last, user]).await?
        }
        (true, None, Some(workflow)) => {
            reading.rows(OPEN_OF_WORKFLOW, &[&most, &at, &then, &row, &last, workflow]).await?
        }
        (true, None, None) => reading.rows(OPEN, &[&most, &at, &then, &row, &last]).await?,
    };
    page_of(&rows, filter, limit, &reading.defects)
}

fn page_of(
    rows: &[Stored],
    filter: &AskFilter,
    limit: usize,
    defects: &Defects,
) -> Result<AskPage, Failure> {
    let mut page = AskPageBuilder::new(filter, limit);
    for row in rows {
        if page.is_full() {
            return Ok(page.finish(false));
        }
        let ask = defects.readable(|| row.named("ask", 1), ask_of(row))?;
        page.add(ask_cursor_of(row)?, ask);
    }
    Ok(page.finish(true))
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
    "INSERT INTO asks (execution, workflow, user_id, state, id, kind, opened, due, path, reason)
    SELECT $1, $2, $3, 0, u.* FROM unnest($4::text[], $5::smallint[], $6::bigint[], $7::bigint[],
        $8::text[], $9::text[]) AS u
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

async fn put(pool: &Pool, missing: &MissingAsks) -> Result<bool, Failure> {
    let MissingAsks { header, row, revision, asks, at } = missing;
    let column = |of: fn(&NewAsk) -> &str| asks.iter().map(|ask| Text(of(ask))).collect::<Vec<_>>();
    let ids = column(|ask| &ask.id);
    let kinds: Vec<_> = asks.iter().map(|ask| code(ask_kind_code(ask.kind))).collect();
    let opened: Vec<_> = asks.iter().map(|ask| ask.opened_at.0).collect();
    let due: Vec<_> = asks.iter().map(|ask| ask.deadline.unwrap_or(NO_DEADLINE).0).collect();
    let (paths, reasons) = (column(|ask| &ask.path), column(|ask| &ask.reason));
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
        let values: Values<'_> =
            &[row, &workflow, &user, &ids, &kinds, &opened, &due, &paths, &reasons];
        change.execute(PUT, values).await?;
        change.execute(MARK, &[row]).await?;
        change.commit().await?;
        Ok(true)
    })
    .await
}

impl Asks for PostgresStore {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>> {
        self.shared.pool.read(move || format!("ask {id}"), move |it| one(it, id))
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
        self.change(|shared| async move { put(&shared.pool, &missing).await.map(Ok) })
    }
}
