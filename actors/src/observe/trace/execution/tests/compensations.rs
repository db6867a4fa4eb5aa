//! Spans of compensations.

use super::*;

#[test]
fn a_compensation_is_in_the_execution_and_ends_once() {
    let path = "a/x/b:compensate";
    let facts = [
        started(),
        Story::step(path, 1),
        Story::failed(12, path, 1, AfterFailure::Ask),
        Story::suspended(14, path),
        Story::resumed(16, path),
        // skipped by a person
        Story::done(path, 1),
        completed(),
    ];
    assert_eq!(
        picture(&facts),
        "root in nothing 0..90 ok\na/x/b:compensate#1 in root 10..12 no luck\n\
         wait a/x/b:compensate in root 14..16 unset\n"
    );
    let ends = spans_of_record(&header_of("e"), &facts);
    let ends = ends.iter().filter(|event| event.phase == SpanPhase::Ended);
    assert_eq!(ends.count(), 3, "the attempt, the wait and the execution");
}
