//! Work outside the machine: begins when its start is durable, and is dropped when obsolete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, SpawnHandle, WrapFuture};
use futures_util::future::BoxFuture;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::tool::IsInterrupted;
use crate::domain::fact::Recorded;
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::StepPath;
use crate::domain::machine::{Command, Effect, EffectKind, Spent, StepResult, Touched};
use crate::domain::slot::slot_of;
use crate::domain::state::Phase;
use crate::domain::time::Timestamp;
use crate::execution::ExecutionActor;
use crate::execution::logging::scope_of_attempt;
use crate::execution::polled::Polled;
use crate::execution::progress::RelayGuard;
use crate::shard::pulse::HeldBy;
use crate::shared::BodyGuard;

/// Work of one attempt.
pub(super) struct Body {
    pub(super) work: BoxFuture<'static, BodyEnd>,
    /// The tool that it calls.
    pub(super) tool: Option<Arc<str>>,
    /// Fires when the work is dropped before its end.
    pub(super) cancellation: CancellationToken,
    /// Set before the work is dropped to be continued later: in the next process, or in another one.
    pub(super) interrupted: Arc<AtomicBool>,
    /// Forwards its progress to subscribers.
    pub(super) relay: Option<RelayGuard>,
}

/// Result of a body, and what it has used.
pub(super) struct BodyEnd {
    pub(super) result: StepResult,
    pub(super) spent: Spent,
}

impl BodyEnd {
    /// Returns an end that used nothing, or nothing that is known.
    pub(super) fn of(result: StepResult) -> Self {
        Self { result, spent: Spent::default() }
    }
}

/// A running body in this actor's context.
pub(super) struct BodyInFlight {
    handle: SpawnHandle,
    cancellation: DropGuard,
    interrupted: Arc<AtomicBool>,
    count: BodyGuard,
    _relay: Option<RelayGuard>,
}

/// A child that was started or queried.
pub(super) struct TrackedChild {
    /// Time of its start, or before it if it starts at once; otherwise `None` until its first report.
    began: Option<Timestamp>,
    /// Timer of its timeout while it runs.
    limit: Option<SpawnHandle>,
}

impl ExecutionActor {
    /// Starts every body that has durably begun and does not run yet.
    pub(super) fn start_bodies(&mut self, ctx: &mut Context<Self>) {
        self.start_bodies_in(&Touched::WHOLE, ctx);
    }

    /// Starts the bodies in a part of the execution. After an append that is the part its facts are
    /// about, because thousands of other bodies may be running. The first time, all are started.
    pub(super) fn start_bodies_in(&mut self, part: &Touched<'_>, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if life.stopping.is_some() {
            return;
        }
        let is_known = std::mem::replace(&mut life.has_begun_bodies, true);
        let part = if is_known { part } else { &Touched::WHOLE };
        for effect in life.machine.effects_in(part, life.durable_seq) {
            let Effect { path, attempt, kind } = effect;
            if self.is_running(&path, attempt) {
                if kind == EffectKind::Child {
                    self.limit_child(&path, attempt, ctx);
                }
                continue;
            }
            // the failure of one before may have cancelled it
            if !self.is_current(&path, attempt) {
                continue;
            }
            if kind != EffectKind::Child && !self.may_begin(ctx) {
                continue;
            }
            match kind {
                EffectKind::Call => self.start_call(&path, attempt, ctx),
                EffectKind::Agent => self.start_agent(&path, attempt, ctx),
                EffectKind::Child => self.ensure_child(&path, attempt, ctx),
            }
        }
    }

    /// Returns false if another process may serve the execution by now, and run the same step: the
    /// store may have kept the acknowledgement back for long. Bodies begin after the next beat then.
    pub(super) fn may_begin(&mut self, ctx: &mut Context<Self>) -> bool {
        if self.shared.ownership.is_believed() {
            return true;
        }
        let Some(life) = &mut self.life else { return false };
        if !std::mem::replace(&mut life.awaits_belief, true) {
            let shared = Arc::clone(&self.shared);
            let believed = async move { shared.ownership.believed().await };
            self.background_query(believed, ctx, |actor, (), ctx| {
                if let Some(life) = &mut actor.life {
                    life.awaits_belief = false;
                }
                actor.start_bodies(ctx);
            });
        }
        false
    }

    fn is_running(&self, path: &StepPath, attempt: u32) -> bool {
        let key = (Arc::clone(path), attempt);
        self.life.as_ref().is_none_or(|life| {
            life.in_flight.contains_key(&key)
                || life.children.contains_key(&key)
                || life.preparing.contains(&key)
                || life.deciding.is_about(path, attempt)
        })
    }

    /// Drops bodies whose attempt these facts ended in memory: a cancelled step stops at once.
    pub(super) fn drop_obsolete_bodies(&mut self, facts: &[Recorded], ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if life.in_flight.is_empty() && life.children.is_empty() {
            return;
        }
        let (part, machine) = (Touched::by(facts), &life.machine);
        let is_wanted =
            |(path, attempt): &(StepPath, u32)| machine.has_effect(path, *attempt, u64::MAX);
        life.in_flight.retain(|attempt, body| {
            let keeps = !part.includes(&attempt.0) || is_wanted(attempt);
            if !keeps {
                ctx.cancel_future(body.handle);
            }
            keeps
        });
        life.children.retain(|attempt, child| {
            if !part.includes(&attempt.0) {
                return true;
            }
            let keeps = is_wanted(attempt);
            // The timeout counts only while the child runs.
            let runs =
                machine.node(&attempt.0).is_some_and(|(_, node)| node.phase == Phase::Running);
            if let Some(limit) = child.limit.take_if(|_| !keeps || !runs) {
                ctx.cancel_future(limit);
            }
            keeps
        });
    }

    /// Drops all bodies, to be continued later: in the next process, or in another one.
    pub(super) fn drop_bodies(&mut self, ctx: &mut Context<Self>) {
        self.interrupt_bodies();
        let Some(life) = &mut self.life else { return };
        for (_, body) in life.in_flight.drain() {
            ctx.cancel_future(body.handle);
        }
        for limit in life.children.drain().filter_map(|(_, child)| child.limit) {
            ctx.cancel_future(limit);
        }
    }

    /// Marks all bodies as ones that continue later: what they have begun is then left to that.
    pub(super) fn interrupt_bodies(&self) {
        let bodies = self.life.iter().flat_map(|life| life.in_flight.values());
        bodies.for_each(|body| body.interrupted.store(true, Ordering::Relaxed));
    }

    pub(super) fn untrack_child(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let child = life.children.remove(&(Arc::clone(path), attempt));
        if let Some(limit) = child.and_then(|child| child.limit) {
            ctx.cancel_future(limit);
        }
    }

    /// Runs a body in this actor's context, while the actor keeps handling messages.
    pub(super) fn start_body(
        &mut self,
        path: &StepPath,
        attempt: u32,
        body: Body,
        ctx: &mut Context<Self>,
    ) {
        let Body { work, tool, cancellation, interrupted, relay } = body;
        let key = (Arc::clone(path), attempt);
        let finished = key.clone();
        let Some(life) = &self.life else { return };
        let scope = scope_of_attempt(&life.scope, &life.header, path, attempt);
        let who = HeldBy { header: Arc::clone(&life.header), path: Arc::clone(path) };
        let (shared, thread) = (Arc::clone(&self.shared), self.shard);
        let work = Polled { shared, thread, who, tool, work };
        let handle =
            ctx.spawn(scope.during(work).into_actor(self).map(move |ended, actor, ctx| {
                let BodyEnd { result, spent } = ended;
                let (path, attempt) = finished;
                let key = (Arc::clone(&path), attempt);
                let body = actor.life.as_mut().and_then(|life| life.in_flight.remove(&key));
                let count = body.map(|body| {
                    // It ended by itself, so there is nothing to cancel.
                    body.cancellation.disarm();
                    body.count
                });
                let command = Command::StepFinished { path, attempt, result, spent };
                actor.decide(command, ctx, |actor, decision, ctx| {
                    actor.take_decision(decision, ctx);
                    // Counted as running until then: a drain must not lose its result.
                    drop(count);
                });
                actor.report_if_idle(ctx);
            }));
        let body = BodyInFlight {
            handle,
            cancellation: cancellation.drop_guard(),
            interrupted,
            count: self.shared.bodies.enter(Some(slot_of(&self.id))),
            _relay: relay,
        };
        if let Some(life) = &mut self.life {
            life.in_flight.insert(key, body);
        }
    }

    fn ensure_child(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Some(call) = life.machine.child_call(path) else { return };
        let is_ours = call.since_seq > life.restored_seq;
        // one of an earlier actor may have ended in time; one that has to wait does not run yet
        let began = (is_ours && call.earlier.is_empty()).then_some(Timestamp::default());
        life.children.insert((Arc::clone(path), attempt), TrackedChild { began, limit: None });
        self.limit_child(path, attempt, ctx);
        if is_ours {
            self.start_child(path, attempt, &call, ctx);
        } else {
            self.query_child(path, attempt, call, ctx);
        }
    }

    /// Notes when a child began. It may have had to wait for the end of another one.
    pub(super) fn began_child(&mut self, path: &StepPath, attempt: u32, at: Timestamp) {
        let key = (Arc::clone(path), attempt);
        if let Some(child) = self.life.as_mut().and_then(|life| life.children.get_mut(&key)) {
            child.began = Some(at);
        }
    }

    /// Applies the timeout of a child, or what is left of it; it starts again whenever the child
    /// continues after a suspension.
    pub(super) fn limit_child(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Some((step, node)) = life.machine.node(path) else { return };
        // most have none, and this is looked at for every child whenever one of them reports
        let Some(ms) = step.timeout_ms.filter(|_| node.phase == Phase::Running) else { return };
        let Some(child) = life.children.get_mut(&(Arc::clone(path), attempt)) else { return };
        let Some(began) = child.began.filter(|_| child.limit.is_none()) else { return };
        let until = began.max(node.phase_since).plus_ms(ms);
        // no longer than the timeout, whatever the clock was set to
        let left = until.ms_since(self.shared.clock.now()).min(ms);
        let path = Arc::clone(path);
        child.limit = Some(ctx.run_later(Duration::from_millis(left), move |actor, ctx| {
            actor.fail_attempt(&path, attempt, timed_out(ms), ctx);
            actor.report_if_idle(ctx);
        }));
    }
}

/// Returns a look at the mark of a body that is dropped to be continued later.
pub(super) fn is_set(interrupted: &Arc<AtomicBool>) -> IsInterrupted {
    let interrupted = Arc::clone(interrupted);
    Arc::new(move || interrupted.load(Ordering::Relaxed))
}

pub(super) fn timed_out(ms: u64) -> AttemptFailure {
    AttemptFailure::new(ErrorKind::Timeout, format!("timed out after {ms} ms"))
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
