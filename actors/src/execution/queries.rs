//! Queries that an actor waits for while it handles other messages.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use scopeguard::{ScopeGuard, guard};

use crate::commands::Refuse;
use crate::domain::ids::ExecutionId;
use crate::execution::ExecutionActor;
use crate::requests::Unavailable;
use crate::shared::Shared;

impl ExecutionActor {
    /// Runs a query and passes its answer to `then`; until then the actor is not idle.
    pub(super) fn background_query<F, T>(
        &mut self,
        question: F,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, T, &mut Context<Self>) + 'static,
    ) where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        if let Some(life) = &mut self.life {
            life.background_queries += 1;
        }
        ctx.spawn(question.into_actor(self).map(move |answer, actor, ctx| {
            if let Some(life) = &mut actor.life {
                life.background_queries -= 1;
            }
            then(actor, answer, ctx);
            actor.report_if_idle(ctx);
        }));
    }

    /// Runs a query for a caller, who is refused if the actor ends before the answer.
    pub(super) fn query_for<C, F, T>(
        &mut self,
        caller: C,
        question: F,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, C, T, &mut Context<Self>) + 'static,
    ) where
        C: Refuse + 'static,
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        let (shared, id) = (self.shared.clone(), self.id.clone());
        let caller = guard(caller, move |caller| caller.refuse(shared.ended_unanswered(&id)));
        self.background_query(question, ctx, move |actor, answer, ctx| {
            then(actor, ScopeGuard::into_inner(caller), answer, ctx);
        });
    }
}

impl Shared {
    /// Returns the refusal for callers of an actor that ended while it worked for them: what they
    /// asked for may be recorded.
    pub(super) fn ended_unanswered(&self, id: &ExecutionId) -> Unavailable {
        let execution = Some(id.clone());
        if self.is_draining() {
            Unavailable::Draining { execution }
        } else if self.ownership.members().is_some() {
            Unavailable::Moved { execution }
        } else {
            Unavailable::Busy { execution }
        }
    }
}
