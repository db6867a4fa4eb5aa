//! Generations with questions for whose answers no step and no generation waits, because a process was
//! killed between the end of what had asked and the end of the generation.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ports::store::{Ask, AskCursor, AskFilter, AskSubject, GenerationStatus};
use crate::requests::Unavailable;

use super::Runtime;

/// Open asks that are looked at at once.
const ASKS: usize = 50;

impl Runtime {
    /// Looks at a page of open asks, and ends the generations for which nothing waits.
    /// Returns where the next page begins; `None` after the last one.
    pub(super) async fn end_orphans(
        &self,
        after: Option<AskCursor>,
    ) -> Result<Option<AskCursor>, Unavailable> {
        let filter = AskFilter { is_open: true, ..AskFilter::default() };
        let page = self.shared.store.asks(&filter, after, ASKS).await?;
        for id in generations_of(page.asks) {
            if let Err(why) = self.end_if_orphan(&id).await {
                log::debug!("whether someone waits for generation {id} is not known: {why}");
            }
        }
        Ok(page.next)
    }

    async fn end_if_orphan(&self, id: &str) -> Result<(), Unavailable> {
        let Some(found) = self.continuable(id).await? else { return Ok(()) };
        let Some(parent) = &found.continuation.parent else {
            // ends one whose step has ended
            return self.go_on(id, None, None).await.map(drop);
        };
        let parent = self.shared.store.generation(parent).await?;
        if parent.is_none_or(|parent| parent.record.status.is_final()) {
            let why = "the generation that asked has ended";
            self.end_idle(id, None, GenerationStatus::Cancelled, None, why).await?;
        }
        Ok(())
    }
}

/// Returns the ids of the generations that ask, each once.
pub(super) fn generations_of(asks: Vec<Ask>) -> BTreeSet<Arc<str>> {
    let generation = |ask: Ask| match ask.subject {
        AskSubject::Call(call) => Some(call.generation_id),
        AskSubject::Step(_) => None,
    };
    asks.into_iter().filter_map(generation).collect()
}
