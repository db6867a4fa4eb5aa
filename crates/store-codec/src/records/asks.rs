//! Asks.

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::ids::compensated_path;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Ask, AskContent, AskCursor, AskFilter, AskPage, AskSubject, AskedCall, AskedStep, Claim,
    DueAsks, DueCursor, OpenAskCounts, Row,
};

use crate::codes::{ask_kind_at, ask_kind_of, ask_state_of};
use crate::columns::Columns;

/// Columns of an ask `a` of an execution `e` or a generation `g`, for
/// [`ask_of`](crate::records::ask_of).
#[macro_export]
macro_rules! ask_columns {
    () => {
        "a.n, a.id, a.kind, a.state, e.id, a.workflow, a.path, a.user_id, a.reason, a.opened, \
         a.due, a.closed, g.id, a.agent, a.tool, a.revision, a.rules, a.claimed_by, \
         a.claimed_until, g.execution, g.path"
    };
}

/// Number of columns of [`ask_columns`](crate::ask_columns); the index of one that follows.
const ASK_COLUMNS: usize = 21;

/// Deadline of an ask without one: the last time there is.
pub const NO_DEADLINE: Timestamp = Timestamp(i64::MAX);

/// Maximum number of rows that a page of asks scans: less than 5 ms if none matches.
pub const ASKS_SCANNED_MAX: usize = 500;

/// Decodes the columns of [`ask_columns`](crate::ask_columns).
pub fn ask_of<C: Columns>(row: &C) -> Result<Ask, C::Error> {
    let subject = subject_of(row)?;
    let undoes = match &subject {
        AskSubject::Step(step) => compensated_path(&step.path).is_some(),
        AskSubject::Call(_) => false,
    };
    Ok(Ask {
        id: row.shared(1)?,
        kind: ask_kind_at(row.code(2, ask_kind_of)?, undoes),
        state: row.code(3, ask_state_of)?,
        subject,
        user_id: row.optional_shared(7)?,
        reason: row.shared(8)?,
        opened_at: row.time(9)?,
        deadline: Some(row.time(10)?).filter(|due| *due != NO_DEADLINE),
        closed_at: row.optional_time(11)?,
        revision: row.unsigned(15)?,
        rules: row.optional_text_json(16)?.unwrap_or_default(),
        claim: claim_of(row)?,
    })
}

fn subject_of<C: Columns>(row: &C) -> Result<AskSubject, C::Error> {
    let place = row.shared(6)?;
    Ok(match row.optional_shared(13)? {
        None => AskSubject::Step(AskedStep {
            execution_id: row.execution_id(4)?,
            workflow_id: row.shared(5)?,
            path: place,
        }),
        Some(agent_id) => AskSubject::Call(AskedCall {
            generation_id: row.shared(12)?,
            agent_id,
            tool_call_id: place,
            tool_name: row.optional_shared(14)?.unwrap_or_default(),
            step: step_of_generation(row)?,
        }),
    })
}

/// Returns the step that asked for the generation. Its workflow is missing if a version without this
/// column of calls opened the ask.
fn step_of_generation<C: Columns>(row: &C) -> Result<Option<AskedStep>, C::Error> {
    let place = row.optional_execution_id(19)?.zip(row.optional_shared(20)?);
    let found = place.zip(row.optional_shared(5)?);
    Ok(found.map(|((execution_id, path), workflow_id)| AskedStep {
        execution_id,
        workflow_id,
        path,
    }))
}

fn claim_of<C: Columns>(row: &C) -> Result<Option<Claim>, C::Error> {
    let claim = row.optional_shared(17)?.zip(row.optional_time(18)?);
    Ok(claim.map(|(by, until)| Claim { by, until }))
}

/// Decodes who may answer, from the first column.
pub fn ask_rules_of<C: Columns>(row: &C) -> Result<AskRules, C::Error> {
    Ok(row.optional_text_json(0)?.unwrap_or_default())
}

/// Decodes what lists do not show: details and answer.
pub fn ask_content_of<C: Columns>(row: &C) -> Result<AskContent, C::Error> {
    Ok(AskContent { details: row.optional_text_json(0)?, answer: row.optional_text_json(1)? })
}

/// Adds open asks of a kind to counts: kind, number, time when the oldest one opened, 1 for paths of
/// compensations.
pub fn count_open_asks<C: Columns>(counts: &mut OpenAskCounts, row: &C) -> Result<(), C::Error> {
    let kind = ask_kind_at(row.code(0, ask_kind_of)?, row.integer(3)? == 1);
    counts.by_kind.push((kind, row.unsigned(1)?));
    let oldest = row.optional_time(2)?;
    counts.oldest = counts.oldest.into_iter().chain(oldest).min();
    Ok(())
}

/// Decodes the place of an ask in its list, which needs only columns of indexes.
pub fn ask_cursor_of<C: Columns>(row: &C) -> Result<AskCursor, C::Error> {
    let n: Row = row.integer(0)?;
    Ok(match row.optional_time(11)? {
        None => AskCursor { at: row.time(10)?, then: row.time(9)?, row: n },
        Some(closed) => AskCursor { at: closed, then: closed, row: n },
    })
}

/// Adds an ask to those that are due: the columns of [`ask_columns`](crate::ask_columns), then the
/// time. `None` is an ask that cannot be read.
pub fn add_due_ask<C: Columns>(
    due: &mut DueAsks,
    row: &C,
    ask: Option<Ask>,
) -> Result<(), C::Error> {
    due.next = Some(DueCursor { at: row.time(ASK_COLUMNS)?, row: row.integer(0)? });
    due.asks.extend(ask);
    Ok(())
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

    /// Adds a row at its cursor, if it matches the filter; `None` for a damaged one.
    pub fn add(&mut self, cursor: AskCursor, ask: Option<Ask>) {
        self.scanned += 1;
        self.page.next = Some(cursor);
        self.page.asks.extend(ask.filter(|ask| self.filter.matches(ask)));
    }

    /// Returns the page; `is_last` if no row follows.
    pub fn finish(self, is_last: bool) -> AskPage {
        let Self { mut page, .. } = self;
        page.next = page.next.filter(|_| !is_last);
        page
    }
}
