//! Compensation: what completed is undone in reverse before the end.

use std::sync::Arc;

use greenroom_domain::definition::{
    Body, Compensation, HttpBody, Mapping, StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_domain::machine::{Callee, ChildStatus, Command, Refusal, ReplayFrom, ReplayRefusal};
use greenroom_domain::principal::Principal;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{
    Adorned, all, compensation, for_each, map, race, repeat, run, sleep, tap, when, workflow,
};
use crate::machine::calls::call_at;
use crate::machine::world::{Setting, World, resume};

/// A workflow that compensates after a cancellation too.
fn on_cancel(steps: Vec<StepDefinition>) -> WorkflowDefinition {
    WorkflowDefinition { compensate_on_cancel: true, ..workflow(steps) }
}

/// Returns the paths of the compensations that have begun.
fn begun(world: &World) -> Vec<String> {
    let compensating = world.machine.state().compensating.as_ref();
    let begun = compensating.iter().flat_map(|it| &it.begun);
    begun.map(|begun| begun.path.to_string()).collect()
}

/// Completes every compensation; returns their paths.
fn compensate(world: &mut World) -> Vec<String> {
    for _ in 0..50 {
        let Some(effect) = world.effects().into_iter().next() else { break };
        world.finish(&effect.path, "undone");
    }
    begun(world)
}

#[test]
fn what_completed_is_compensated_in_reverse_before_the_end() {
    let mut world = World::of(vec![run("a").undone(), run("b").undone(), run("c").undone()]);
    world.finish("a", 1);
    world.finish("b", 2);
    assert_eq!(
        world.fail("c", "boom"),
        ["c fails: boom", "compensates after: boom", "b:compensate starts #1"]
    );
    assert_eq!(world.status(), Status::Running, "the end is not recorded yet");
    assert_eq!(
        world.finish("b:compensate", "undone"),
        ["b:compensate gives \"undone\"", "a:compensate starts #1"]
    );
    assert_eq!(
        world.finish("a:compensate", Value::Null),
        ["a:compensate gives null", "failed at c: boom"]
    );
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn without_a_compensation_or_a_completed_step_the_end_is_as_before() {
    let mut world = World::of(vec![run("a"), run("b").undone()]);
    world.finish("a", 1);
    assert_eq!(world.fail("b", "boom"), ["b fails: boom", "failed at b: boom"]);

    let mut world = World::of(vec![run("a").undone()]);
    assert_eq!(world.finish("a", 1), ["a gives 1", "completed 1"]);
}

#[test]
fn iterations_and_branches_are_compensated_one_by_one() {
    let lines = for_each("lines", "range(3) | list", 2, vec![run("reserve").undone()]);
    let mut world = World::of(vec![run("pay").undone(), lines]);
    world.finish("pay", 1);
    world.finish("lines[1]/reserve", "second");
    world.finish("lines[0]/reserve", "first");
    world.fail("lines[2]/reserve", "sold out");
    assert_eq!(
        compensate(&mut world),
        ["lines[0]/reserve:compensate", "lines[1]/reserve:compensate", "pay:compensate"],
        "the newest first"
    );
    assert_eq!(world.status(), Status::Error);

    let blocks = all("all", [("x", vec![run("a").undone(), run("b")]), ("y", vec![run("c")])]);
    let mut world = World::of(vec![blocks]);
    world.finish("all/x/a", 1);
    world.fail("all/y/c", "boom");
    assert_eq!(compensate(&mut world), ["all/x/a:compensate"]);

    let rounds = repeat("again", true, "index == 1", 3, vec![run("add").undone()]);
    let mut world = World::of(vec![when("if", "true", vec![rounds]), run("z")]);
    world.finish("if/then/again[0]/add", 1);
    world.finish("if/then/again[1]/add", 2);
    world.fail("z", "boom");
    let paths = ["if/then/again[1]/add:compensate", "if/then/again[0]/add:compensate"];
    assert_eq!(compensate(&mut world), paths);
}

#[test]
fn a_loser_of_a_race_that_had_completed_is_compensated() {
    let lanes = race("r", [("x", vec![run("a").undone(), run("b")]), ("y", vec![run("c")])]);
    let mut world = World::of(vec![lanes, run("z")]);
    world.finish("r/x/a", 1);
    world.finish("r/y/c", 2);
    world.fail("z", "boom");
    assert_eq!(compensate(&mut world), ["r/x/a:compensate"]);
}

#[test]
fn an_error_that_a_container_handles_compensates_nothing_until_the_execution_fails() {
    let part = when("part", "true", vec![run("a").undone(), run("b")]).ignoring();
    let mut world = World::of(vec![part.clone(), run("c")]);
    world.finish("part/then/a", 1);
    assert_eq!(world.fail("part/then/b", "boom").last().unwrap(), "c starts #1");
    assert_eq!(world.finish("c", 2).last().unwrap(), "completed 2");

    let mut world = World::of(vec![part, run("c")]);
    world.finish("part/then/a", 1);
    world.fail("part/then/b", "boom");
    world.fail("c", "later");
    assert_eq!(compensate(&mut world), ["part/then/a:compensate"]);
}

#[test]
fn a_step_that_failed_was_skipped_or_was_interrupted_is_not_compensated() {
    let mut world = World::of(vec![
        run("failed").ignoring().undone(),
        when("no", "false", vec![run("skipped").undone()]),
        all("all", [("x", vec![run("cut").undone()]), ("y", vec![run("z")])]),
    ]);
    world.fail("failed", "boom");
    assert_eq!(world.fail("all/y/z", "boom").last().unwrap(), "failed at z: boom");
}

#[test]
fn a_compensation_has_attempts_of_its_own_and_then_asks() {
    let step = run("a").compensated(compensation("undo", false, 2));
    let mut world = World::of(vec![step, run("b")]);
    world.finish("a", json!({ "key": 7 }));
    world.fail("b", "boom");
    assert_eq!(world.fail("a:compensate", "one"), ["a:compensate fails: one; again at 100"]);
    assert_eq!(world.due("a:compensate"), ["a:compensate is due", "a:compensate starts #2"]);
    let reason = "the compensation of a failed: two";
    assert_eq!(
        world.fail("a:compensate", "two"),
        [
            "a:compensate fails: two; asks next".to_owned(),
            format!(
                "a:compensate asks: {reason} {}",
                r#"{"step":"a","attempts":2,"output":{"key":7},"cause":"boom"}"#
            ),
            format!("suspended at a:compensate: {reason}"),
        ]
    );
    assert_eq!(world.status(), Status::Suspended);
    world.crash();
    assert_eq!(world.shown().as_deref(), Some("a:compensate"), "it waits after a restart");

    for bad in [Value::Null, json!("retry"), json!({}), json!({ "action": "stop" })] {
        let refusal = world.refused(None, bad.clone());
        assert!(matches!(refusal, Refusal::InvalidData(_)), "{bad} was accepted: {refusal:?}");
    }
    assert_eq!(
        world.resume_at("a", json!({ "action": "retry" })),
        ["resumed", "a:compensate is answered {\"action\":\"retry\"}", "a:compensate starts #3"]
    );
    assert_eq!(
        world.fail("a:compensate", "three"),
        ["a:compensate fails: three; again at 200"],
        "with all attempts of its policy"
    );
    world.due("a:compensate");
    world.fail("a:compensate", "four");
    assert_eq!(
        world.resume(json!({ "action": "skip", "output": "by hand" })),
        [
            "resumed",
            "a:compensate is answered {\"action\":\"skip\",\"output\":\"by hand\"}",
            "a:compensate gives \"by hand\", skipped",
            "failed at b: boom",
        ]
    );
}

#[test]
fn a_crash_begins_a_compensation_again_and_too_many_ask() {
    let mut world = World::of(vec![run("a").undone(), run("b")]);
    world.finish("a", 1);
    world.fail("b", "boom");
    for attempt in 2..=3 {
        world.crash();
        let again = format!("a:compensate starts #{attempt} after a crash");
        assert_eq!(world.recover(), [again]);
    }
    world.crash();
    let asked = world.recover();
    assert!(asked.last().unwrap().starts_with("suspended at a:compensate"), "{asked:?}");
}

#[test]
fn a_function_that_suspends_fails_its_compensation() {
    let mut world = World::of(vec![run("a").undone(), run("b")]);
    world.finish("a", 1);
    world.fail("b", "boom");
    let lines = world.ask("a:compensate");
    assert_eq!(lines[0], "a:compensate fails: a compensation cannot suspend; asks next");
}

#[test]
fn a_pause_holds_compensations_back() {
    let mut world = World::of(vec![run("a").undone(), run("b").undone(), run("c")]);
    world.finish("a", 1);
    world.finish("b", 2);
    world.fail("c", "boom");
    world.hold();
    assert_eq!(world.finish("b:compensate", 0), ["b:compensate gives 0"]);
    assert_eq!(world.resume(Value::Null).last().unwrap(), "a:compensate starts #1");
    let (_, node) = world.machine.node("a:compensate").unwrap();
    assert_eq!(node.resume, None, "data that ended a pause is not for a compensation");
}

#[test]
fn a_cancelled_execution_compensates_only_by_choice() {
    let mut world = World::of(vec![run("a").undone(), run("b")]);
    world.finish("a", 1);
    assert_eq!(world.cancel(), ["b is cancelled", "cancelled: enough"]);

    let steps = vec![run("a").undone(), sleep("nap", 9), run("b")];
    let mut world = Setting::default().start(on_cancel(steps));
    world.finish("a", 1);
    world.hold();
    let by = Some(Arc::new(Principal { id: Arc::from("bea"), verified: true }));
    let cancelled =
        Command::Cancel { reason: Arc::from("enough"), by: by.clone(), compensate: false };
    assert_eq!(
        world.send(cancelled),
        [
            "nap is cancelled",
            "compensates after cancel: enough",
            "resumed",
            "a:compensate starts #1"
        ]
    );
    let again = Command::Cancel { reason: Arc::from("at once"), by: None, compensate: false };
    assert_eq!(world.try_send(again), Err(Refusal::Compensating));
    world.crash();
    world.recover();
    let lines = world.finish("a:compensate", 0);
    assert_eq!(lines.last().unwrap(), "cancelled: enough");
    let facts = world.facts();
    assert_eq!(facts.last().unwrap().by, by, "the end names who cancelled");
    assert_eq!(world.machine.state().end.as_ref().unwrap().by, by);
}

#[test]
fn an_abort_compensates_and_a_second_one_ends_it() {
    let abort = || Command::Abort {
        error: Arc::from("stuck"),
        kind: greenroom_domain::failure::ErrorKind::Internal,
    };
    let mut world = World::of(vec![run("a").undone(), run("b")]);
    world.finish("a", 1);
    let lines = world.send(abort());
    assert_eq!(lines, ["b is cancelled", "compensates after: stuck", "a:compensate starts #1"]);
    assert_eq!(world.send(abort()), ["a:compensate is cancelled", "failed: stuck"]);
}

#[test]
fn a_limit_does_not_stop_compensations() {
    let mut setting = Setting::default();
    setting.limits.events_max = 8;
    let rounds = repeat("again", true, "false", 100, vec![map("more", "1")]);
    let mut world = setting.start(workflow(vec![run("a").undone(), rounds]));
    let lines = world.finish("a", 1);
    assert!(lines.iter().any(|line| line.starts_with("compensates after: more than 8")));
    assert_eq!(compensate(&mut world), ["a:compensate"]);
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn a_result_that_cannot_be_made_compensates_too() {
    let mut definition = workflow(vec![run("a").undone()]);
    definition.result = Some(Mapping(json!("data.no.such")));
    let mut world = Setting::default().start(definition);
    let lines = world.finish("a", 1);
    assert_eq!(lines.last().unwrap(), "a:compensate starts #1");
}

#[test]
fn a_compensation_sees_the_output_the_iteration_and_the_error() {
    let http = HttpBody {
        method: greenroom_domain::definition::HttpMethod::Post,
        url: "http://shop/{{ item }}/{{ index }}".to_owned(),
        headers: std::collections::BTreeMap::new(),
        query: std::collections::BTreeMap::new(),
        body: Some(Mapping(json!({
            "key": "data.key", "own": "steps.reserve.key", "why": "error.message",
            "at": "error.stepId", "input": "input", "earlier": "steps.first",
        }))),
    };
    let undo = Compensation::new(StepKind::Then { body: Body::Http(http) });
    let block = vec![run("reserve").compensated(undo)];
    let lines = for_each("lines", "['a', 'b']", 1, block);
    let mut world = World::of(vec![run("first"), lines]);
    world.finish("first", "1st");
    world.finish("lines[0]/reserve", json!({ "key": "k0" }));
    world.fail("lines[1]/reserve", "sold out");
    let Some(Ok(Callee::Http(request))) = call_at(&world, "lines[0]/reserve:compensate") else {
        panic!("it is an HTTP call")
    };
    assert_eq!(request.url.as_str(), "http://shop/a/0");
    let sent: Value = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
    assert_eq!(
        sent,
        json!({
            "key": "k0", "own": "k0", "why": "sold out", "at": "reserve", "input": 1,
            "earlier": "1st",
        })
    );
}

#[test]
fn a_function_sees_why_the_execution_ends() {
    let mut world = World::of(vec![run("a").undone(), run("b")]);
    world.finish("a", 1);
    assert_eq!(world.machine.function_call("b").unwrap().error, None, "only a compensation does");
    world.fail("b", "boom");
    let call = world.machine.function_call("a:compensate").unwrap();
    let error = json!({
        "kind": "function", "status": null, "message": "boom", "stepId": "b", "attempt": 1,
    });
    assert_eq!(call.error.as_deref(), Some(&error));
}

#[test]
fn a_workflow_can_compensate() {
    let mut world = World::of(vec![tap("a").compensated(compensation("", true, 1)), run("b")]);
    world.finish("a", 1);
    let lines = world.fail("b", "boom");
    let child = world.machine.child_call("a:compensate").unwrap().child;
    assert_eq!(*lines.last().unwrap(), format!("a:compensate has child {child} of part with 1"));
    world.report(
        "a:compensate",
        2,
        ChildStatus::Completed { result: Arc::new(json!(0)), compensable: false, skipped: false },
    );
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn a_missing_function_keeps_the_execution_running() {
    let setting = Setting { missing: ["undo".to_owned()].into(), ..Setting::default() };
    let mut world = setting.start(workflow(vec![run("a").undone(), run("b")]));
    world.finish("a", 1);
    world.fail("b", "boom");
    assert_eq!((world.status(), world.running()), (Status::Running, Vec::new()));
    world.missing.clear();
    assert_eq!(world.recover(), ["a:compensate starts #1"]);
}

#[test]
fn a_replay_does_not_reuse_what_was_undone() {
    let mut world = World::of(vec![run("a"), run("b").undone(), run("c")]);
    world.finish("a", 1);
    world.finish("b", 2);
    world.fail("c", "boom");
    compensate(&mut world);
    assert_eq!(world.machine.ending().unwrap().replayable, ["a", "b"].map(Arc::from));
    assert!(world.replay("c", None).is_err());
    assert!(world.replay("b", None).is_ok());
}

#[test]
fn a_replay_does_not_reuse_what_is_to_be_undone() {
    let mut world = World::of(vec![run("a").undone(), run("b").undone(), run("c")]);
    world.finish("a", 1);
    world.finish("b", 2);
    world.fail("c", "boom");
    world.fail("b:compensate", "no");
    let replayed = |step_id: Option<&str>| {
        let wanted = ReplayFrom { step_id: step_id.map(str::to_owned), ..ReplayFrom::default() };
        world.machine.replayed_from(wanted).map(|replayed| replayed.step_id.to_string())
    };
    assert_eq!(replayed(None), Err(ReplayRefusal::Compensating));
    let refusal = ReplayRefusal::NotReplayable { step: "b".to_owned(), from: vec!["a".into()] };
    assert_eq!(replayed(Some("b")), Err(refusal));
    assert_eq!(replayed(Some("a")).as_deref(), Ok("a"));
}

#[test]
fn a_resume_names_the_compensation_by_path_or_by_its_step() {
    for name in ["a", "a:compensate"] {
        let mut world = World::of(vec![run("a").undone(), run("b")]);
        world.finish("a", 1);
        world.fail("b", "boom");
        world.fail("a:compensate", "no");
        let skip = resume(Some(name), json!({ "action": "skip" }));
        assert_eq!(world.send(skip).last().unwrap(), "failed at b: boom", "{name}");
    }
}

/// Simulates a crash after each batch that became durable; what had run before runs again under its
/// path, and everything is compensated once in the record.
#[test]
fn a_crash_at_each_append_compensates_everything_once() {
    let block = vec![map("check", "item if index < 2 else data.no.such"), run("reserve").undone()];
    let steps = vec![run("pay").undone(), for_each("lines", "range(3) | list", 1, block)];
    let mut at = 1;
    loop {
        let mut world = World::of(steps.clone());
        let mut has_crashed = false;
        while !world.status().is_terminal() {
            if world.batches.len() == at && !has_crashed {
                has_crashed = true;
                world.crash();
                world.recover();
            }
            let effect = world.effects().into_iter().next().expect("a body is running");
            let batches = world.batches.len();
            world.finish(&effect.path, "done");
            if batches == at && !std::mem::replace(&mut has_crashed, true) {
                // the last append is lost, and the body runs again
                world.crash_losing(1);
                world.recover();
            }
        }
        let paths = ["lines[1]/reserve", "lines[0]/reserve", "pay"];
        assert_eq!(begun(&world), paths.map(|path| format!("{path}:compensate")), "at {at}");
        if !has_crashed {
            break;
        }
        at += 1;
    }
    assert!(at > 5, "it crashed only {at} times");
}
