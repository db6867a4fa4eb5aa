//! Generations of an earlier process whose steps end without running again: their history entries
//! end with the step.

use std::sync::Arc;

use actix::Context;

use crate::domain::fact::{Fact, Recorded};
use crate::domain::plan::Work;
use crate::execution::agent::generation_id;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::{
    ContinuationChange, GenerationRecord, GenerationStatus, GenerationWrite,
};

/// A generation of an earlier process, and its end.
struct Interrupted {
    id: String,
    status: GenerationStatus,
    /// Error of its step, unless it was cancelled.
    error: Option<String>,
}

impl ExecutionActor {
    /// Ends the history entries of generations whose steps end without running again. A generation
    /// of this process ends its own entry.
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
                // the entry exists and keeps its row
                let write = GenerationWrite {
                    row: 0,
                    record,
                    steps: Vec::new(),
                    messages: None,
                    continuation: ContinuationChange::Keep,
                };
                if let Err(why) = store.record_generation(write).await {
                    log::warn!("generation {id} stays `working` in the history: {why}");
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
