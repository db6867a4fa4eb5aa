//! What is dropped when it has been over for long enough.
//!
//! Looking and dropping are apart: what a look reads is bounded and holds no writer up, and what is
//! dropped is named by its rows.

use std::sync::Arc;

use super::{Cursor, Read, Row, Status, Written};
use crate::domain::time::Timestamp;

/// Which executions a look is for.
#[derive(Debug, Clone)]
pub struct EndedExecutions {
    pub workflow_id: Arc<str>,
    /// A terminal one.
    pub status: Status,
    /// Ended before this.
    pub before: Timestamp,
    /// Where the look before this one came to.
    pub after: Option<Cursor>,
}

/// Which generations a look is for.
#[derive(Debug, Clone)]
pub struct EndedGenerations {
    pub agent_id: Arc<str>,
    /// Ended before this.
    pub before: Timestamp,
    /// Where the look before this one came to; 0 at first.
    pub after: u64,
}

/// What a look has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<P> {
    pub rows: Vec<Row>,
    /// Where the next look goes on; `None` when there is nothing more to look at. A look may have
    /// found nothing and still have more to look at.
    pub next: Option<P>,
}

impl<P> Default for Ended<P> {
    fn default() -> Self {
        Self { rows: Vec::new(), next: None }
    }
}

/// Finds what is over, oldest first, and drops it.
pub trait Retention: Send + Sync {
    /// The first workflow behind this name that has executions, whether it is configured or not.
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>>;

    /// Looks at no more than `limit` executions. Those whose parent is stored and not over are left
    /// out: it may yet ask for them.
    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>>;

    /// Drops executions with their facts, kept states and timers, in small batches, each in a
    /// commit of its own; an execution goes whole. Those that are not over stay. Gives how many
    /// went.
    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64>;

    /// The first agent behind this name that has a history.
    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>>;

    /// Looks at no more than `limit` generations.
    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>>;

    /// Drops generations with their turns, as [`Retention::drop_executions`] does. The pages of the
    /// history move up. Conversations stay.
    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64>;
}
