//! Pages of roots of traces: executions and generations, merged newest first.
//!
//! A store reads rows of the two lists as the merge asks for them; the merge decides which of them
//! are on the page. The number of rows that it takes is limited.

use std::collections::VecDeque;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, RootRow};
use greenroom_actors::ports::store::{Cursor, RootCursor, RootFilter, Row};

use super::columns::Columns;
use super::trace::BELOW;

/// Maximum number of rows that a page of roots scans: about ten milliseconds if none matches.
pub const SCANNED_MAX: usize = 5_000;

/// A row of one of the lists, which may be a root.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub row: Row,
    /// Position in its list.
    pub place: i64,
    pub at: Timestamp,
    is_match: bool,
}

impl Candidate {
    /// Decodes a row: its number, its position, the time of its start, `joined`, and the name of
    /// its workflow or agent.
    pub fn of<C: Columns>(row: &C, filter: &RootFilter) -> Result<Self, C::Error> {
        let at = row.time(2)?;
        let entity = row.text(4)?;
        let is_match = row.optional_integer(3)? != Some(BELOW)
            && filter.from.is_none_or(|from| at >= from)
            && filter.entity_id.as_deref().is_none_or(|wanted| wanted == entity);
        Ok(Self { row: row.integer(0)?, place: row.integer(1)?, at, is_match })
    }
}

/// One of the two lists, read no further than needed.
#[derive(Debug, Default)]
struct List {
    /// Rows that were read and not taken.
    read: VecDeque<Candidate>,
    is_read_to_end: bool,
    /// The next root, if it is known.
    head: Option<Candidate>,
    /// The last row that was returned or skipped.
    passed: Option<Candidate>,
}

/// Outcome of a search for the next root of a list.
enum Looked {
    /// The next root is known, or there is none.
    Found,
    /// More rows have to be read.
    Wanting,
    /// The limit on rows is reached.
    Cut,
}

impl List {
    fn look(&mut self, left: &mut usize) -> Looked {
        while self.head.is_none() {
            if *left == 0 && !(self.read.is_empty() && self.is_read_to_end) {
                return Looked::Cut;
            }
            let Some(candidate) = self.read.pop_front() else {
                return if self.is_read_to_end { Looked::Found } else { Looked::Wanting };
            };
            *left -= 1;
            let place = if candidate.is_match { &mut self.head } else { &mut self.passed };
            *place = Some(candidate);
        }
        Looked::Found
    }

    fn take(&mut self) -> Option<Candidate> {
        let head = self.head.take();
        self.passed = head.or(self.passed);
        head
    }
}

/// A merge of the two lists into a page.
#[derive(Debug)]
pub struct RootMerge {
    executions: List,
    generations: List,
    after: RootCursor,
    /// Number of rows that may still be scanned.
    left: usize,
    limit: usize,
    roots: Vec<RootRow>,
    is_cut: bool,
}

impl RootMerge {
    /// Starts a page of at most `limit` roots after a position.
    pub fn new(filter: &RootFilter, after: RootCursor, limit: usize) -> Self {
        let is_without = |kind| filter.entity_type.is_some_and(|wanted| wanted != kind);
        let list = |kind| List { is_read_to_end: is_without(kind), ..List::default() };
        Self {
            executions: list(EntityType::Workflow),
            generations: list(EntityType::Agent),
            after,
            left: SCANNED_MAX,
            limit,
            roots: Vec::new(),
            is_cut: false,
        }
    }

    /// Merges what was read. Returns the list of which more rows are needed, or `None` once the
    /// page is complete.
    pub fn wanted(&mut self) -> Option<EntityType> {
        loop {
            match self.executions.look(&mut self.left) {
                Looked::Wanting => return Some(EntityType::Workflow),
                Looked::Cut => return self.cut(),
                Looked::Found => {}
            }
            match self.generations.look(&mut self.left) {
                Looked::Wanting => return Some(EntityType::Agent),
                Looked::Cut => return self.cut(),
                Looked::Found => {}
            }
            let is_execution = match (&self.executions.head, &self.generations.head) {
                (None, None) => return None,
                _ if self.roots.len() == self.limit => return self.cut(),
                (Some(execution), Some(generation)) => execution.at >= generation.at,
                (execution, _) => execution.is_some(),
            };
            let root = match is_execution {
                true => self.executions.take().map(|it| RootRow::Execution(it.row)),
                false => self.generations.take().map(|it| RootRow::Generation(it.row)),
            };
            self.roots.extend(root);
        }
    }

    fn cut(&mut self) -> Option<EntityType> {
        self.is_cut = true;
        None
    }

    /// Adds the next rows of a list, in its order. `is_last` is true if no others follow.
    pub fn add(
        &mut self,
        list: EntityType,
        rows: impl IntoIterator<Item = Candidate>,
        is_last: bool,
    ) {
        let list = match list {
            EntityType::Workflow => &mut self.executions,
            EntityType::Agent => &mut self.generations,
        };
        list.read.extend(rows);
        list.is_read_to_end = is_last;
    }

    /// Returns the roots of the page, and the position of the next one.
    pub fn finish(self) -> (Vec<RootRow>, Option<RootCursor>) {
        let execution = self.executions.passed.map(|it| Cursor { at: it.at, row: it.row });
        let generation = self.generations.passed.map(|it| it.place);
        let next = RootCursor {
            execution: execution.or(self.after.execution),
            generation: generation.or(self.after.generation),
        };
        (self.roots, self.is_cut.then_some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row that began at a time; every third is no root.
    fn candidate(at: i64) -> Candidate {
        Candidate { row: at, place: at, at: Timestamp(at), is_match: at % 3 != 0 }
    }

    /// Reads a page whose lists have these times, in parts of some rows.
    fn page(
        lists: [&[i64]; 2],
        after: RootCursor,
        (limit, part): (usize, usize),
    ) -> (Vec<i64>, Option<RootCursor>) {
        let mut merge = RootMerge::new(&RootFilter::default(), after, limit);
        let before = [
            after.execution.map_or(i64::MAX, |cursor| cursor.row),
            after.generation.unwrap_or(i64::MAX),
        ];
        let mut rest = [0, 1].map(|it: usize| {
            lists[it].iter().copied().filter(move |at| *at < before[it]).collect::<Vec<_>>()
        });
        while let Some(list) = merge.wanted() {
            let rest = &mut rest[usize::from(list == EntityType::Agent)];
            let rows: Vec<_> = rest.drain(..part.min(rest.len())).map(candidate).collect();
            let is_last = rows.len() < part;
            merge.add(list, rows, is_last);
        }
        let (roots, next) = merge.finish();
        let at = |root| match root {
            RootRow::Execution(row) | RootRow::Generation(row) => row,
        };
        (roots.into_iter().map(at).collect(), next)
    }

    #[test]
    fn pages_merge_both_lists_however_they_are_read() {
        let lists: [&[i64]; 2] = [&[20, 17, 16, 9, 8, 6, 3], &[19, 18, 14, 7, 5, 3, 2, 1]];
        for limit in [1, 2, 5, 100] {
            for part in [1, 2, 3, 100] {
                let (mut all, mut after) = (Vec::new(), RootCursor::default());
                loop {
                    let (roots, next) = page(lists, after, (limit, part));
                    assert!(roots.len() <= limit);
                    all.extend(roots);
                    let Some(next) = next else { break };
                    assert_ne!(next, after, "the page moves on");
                    after = next;
                }
                assert_eq!(all, [20, 19, 17, 16, 14, 8, 7, 5, 2, 1], "{limit} in parts of {part}");
            }
        }
    }

    #[test]
    fn a_page_scans_a_limited_number_of_rows() {
        let others: Vec<i64> = (1..=SCANNED_MAX as i64 + 1).rev().map(|n| 3 * n).collect();
        let (roots, next) = page([&others, &[]], RootCursor::default(), (10, 100));
        let last = Cursor { at: Timestamp(6), row: 6 };
        assert!(roots.is_empty());
        assert_eq!(next, Some(RootCursor { execution: Some(last), generation: None }));
        let (roots, next) = page([&others, &[]], next.unwrap(), (10, 100));
        assert_eq!((roots.len(), next), (0, None), "one row is left");
    }
}
