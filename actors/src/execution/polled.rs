//! Times each poll of a body: one that blocks its thread delays every execution on it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::execution::bodies::BodyEnd;
use crate::observe::blocked::BLOCKED_AFTER;
use crate::shard::pulse::HeldBy;
use crate::shared::Shared;

/// The work of an attempt, on a thread of executions.
pub(super) struct Polled {
    pub(super) shared: Arc<Shared>,
    pub(super) thread: usize,
    pub(super) who: HeldBy,
    /// The tool that the step calls.
    pub(super) tool: Option<Arc<str>>,
    pub(super) work: BoxFuture<'static, BodyEnd>,
}

impl Future for Polled {
    type Output = BodyEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BodyEnd> {
        let shared = Arc::clone(&self.shared);
        let begun = Instant::now();
        let holds = shared.pulse.hold(self.thread, &self.who);
        let polled = self.work.as_mut().poll(cx);
        drop(holds);
        let held = begun.elapsed();
        if held >= BLOCKED_AFTER {
            self.report(held);
        }
        polled
    }
}

impl Polled {
    fn report(&self, held: Duration) {
        let HeldBy { header, path } = &self.who;
        self.shared.meter.blocked(header, path, held);
        let workflow = &header.workflow_id;
        let step = format!("step {} of workflow {workflow}", without_indexes(path));
        if self.shared.warned.is_due(&step, Instant::now()) {
            let step = format!("step {path} of workflow {workflow}");
            log::warn!("{}", warning(&step, self.tool.as_deref(), held));
        }
    }
}

/// Returns the warning about a step, which calls this tool or else runs a function.
fn warning(step: &str, tool: Option<&str>, held: Duration) -> String {
    let (within, advice) = match tool {
        Some(tool) => (format!(" in tool {tool}"), "register the tool with Tool::blocking"),
        None => (String::new(), "register its function with blocking_function"),
    };
    format!(
        "{step} blocked its thread for {} ms{within}, and every execution on it; {advice}, or move \
         the work to tokio::task::spawn_blocking",
        held.as_millis()
    )
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

    #[test]
    fn the_advice_names_what_the_step_runs() {
        let held = Duration::from_millis(120);
        let of = |tool| warning("step a of workflow w", tool, held);
        assert_eq!(
            of(None),
            "step a of workflow w blocked its thread for 120 ms, and every execution on it; \
             register its function with blocking_function, or move the work to \
             tokio::task::spawn_blocking"
        );
        assert_eq!(
            of(Some("scan")),
            "step a of workflow w blocked its thread for 120 ms in tool scan, and every execution \
             on it; register the tool with Tool::blocking, or move the work to \
             tokio::task::spawn_blocking"
        );
    }
}
