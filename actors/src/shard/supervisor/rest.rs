//! Executions that have nothing to do leave memory: after a while, or sooner when it is short.

use actix::Context;
use tokio::time::Instant;

use crate::counters::Tallies;
use crate::execution::KeepState;
use crate::mailbox::tell;
use crate::shard::messages::Idle;
use crate::shard::supervisor::{Entry, RESTART_WINDOW, Supervisor};

/// Of the executions that rest, those that leave early at one look while memory is short: one of so
/// many, and always so many as there are.
const EARLY_SHARE: usize = 8;
const EARLY_MIN: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct Rest {
    handled: u64,
    until: Instant,
    unkept: bool,
}

pub(super) struct Resting {
    key: u64,
    until: Instant,
}

impl Supervisor {
    /// Forgets what has rested long enough, and while memory is short some of what has rested
    /// longest.
    pub(super) fn sweep(&mut self) {
        let now = Instant::now();
        self.deaths.retain(|_, deaths| {
            deaths.last().is_some_and(|last| now.duration_since(*last) < RESTART_WINDOW)
        });
        let refused = self.shared.memory.refused();
        let were_refused = std::mem::replace(&mut self.refused_before, refused) != refused;
        let is_short = were_refused || self.shared.memory.is_used_up();
        let share = (self.resting.len() / EARLY_SHARE).max(EARLY_MIN);
        let mut early = if is_short { share } else { 0 };
        while let Some(first) = self.resting.front() {
            if first.until > now {
                if early == 0 {
                    break;
                }
                early -= 1;
            }
            let Some(Resting { key, until }) = self.resting.pop_front() else { break };
            self.let_rest_end(key, until.max(now));
        }
    }

    /// Forgets an execution, if it still rests and may leave until then.
    fn let_rest_end(&mut self, key: u64, until: Instant) {
        let id = self.keys.get(&key);
        let Some(Entry::Live(live)) = id.and_then(|id| self.entries.get_mut(id)) else { return };
        match live.rest.take().filter(|rest| rest.handled == live.delivered) {
            // It says so, in its own place among what it is asked.
            Some(rest) if rest.until <= until && rest.unkept => tell(&live.address, KeepState),
            Some(rest) if rest.until <= until => {
                Tallies::add_one(&self.shared.tallies.passivated);
                self.forget(key);
            }
            // It was asked something meanwhile and rests again, more recently.
            Some(rest) => {
                live.rest = Some(rest);
                self.resting.push_back(Resting { key, until: rest.until });
            }
            None => {}
        }
    }
}

impl Supervisor {
    pub(super) fn idle(&mut self, key: u64, idle: Idle, ctx: &mut Context<Self>) {
        let Idle { handled, ended, unkept, idle } = idle;
        if !self.is_settled(key, handled) {
            return;
        }
        if ended {
            self.forget(key);
            self.take_turns(ctx);
            return;
        }
        let now = Instant::now();
        let until = if idle { now } else { now + self.shared.limits.passivate_after };
        let id = self.keys.get(&key);
        if let Some(Entry::Live(live)) = id.and_then(|id| self.entries.get_mut(id))
            && live.rest.replace(Rest { handled, until, unkept }).is_none()
        {
            let resting = Resting { key, until };
            if idle { self.resting.push_front(resting) } else { self.resting.push_back(resting) }
        }
    }

    pub(super) fn snapshot_queued(&mut self, key: u64, handled: u64, ctx: &mut Context<Self>) {
        if self.is_settled(key, handled) {
            Tallies::add_one(&self.shared.tallies.passivated);
            self.forget(key);
            self.take_turns(ctx);
        }
    }
}
