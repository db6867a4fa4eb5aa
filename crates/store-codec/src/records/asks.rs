//! Asks.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskCursor, AskFilter, AskPage, Row};

use crate::codes::{ask_kind_of, ask_state_of};
use crate::columns::Columns;

/// Columns of an ask `a` of an execution `e`, for [`ask_of`](crate::records::ask_of).
#[macro_export]
macro_rules! ask_columns {
    () => {
        "a.n, a.id, a.kind, a.state, e.id, a.workflow, a.path, a.user_id, a.reason, a.opened, \
         a.due, a.closed"
    };
}

/// Deadline of an ask without one: the last time there is.
pub const NO_DEADLINE: Timestamp = Timestamp(i64::MAX);

/// Maximum number of rows that a page of asks scans: some milliseconds if none matches.
pub const ASKS_SCANNED_MAX: usize = 5_000;

/// Decodes the columns of [`ask_columns`](crate::ask_columns).
pub fn ask_of<C: Columns>(row: &C) -> Result<Ask, C::Error> {
    Ok(Ask {
        id: row.shared(1)?,
        kind: row.code(2, ask_kind_of)?,
        state: row.code(3, ask_state_of)?,
        execution_id: row.execution_id(4)?,
        workflow_id: row.shared(5)?,
        path: row.shared(6)?,
        user_id: row.optional_shared(7)?,
        reason: row.shared(8)?,
        opened_at: row.time(9)?,
        deadline: Some(row.time(10)?).filter(|due| *due != NO_DEADLINE),
        closed_at: row.optional_time(11)?,
    })
}

/// Decodes the place of an ask in its list, which needs only columns of indexes.
pub fn ask_cursor_of<C: Columns>(row: &C) -> Result<AskCursor, C::Error> {
    let n: Row = row.integer(0)?;
    Ok(match row.optional_time(11)? {
        None => AskCursor { at: row.time(10)?, then: row.time(9)?, row: n },
        Some(closed) => AskCursor { at: closed, then: closed, row: n },
    })
}

/// A page of asks that is filled row by row.
#[derive(Debug)]
pub struct AskPageBuilder<'f> {
    filter: &'f AskFilter,
    limit: usize,
    scanned: usize,
    page: AskPage,
}

impl<'f> AskPageBuilder<'f> {
    pub fn new(filter: &'f AskFilter, limit: usize) -> Self {
        Self { filter, limit, scanned: 0, page: AskPage::default() }
    }

    /// Returns true if no further row belongs to the page, which another one then follows.
    pub fn is_full(&self) -> bool {
        self.page.asks.len() >= self.limit || self.scanned == ASKS_SCANNED_MAX
    }

    /// Adds a row at its place, if it matches the filter; `None` for a damaged one.
    pub fn add(&mut self, place: AskCursor, ask: Option<Ask>) {
        self.scanned += 1;
        self.page.next = Some(place);
        self.page.asks.extend(ask.filter(|ask| self.filter.matches(ask)));
    }

    /// Returns the page; `is_last` if no row follows.
    pub fn finish(self, is_last: bool) -> AskPage {
        let Self { mut page, .. } = self;
        page.next = page.next.filter(|_| !is_last);
        page
    }
}
