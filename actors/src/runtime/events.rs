//! Pages of an execution's events, without its actor.

use crate::commands::Subject;
use crate::domain::fact::Recorded;
use crate::ports::store::FactCursor;
use crate::requests::{DescribeError, Target, Unavailable};
use crate::runtime::Runtime;

/// Bytes of facts, as stored, after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// Bytes of facts that one read of the store returns, unless a single fact is larger.
const READ_BYTES: usize = 256 << 10;

/// A page of facts.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// Oldest first; there is one if an event follows.
    pub facts: Vec<Recorded>,
    /// Number of the execution's last durable event.
    pub last_seq: u64,
}

impl Runtime {
    /// Reads durable facts whose events follow a number, up to `limit` events or about a mebibyte.
    /// The first fact may have events before that, and the last one events beyond `limit`.
    pub async fn events(
        &self,
        target: &Target,
        after: u64,
        limit: usize,
    ) -> Result<EventPage, DescribeError> {
        let (store, id) = (&self.shared.store, &target.execution_id);
        let row = store.describe(id).await.map_err(Unavailable::from)?;
        let row = row.filter(|row| Subject::from(target).is(&row.header));
        let row = row.ok_or(DescribeError::NotFound)?;
        let mut page = EventPage { facts: Vec::new(), last_seq: row.last_seq };
        // the event may be the first one of its fact
        let (mut from, mut bytes) = (FactCursor::above(after.saturating_sub(1)), 0);
        let wanted = after.saturating_add(limit as u64).min(row.last_seq);
        let reach = |facts: &[Recorded]| facts.last().map_or(after, |it| it.next_seq() - 1);
        while reach(&page.facts) < wanted && bytes < PAGE_BYTES {
            let portion = store.portion(id, from, READ_BYTES).await.map_err(Unavailable::from)?;
            // a fact that came alone can be of any size, and is a separate page
            let is_alone = portion.facts.len() == 1;
            if portion.facts.is_empty() || is_alone && reach(&page.facts) > after {
                break;
            }
            let is_last = portion.next == from;
            (from, bytes) = (portion.next, bytes + READ_BYTES);
            page.facts.extend(portion.facts);
            if is_last || is_alone && reach(&page.facts) > after {
                break;
            }
        }
        // the execution may have gone on since its row was read
        if let Some(last) = page.facts.last() {
            page.last_seq = page.last_seq.max(last.next_seq() - 1);
        }
        Ok(page)
    }
}
