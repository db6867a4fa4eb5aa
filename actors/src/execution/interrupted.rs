//! Generations whose steps end while nothing works on them: those of an earlier process, and those
//! that wait for people. Their history entries end with the step.

use std::sync::Arc;

use actix::Context;

use crate::agent::generation::put_away::{PutAway, end_kept};
use crate::domain::fact::{Fact, Recorded};
use crate::domain::plan::Work;
use crate::domain::time::Timestamp;
use crate::execution::agent::generation_id;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::{GenerationStatus, Store};
use crate::requests::Unavailable;

/// A generation, and its end.
struct Interrupted {
    id: String,
    /// True if an earlier process worked on it.
    is_of_earlier: bool,
    status: GenerationStatus,
    /// Error of its step, unless it was cancelled.
    error: Option<String>,
}

impl ExecutionActor {
    /// Ends the history entries of generations whose steps end without running again. A generation
    /// that this process runs ends its own entry.
    pub(super) fn end_interrupted(&mut self, durable: &[Recorded], ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let ended: Vec<_> = durable.iter().filter_map(|it| life.interrupted_by(&it.fact)).collect();
        for interrupted in ended {
            let (store, now) = (Arc::clone(&self.shared.store), self.shared.clock.now());
            let ending = async move {
                if let Err(why) = end(&*store, &interrupted, now).await {
                    log::warn!("generation {} does not end with its step: {why}", interrupted.id);
                }
            };
            self.background_query(ending, ctx, |_, (), _| {});
        }
    }
}

/// Ends a generation, if nothing works on it, and what its tools have asked.
async fn end(
    store: &dyn Store,
    interrupted: &Interrupted,
    at: Timestamp,
) -> Result<(), Unavailable> {
    let Interrupted { id, is_of_earlier, status, error } = interrupted;
    let Some(entry) = store.generation(id).await? else { return Ok(()) };
    let is_left = match entry.record.status {
        GenerationStatus::Working => *is_of_earlier,
        GenerationStatus::Suspended => true,
        GenerationStatus::Completed | GenerationStatus::Error | GenerationStatus::Cancelled => {
            false
        }
    };
    if !is_left {
        return Ok(());
    }
    let from = Some(entry.record.status);
    let end = PutAway {
        from,
        status: *status,
        error: error.clone(),
        why: "the step has ended".to_owned(),
        at,
    };
    end_kept(store, id, end).await?;
    Ok(())
}

impl LiveExecution {
    fn interrupted_by(&self, fact: &Fact) -> Option<Interrupted> {
        let (path, failed) = if let Fact::StepCancelled { path, .. } = fact {
            (path, None)
        } else if let Fact::StepFailed { path, error, .. } = fact {
            (path, Some(error))
        } else {
            return None;
        };
        let (step, node) = self.machine.node(path)?;
        if node.attempt == 0 || !matches!(step.work, Work::Agent(_)) {
            return None;
        }
        let is_of_earlier = node.since_seq <= self.restored_seq;
        // The failure has been counted; the attempt was named before it.
        let retry = node.failures.saturating_sub(u32::from(failed.is_some()));
        let status = match failed {
            Some(_) => GenerationStatus::Error,
            None => GenerationStatus::Cancelled,
        };
        let id = generation_id(&self.header.id, path, retry);
        let error = failed.map(|error| error.to_string());
        Some(Interrupted { id, is_of_earlier, status, error })
    }
}
