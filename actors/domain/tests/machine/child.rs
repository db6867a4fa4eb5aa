//! andWorkflow: the child decides, and reports to its parent.

use std::sync::Arc;

use greenroom_domain::fact::Fact;
use greenroom_domain::ids::ExecutionId;
use greenroom_domain::machine::{ChildStatus, EffectKind, Refusal};
use greenroom_domain::state::Phase;
use greenroom_domain::status::Status;
use greenroom_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, child, child_with, map, race, run};
use crate::machine::world::World;

const NOTHING: [&str; 0] = [];

fn asks(reason: &str) -> ChildStatus {
    let id = Arc::from(format!("id of {reason}"));
    ChildStatus::Suspended { id, reason: Arc::from(reason), payload: None, deadline: None }
}

fn completed(result: Value) -> ChildStatus {
    ChildStatus::Completed { result: Arc::new(result), compensable: false, skipped: false }
}

fn failed(error: &str) -> ChildStatus {
    ChildStatus::Failed { error: Arc::from(error), class: None }
}

fn cancelled() -> ChildStatus {
    ChildStatus::Cancelled { reason: Arc::from("enough"), compensates: false }
}

#[test]
fn the_childs_id_is_recorded_before_it_starts() {
    let world = World::of(vec![child_with("p", json!({ "n": "data + 1" }))]);
    assert_eq!(world.started(), ["start", "p starts #1", "p has child c1 of part with {\"n\":2}"]);
    let call = world.machine.child_call("p").unwrap();
    assert_eq!((call.child.as_str(), &*call.workflow), ("c1", "part"));
    assert_eq!(world.effects()[0].kind, EffectKind::Child);
    assert!(world.machine.effects(1).is_empty(), "its start is not durable yet");
}

#[test]
fn without_input_the_child_gets_data() {
    let mut world = World::of(vec![map("a", "data + 1"), child("p"), map("b", "data")]);
    assert_eq!(world.all_lines()[4], "p has child c1 of part with 2");
    assert_eq!(
        world.report("p", 4, completed(json!("done"))),
        ["p gives \"done\"", "b starts #1", "b gives \"done\"", "completed \"done\""]
    );
    assert!(world.abandoned.is_empty());
}

#[test]
fn an_input_that_cannot_be_made_is_a_failed_attempt() {
    let world = World::of(vec![child_with("p", "data.no.such").tries(2)]);
    let line = &world.started()[2];
    assert!(line.starts_with("p fails: input: ") && line.ends_with("; again at 100"), "{line}");
}

#[test]
fn the_parent_waits_when_the_child_does() {
    let mut world = World::of(vec![map("a", "data"), child("p")]);
    assert_eq!(
        world.report("p", 4, asks("sure?")),
        ["p child asks: sure?", "suspended at p: sure?"]
    );
    assert_eq!(world.status(), Status::Suspended);
    let shown = world.machine.state().announced_suspension.clone().unwrap();
    assert_eq!((&*shown.step_id, shown.step_index), ("p", 1));
    assert_eq!(world.running(), ["p #1"], "a report of the child is expected");
    assert_eq!(world.report("p", 5, ChildStatus::Running), ["resumed", "p child resumes"]);
    assert_eq!(world.status(), Status::Running);
}

#[test]
fn repeated_and_late_reports_are_ignored() {
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.report("p", 4, asks("sure?")), NOTHING, "twice");
    assert_eq!(world.report("p", 3, ChildStatus::Running), NOTHING, "late");
    world.report("p", 6, ChildStatus::Running);
    assert_eq!(world.report("p", 4, asks("sure?")), NOTHING, "late again");
    assert_eq!(world.report("p", 6, ChildStatus::Running), NOTHING, "twice again");
    world.report("p", 9, completed(json!(1)));
    assert_eq!(world.report("p", 9, completed(json!(1))), NOTHING, "after the end");
}

#[test]
fn reports_out_of_order_give_the_status_of_the_child() {
    let mut world = World::of(vec![child("p")]);
    assert_eq!(world.report("p", 5, ChildStatus::Running), NOTHING, "no news");
    assert_eq!(world.report("p", 3, asks("sure?")), NOTHING, "it was resumed since");
    assert_eq!(world.status(), Status::Running);

    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(
        world.report("p", 8, asks("really?")),
        ["resumed", "p child resumes", "p child asks: really?", "suspended at p: really?"]
    );
    assert_eq!(world.report("p", 6, ChildStatus::Running), NOTHING);
    assert_eq!(world.child_took("p", 6), NOTHING);
    assert_eq!(world.shown().unwrap(), "p");

    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.report("p", 8, asks("sure?")), NOTHING, "the same question");
    assert_eq!(world.report("p", 6, ChildStatus::Running), NOTHING, "it asks again since");
    assert_eq!(world.report("p", 9, ChildStatus::Running), ["resumed", "p child resumes"]);

    let mut world = World::of(vec![child("p")]);
    assert_eq!(world.report("p", 9, completed(json!(1))).last().unwrap(), "completed 1");
    assert_eq!(world.report("p", 4, asks("sure?")), NOTHING);
}

#[test]
fn reports_of_other_children_are_ignored() {
    let mut world = World::of(vec![child("p")]);
    let other = ExecutionId::trusted("c9");
    assert_eq!(world.report_of("p", &other, 5, completed(json!(1))), NOTHING);
}

#[test]
fn a_resume_is_decided_by_the_child() {
    let mut world = World::of(vec![child("p").wants(json!({ "type": "string" }))]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.forwarded(None, 7).as_str(), "c1", "its own schema decides");
    assert_eq!(world.forwarded(Some("p"), 7).as_str(), "c1");
    assert_eq!(world.status(), Status::Suspended, "nothing is recorded here yet");
    assert_eq!(world.child_took("p", 5), ["resumed", "p child resumes"]);
    assert_eq!(world.report("p", 5, ChildStatus::Running), NOTHING, "known already");
    assert_eq!(world.child_took("p", 5), NOTHING, "twice");
    assert_eq!(world.refused(None, 7), Refusal::NotSuspended);
}

#[test]
fn a_report_may_arrive_before_the_reply_to_a_resume() {
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    world.forwarded(None, 7);
    world.report("p", 5, ChildStatus::Running);
    assert_eq!(world.child_took("p", 5), NOTHING);
    world.report("p", 7, asks("really?"));
    assert_eq!(world.child_took("p", 5), NOTHING, "it waits again since");
    assert_eq!(world.status(), Status::Suspended);
}

#[test]
fn a_failed_or_cancelled_child_fails_the_step() {
    let mut world = World::of(vec![child("p")]);
    assert_eq!(
        world.report("p", 4, failed("boom")),
        ["p fails: boom (execution c1)", "failed at p: boom (execution c1)"]
    );
    let mut world = World::of(vec![child("p").ignoring()]);
    assert_eq!(
        world.report("p", 4, cancelled()),
        ["p fails: execution c1 was cancelled: enough; continues with 1", "completed 1"]
    );
    assert!(world.abandoned.is_empty(), "it has ended by itself");
}

#[test]
fn a_child_that_was_suspended_may_report_its_end() {
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.report("p", 9, completed(json!(1))), ["p gives 1", "resumed", "completed 1"]);
}

#[test]
fn a_retry_is_a_new_child() {
    let mut world = World::of(vec![child("p").tries(2)]);
    world.report("p", 4, failed("boom"));
    assert_eq!(world.running(), NOTHING, "there is no child during the pause");
    assert!(world.machine.child_call("p").is_none());
    assert_eq!(world.due("p"), ["p is due", "p starts #2", "p has child c2 of part with 1"]);
    let first = ExecutionId::trusted("c1");
    assert_eq!(world.report_of("p", &first, 9, completed(json!(1))), NOTHING, "the one before");
    assert_eq!(world.report("p", 1, ChildStatus::Running), NOTHING);
    assert_eq!(world.report("p", 3, completed(json!(2))).last().unwrap(), "completed 2");
}

#[test]
fn a_child_that_its_parent_drops_is_abandoned() {
    let mut world = World::of(vec![child("p").tries(2).within(50)]);
    assert_eq!(world.fail("p", "timeout"), ["p fails: timeout; again at 100"]);
    assert_eq!(world.abandoned, [ExecutionId::trusted("c1")], "its time has run out");
    world.cancel();
    assert_eq!(world.abandoned.len(), 1, "said once");

    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.cancel(), ["p is cancelled", "cancelled: enough"]);
    assert_eq!(world.abandoned, [ExecutionId::trusted("c1")], "the parent was cancelled");

    let mut world =
        World::of(vec![race("r", [("one", vec![child("p")]), ("two", vec![run("a")])])]);
    world.finish("r/two/a", 1);
    assert_eq!(world.abandoned, [ExecutionId::trusted("c1")], "the race is lost");
}

#[test]
fn only_a_timeout_ends_a_child_from_its_parent() {
    let mut world = World::of(vec![child("p")]);
    assert_eq!(world.finish("p", 1), NOTHING);
    assert_eq!(world.ask("p"), NOTHING);
}

#[test]
fn a_step_may_suspend_before_its_child_starts() {
    let mut world =
        World::of(vec![child_with("p", "resume").asks().wants(json!({ "type": "number" }))]);
    assert_eq!(world.status(), Status::Suspended);
    assert!(matches!(world.refused(None, "text"), Refusal::InvalidData(_)));
    assert_eq!(
        world.resume(7),
        ["resumed", "p is answered 7", "p starts #1", "p has child c1 of part with 7"]
    );
    world.report("p", 3, asks("sure?"));
    assert_eq!(world.forwarded(Some("p"), "text").as_str(), "c1");
}

#[test]
fn a_pause_of_the_parent_does_not_pause_the_child() {
    let mut world = World::of(vec![child("p"), run("b")]);
    world.hold();
    assert_eq!(world.running(), ["p #1"]);
    assert_eq!(world.report("p", 4, asks("sure?")), ["p child asks: sure?"]);
    assert_eq!(world.report("p", 5, ChildStatus::Running), ["p child resumes"]);
    assert_eq!(world.report("p", 8, completed(json!(2))), ["p gives 2"]);
    assert_eq!(world.resume(Value::Null), ["lifted with null", "resumed", "b starts #1"]);
}

#[test]
fn a_resume_accepted_by_the_child_ends_the_pause_of_the_parent() {
    let mut world = World::of(vec![child("p")]);
    world.hold();
    world.report("p", 4, asks("sure?"));
    assert_eq!(world.forwarded(Some("p"), 7).as_str(), "c1");
    assert_eq!(world.child_took("p", 5), ["lifted with null", "resumed", "p child resumes"]);

    let mut world = World::of(vec![child("p")]);
    world.hold();
    world.report("p", 4, asks("sure?"));
    world.report("p", 5, ChildStatus::Running);
    assert_eq!(world.child_took("p", 5), ["lifted with null", "resumed"], "reported before");
}

#[test]
fn ending_a_pause_shows_the_suspension_of_a_step() {
    let mut world =
        World::of(vec![all("both", [("one", vec![child("p")]), ("two", vec![run("q").asks()])])]);
    world.hold();
    world.report("both/one/p", 4, asks("sure?"));
    world.report("both/one/p", 9, completed(json!(1)));
    assert_eq!(
        world.child_took("both/one/p", 5),
        ["lifted with null", "resumed", "suspended at both/two/q: Suspended at step q"]
    );
}

#[test]
fn a_crash_leaves_children_alone() {
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("sure?"));
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert_eq!(world.running(), ["p #1"]);
    let known = world.machine.node("p").unwrap().1.child.as_ref().unwrap().seq;
    assert_eq!(known, 4, "what it asks for is newer");
    assert!(matches!(world.phase("p"), Phase::Waiting(_)));
}

#[test]
fn children_report_while_a_pause_delays_recovery() {
    let mut world =
        World::of(vec![all("both", [("one", vec![child("p")]), ("two", vec![run("a")])])]);
    world.hold();
    world.crash();
    world.recover();
    assert_eq!(world.running(), ["both/one/p #1"]);
    assert_eq!(world.report("both/one/p", 4, completed(json!(1))), ["both/one/p gives 1"]);
}

#[test]
fn an_equal_suspension_of_a_child_is_a_new_one() {
    let again = |id: &str| ChildStatus::Suspended {
        id: Arc::from(id),
        reason: Arc::from("sure?"),
        payload: None,
        deadline: None,
    };
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, again("first"));
    // The new suspension is published before the report of the resume.
    assert_eq!(
        world.report("p", 9, again("second")),
        ["resumed", "p child resumes", "p child asks: sure?", "suspended at p: sure?"]
    );
    assert_eq!(world.child_took("p", 7), NOTHING, "known already");
    let shown = world.machine.state().announced_suspension.clone().unwrap();
    assert_eq!(shown.id.as_deref(), Some("second"), "the name that the child knows it by");
}

#[test]
fn the_deadline_of_a_child_is_shown_but_fires_in_the_child() {
    let mut world = World::of(vec![child("p")]);
    let until = world.now.plus_ms(50);
    let asks = ChildStatus::Suspended {
        id: Arc::from("theirs"),
        reason: Arc::from("sure?"),
        payload: None,
        deadline: Some(until),
    };
    assert_eq!(
        world.report("p", 4, asks),
        ["p child asks: sure? until 50", "suspended at p: sure?"]
    );
    assert_eq!(world.machine.state().announced_suspension.as_ref().unwrap().deadline, Some(until));
    assert!(world.timers.is_empty(), "the child alone acts on it");
    let (_, node) = world.machine.node("p").unwrap();
    assert_eq!(node.armed_timer(), None);
    assert_eq!(
        world.report("p", 9, completed(json!("late"))).last().unwrap(),
        "completed \"late\""
    );
}

#[test]
fn a_resume_names_the_suspension_that_it_ended() {
    let ended = |world: &World| -> Vec<Option<String>> {
        let ids = world.facts().into_iter().filter_map(|recorded| match recorded.fact {
            Fact::StepResumed { id, .. } | Fact::ChildResumed { id, .. } => Some(id),
            _ => None,
        });
        ids.map(|id| id.as_deref().map(str::to_owned)).collect()
    };
    let shown = |world: &World| {
        let shown = world.machine.state().announced_suspension.clone().unwrap();
        shown.id.as_deref().map(str::to_owned)
    };
    let mut world = World::of(vec![map("a", "resume").asks()]);
    let asked = shown(&world);
    world.resume(json!(1));
    assert_eq!(ended(&world), std::slice::from_ref(&asked));
    let steps = world.machine.state().steps(world.machine.plan());
    assert_eq!(steps[0].resume.as_ref().unwrap().id.as_deref(), asked.as_deref());

    for (status, expected) in [
        (ChildStatus::Running, vec!["id of one"]),
        (asks("two"), vec!["id of one"]),
        (completed(json!(1)), vec![]),
    ] {
        let mut world = World::of(vec![child("p")]);
        world.report("p", 4, asks("one"));
        world.report("p", 9, status);
        let expected: Vec<_> = expected.into_iter().map(|id| Some(id.to_owned())).collect();
        assert_eq!(ended(&world), expected);
    }
    let mut world = World::of(vec![child("p")]);
    world.report("p", 4, asks("one"));
    world.child_took("p", 7);
    assert_eq!(ended(&world), [Some("id of one".to_owned())]);
}

/// Returns one of six statuses of a child, for random reports.
pub(crate) fn child_status(how: usize) -> ChildStatus {
    match how {
        0 => ChildStatus::Running,
        1 => ChildStatus::Suspended {
            id: Arc::from("1"),
            reason: Arc::from("one"),
            payload: None,
            deadline: None,
        },
        2 => ChildStatus::Suspended {
            id: Arc::from("2"),
            reason: Arc::from("two"),
            payload: Some(Arc::new(Value::Null)),
            deadline: Some(Timestamp(9)),
        },
        3 => ChildStatus::Completed {
            result: Arc::new(json!("done")),
            compensable: false,
            skipped: false,
        },
        4 => ChildStatus::Failed { error: Arc::from("boom"), class: None },
        _ => cancelled(),
    }
}
