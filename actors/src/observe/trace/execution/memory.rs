//! Open spans, kept from commit to commit, within a limit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::OpenSpans;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::observe::span::{CONTENT_BYTES_MAX, Span, SpanEvent, SpanWork};
use crate::ports::store::Header;

/// Maximum number of open spans. Above it, the executions without commits for longest are dropped:
/// their attempts are then rebuilt from the facts of their ends.
const OPEN_MAX: usize = 50_000;

/// Open spans of all observed executions.
#[derive(Debug)]
pub(crate) struct SpanMemory {
    executions: HashMap<ExecutionId, OpenExecution>,
    /// By number of the last commit.
    oldest: BTreeMap<u64, ExecutionId>,
    commits: u64,
    count: usize,
    count_max: usize,
}

#[derive(Debug)]
struct OpenExecution {
    commit: u64,
    spans: Vec<Span>,
}

impl Default for SpanMemory {
    fn default() -> Self {
        Self::of(OPEN_MAX)
    }
}

impl SpanMemory {
    fn of(count_max: usize) -> Self {
        let (executions, oldest) = (HashMap::new(), BTreeMap::new());
        Self { executions, oldest, commits: 0, count: 0, count_max }
    }

    /// Applies the facts of one commit; returns the spans that start and end with them, in order.
    pub(crate) fn apply(&mut self, header: &Arc<Header>, facts: &[Recorded]) -> Vec<SpanEvent> {
        let mut events = Vec::with_capacity(facts.len());
        let mut open = OpenSpans { header, spans: self.take(&header.id) };
        let is_new = open.spans.is_empty();
        facts.iter().for_each(|recorded| open.apply(recorded, &mut events));
        if facts.last().is_some_and(|recorded| recorded.fact.end().is_some()) {
            return events;
        }
        let mut spans = open.spans;
        if is_new {
            spans.iter_mut().for_each(leave_out_large_input);
        }
        self.keep(&header.id, spans);
        events
    }

    /// Adds spans that were open before there were observers, or in an earlier process.
    pub(crate) fn recall(&mut self, id: &ExecutionId, mut spans: Vec<Span>) {
        if !self.executions.contains_key(id) {
            spans.iter_mut().for_each(leave_out_large_input);
            self.keep(id, spans);
        }
    }

    /// Erases a user.
    pub(crate) fn forget(&mut self, user: &str) {
        let kept = self.executions.values_mut();
        kept.flat_map(|kept| &mut kept.spans).for_each(|span| span.forget(user));
    }

    /// Drops everything, when there are no observers.
    pub(crate) fn clear(&mut self) {
        *self = Self::of(self.count_max);
    }

    fn take(&mut self, id: &ExecutionId) -> Vec<Span> {
        let Some(OpenExecution { commit, spans }) = self.executions.remove(id) else {
            return Vec::new();
        };
        self.oldest.remove(&commit);
        self.count -= spans.len();
        spans
    }

    fn keep(&mut self, id: &ExecutionId, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        self.commits += 1;
        self.count += spans.len();
        self.oldest.insert(self.commits, id.clone());
        self.executions.insert(id.clone(), OpenExecution { commit: self.commits, spans });
        while self.count > self.count_max
            && let Some((_, id)) = self.oldest.pop_first()
        {
            let forgotten = self.executions.remove(&id);
            self.count -= forgotten.map_or(0, |kept| kept.spans.len());
        }
    }
}

/// Drops a large input, which would otherwise be kept for the end: executions that are suspended
/// for days must not hold it in memory.
fn leave_out_large_input(span: &mut Span) {
    if let SpanWork::Workflow { input, .. } = &mut span.work {
        input.take_if(|input| json_bytes_exceed(input, CONTENT_BYTES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::trace::execution::tests::{Story, completed, header_of, started};

    #[test]
    fn an_ended_execution_is_dropped() {
        let mut memory = SpanMemory::default();
        let header = header_of("e");
        memory.apply(&header, &[started(), Story::step("a", 1)]);
        assert_eq!((memory.count, memory.oldest.len()), (2, 1));
        memory.apply(&header, &[completed()]);
        assert_eq!((memory.count, memory.oldest.len(), memory.executions.len()), (0, 0, 0));
    }

    #[test]
    fn executions_without_commits_for_longest_are_dropped_first() {
        let mut memory = SpanMemory::of(4);
        let headers = ["a", "b", "c"].map(header_of);
        for header in &headers {
            memory.apply(header, &[started()]);
        }
        // `a` has a new commit, so `b` is dropped
        memory.apply(&headers[0], &[Story::step("x", 1), Story::step("y", 1)]);
        assert_eq!(memory.count, 4);
        memory.apply(&headers[2], &[Story::step("x", 1)]);
        let known = |id: &str| memory.executions.contains_key(&ExecutionId::trusted(id));
        assert_eq!(["a", "b", "c"].map(known), [false, false, true]);

        let ends = memory.apply(&headers[0], &[Story::done("x", 1), completed()]);
        let names: Vec<_> = ends.iter().map(|event| event.span.name()).collect();
        assert_eq!(names, ["step x", "invoke_workflow order"]);
    }

    #[test]
    fn recalled_spans_are_added_once() {
        let mut memory = SpanMemory::default();
        let header = header_of("e");
        let open = OpenSpans::of(&header);
        let spans = vec![open.attempt(&Arc::from("a"), 2, crate::domain::time::Timestamp(5))];
        memory.recall(&header.id, spans.clone());
        memory.recall(&header.id, spans);
        let ends = memory.apply(&header, &[Story::cancelled("a", 2)]);
        assert_eq!((ends.len(), ends[0].span.start.0, memory.count), (1, 5, 0));
    }
}
