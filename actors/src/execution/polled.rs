//! Bodies at work, each poll of them timed: one that blocks its thread holds everybody on it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::execution::bodies::BodyEnd;
use crate::shard::pulse::HeldBy;
use crate::shared::Shared;

/// Longest poll that is no trouble yet.
const BLOCKED_AFTER_MS: u64 = 100;

/// The work of an attempt, on a thread of executions.
pub(super) struct Polled {
    pub(super) shared: Arc<Shared>,
    pub(super) thread: usize,
    pub(super) who: HeldBy,
    pub(super) work: BoxFuture<'static, BodyEnd>,
}

impl Future for Polled {
    type Output = BodyEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BodyEnd> {
        let shared = Arc::clone(&self.shared);
        let begun = shared.clock.now();
        let held = shared.pulse.hold(self.thread, &self.who);
        let polled = self.work.as_mut().poll(cx);
        drop(held);
        let held_ms = shared.clock.now().ms_since(begun);
        if held_ms >= BLOCKED_AFTER_MS {
            self.tell(held_ms);
        }
        polled
    }
}

impl Polled {
    fn tell(&self, held_ms: u64) {
        let HeldBy { header, path } = &self.who;
        self.shared.meter.blocked(header, path, Duration::from_millis(held_ms));
        log::warn!(
            "step {path} of workflow {} blocked its thread for {held_ms} ms, and every execution \
             on it: what blocks belongs into tokio::task::spawn_blocking",
            header.workflow_id
        );
    }
}
