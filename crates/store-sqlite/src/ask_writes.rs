//! Writes of asks.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AskRevision, AskState, GenerationRecord, Header, Row};
use greenroom_store_codec::Damaged;
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::prepared::{
    PreparedAnswer, PreparedAsk, PreparedAskChange, PreparedAskRevision, PreparedMissingAsks,
};
use greenroom_store_codec::records::NO_DEADLINE;
use greenroom_store_codec::users::{answer_without, rules_without, written_end};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::codec::{damage_in_part, limit_of, signed};
use super::defects::Defects;

const OPEN: &str = "INSERT INTO asks
    (id, execution, generation, kind, state, opened, due, workflow, agent, path, tool, user_id,
    reason, rules, next_due, details)
    VALUES (?1, ?2, (SELECT n FROM generations WHERE id = ?3), ?4, 0, ?5, ?6,
        coalesce(?7, (SELECT workflow FROM executions WHERE id = ?16)), ?8, ?9, ?10, ?11, ?12,
        ?13, ?14, ?15)
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

const ASSIGNED: &str = "SELECT n, id, rules FROM asks INDEXED BY asks_assigned
    WHERE rules IS NOT NULL AND n > ?2 AND instr(rules, ?1) > 0 ORDER BY n LIMIT 1";

const REASSIGN: &str = "UPDATE asks SET rules = ?2, revision = revision + 1 WHERE n = ?1";

const MARK: &str = "UPDATE executions SET has_asks = 1 WHERE n = ?1 AND revision = ?2";

const OPEN_OF: &str = "SELECT id FROM asks INDEXED BY asks_of WHERE execution = ?1 AND state = 0";

/// The execution or the generation that asks belong to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    Execution { row: Row, header: &'a Header },
    Generation(&'a GenerationRecord),
}

/// Texts that may name a user: how they are found and written, what they are searched for, and how the
/// user is removed.
type Texts<'a, 'c> = (
    &'a mut Statement<'c>,
    &'a str,
    &'a mut Statement<'c>,
    fn(&str, &str) -> std::result::Result<Option<String>, Damaged>,
);

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
    assigned: Statement<'c>,
    reassign: Statement<'c>,
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
            assigned: connection.prepare(ASSIGNED)?,
            reassign: connection.prepare(REASSIGN)?,
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

    /// Ends claims of a user and removes the user from answers and assignments; returns the number of
    /// changed rows. The work is complete when that is less than `limit`. A damaged text is reported
    /// to `defects` and stays; it does not count.
    pub(super) fn forget(&mut self, user: &str, limit: usize, defects: &Defects) -> Result<usize> {
        let mut rows = self.end_claims.execute(params![user, limit_of(limit)])?;
        let Self { answered, strike, assigned, reassign, .. } = self;
        let needle = written_end(user);
        let texts: [Texts<'_, 'c>; 2] = [
            (answered, user, strike, answer_without),
            (assigned, &needle, reassign, rules_without),
        ];
        for (find, sought, put, without) in texts {
            let mut after = Row::MIN;
            while rows < limit {
                let found = find.query_row(params![sought, after], |row| {
                    Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
                });
                let Some((n, id, text)) = found.optional()? else { break };
                after = n;
                let read = without(text.as_deref().unwrap_or_default(), user);
                let read = read.map_err(damage_in_part);
                let struck = defects.readable(|| format!("ask {id}"), read)?;
                // others name another user whose id ends like this one's
                if let Some(struck) = struck.flatten() {
                    put.execute(params![n, struck])?;
                    rows += 1;
                }
            }
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
        let origin = match of {
            Owner::Execution { .. } => None,
            Owner::Generation(of) => of.origin.as_ref().map(|step| step.execution_id.as_str()),
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
            origin,
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

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn changes_find_their_rows_by_an_index() {
        for sql in
            [OPEN, CLOSE, REVISE, END_CLAIMS, ANSWERED, STRIKE, ASSIGNED, REASSIGN, OPEN_OF, MARK]
        {
            assert_uses_indexes(sql);
        }
    }
}
