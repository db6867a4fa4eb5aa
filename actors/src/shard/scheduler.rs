//! Durable timers: those due soon are held in memory, the rest stay in the store.
//!
//! A timer that fires is delivered to its execution and stays in the store until that execution
//! has recorded the result; a lost delivery is repeated by the next poll of the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture,
};

use crate::commands::ExecutionCommand;
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{Timer, TimerKey};
use crate::shard::messages::{KillForTest, SlotsChanged, TimerArmed};
use crate::shared::Shared;

/// Interval between polls of the store.
const POLL_EVERY: Duration = Duration::from_secs(20);
/// Polls before its due date from which on a timer is held in memory.
const POLLS_AHEAD: u32 = 3;
/// Delay before the next poll when the last one was full. Timers that have fired leave the store as
/// their executions record it.
const POLL_AGAIN: Duration = Duration::from_millis(500);
/// Timers read by one poll.
const POLL_MAX: usize = 10_000;
/// Mailbox capacity of the scheduler, in announced timers.
const SCHEDULER_MAILBOX: usize = 16_384;

pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    due: BTreeMap<(Timestamp, ExecutionId, TimerKey), ()>,
    wake: Option<(Timestamp, SpawnHandle)>,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, due: BTreeMap::new(), wake: None }
    }

    fn poll(&mut self, ctx: &mut Context<Self>) {
        let shared = Arc::clone(&self.shared);
        let until = self.horizon();
        let found = async move {
            let served = shared.ownership.served();
            shared.store.timers_due(&served, until, POLL_MAX).await
        };
        ctx.spawn(found.into_actor(self).map(|timers, scheduler, ctx| match timers {
            Ok(timers) => scheduler.found(timers, ctx),
            Err(error) => log::log!(
                scheduler.shared.level_of_failure(log::Level::Error),
                "cannot read timers from the store, trying again in {POLL_EVERY:?}: {error}"
            ),
        }));
    }

    fn poll_every(&self) -> Duration {
        self.shared.limits.every(POLL_EVERY)
    }

    fn horizon(&self) -> Timestamp {
        let ahead = self.poll_every() * POLLS_AHEAD;
        self.shared.clock.now().plus_ms(u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX))
    }

    fn found(&mut self, timers: Vec<Timer>, ctx: &mut Context<Self>) {
        if timers.len() >= POLL_MAX {
            ctx.run_later(POLL_AGAIN, Self::poll);
        }
        for Timer { execution, key, due } in timers {
            self.due.insert((due, execution, key), ());
        }
        self.fire(ctx);
    }

    /// Delivers due timers and sleeps until the next one.
    fn fire(&mut self, ctx: &mut Context<Self>) {
        let now = self.shared.clock.now();
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((due, execution, key), ()) = entry.remove_entry();
            self.shared.meter.timer_fired(Duration::from_millis(now.ms_since(due)));
            self.shared.deliver(execution, ExecutionCommand::Timer(key));
        }
        self.sleep(now, ctx);
    }

    fn sleep(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        self.shared.counters.timers_held.store(self.due.len(), Ordering::Relaxed);
        let next = self.due.first_key_value().map(|((due, _, _), ())| *due);
        if self.wake.as_ref().map(|(at, _)| *at) == next {
            return;
        }
        if let Some((_, handle)) = self.wake.take() {
            ctx.cancel_future(handle);
        }
        if let Some(next) = next {
            let pause = Duration::from_millis(next.ms_since(now));
            let handle = ctx.run_later(pause, |scheduler, ctx| {
                scheduler.wake = None;
                scheduler.fire(ctx);
            });
            self.wake = Some((next, handle));
        }
    }
}

impl Shared {
    /// Sends timers to the scheduler. Those that find no room are found at its next poll.
    pub(crate) fn announce_timers(&self, timers: Vec<Timer>) {
        if let Some(routes) = self.routes.get() {
            timers.into_iter().for_each(|timer| drop(routes.timers.try_send(TimerArmed(timer))));
        }
    }
}

impl Actor for Scheduler {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(SCHEDULER_MAILBOX);
        ctx.run_interval(self.poll_every(), Self::poll);
    }
}

impl Handler<SlotsChanged> for Scheduler {
    type Result = ();

    fn handle(&mut self, _: SlotsChanged, ctx: &mut Self::Context) {
        let ownership = &self.shared.ownership;
        self.due.retain(|(_, execution, _), ()| ownership.serves(execution));
        self.poll(ctx);
    }
}

impl Handler<TimerArmed> for Scheduler {
    type Result = ();

    fn handle(&mut self, message: TimerArmed, ctx: &mut Self::Context) {
        let Timer { execution, key, due } = message.0;
        if due <= self.horizon() {
            self.due.insert((due, execution, key), ());
            let now = self.shared.clock.now();
            self.sleep(now, ctx);
        }
    }
}

impl Handler<KillForTest> for Scheduler {
    type Result = ();

    fn handle(&mut self, _: KillForTest, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
