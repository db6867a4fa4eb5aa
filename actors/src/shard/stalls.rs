//! Logs threads of executions that stop responding, and that respond again.

use std::sync::Weak;
use std::time::Duration;

use crate::observe::scope::scope_of;
use crate::shard::pulse::HeldBy;
use crate::shared::Shared;

/// Interval between checks.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// Logs stalls until the runtime drains or is dropped.
pub(crate) async fn log_stalls(shared: Weak<Shared>) {
    let mut known: Vec<usize> = Vec::new();
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        let stalled = shared.pulse.stalled();
        for thread in known.iter().filter(|it| stalled.iter().all(|now| now.thread != **it)) {
            log::warn!("thread {thread} of executions responds again");
        }
        for stall in stalled.iter().filter(|stall| !known.contains(&stall.thread)) {
            let ms = stall.silent_for.as_millis();
            let thread = stall.thread;
            match &stall.held_by {
                Some(HeldBy { header, path }) => scope_of(header).within(|| {
                    log::error!(
                        "thread {thread} of executions has not responded for {ms} ms: blocked by step \
                         {path} of workflow {} in execution {}",
                        header.workflow_id,
                        header.id
                    );
                }),
                None => {
                    log::error!("thread {thread} of executions has not responded for {ms} ms");
                }
            }
        }
        known = stalled.into_iter().map(|stall| stall.thread).collect();
    }
}
