//! Pure functions that derive spans from records.

pub(crate) mod execution;
pub(crate) mod generation;

use std::collections::HashMap;

use crate::observe::span::{SpanEvent, SpanId};

/// Returns the spans of these events, each in its last state, in the order of their first event.
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
