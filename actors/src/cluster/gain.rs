//! Taking slots into service: their timers fire, and what was running in them continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::commands::ExecutionCommand;
use crate::domain::slot::SlotSet;
use crate::ports::store::Row;
use crate::shared::Shared;

/// Running executions per page when they are continued.
const CONTINUE_PAGE: usize = 256;
/// Pause between pages: 25,600 executions per second.
const CONTINUE_PAUSE: Duration = Duration::from_millis(10);
/// Number of executions waiting to be read above which the next page is delayed.
const CONTINUE_WAITING_MAX: usize = 1024;
/// Delay after a failed read of a page.
const CONTINUE_AGAIN: Duration = Duration::from_secs(1);

impl Shared {
    /// Serves these slots from now on; what was running in them continues in the background.
    /// `whose` says in the log whose work that is.
    pub(crate) async fn gain(self: &Arc<Self>, slots: SlotSet, whose: &'static str) {
        self.ownership.add(&slots);
        self.announce_slots().await;
        let shared = Arc::clone(self);
        actix::spawn(async move {
            let count = shared.continue_running(&slots).await;
            if count > 0 {
                log::info!("continued {count} executions that were running when {whose} ended");
            }
        });
    }

    /// Passes every running execution of these slots to its supervisor, oldest first, and returns
    /// their number. Retries failed reads, since no caller would ask for these executions.
    pub(crate) async fn continue_running(&self, slots: &SlotSet) -> usize {
        let mut after: Row = 0;
        let mut count = 0_usize;
        while !self.is_draining() {
            let page = match self.store.running(slots, after, CONTINUE_PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    let level = self.level_of_failure(log::Level::Error);
                    log::log!(level, "cannot read running executions, trying again: {error}");
                    tokio::time::sleep(CONTINUE_AGAIN).await;
                    continue;
                }
            };
            let Some((last, _)) = page.last() else { break };
            after = *last;
            count += page.len();
            for (_, id) in page {
                self.deliver_when_ready(id, ExecutionCommand::Continue).await;
            }
            // Callers come first: these executions wait in the queue of their supervisors.
            tokio::time::sleep(CONTINUE_PAUSE).await;
            while !self.is_draining()
                && self.memory.waiting.load(Ordering::Relaxed) > CONTINUE_WAITING_MAX
            {
                tokio::time::sleep(CONTINUE_PAUSE).await;
            }
        }
        count
    }
}
