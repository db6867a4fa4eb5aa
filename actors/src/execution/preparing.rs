//! Evaluates the work of an attempt: here where that is cheap, else on another thread.

use std::sync::Arc;

use actix::Context;

use crate::domain::effort::{Effort, within};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::StepPath;
use crate::domain::machine::{Machine, Moment};
use crate::execution::ExecutionActor;
use crate::execution::deciding::lane_of;
use crate::shard::evaluation::Cancel;

/// Work of an attempt; `None` if the attempt is not current.
type Prepared<T> = Option<Result<T, AttemptFailure>>;

impl ExecutionActor {
    /// Evaluates the work of an attempt and begins it, if the attempt is still current. An attempt
    /// whose work cannot be evaluated fails.
    pub(super) fn prepare<T: Send + 'static>(
        &mut self,
        path: &StepPath,
        attempt: u32,
        evaluate: impl Fn(&Machine, &str, &Moment<'_>) -> Prepared<T> + Send + 'static,
        begin: impl FnOnce(&mut Self, &StepPath, u32, T, &mut Context<Self>) + 'static,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &mut self.life else { return };
        let (work, effort) = self.shared.at_moment(&self.id, |moment| {
            within(moment.budget, || evaluate(&life.machine, path, moment))
        });
        let begin = move |actor: &mut Self,
                          path: &StepPath,
                          work: Prepared<T>,
                          effort: Effort,
                          ctx: &mut Context<Self>| {
            match work {
                None => {}
                Some(Ok(work)) => begin(actor, path, attempt, work, ctx),
                Some(Err(failure)) => {
                    let failure = match effort.is_exceeded {
                        true => AttemptFailure::new(ErrorKind::Cost, failure.message),
                        false => failure,
                    };
                    actor.fail_attempt(path, attempt, failure, ctx);
                }
            }
        };
        if !effort.is_exceeded {
            begin(self, path, work, effort, ctx);
            return;
        }
        let place = (Arc::clone(path), attempt);
        life.preparing.insert(place.clone());
        let (shared, machine) = (Arc::clone(&self.shared), Arc::clone(&life.machine));
        let (path, lane) = (Arc::clone(path), lane_of(&machine));
        let work = async move {
            let evaluating = Arc::clone(&shared);
            let value = shared.evaluations.evaluate(lane, Cancel::default(), move |budget| {
                let _marked = evaluating.mark_decision(&machine);
                evaluating.at_moment_within(&machine.state().id, budget, |moment| {
                    within(budget, || evaluate(&machine, &path, moment))
                })
            });
            value.await
        };
        self.background_query(work, ctx, move |actor, evaluated, ctx| {
            let Some(life) = &mut actor.life else { return };
            life.preparing.remove(&place);
            let (path, attempt) = place;
            // that took a while, and is repeated if another process may serve the execution by now
            let begins = actor.is_current(&path, attempt) && actor.may_begin(ctx);
            if let Some((work, effort)) = evaluated.filter(|_| begins) {
                begin(actor, &path, work, effort, ctx);
            }
        });
    }

    /// Returns true if an attempt is still to run: the execution may have changed since it began.
    pub(super) fn is_current(&self, path: &StepPath, attempt: u32) -> bool {
        self.life.as_ref().is_some_and(|life| {
            life.stopping.is_none() && life.machine.has_effect(path, attempt, life.durable_seq)
        })
    }
}
