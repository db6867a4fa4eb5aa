//! What others hear of a run once it is durable: spans for those who watch, counts for the meter.

use std::sync::Arc;

use super::Run;
use crate::observe::trace::generation::news;
use crate::ports::store::GenerationRecord;

impl Run {
    /// Whether anybody watches spans. Nothing is copied for them when nobody does.
    pub(super) fn is_watched(&self) -> bool {
        self.deps.feed.is_watched()
    }

    /// Tells those who watch of spans that are new since they were told last.
    pub(super) fn tell_watchers(&mut self) {
        if !self.is_watched() {
            return;
        }
        let record = self.shared_record();
        let spans = news(&record, self.transcript.steps(), &mut self.told);
        if !spans.is_empty() {
            self.deps.feed.publish_spans(spans.into());
        }
    }

    /// The record, for spans to share: it holds the caller's input, and until the end it stays as
    /// it is.
    fn shared_record(&mut self) -> Arc<GenerationRecord> {
        let has_ended = self.record.end_time.is_some();
        let kept = self.shared.take().filter(|_| !has_ended);
        let record = kept.unwrap_or_else(|| Arc::new(self.record.clone()));
        self.shared = Some(Arc::clone(&record));
        record
    }

    /// The end is durable.
    pub(super) fn tell_of_end(&mut self) {
        let mut turns = self.transcript.steps().map(|step| &**step);
        self.deps.meter.generation_ended(&self.record, &mut turns);
        drop(turns);
        self.tell_watchers();
    }
}
