//! Times each poll of a body: one that blocks its thread delays every execution on it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::execution::bodies::BodyEnd;
use crate::shard::pulse::HeldBy;
use crate::shared::Shared;

/// Duration of a poll from which on it is reported.
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
            self.report(held_ms);
        }
        polled
    }
}

impl Polled {
    fn report(&self, held_ms: u64) {
        let HeldBy { header, path } = &self.who;
        self.shared.meter.blocked(header, path, Duration::from_millis(held_ms));
        log::warn!(
            "step {path} of workflow {} blocked its thread for {held_ms} ms, and every execution \
             on it; move blocking work to tokio::task::spawn_blocking",
            header.workflow_id
        );
    }
}
