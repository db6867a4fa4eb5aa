//! Published progress of a run, once it is durable: spans for observers, counts for metrics.

use std::sync::Arc;
use std::time::Duration;

use super::Run;
use crate::observe::trace::generation::new_spans;
use crate::ports::store::GenerationRecord;

impl Run {
    /// Returns true if spans have observers. Without them nothing is copied.
    pub(super) fn is_watched(&self) -> bool {
        self.deps.feed.is_watched()
    }

    /// Publishes spans that are new since the last call.
    pub(super) fn publish_spans(&mut self) {
        if !self.is_watched() {
            return;
        }
        let record = self.shared_record();
        let spans = new_spans(&record, self.transcript.steps(), &mut self.published);
        if !spans.is_empty() {
            self.deps.feed.publish_spans(spans.into());
        }
    }

    /// Returns a shared copy of the record, which holds the caller's input; reused until the end,
    /// because the record does not change before.
    fn shared_record(&mut self) -> Arc<GenerationRecord> {
        let has_ended = self.record.end_time.is_some();
        let unchanged = self.shared.take().filter(|_| !has_ended);
        let record = unchanged.unwrap_or_else(|| Arc::new(self.record.clone()));
        self.shared = Some(Arc::clone(&record));
        record
    }

    /// Publishes the end, which is durable.
    pub(super) fn publish_end(&mut self) {
        let mut turns = self.transcript.steps().map(|step| &**step);
        let worked = Duration::from_millis(self.worked.ms());
        self.deps.meter.generation_ended(&self.record, &mut turns, Some(worked));
        drop(turns);
        self.publish_spans();
    }
}
