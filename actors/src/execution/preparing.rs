//! Finding out what an attempt is to do: here where that is cheap, else elsewhere.

use std::sync::Arc;

use actix::Context;

use crate::domain::effort::{Effort, within};
use crate::domain::ids::StepPath;
use crate::domain::machine::{Machine, Moment};
use crate::execution::ExecutionActor;
use crate::execution::deciding::lane_of;
use crate::shard::evaluation::Cancel;
use crate::shared::Shared;

impl ExecutionActor {
    /// Finds out what an attempt is to do, and goes on with it if it is still wanted then.
    pub(super) fn prepare<T: Send + 'static>(
        &mut self,
        path: &StepPath,
        attempt: u32,
        ask: impl Fn(&Machine, &str, &Moment<'_>) -> T + Send + 'static,
        then: impl FnOnce(&mut Self, T, Effort, &mut Context<Self>) + 'static,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &mut self.life else { return };
        let (asked, effort) = asked(&self.shared, &life.machine, path, &ask);
        if !effort.is_exceeded {
            then(self, asked, effort, ctx);
            return;
        }
        let place = (Arc::clone(path), attempt);
        life.preparing.insert(place.clone());
        let (shared, machine) = (Arc::clone(&self.shared), Arc::clone(&life.machine));
        let (path, lane) = (Arc::clone(path), lane_of(&machine));
        let work = async move {
            let asking = Arc::clone(&shared);
            let asked = shared.evaluations.evaluate(lane, Cancel::default(), move |budget| {
                let _marked = asking.mark_decision(&machine);
                asking.at_moment_within(budget, |moment| {
                    within(budget, || ask(&machine, &path, moment))
                })
            });
            asked.await
        };
        self.background_query(work, ctx, move |actor, asked, ctx| {
            let Some(life) = &mut actor.life else { return };
            life.preparing.remove(&place);
            let (path, attempt) = place;
            if let Some((asked, effort)) = asked.filter(|_| actor.is_wanted(&path, attempt)) {
                then(actor, asked, effort, ctx);
            }
        });
    }

    /// Whether an attempt is still to be at work: the execution may have gone another way since
    /// it began.
    pub(super) fn is_wanted(&self, path: &StepPath, attempt: u32) -> bool {
        self.life.as_ref().is_some_and(|life| {
            let effects = life.machine.effects(life.durable_seq);
            let is_at_work = effects.iter().any(|it| it.path == *path && it.attempt == attempt);
            is_at_work && !life.is_stopping
        })
    }
}

fn asked<T>(
    shared: &Shared,
    machine: &Machine,
    path: &str,
    ask: impl Fn(&Machine, &str, &Moment<'_>) -> T,
) -> (T, Effort) {
    shared.at_moment(|moment| within(moment.budget, || ask(machine, path, moment)))
}
