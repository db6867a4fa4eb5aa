//! What has begun and not ended, remembered from commit to commit: bounded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::OpenSpans;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::observe::span::{CONTENT_BYTES_MAX, Span, SpanEvent, SpanWork};
use crate::ports::store::Header;

/// Open spans remembered at once. Beyond it, the executions that have been silent longest are
/// forgotten: their attempts end all the same, by what the facts of their ends say.
const OPEN_MAX: usize = 50_000;

/// Open spans of all executions that are being watched.
#[derive(Debug)]
pub(crate) struct SpanMemory {
    executions: HashMap<ExecutionId, Kept>,
    /// By the number of their last commit.
    oldest: BTreeMap<u64, ExecutionId>,
    commits: u64,
    count: usize,
    count_max: usize,
}

#[derive(Debug)]
struct Kept {
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

    /// The spans that begin and end with these facts of one commit, in order.
    pub(crate) fn hear(&mut self, header: &Arc<Header>, facts: &[Recorded]) -> Vec<SpanEvent> {
        let mut events = Vec::with_capacity(facts.len());
        let mut open = OpenSpans { header, spans: self.take(&header.id) };
        let is_new = open.spans.is_empty();
        facts.iter().for_each(|recorded| open.hear(recorded, &mut events));
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

    /// Learns what was open before anybody watched, or in an earlier process.
    pub(crate) fn recall(&mut self, id: &ExecutionId, mut spans: Vec<Span>) {
        if !self.executions.contains_key(id) {
            spans.iter_mut().for_each(leave_out_large_input);
            self.keep(id, spans);
        }
    }

    /// Strikes a user who is to be forgotten.
    pub(crate) fn forget(&mut self, user: &str) {
        let kept = self.executions.values_mut();
        kept.flat_map(|kept| &mut kept.spans).for_each(|span| span.forget(user));
    }

    /// Forgets everything: nobody watches.
    pub(crate) fn clear(&mut self) {
        *self = Self::of(self.count_max);
    }

    fn take(&mut self, id: &ExecutionId) -> Vec<Span> {
        let Some(Kept { commit, spans }) = self.executions.remove(id) else { return Vec::new() };
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
        self.executions.insert(id.clone(), Kept { commit: self.commits, spans });
        while self.count > self.count_max
            && let Some((_, id)) = self.oldest.pop_first()
        {
            let forgotten = self.executions.remove(&id);
            self.count -= forgotten.map_or(0, |kept| kept.spans.len());
        }
    }
}

/// What an execution was started with is shown again at its end, unless it is large: executions
/// that rest for days must not hold it in memory.
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
    fn an_execution_that_ends_is_forgotten() {
        let mut memory = SpanMemory::default();
        let header = header_of("e");
        memory.hear(&header, &[started(), Story::step("a", 1)]);
        assert_eq!((memory.count, memory.oldest.len()), (2, 1));
        memory.hear(&header, &[completed()]);
        assert_eq!((memory.count, memory.oldest.len(), memory.executions.len()), (0, 0, 0));
    }

    #[test]
    fn those_silent_longest_are_forgotten_first_and_end_all_the_same() {
        let mut memory = SpanMemory::of(4);
        let headers = ["a", "b", "c"].map(header_of);
        for header in &headers {
            memory.hear(header, &[started()]);
        }
        // `a` speaks again: `b` is the one to go.
        memory.hear(&headers[0], &[Story::step("x", 1), Story::step("y", 1)]);
        assert_eq!(memory.count, 4);
        memory.hear(&headers[2], &[Story::step("x", 1)]);
        let known = |id: &str| memory.executions.contains_key(&ExecutionId::trusted(id));
        assert_eq!(["a", "b", "c"].map(known), [false, false, true]);

        let ends = memory.hear(&headers[0], &[Story::done("x", 1), completed()]);
        let names: Vec<_> = ends.iter().map(|event| event.span.name()).collect();
        assert_eq!(names, ["step x", "invoke_workflow order"]);
    }

    #[test]
    fn what_was_open_before_is_learned_once() {
        let mut memory = SpanMemory::default();
        let header = header_of("e");
        let open = OpenSpans::of(&header);
        let spans = vec![open.attempt(&Arc::from("a"), 2, crate::domain::time::Timestamp(5))];
        memory.recall(&header.id, spans.clone());
        memory.recall(&header.id, spans);
        let ends = memory.hear(&header, &[Story::cancelled("a", 2)]);
        assert_eq!((ends.len(), ends[0].span.start.0, memory.count), (1, 5, 0));
    }
}
