//! Cancellation of generations: of those that run, in whatever process, and of those that wait.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::generation::continuable::Continuable;
use crate::agent::generation::continuation::CANCELLED;
use crate::agent::generation::idle_end::{IdleEnd, end_and_count};
use crate::ports::store::{AskChange, AskState, GenerationStatus};
use crate::requests::Unavailable;
use crate::visibility::Visibility;

use super::Runtime;
use super::suspended::{ATTEMPTS_MAX, Change};

/// Time after which a generation that has changed is looked at again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Refusal of the cancellation of a generation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CancelGenerationError {
    #[error("generation {0} not found")]
    NotFound(String),
    #[error("generation {id} has ended already")]
    Ended { id: String, status: GenerationStatus },
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Outcome of an attempt to cancel a generation that no process runs.
enum Stopped {
    Cancelled,
    /// It has changed meanwhile.
    Changed,
    /// Its step starts it again from the beginning.
    StartsAgain,
}

impl Runtime {
    /// Cancels a generation that the caller sees; resolves when that is durable. The step or the
    /// generation that waits for it continues as after a failure. In an outage of the store that
    /// outlasts the patience, it is recorded after it.
    pub async fn cancel_generation(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<(), CancelGenerationError> {
        for _ in 0..ATTEMPTS_MAX {
            // before the look for a run: one that begins afterwards changes it
            let stored = self.shared.store.continuation(generation_id).await;
            let stored = stored.map_err(Unavailable::from)?;
            let revision = stored.map_or(0, |stored| stored.revision);
            let mut was_live = self.shared.cancel_here(agent_id, generation_id, visibility).await?;
            let mut status = self.generation_status(agent_id, generation_id, visibility).await?;
            if !was_live && status == Some(GenerationStatus::Working) {
                was_live =
                    self.shared.cancel_elsewhere(agent_id, generation_id, visibility).await?;
                status = self.generation_status(agent_id, generation_id, visibility).await?;
            }
            let id = || generation_id.to_owned();
            match status {
                None => return Err(CancelGenerationError::NotFound(id())),
                Some(GenerationStatus::Cancelled) if was_live => return Ok(()),
                Some(GenerationStatus::Working | GenerationStatus::Suspended) => {
                    match self.stop_idle(generation_id, revision).await? {
                        Stopped::Cancelled => return Ok(()),
                        // an answer came first: it runs soon, or has ended
                        Stopped::Changed => tokio::time::sleep(LOOK_AGAIN_AFTER).await,
                        Stopped::StartsAgain => return Err(CancelGenerationError::NotFound(id())),
                    }
                }
                Some(
                    status @ (GenerationStatus::Completed
                    | GenerationStatus::Error
                    | GenerationStatus::Cancelled),
                ) => return Err(CancelGenerationError::Ended { id: id(), status }),
            }
        }
        Err(Unavailable::Busy { execution: None }.into())
    }

    /// Cancels a generation that no process runs, if its continuation still has this revision, and
    /// those that its tools have asked. What follows is done also if the caller leaves.
    async fn stop_idle(&self, id: &str, revision: u64) -> Result<Stopped, Unavailable> {
        let own: Arc<str> = Arc::from(id);
        let stopping = async move |runtime: Self| runtime.stop_idle_here(&own, revision).await;
        self.to_the_end(id, stopping).await?
    }

    async fn stop_idle_here(&self, id: &Arc<str>, revision: u64) -> Result<Stopped, Unavailable> {
        let Some(entry) = self.shared.store.generation(id).await? else {
            return Ok(Stopped::Changed);
        };
        let is_of_step = entry.record.origin.is_some();
        match self.continuable(id).await? {
            Some(found) if found.continuation.is_awaited(&entry.record) => {
                self.stop_awaited(id, revision).await
            }
            // that its step has ended
            None if entry.record.status.is_final() => Ok(Stopped::Changed),
            None if is_of_step => Ok(Stopped::StartsAgain),
            Some(_) | None => {
                let end = IdleEnd {
                    from: None,
                    revision: Some(revision),
                    status: GenerationStatus::Cancelled,
                    error: None,
                    why: CANCELLED.to_owned(),
                    at: self.shared.clock.now(),
                };
                Ok(match end_and_count(&self.generation_deps(), id, end).await? {
                    true => Stopped::Cancelled,
                    false => Stopped::Changed,
                })
            }
        }
    }

    /// Cancels a generation for which something waits. It ends when that takes it up.
    async fn stop_awaited(&self, id: &Arc<str>, revision: u64) -> Result<Stopped, Unavailable> {
        let at = self.shared.clock.now();
        let changed = self.change_continuation(id, async |found: &Continuable| {
            if found.continuation.is_cancelled {
                return Ok::<_, Unavailable>(Change::None(Some((Vec::new(), Vec::new()))));
            }
            if found.revision != revision {
                return Ok(Change::None(None));
            }
            let mut continuation = found.continuation.clone();
            let stopped = (continuation.children().collect(), continuation.open_questions());
            let state = AskState::Withdrawn;
            let withdrawn = continuation.cancel().into_iter();
            let asks = withdrawn.map(|id| AskChange::Close { id, state, at, answer: None });
            Ok(Change::Put {
                continuation: Box::new(continuation),
                asks: asks.collect(),
                value: Some(stopped),
            })
        });
        let Some((Some((children, questions)), _)) = changed.await? else {
            return Ok(Stopped::Changed);
        };
        let registry = self.registry();
        questions.into_iter().for_each(|question| question.notify(&registry.tools));
        for child in children {
            let to = GenerationStatus::Cancelled;
            if let Err(why) = self.end_idle(&child, None, to, None, CANCELLED).await {
                // the look for those that nothing waits for ends it
                log::warn!("generation {child} is not cancelled yet: {why}");
            }
        }
        self.go_on_now_or_later(id).await;
        Ok(Stopped::Cancelled)
    }
}
