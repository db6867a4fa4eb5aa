//! Times each poll of a body: one that blocks its thread delays every execution on it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::execution::bodies::BodyEnd;
use crate::observe::blocked::BLOCKED_AFTER_MS;
use crate::shard::pulse::HeldBy;
use crate::shared::Shared;

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
        let workflow = &header.workflow_id;
        let step = format!("step {} of workflow {workflow}", without_indexes(path));
        if self.shared.warned.is_due(&step, self.shared.clock.now()) {
            log::warn!(
                "step {path} of workflow {workflow} blocked its thread for {held_ms} ms, and every \
                 execution on it; register its function with blocking_function, or move the work \
                 to tokio::task::spawn_blocking"
            );
        }
    }
}

/// Returns a path in which iterations of a step are the same.
fn without_indexes(path: &str) -> String {
    let mut is_index = false;
    let is_kept = |c: &char| {
        is_index = (is_index || *c == '[') && *c != ']';
        !is_index && *c != ']'
    };
    path.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_one_step() {
        for (path, expected) in
            [("a", "a"), ("all/b", "all/b"), ("each[0]/a", "each/a"), ("x[12]/y[3]/z", "x/y/z")]
        {
            assert_eq!(without_indexes(path), expected);
        }
    }
}
