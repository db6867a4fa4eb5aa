//! Spans from what is recorded: pure.

pub(crate) mod execution;
pub(crate) mod generation;

use std::collections::HashMap;

use crate::observe::span::{SpanEvent, SpanId};

/// The spans of these events, each as its last event has it, in the order of their first.
pub(crate) fn latest_of(
    events: impl IntoIterator<Item = SpanEvent>,
) -> Vec<crate::observe::span::Span> {
    let mut spans = Vec::new();
    let mut places: HashMap<SpanId, usize> = HashMap::new();
    for SpanEvent { span, .. } in events {
        let place = *places.entry(span.id).or_insert(spans.len());
        match spans.get_mut(place) {
            Some(known) => *known = span,
            None => spans.push(span),
        }
    }
    spans
}
