//! Generations that an earlier process began and that are not run again: their history entries end
//! with their step.

use std::sync::Arc;

use actix::Context;

use crate::domain::fact::{Fact, Recorded};
use crate::domain::plan::Work;
use crate::execution::agent::generation_id;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::{GenerationRecord, GenerationStatus, GenerationWrite};

/// A generation whose process is gone, and what has become of it.
struct Interrupted {
    id: String,
    status: GenerationStatus,
    /// Why it ended, for those that were not cancelled.
    error: Option<String>,
}

impl ExecutionActor {
    /// Ends the entries of generations whose steps end here without having been run again. One
    /// that ran in this process ends its entry itself.
    pub(super) fn end_interrupted(&mut self, durable: &[Recorded], ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let ended: Vec<_> = durable.iter().filter_map(|it| life.interrupted_by(&it.fact)).collect();
        for interrupted in ended {
            let (store, now) = (Arc::clone(&self.shared.store), self.shared.clock.now());
            let ending = async move {
                let found = store.generation(&interrupted.id).await.ok().flatten();
                let working = found.filter(|it| it.record.status == GenerationStatus::Working);
                let Some(entry) = working else { return };
                let Interrupted { id, status, error } = interrupted;
                let record =
                    GenerationRecord { status, error, end_time: Some(now), ..entry.record };
                // it exists, so it stays where it is: no row is used up
                let write = GenerationWrite { row: 0, record, steps: Vec::new(), messages: None };
                if let Err(why) = store.record_generation(write).await {
                    log::warn!("generation {id} stays at work in the history: {why}");
                }
            };
            self.background_query(ending, ctx, |_, (), _| {});
        }
    }
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
        let began_earlier = node.attempt > 0 && node.since_seq <= self.restored_seq;
        if !began_earlier || !matches!(step.work, Work::Agent(_)) {
            return None;
        }
        // The failure has been counted; the attempt was named before it.
        let retry = node.failures.saturating_sub(u32::from(failed.is_some()));
        let status = match failed {
            Some(_) => GenerationStatus::Error,
            None => GenerationStatus::Cancelled,
        };
        let id = generation_id(&self.header.id, path, retry);
        Some(Interrupted { id, status, error: failed.map(|error| error.to_string()) })
    }
}
