//! Reversal: the steps of a completed child are compensated when its parent fails.

use greenroom_domain::definition::{Body, Compensation, HttpBody, HttpMethod, Mapping, StepKind};
use greenroom_domain::fact::{Fact, Reversal, Start};
use greenroom_domain::failure::{AttemptFailure, ErrorKind};
use greenroom_domain::ids::ExecutionId;
use greenroom_domain::machine::{Callee, ChildStatus, Command, Refusal, ReplayFrom};
use greenroom_domain::slot::slot_of;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, child, compensation, for_each, map, run, workflow};
use crate::machine::calls::call_at;
use crate::machine::world::{Setting, World};

/// Returns the end of a child with steps that can be compensated.
fn completed(result: Value) -> ChildStatus {
    ChildStatus::Completed { result: result.into(), compensable: true, skipped: false }
}

/// Returns the id of the child at a path.
fn child_of(world: &World, path: &str) -> ExecutionId {
    world.machine.child_call(path).expect("a child starts").child
}

fn begun(world: &World) -> Vec<String> {
    let compensating = world.machine.state().compensating.as_ref();
    let begun = compensating.iter().flat_map(|it| &it.begun);
    begun.map(|begun| begun.path.to_string()).collect()
}

/// Returns what a child that starts at this path reverses.
fn reversed(world: &World, path: &str) -> Option<(String, Value)> {
    let reversed = world.machine.child_call(path).expect("a child starts").reversed?;
    Some((reversed.execution.to_string(), Value::clone(&reversed.cause)))
}

#[test]
fn a_completed_child_is_reversed_in_its_turn() {
    let mut world = World::of(vec![run("a").undone(), child("part"), run("b").undone(), run("c")]);
    world.finish("a", 1);
    assert_eq!(
        world.report("part", 9, completed(json!({ "k": 7 }))),
        [r#"part gives {"k":7}, and can be reversed"#, "b starts #1"]
    );
    assert_eq!(reversed_of_running(&world), None);
    world.finish("b", 2);
    world.fail("c", "boom");
    let lines = world.finish("b:compensate", 0);
    let child = child_of(&world, "part:compensate");
    assert_eq!(
        lines,
        [
            "b:compensate gives 0",
            "part:compensate starts #1",
            &*format!("part:compensate has child {child} of part with 1"),
        ]
    );
    let (execution, cause) = reversed(&world, "part:compensate").unwrap();
    assert_eq!(
        (&*execution, &cause["message"], &cause["stepId"]),
        ("c1", &json!("boom"), &json!("c"))
    );
    world.crash();
    assert_eq!(reversed(&world, "part:compensate").unwrap().0, "c1", "after a restart");
    let done =
        ChildStatus::Completed { result: Value::Null.into(), compensable: false, skipped: false };
    assert_eq!(
        world.report("part:compensate", 5, done),
        ["part:compensate gives null", "a:compensate starts #1"]
    );
    assert_eq!(world.finish("a:compensate", 0).last().unwrap(), "failed at c: boom");
    assert!(!world.machine.state().is_reversible(world.machine.plan()), "it has failed");
}

fn reversed_of_running(world: &World) -> Option<(String, Value)> {
    world.effects().iter().find_map(|effect| {
        world.machine.child_call(&effect.path).and_then(|_| reversed(world, &effect.path))
    })
}

#[test]
fn a_child_without_anything_to_undo_is_not_reversed() {
    let mut world = World::of(vec![child("part"), run("b")]);
    let done =
        ChildStatus::Completed { result: json!(1).into(), compensable: false, skipped: false };
    world.report("part", 9, done);
    assert_eq!(world.fail("b", "boom"), ["b fails: boom", "failed at b: boom"]);

    let mut world = World::of(vec![child("part").ignoring(), run("b")]);
    let failed = ChildStatus::Failed { error: "it compensated itself".into(), class: None };
    world.report("part", 9, failed);
    assert_eq!(world.fail("b", "boom").last().unwrap(), "failed at b: boom");
}

#[test]
fn a_compensation_in_the_definition_replaces_the_reversal() {
    let mut world = World::of(vec![child("part").undone(), run("b")]);
    world.report("part", 9, completed(json!(1)));
    world.fail("b", "boom");
    assert_eq!(world.finish("part:compensate", 0).last().unwrap(), "failed at b: boom");
    assert_eq!(begun(&world), ["part:compensate"], "by its function");
}

#[test]
fn children_of_iterations_are_reversed_one_by_one() {
    let lines = for_each("lines", "range(3) | list", 3, vec![child("part")]);
    let mut world = World::of(vec![lines]);
    world.report("lines[2]/part", 9, completed(json!(2)));
    world.report("lines[0]/part", 9, completed(json!(0)));
    let failed = ChildStatus::Failed { error: "sold out".into(), class: None };
    world.report("lines[1]/part", 9, failed);
    for (path, child) in [("lines[0]/part:compensate", "c1"), ("lines[2]/part:compensate", "c3")] {
        assert_eq!(reversed(&world, path).unwrap().0, child);
        world.report(path, 5, completed(Value::Null));
    }
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn a_reversal_that_fails_asks_and_another_attempt_has_another_child() {
    let mut world = World::of(vec![child("part"), run("b")]);
    world.report("part", 9, completed(json!(1)));
    world.fail("b", "boom");
    let failed = |error: &str| ChildStatus::Failed { error: error.into(), class: None };
    let first = child_of(&world, "part:compensate");
    world.report("part:compensate", 5, failed("stuck"));
    world.due("part:compensate");
    let second = world.machine.child_call("part:compensate").unwrap();
    assert_ne!(second.child, first);
    assert_eq!(second.earlier, [first], "it waits for the end of the first one");
    assert_eq!(reversed(&world, "part:compensate").unwrap().0, "c1", "reversed is the same");
    let gone = AttemptFailure::new(ErrorKind::Workflow, "execution c1 is no longer stored");
    let gone = AttemptFailure { class: gone.class.map(never_again), ..gone };
    assert_eq!(
        world.fail_with("part:compensate", gone).last().unwrap(),
        "suspended at part:compensate: the compensation of part failed: execution c1 is no longer \
         stored"
    );
    let lines = world.resume(json!({ "action": "skip" }));
    assert_eq!(lines.last().unwrap(), "failed at b: boom");
}

#[test]
fn an_aborted_reversal_tells_the_children_of_all_attempts() {
    let mut world = World::of(vec![child("part"), run("b")]);
    world.report("part", 9, completed(json!(1)));
    world.fail("b", "boom");
    let first = child_of(&world, "part:compensate");
    let failed = ChildStatus::Failed { error: "stuck".into(), class: None };
    world.report("part:compensate", 5, failed);
    world.due("part:compensate");
    let second = child_of(&world, "part:compensate");
    assert_eq!(world.machine.abandoned_children(), [], "it runs");
    world.send(Command::Abort { error: "set aside".into(), kind: ErrorKind::Workflow });
    assert_eq!(world.machine.abandoned_children(), [second, first]);
}

fn never_again(
    class: greenroom_domain::failure::ErrorClass,
) -> greenroom_domain::failure::ErrorClass {
    greenroom_domain::failure::ErrorClass { is_terminal: true, ..class }
}

#[test]
fn a_cancellation_reverses_children_only_by_choice() {
    let steps = || vec![child("part"), run("b")];
    let mut world = World::of(steps());
    world.report("part", 9, completed(json!(1)));
    assert_eq!(world.cancel(), ["b is cancelled", "cancelled: enough"]);

    let mut definition = workflow(steps());
    definition.compensate_on_cancel = true;
    let mut world = Setting::default().start(definition);
    world.report("part", 9, completed(json!(1)));
    world.cancel();
    let (_, cause) = reversed(&world, "part:compensate").unwrap();
    assert_eq!(cause["message"], "enough");
}

/// Returns an execution that has completed.
fn order() -> World {
    let http = HttpBody {
        method: HttpMethod::Post,
        url: "http://shop/{{ data }}".to_owned(),
        headers: std::collections::BTreeMap::new(),
        query: std::collections::BTreeMap::new(),
        body: Some(Mapping(json!({ "why": "error.message", "first": "steps.a", "item": "item" }))),
    };
    let undo = Compensation::new(StepKind::Then { body: Body::Http(http) });
    let lines = for_each("lines", "['x']", 1, vec![run("b").compensated(undo)]);
    let mut world = World::of(vec![run("a").undone(), lines, child("part"), map("c", "3")]);
    world.finish("a", "A");
    world.finish("lines[0]/b", "B");
    assert_eq!(world.report("part", 9, completed(json!(1))).last().unwrap(), "completed 3");
    assert!(world.machine.state().is_reversible(world.machine.plan()));
    world
}

/// Starts the reversal of an execution that has completed.
fn reverse(original: &World, cause: Value) -> World {
    reverse_as("e1", original, cause)
}

fn reverse_as(id: &'static str, original: &World, cause: Value) -> World {
    let reversal = original.machine.reversal(cause.into()).expect("it has completed");
    let plan = std::sync::Arc::clone(original.machine.plan());
    Setting { id, ..Setting::default() }.begin(plan, (None, Some(Box::new(reversal))))
}

#[test]
fn reversals_of_one_execution_have_the_same_children() {
    let undo = compensation("", true, 1);
    let mut original = World::of(vec![run("a").compensated(undo), child("part")]);
    original.finish("a", "A");
    original.report("part", 9, completed(json!(1)));
    // one by one after an abort, or of two parents that share it, in one slot and in another
    let slots = ["00000000-0000-7000-8000-000000000123", "00000000-0000-7000-8000-000000009123"];
    let [first, second, elsewhere] = [slots[0], slots[1], "00000000-0000-7000-8000-000000000124"]
        .map(|id| {
            let mut world = reverse_as(id, &original, Value::Null);
            let part = child_of(&world, "part:compensate");
            world.report("part:compensate", 5, completed(Value::Null));
            let children = [part, child_of(&world, "a:compensate")];
            let slot = slot_of(&ExecutionId::trusted(id));
            assert!(children.iter().all(|child| slot_of(child) == slot), "{children:?}");
            children
        });
    assert_eq!(first, second);
    assert_ne!(first[0], first[1]);
    assert!(elsewhere.iter().all(|child| !first.contains(child)), "a child is near its parent");
}

#[test]
fn a_child_whose_output_is_refused_is_told_to_undo_what_it_did() {
    let rows = [(true, vec![ExecutionId::trusted("c1")]), (false, Vec::new())];
    for (compensable, abandoned) in rows {
        for tries in [1, 2] {
            let part = child("part").gives(json!({ "type": "string" })).tries(tries);
            let mut world = World::of(vec![part]);
            let result = json!(1).into();
            let status = ChildStatus::Completed { result, compensable, skipped: false };
            let lines = world.report("part", 9, status);
            assert!(lines[0].starts_with("part fails: output validation failed"), "{lines:?}");
            assert_eq!(world.abandoned, abandoned, "{compensable} {tries}");
        }
    }
}

#[test]
fn replays_of_earlier_versions_compensated_in_another_order() {
    let mut original = World::of(vec![run("a").undone(), run("b").undone(), run("c")]);
    for (path, output) in [("a", 1), ("b", 2), ("c", 3)] {
        original.finish(path, output);
    }
    let mut world = original.replay("b", None).unwrap();
    world.finish("b", 2);
    world.fail("c", "boom");
    // what was copied came first
    let text = serde_json::to_string(&world.batches).unwrap();
    let begun = text.matches("b:compensate").count();
    world.batches = serde_json::from_str(&text.replace("b:compensate", "a:compensate")).unwrap();
    assert_eq!(begun, 1, "{text}");
    world.crash();
    world.recover();
    assert_eq!(world.finish("a:compensate", 0).last().unwrap(), "b:compensate starts #1");
    assert_eq!(world.finish("b:compensate", 0).last().unwrap(), "failed at c: boom");
}

#[test]
fn a_reversal_compensates_at_once_and_completes() {
    let original = order();
    let before = original.machine.state().clone();
    let mut world = reverse(&original, json!({ "message": "boom" }));
    let child = child_of(&world, "part:compensate");
    assert_eq!(
        world.started(),
        [
            "start",
            "compensates after success",
            "part:compensate starts #1",
            &*format!("part:compensate has child {child} of part with [\"B\"]"),
        ]
    );
    let (execution, cause) = reversed(&world, "part:compensate").unwrap();
    assert_eq!((&*execution, &cause["message"]), ("c1", &json!("boom")), "the same cause");
    world.report("part:compensate", 5, completed(Value::Null));
    let Some(Ok(Callee::Http(request))) = call_at(&world, "lines[0]/b:compensate") else {
        panic!("it is an HTTP call")
    };
    assert_eq!(request.url.as_str(), "http://shop/B");
    let sent: Value = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
    assert_eq!(sent, json!({ "why": "boom", "first": "A", "item": "x" }));
    let key = world.machine.idempotency_key("lines[0]/b:compensate");
    assert_eq!(key, "e1/lines[0]/b:compensate", "that of the reversed execution");
    world.finish("lines[0]/b:compensate", 0);
    assert_eq!(world.finish("a:compensate", 0), ["a:compensate gives 0", "completed null"]);
    assert_eq!(world.status(), Status::Completed);
    assert!(world.machine.ending().unwrap().replayable.is_empty(), "a replay is not offered");
    assert!(!world.machine.state().is_reversible(world.machine.plan()), "it is undone");
    assert_eq!(*original.machine.state(), before, "the original has not changed");
}

#[test]
fn only_a_completed_execution_can_be_reversed() {
    for world in World::ended() {
        let reversal = world.machine.reversal(Value::Null.into());
        assert_eq!(reversal.is_some(), world.status() == Status::Completed);
    }
    assert!(World::of(vec![run("a")]).machine.reversal(Value::Null.into()).is_none());
}

#[test]
fn a_crash_at_each_append_of_a_reversal_compensates_everything_once() {
    let original = order();
    let mut at = 1;
    loop {
        let mut world = reverse(&original, Value::Null);
        let mut has_crashed = false;
        while !world.status().is_terminal() {
            if world.batches.len() == at && !std::mem::replace(&mut has_crashed, true) {
                world.restore_from(at);
                world.crash();
                world.recover();
            }
            let path = world.effects().remove(0).path;
            if world.machine.child_call(&path).is_some() {
                world.report(&path, 9, completed(Value::Null));
            } else {
                world.finish(&path, "done");
            }
        }
        let paths = ["part:compensate", "lines[0]/b:compensate", "a:compensate"];
        assert_eq!(begun(&world), paths, "at {at}");
        assert_eq!(world.status(), Status::Completed);
        if !has_crashed {
            break;
        }
        at += 1;
    }
    assert!(at > 3, "it crashed only {at} times");
}

#[test]
fn a_reversal_cannot_be_cancelled_and_is_replayed_from_its_first_undone_step() {
    let mut world = reverse(&order(), Value::Null);
    let cancel = greenroom_domain::machine::Command::Cancel {
        reason: "no".into(),
        by: None,
        compensate: true,
    };
    assert_eq!(world.try_send(cancel), Err(Refusal::Compensating));
    world.report("part:compensate", 5, completed(Value::Null));
    let from = |step: &str| ReplayFrom { step_id: Some(step.to_owned()), ..ReplayFrom::default() };
    assert!(world.machine.replayed_from(from("a")).is_ok());
    for step in ["lines", "part"] {
        assert!(world.machine.replayed_from(from(step)).is_err(), "what is before it is undone");
    }
}

#[test]
fn a_replay_compensates_what_it_copied_after_its_own_steps() {
    let mut original =
        World::of(vec![map("x", "1"), run("a").undone(), run("b").undone(), run("c")]);
    for (path, output) in [("a", 1), ("b", 2), ("c", 3)] {
        original.finish(path, output);
    }
    let mut world = original.replay("b", None).unwrap();
    world.finish("b", 2);
    world.fail("c", "boom");
    world.finish("b:compensate", 0);
    assert_eq!(begun(&world), ["b:compensate", "a:compensate"], "the copied one ended first");
}

#[test]
fn facts_of_executions_without_a_reversal_are_as_before() {
    let mut world = World::of(vec![child("part"), run("b")]);
    let done =
        ChildStatus::Completed { result: json!(1).into(), compensable: false, skipped: false };
    world.report("part", 9, done);
    let text = serde_json::to_string(&world.facts()).unwrap();
    assert!(!text.contains("compensable") && !text.contains("reversal"), "{text}");
    let state = serde_json::to_string(world.machine.state()).unwrap();
    assert!(!state.contains("compensable") && !state.contains("reversal"), "{state}");

    let world = reverse(&order(), json!({ "message": "boom" }));
    let text = serde_json::to_string(&world.facts()).unwrap();
    let read: Vec<greenroom_domain::fact::Recorded> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, world.facts());
    let Fact::WorkflowStarted(start) = &read[0].fact else { panic!("the first fact") };
    let Start { reversal: Some(reversal), .. } = &**start else { panic!("a reversal") };
    let Reversal { execution, nodes, .. } = &**reversal;
    assert_eq!((execution.as_str(), nodes.len()), ("e1", 4));
}
