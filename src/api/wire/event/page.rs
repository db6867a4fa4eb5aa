//! Pages of events.

use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::runtime::EventPage;
use serde::Serialize;
use utoipa::ToSchema;

use super::{EventFrame, frame_of};

/// Page of an execution's events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowEvents)]
#[serde(rename_all = "camelCase")]
pub struct EventsView<'a> {
    /// Oldest first.
    pub events: Vec<NumberedEventView<'a>>,
    /// `after` of the next page; null if no recorded event follows.
    #[schema(required)]
    pub next_after: Option<u64>,
    /// Number of the last recorded event.
    pub last_sequence: u64,
}

/// Event with its number, which is its id in the stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NumberedWorkflowEvent)]
pub struct NumberedEventView<'a> {
    pub sequence: u64,
    #[serde(flatten)]
    pub event: EventFrame<'a>,
}

impl<'a> EventsView<'a> {
    /// Shows at most `limit` events with numbers above `after`; `times` are those of the facts.
    pub fn of(
        id: &'a ExecutionId,
        page: &'a EventPage,
        times: &'a [String],
        (after, limit): (u64, usize),
    ) -> Self {
        let numbered = page.facts.iter().zip(times).flat_map(|(recorded, time)| {
            (recorded.seq..).zip(events_of(&recorded.fact)).map(move |(sequence, kind)| {
                NumberedEventView { sequence, event: frame_of(*kind, id, time, recorded) }
            })
        });
        let events: Vec<_> =
            numbered.filter(|numbered| numbered.sequence > after).take(limit).collect();
        let reached = events.last().map_or(after, |last| last.sequence);
        let next_after = (!events.is_empty() && reached < page.last_seq).then_some(reached);
        Self { events, next_after, last_sequence: page.last_seq }
    }
}
