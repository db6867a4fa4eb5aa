//! What holds of the spans of every execution that has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::ports::store::Header;
use greenroom_actors::span::SpanPhase;
use greenroom_actors::testkit::spans_of_commits;

use crate::machine::world::World;

/// Told live or read from the record, they are the same; each begins at most once and ends once,
/// after its beginning and inside the one that it is in.
pub(crate) fn check(world: &World) {
    let state = world.machine.state();
    let header = Arc::new(Header {
        id: state.id.clone(),
        workflow_id: Arc::clone(&state.start.workflow_id),
        definition_hash: Arc::clone(&state.start.definition_hash),
        user_id: None,
        conversation_id: None,
        parent: None,
        trace: state.start.trace.clone(),
        created_at: state.created_at,
    });
    let (live, recorded) = spans_of_commits(&header, &world.batches);
    assert_eq!(live, recorded, "what was told is not what is recorded");
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in &live {
        let (id, name) = (event.span.id, event.span.name());
        match event.phase {
            SpanPhase::Started => {
                assert!(begun.insert(id), "{name} began twice");
                let is_within = event
                    .span
                    .parent
                    .is_none_or(|parent| begun.contains(&parent) && !ended.contains(&parent));
                assert!(is_within, "{name} began outside of what it is in");
            }
            SpanPhase::Ended => {
                assert!(ended.insert(id), "{name} ended twice");
                assert!(event.span.end.is_some_and(|end| end >= event.span.start), "{name}");
                let is_within = event.span.parent.is_none_or(|parent| !ended.contains(&parent));
                assert!(is_within, "{name} ended after what it is in");
            }
        }
    }
    assert!(begun.is_subset(&ended), "something has not ended");
}
