//! Time of the next look of regular work at what is due of asks.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::domain::time::Timestamp;
use crate::ports::clock::Clock;
use crate::ports::store::{DueCursor, Row};
use crate::requests::Unavailable;
use crate::shared::Shared;

/// Shortest time between two looks, so that many asks cost few of them.
const LOOKS_APART: Duration = Duration::from_millis(100);

/// Waits for the next look at what is due: at regular intervals, and earlier if something is due
/// before.
pub(crate) struct NextLook {
    noted: watch::Receiver<Option<Timestamp>>,
    /// Interval where nothing is known to be due.
    every: Duration,
    /// Interval while the store does not say what is due.
    again_after: Duration,
    /// Time before which there is no look.
    earliest: Instant,
    at: Instant,
}

impl NextLook {
    /// Begins with a look at once.
    pub(crate) fn now(shared: &Shared, usual: Duration) -> Self {
        let noted = shared.ask_alarm.0.subscribe();
        let (every, now) = (shared.limits.every(usual), Instant::now());
        Self { noted, every, again_after: usual, earliest: now, at: now }
    }

    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.at
    }

    /// Decides when to look again, after a look at what was due at a time. Later ones may have become
    /// due meanwhile.
    pub(crate) async fn plan(&mut self, shared: &Shared, looked_at: Timestamp) {
        self.earliest = Instant::now() + LOOKS_APART;
        self.at = Instant::now() + self.every;
        // the store may not have it yet
        let noted = *self.noted.borrow_and_update();
        let now = shared.clock.now();
        let ahead = noted.into_iter().filter(|due| *due > looked_at);
        ahead.for_each(|due| self.bring_forward(due, now));
        if !shared.ownership.does_housework() {
            return;
        }
        match self.first_due(shared, looked_at).await {
            Ok(Some(due)) => self.bring_forward(due, shared.clock.now()),
            Ok(None) => {}
            Err(_) => self.at = Instant::now() + self.again_after,
        }
    }

    /// Returns what is due first within the interval, after a time.
    async fn first_due(
        &self,
        shared: &Shared,
        looked_at: Timestamp,
    ) -> Result<Option<Timestamp>, Unavailable> {
        let every = u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX);
        let until = shared.clock.now().plus_ms(every);
        let after = Some(DueCursor { at: looked_at, row: Row::MAX });
        let due = shared.store.due_asks(until, after, 1).await?;
        let first = due.asks.into_iter().next();
        Ok(first.and_then(|ask| ask.next_due(&ask.rules)))
    }

    fn bring_forward(&mut self, due: Timestamp, now: Timestamp) {
        let due = Instant::now() + Duration::from_millis(due.ms_since(now));
        self.at = self.at.min(due.max(self.earliest));
    }

    /// Waits until then.
    pub(crate) async fn wait(&mut self, clock: &dyn Clock) {
        loop {
            tokio::select! {
                () = sleep_until(self.at) => return,
                noted = self.noted.changed() => match noted {
                    Ok(()) => {
                        let due = *self.noted.borrow_and_update();
                        due.into_iter().for_each(|due| self.bring_forward(due, clock.now()));
                    }
                    // the runtime is gone
                    Err(_) => return,
                },
            }
        }
    }
}
