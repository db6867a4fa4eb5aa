//! Generations whose steps end while nothing works on them: those of an earlier process, and those
//! that wait for people. Their history entries end with the step.

use std::sync::Arc;

use actix::Context;

use crate::agent::generation::GenerationDeps;
use crate::agent::generation::idle_end::{IdleEnd, end_and_count};
use crate::domain::fact::{Fact, Recorded};
use crate::domain::ids::step_generation_id;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::GenerationStatus;
use crate::requests::Unavailable;
use crate::shared::Shared;
use crate::visibility::Visibility;

/// A generation, and its end.
struct Interrupted {
    id: String,
    status: GenerationStatus,
    /// Error of its step, unless it was cancelled.
    error: Option<String>,
}

impl ExecutionActor {
    /// Ends the history entries of generations whose steps end without running again.
    pub(super) fn end_interrupted(&mut self, durable: &[Recorded], ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let ended: Vec<_> = durable.iter().filter_map(|it| life.interrupted_by(&it.fact)).collect();
        for interrupted in ended {
            let shared = Arc::clone(&self.shared);
            let ending = async move {
                if let Err(why) = end(&shared, &interrupted).await {
                    log::debug!("generation {} ends later: {why}", interrupted.id);
                    shared.left_behind.add(interrupted.id);
                }
            };
            self.background_query(ending, ctx, |_, (), _| {});
        }
    }
}

/// Ends a generation, if nothing works on it, and what its tools have asked.
async fn end(shared: &Shared, interrupted: &Interrupted) -> Result<(), Unavailable> {
    let Interrupted { id, status, error } = interrupted;
    let Some(entry) = shared.store.generation(id).await? else { return Ok(()) };
    let agent_id = &entry.record.agent_id;
    let runs =
        |deps: &GenerationDeps| deps.live.find(agent_id, id, &Visibility::Everything).is_some();
    if entry.record.status.is_final() {
        return Ok(());
    }
    if shared.generations.get().is_some_and(runs) {
        // it ends its own entry, unless it is only interrupted
        return Err(Unavailable::Busy { execution: None });
    }
    let end = IdleEnd {
        revision: None,
        // an answer may arrive meanwhile
        from: None,
        status: *status,
        error: error.clone(),
        why: "the step has ended".to_owned(),
        at: shared.clock.now(),
    };
    // set before the first execution is loaded
    let Some(deps) = shared.generation_deps() else {
        return Err(Unavailable::Busy { execution: None });
    };
    end_and_count(&deps, id, end).await?;
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
        if node.attempt == 0 || step.work.agent().is_none() {
            return None;
        }
        // The failure has been counted; the attempt was named before it.
        let retry = node.failures.saturating_sub(u32::from(failed.is_some()));
        let status = match failed {
            Some(_) => GenerationStatus::Error,
            None => GenerationStatus::Cancelled,
        };
        let id = step_generation_id(&self.header.id, path, retry);
        let error = failed.map(|error| error.to_string());
        Some(Interrupted { id, status, error })
    }
}
