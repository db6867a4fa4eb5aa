//! Cancellation of generations: of those that run, in whatever process, and of those that wait.

use std::sync::Arc;

use crate::agent::generation::continuation::CANCELLED;
use crate::ports::store::{AskChange, AskState, GenerationStatus};
use crate::requests::Unavailable;
use crate::visibility::Visibility;

use super::Runtime;
use super::suspended::{ATTEMPTS_MAX, Change, Kept};

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
                Some(GenerationStatus::Suspended) => {
                    match self.stop_kept(generation_id, GenerationStatus::Suspended).await? {
                        Stopped::Cancelled => return Ok(()),
                        // an answer came first: it runs, or has ended
                        Stopped::Changed => {}
                    }
                }
                Some(GenerationStatus::Working) => {
                    return self.cancel_interrupted(agent_id, generation_id).await;
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

    /// Cancels a generation that is to continue, and that no process runs.
    async fn cancel_interrupted(
        &self,
        agent_id: &str,
        generation_id: &str,
    ) -> Result<(), CancelGenerationError> {
        let all = &Visibility::Everything;
        let is_running = self.generations.live.find(agent_id, generation_id, all).is_some();
        if !is_running {
            match self.stop_kept(generation_id, GenerationStatus::Working).await? {
                Stopped::Cancelled => return Ok(()),
                Stopped::Changed => {}
            }
        }
        Err(CancelGenerationError::NotFound(generation_id.to_owned()))
    }

    /// Cancels a generation with this status that no process runs, and those that its tools have asked.
    /// What follows is done also if the caller leaves.
    async fn stop_kept(&self, id: &str, from: GenerationStatus) -> Result<Stopped, Unavailable> {
        let kept: Arc<str> = Arc::from(id);
        let stopping = async move |runtime: Self| runtime.stop_kept_here(&kept, from).await;
        self.to_the_end(id, stopping).await?
    }

    async fn stop_kept_here(
        &self,
        id: &Arc<str>,
        from: GenerationStatus,
    ) -> Result<Stopped, Unavailable> {
        let Some(entry) = self.shared.store.generation(id).await? else {
            return Ok(Stopped::Changed);
        };
        let is_of_step = entry.record.origin.is_some();
        match self.kept(id).await? {
            Some(found) if is_of_step || found.kept.parent.is_some() => {
                self.stop_awaited(id, from).await
            }
            // its step starts it again
            None if is_of_step => Ok(Stopped::Changed),
            Some(_) | None => {
                let to = GenerationStatus::Cancelled;
                Ok(match self.end_kept(id, Some(from), to, None, CANCELLED).await? {
                    true => Stopped::Cancelled,
                    false => Stopped::Changed,
                })
            }
        }
    }

    /// Cancels a generation for which something waits. It ends when that takes it up.
    async fn stop_awaited(
        &self,
        id: &Arc<str>,
        from: GenerationStatus,
    ) -> Result<Stopped, Unavailable> {
        let at = self.shared.clock.now();
        let changed = self.change_kept(id, async |found: &Kept| {
            if found.entry.record.status != from {
                return Ok::<_, Unavailable>(Change::None(None));
            }
            let mut kept = found.kept.clone();
            let children: Vec<_> = kept.children().collect();
            let (state, answer) = (AskState::Withdrawn, None);
            let withdrawn = kept.cancel().into_iter();
            let asks =
                withdrawn.map(|id| AskChange::Close { id, state, at, answer: answer.clone() });
            Ok(Change::Put { kept: Box::new(kept), asks: asks.collect(), value: Some(children) })
        });
        let Some((Some(children), _)) = changed.await? else { return Ok(Stopped::Changed) };
        for child in children {
            let to = GenerationStatus::Cancelled;
            if let Err(why) = self.end_kept(&child, None, to, None, CANCELLED).await {
                // the look for those that nothing waits for ends it
                log::warn!("generation {child} is not cancelled yet: {why}");
            }
        }
        self.go_on_now_or_later(id).await;
        Ok(Stopped::Cancelled)
    }
}
