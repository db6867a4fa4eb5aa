//! Unloads idle executions: after a while, or sooner when memory is short.

use actix::Context;
use tokio::time::Instant;

use crate::counters::Counters;
use crate::execution::TakeSnapshot;
use crate::mailbox::force_send;
use crate::shard::messages::Idle;
use crate::shard::supervisor::{Entry, Live, RESTART_WINDOW, Supervisor};

/// Divisor for the share of idle executions that one sweep unloads early while memory is short; at
/// least `EARLY_MIN` are unloaded.
const EARLY_SHARE: usize = 8;
const EARLY_MIN: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct IdleSince {
    handled: u64,
    until: Instant,
    needs_snapshot: bool,
}

pub(super) struct IdleEntry {
    key: u64,
    until: Instant,
}

impl Live {
    /// Returns true if there may be work in progress: one that was idle may have got a command
    /// since.
    pub(super) fn is_busy(&self) -> bool {
        self.idle.as_ref().is_none_or(|since| since.handled != self.delivered)
    }
}

impl Supervisor {
    /// Unloads executions that were idle long enough and, while memory is short, some of those that
    /// were idle longest.
    pub(super) fn sweep(&mut self) {
        let now = Instant::now();
        self.deaths.retain(|_, deaths| {
            deaths.last().is_some_and(|last| now.duration_since(*last) < RESTART_WINDOW)
        });
        let refused = self.shared.memory.refused();
        let were_refused = std::mem::replace(&mut self.refused_before, refused) != refused;
        let is_short = were_refused || self.shared.memory.is_used_up();
        let share = (self.idle_queue.len() / EARLY_SHARE).max(EARLY_MIN);
        let mut early = if is_short { share } else { 0 };
        while let Some(first) = self.idle_queue.front() {
            if first.until > now {
                if early == 0 {
                    break;
                }
                early -= 1;
            }
            let Some(IdleEntry { key, until }) = self.idle_queue.pop_front() else { break };
            self.end_idle(key, until.max(now));
        }
    }

    /// Unloads an execution if it is still idle and its time has come.
    fn end_idle(&mut self, key: u64, until: Instant) {
        let id = self.keys.get(&key);
        let Some(Entry::Live(live)) = id.and_then(|id| self.entries.get_mut(id)) else { return };
        match live.idle.take().filter(|since| since.handled == live.delivered) {
            // The snapshot is requested through the mailbox, in order with other messages.
            Some(since) if since.until <= until && since.needs_snapshot => {
                force_send(&live.address, TakeSnapshot)
            }
            Some(since) if since.until <= until => {
                Counters::add_one(&self.shared.counters.passivated);
                self.unload(key);
            }
            // It handled a command in between and became idle again later.
            Some(since) => {
                live.idle = Some(since);
                self.idle_queue.push_back(IdleEntry { key, until: since.until });
            }
            None => {}
        }
    }

    pub(super) fn idle(&mut self, key: u64, idle: Idle, ctx: &mut Context<Self>) {
        let Idle { handled, ended, needs_snapshot, idle } = idle;
        if !self.is_settled(key, handled) {
            return;
        }
        if ended {
            self.unload(key);
            self.take_turns(ctx);
            return;
        }
        let now = Instant::now();
        let until = if idle { now } else { now + self.shared.limits.passivate_after };
        let id = self.keys.get(&key);
        if let Some(Entry::Live(live)) = id.and_then(|id| self.entries.get_mut(id))
            && live.idle.replace(IdleSince { handled, until, needs_snapshot }).is_none()
        {
            let entry = IdleEntry { key, until };
            if idle { self.idle_queue.push_front(entry) } else { self.idle_queue.push_back(entry) }
        }
    }

    pub(super) fn snapshot_queued(&mut self, key: u64, handled: u64, ctx: &mut Context<Self>) {
        if self.is_settled(key, handled) {
            Counters::add_one(&self.shared.counters.passivated);
            self.unload(key);
            self.take_turns(ctx);
        }
    }
}
