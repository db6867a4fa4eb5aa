//! Ids of suspensions: a resume with an id ends only that suspension.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_domain::definition::{Mapping, SuspendRule};
use greenroom_domain::fact::{Fact, Recorded, Suspension};
use greenroom_domain::ids::ExecutionId;
use greenroom_domain::machine::{
    ChildStatus, Command, Decision, Handled, Machine, Refusal, Resume,
};
use greenroom_domain::principal::Principal;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, child, container, map, repeat, run, workflow};
use crate::machine::world::{Setting, World};

fn waiting(world: &World) -> Vec<Suspension> {
    world.machine.state().suspensions(world.machine.plan())
}

/// Returns the ids of the suspensions, oldest first.
fn ids(world: &World) -> Vec<String> {
    waiting(world).iter().map(|wait| wait.id.as_deref().unwrap().to_owned()).collect()
}

fn answer(step: Option<&str>, id: &str, data: impl Into<Value>) -> Command {
    Command::Resume(Resume {
        step_id: step.map(str::to_owned),
        suspension_id: Some(id.to_owned()),
        data: Arc::new(data.into()),
        ..Resume::default()
    })
}

fn passed(refusal: Result<Handled, Refusal>) -> Vec<String> {
    match refusal {
        Err(Refusal::SuspensionPassed { waiting, .. }) => {
            waiting.iter().map(|wait| wait.path.to_string()).collect()
        }
        other => panic!("not refused as passed: {other:?}"),
    }
}

/// Two steps suspend, one of them twice.
fn two() -> World {
    let left = vec![map("a", "resume").asks(), map("b", "resume").asks()];
    World::of(vec![all("both", [("left", left), ("right", vec![map("c", "resume").asks()])])])
}

#[test]
fn an_id_selects_one_of_several_suspensions() {
    for step in [None, Some("c"), Some("both/right/c")] {
        let mut world = two();
        let c = ids(&world).pop().unwrap();
        assert_eq!(world.send(answer(step, &c, 7))[1], "both/right/c is answered 7");
    }
    let mut world = two();
    let [a, c] = ids(&world).try_into().unwrap();
    assert_eq!(passed(world.try_send(answer(Some("a"), &c, 7))), ["both/left/a", "both/right/c"]);
    assert_eq!(
        world.try_send(answer(Some("both"), &a, 7)),
        Err(Refusal::StepNotSuspended("both".to_owned())),
        "the step is checked first"
    );
}

#[test]
fn a_resume_of_one_suspension_never_ends_the_next() {
    let mut world = two();
    let first = ids(&world).swap_remove(0);
    world.send(answer(None, &first, 1));
    assert_eq!(waiting(&world).len(), 2, "b waits now, and c still does");
    assert_eq!(passed(world.try_send(answer(None, &first, 1))), ["both/left/b", "both/right/c"]);
    assert_eq!(passed(world.try_send(answer(None, "no such", 1))).len(), 2);
    for id in ids(&world) {
        world.send(answer(None, &id, 2));
    }
    assert_eq!(world.status(), Status::Completed);
    assert_eq!(world.try_send(answer(None, &first, 1)), Err(Refusal::NotSuspended));
}

#[test]
fn only_one_of_many_resumes_of_a_suspension_is_accepted() {
    let mut world = two();
    for _ in 0..2 {
        let id = ids(&world).swap_remove(0);
        let taken = (0..20).filter(|_| world.try_send(answer(None, &id, 1)).is_ok()).count();
        assert_eq!(taken, 1);
    }
}

#[test]
fn every_suspension_has_a_unique_id() {
    let again = repeat("again", false, "data < 3", 5, vec![run("ask"), map("next", "data")]);
    let mut world = World::of(vec![again, run("last")]);
    let mut seen = BTreeSet::new();
    // A function may suspend several times, in each iteration.
    for (round, output) in [(0, 1), (1, 2), (2, 3)] {
        let path = format!("again[{round}]/ask");
        for _ in 0..2 {
            world.ask(&path);
            assert!(seen.insert(ids(&world).remove(0)), "asked before");
            world.resume(1);
        }
        world.finish(&path, output);
    }
    for _ in 0..2 {
        world.hold();
        assert!(seen.insert(ids(&world).remove(0)), "held before");
        world.resume(Value::Null);
    }
    assert!(seen.iter().all(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit())));
}

#[test]
fn a_pause_has_an_id_beside_those_of_steps() {
    let mut world = World::of(vec![all("both", [("l", vec![run("a")]), ("r", vec![run("b")])])]);
    world.hold();
    world.ask("both/l/a");
    let [hold, step] = ids(&world).try_into().unwrap();
    assert_eq!(passed(world.try_send(answer(Some("a"), &hold, 1))), ["both", "both/l/a"]);
    assert_eq!(passed(world.try_send(answer(Some("both"), &step, 1))), ["both", "both/l/a"]);
    let lines = world.send(answer(Some("a"), &step, 1));
    assert_eq!(lines[..3], ["lifted with null", "resumed", "both/l/a is answered 1"]);
    let told = world.try_send(answer(None, &hold, 1));
    assert_eq!(told, Err(Refusal::NotSuspended), "both run");
    world.hold();
    assert_eq!(passed(world.try_send(answer(None, &hold, 1))), ["both"], "another one");
    let hold = ids(&world).remove(0);
    assert_eq!(world.send(answer(None, &hold, 1)), ["lifted with 1", "resumed"]);
}

#[test]
fn an_id_selects_a_suspension_while_running() {
    let mut world = World::of(vec![all(
        "both",
        [("l", vec![map("q", "resume").asks()]), ("r", vec![run("b")])],
    )]);
    let id = ids(&world).remove(0);
    assert_eq!(world.status(), Status::Running);
    assert_eq!(world.send(answer(None, &id, 5))[0], "both/l/q is answered 5");
    assert_eq!(world.try_send(answer(None, &id, 5)), Err(Refusal::NotSuspended));
}

#[test]
fn ids_are_stable_over_restarts_and_old_records() {
    let mut world = two();
    let first = ids(&world).swap_remove(0);
    world.send(answer(None, &first, 1));
    let known = ids(&world);
    world.crash();
    assert_eq!(ids(&world), known);

    let mut world = World::of(vec![run("a")]);
    for _ in 0..2 {
        world.hold();
        world.resume(Value::Null);
    }
    world.ask("a");
    world.resume(1);
    world.ask("a");
    let known = ids(&world);
    let older: Vec<Recorded> = world.facts().into_iter().map(without_ids).collect();
    let plan = Arc::clone(world.machine.plan());
    let folded = Machine::replay(plan, ExecutionId::trusted("e1"), &older).unwrap();
    assert_eq!(folded.state(), world.machine.state(), "{known:?}");
}

/// Id of an execution, as the server makes them.
const MADE: &str = "01a22a22-efb6-770f-9c16-ebea1dc0085f";

#[test]
fn ids_have_the_time_of_their_execution_and_those_of_old_records_do_not() {
    let mut world = Setting { id: MADE, ..Setting::default() }.start(workflow(vec![run("a")]));
    world.ask("a");
    assert!(ids(&world)[0].starts_with("01a22a22efb6"), "{:?}", ids(&world));
    let older: Vec<Recorded> = world.facts().into_iter().map(without_ids).collect();
    let plan = Arc::clone(world.machine.plan());
    world.machine = Machine::replay(plan, ExecutionId::trusted(MADE), &older).unwrap();
    assert_eq!(ids(&world), ["12350973d8c3198d"], "the id that older versions showed");
}

/// Returns the record in the form of a version without ids.
fn without_ids(mut recorded: Recorded) -> Recorded {
    match &mut recorded.fact {
        Fact::StepSuspended { id, .. } | Fact::HoldPlaced { id, .. } => *id = None,
        Fact::WorkflowSuspended { suspension, others, .. } => {
            suspension.id = None;
            *others = None;
        }
        _ => {}
    }
    recorded
}

#[test]
fn announcements_list_all_suspensions() {
    let world = two();
    let facts = world.facts();
    let Fact::WorkflowSuspended { suspension, others, .. } = &facts.last().unwrap().fact else {
        panic!("{facts:?}");
    };
    let others = others.as_deref().unwrap();
    assert_eq!((&*suspension.path, others.omitted), ("both/left/a", 0));
    assert_eq!(others.suspensions, waiting(&world)[1..]);
}

#[test]
fn announcements_are_limited_in_size() {
    let omitted = |payload: usize, reason: usize| {
        let shown = Mapping(json!(format!("'{}'", "x".repeat(payload))));
        let rule = SuspendRule {
            payload: Some(shown),
            reason: Some("é".repeat(reason)),
            ..SuspendRule::default()
        };
        let ask = |index| vec![map(&format!("q{index}"), "resume").asking(rule.clone())];
        let world = World::of(vec![container("all", false, (0..60).map(ask).collect())]);
        let last = world.facts().pop().unwrap();
        let Fact::WorkflowSuspended { suspension, others, .. } = last.fact else {
            panic!("{last:?}")
        };
        let others = others.unwrap();
        assert_eq!(others.suspensions.len() + others.omitted, 59);
        assert_eq!(suspension.reason.len(), (2 * reason).min(4096));
        let asked: u64 = 60 * (suspension.reason.len() + payload + 2) as u64;
        let told = (1 + others.suspensions.len() as u64) * asked / 60;
        assert_eq!(world.machine.state().bytes, asked + told, "and it counts");
        others.omitted
    };
    assert_eq!(omitted(1, 1), 10, "in number");
    assert_eq!(omitted(8_000, 1), 51, "in bytes of payloads");
    assert_eq!(omitted(1, 1_500), 38, "in bytes of reasons");
    assert_eq!(omitted(1, 20_000), 44, "each of which is cut");
}

#[test]
fn the_suspension_of_a_child_keeps_its_id() {
    let asks = |id: &str| ChildStatus::Suspended {
        id: Arc::from(id),
        reason: Arc::from("sure?"),
        payload: None,
        deadline: None,
    };
    let mut world = Setting { id: MADE, ..Setting::default() }.start(workflow(vec![child("p")]));
    world.report("p", 4, asks("theirs"));
    assert_eq!(ids(&world), ["theirs"]);
    for (step, id) in [(None, None), (Some("p"), None), (None, Some("theirs"))] {
        let told = world.try_send(Command::Resume(Resume {
            step_id: step.map(str::to_owned),
            suspension_id: id.map(str::to_owned),
            ..Resume::default()
        }));
        let Ok(Handled::Decided(Decision::Forward { resume, .. })) = told else {
            panic!("{told:?}")
        };
        assert_eq!((resume.suspension_id.as_deref(), resume.step_id), (Some("theirs"), None));
    }
    assert_eq!(passed(world.try_send(answer(None, "other", 1))), ["p"]);
    // A suspension recorded without the child's id is forwarded without an id.
    let older = world.facts().into_iter().map(|mut recorded| {
        if let Fact::ChildSuspended { id, .. } = &mut recorded.fact {
            *id = None;
        }
        recorded
    });
    let older: Vec<_> = older.collect();
    let plan = Arc::clone(world.machine.plan());
    let machine = Machine::replay(plan, ExecutionId::trusted(MADE), &older).unwrap();
    world.machine = machine;
    let id = ids(&world).remove(0);
    let told = world.try_send(answer(None, &id, 1));
    let Ok(Handled::Decided(Decision::Forward { resume, .. })) = told else { panic!("{told:?}") };
    assert_eq!(resume.suspension_id, None);
}

#[test]
fn the_principal_of_a_resume_is_recorded_with_its_data() {
    let rows = [
        (Some(Principal::verified("lea")), json!({ "id": "lea", "verified": true })),
        (Some(Principal::claimed("lea")), json!({ "id": "lea", "verified": false })),
        (None, json!(null)),
    ];
    for (by, expected) in rows {
        let mut world = World::of(vec![
            map("q", "[resume, resumed_by, user.id]").asks(),
            map("r", "[data, resumed_by]"),
        ]);
        let by = by.map(Arc::new);
        let resume = Resume { data: Arc::new(json!(1)), by: by.clone(), ..Resume::default() };
        world.send(Command::Resume(resume));
        let result = json!([[1, expected, "ann"], null]);
        assert_eq!(world.all_lines().last().unwrap(), &format!("completed {result}"));
        let node = &world.machine.state().root.nodes[0];
        assert_eq!(node.resumed.as_ref().unwrap().by, by);
        let of_resume = world.facts().into_iter().filter(|it| it.by.is_some()).count();
        assert_eq!(
            of_resume,
            if by.is_some() { 2 } else { 0 },
            "facts that follow have no principal"
        );
    }
}

#[test]
fn principals_of_pauses_resumes_and_cancels_are_recorded() {
    let by = |id: &str| Some(Arc::new(Principal::verified(id)));
    let mut world = World::of(vec![run("a"), map("b", "[resume, resumed_by.id]"), run("c")]);
    world.send(Command::Suspend { reason: Arc::from("stop"), by: by("ops") });
    assert_eq!(waiting(&world)[0].by, by("ops"));
    let data = Arc::new(json!("go"));
    world.send(Command::Resume(Resume { data, by: by("lea"), ..Resume::default() }));
    world.finish("a", 1);
    assert_eq!(world.machine.node("b").unwrap().1.output().unwrap(), json!(["go", "lea"]).into());
    world.send(Command::Cancel { reason: Arc::from("enough"), by: by("ann"), compensate: false });
    assert_eq!(world.machine.state().end.as_ref().unwrap().by, by("ann"));
    let called: Vec<_> = world.facts().iter().filter_map(|it| it.by.clone()).collect();
    assert_eq!(called.len(), 5, "held; lifted, resumed; c cancelled, cancelled");
}
