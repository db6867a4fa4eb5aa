//! Invariants of the spans of every ended execution.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::observe::span::{SpanEvent, SpanPhase};
use greenroom_actors::ports::store::Header;
use greenroom_actors::testkit::spans_of_commits;

/// Checks that live and recorded spans are equal, that each starts at most once and ends once,
/// after its start and within its parent.
pub(crate) fn check(header: &Arc<Header>, facts: &[Recorded]) {
    for facts_per_commit in 1..=4 {
        let commits: Vec<Vec<Recorded>> =
            facts.chunks(facts_per_commit).map(<[_]>::to_vec).collect();
        let (live, recorded) = spans_of_commits(header, &commits);
        assert_eq!(live, recorded, "live and recorded spans differ");
        are_nested(&live);
    }
}

fn are_nested(live: &[SpanEvent]) {
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in live {
        let (id, name) = (event.span.id, event.span.name());
        match event.phase {
            SpanPhase::Started => {
                assert!(begun.insert(id), "{name} began twice");
                // the execution itself may be in a step of its parent's
                let is_first = begun.len() == 1;
                let is_open = |parent| begun.contains(&parent) && !ended.contains(&parent);
                let is_within = is_first || event.span.parent.is_none_or(is_open);
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
