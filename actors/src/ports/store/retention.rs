//! Retention of ended executions and generations.
//!
//! Search and deletion are separate: a search reads a bounded number of rows without blocking the
//! writer, and deletion names rows.

use std::sync::Arc;

use super::{Cursor, Read, Row, Status, Written};
use crate::domain::time::Timestamp;

/// Search for ended executions.
#[derive(Debug, Clone)]
pub struct EndedExecutions {
    pub workflow_id: Arc<str>,
    /// A terminal status.
    pub status: Status,
    /// Latest end, exclusive.
    pub before: Timestamp,
    /// Position of the previous search.
    pub after: Option<Cursor>,
}

/// Search for ended generations.
#[derive(Debug, Clone)]
pub struct EndedGenerations {
    pub agent_id: Arc<str>,
    /// Latest end, exclusive.
    pub before: Timestamp,
    /// Position of the previous search; 0 at first.
    pub after: u64,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<P> {
    pub rows: Vec<Row>,
    /// Position for the next search; `None` at the end. A search may find nothing and still have
    /// more to read.
    pub next: Option<P>,
}

impl<P> Default for Ended<P> {
    fn default() -> Self {
        Self { rows: Vec::new(), next: None }
    }
}

/// Finds and deletes ended executions and generations, oldest first.
pub trait Retention: Send + Sync {
    /// Returns the first workflow after this name that has executions, configured or not.
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>>;

    /// Reads at most `limit` executions. Skips children of stored executions that have not ended,
    /// because the parent may still need them.
    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>>;

    /// Deletes executions with their facts, snapshots and timers, in small batches with a commit
    /// each; each execution is deleted whole. Keeps those that have not ended. Returns the number
    /// deleted.
    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64>;

    /// Returns the first agent after this name that has a history.
    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>>;

    /// Reads at most `limit` generations, in the order of the history. Nothing follows a search that
    /// reads only generations that began and ended at `before` or later. Behind single ones, which
    /// began under a clock that was ahead, older ones may follow.
    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>>;

    /// Deletes generations with their turns, like [`Retention::drop_executions`]. Later pages of
    /// the history move up. Conversations remain.
    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64>;
}
