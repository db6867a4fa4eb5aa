//! Suspended steps.

use std::sync::Arc;

use greenroom_domain::definition::{Mapping, OnTimeout, SuspendRule};
use greenroom_domain::machine::{AtDeadline, Cause, Refusal, StepResult, ToolQuestion};
use greenroom_domain::question::Question;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, map, run, workflow};
use crate::machine::world::{Setting, World};

#[test]
fn the_body_of_a_suspended_step_runs_after_the_resume() {
    let mut world = World::of(vec![map("a", json!(["data", "resume"])).asks()]);
    assert_eq!(
        world.started(),
        ["start", "a asks: Suspended at step a", "suspended at a: Suspended at step a"]
    );
    assert_eq!(
        world.resume("yes"),
        [
            "resumed",
            "a is answered \"yes\"",
            "a starts #1",
            "a gives [1,\"yes\"]",
            "completed [1,\"yes\"]",
        ]
    );
}

#[test]
fn the_body_runs_at_once_if_the_condition_is_false() {
    let world = World::of(vec![map("a", "resume is none").asks_when("data > 1")]);
    assert_eq!(world.started(), ["start", "a starts #1", "a gives true", "completed true"]);
}

#[test]
fn reason_and_payload_are_evaluated_when_the_step_starts() {
    let rule = SuspendRule {
        reason: Some("{{ user.id }} asks for {{ data.amount }}".to_owned()),
        payload: Some(Mapping(json!({ "amount": "data.amount", "before": "steps.a.amount" }))),
        deadline_ms: Some(1000),
        ..SuspendRule::default()
    };
    let world = World::of(vec![map("a", json!({ "amount": 5 })), run("b").asking(rule)]);
    assert_eq!(
        world.started()[3..],
        [
            "b asks: ann asks for 5 {\"amount\":5,\"before\":5} until 1000",
            "suspended at b: ann asks for 5",
        ]
    );
    let shown = world.machine.state().shown_suspension(world.machine.plan()).unwrap();
    assert_eq!(*shown.payload.unwrap(), json!({ "amount": 5, "before": 5 }));
    assert_eq!(shown.deadline.unwrap(), *world.timers.get("b").unwrap());
    assert_eq!((shown.step_index, world.running().len()), (1, 0));
}

#[test]
fn a_rule_that_cannot_be_evaluated_fails_the_step_without_a_retry() {
    let broken = "data.no.such".to_owned();
    let rules = [
        ("when", SuspendRule { when: Some(broken.clone()), ..SuspendRule::default() }),
        ("reason", SuspendRule { reason: Some("{{ data.no.such }}".into()), ..Default::default() }),
        ("payload", SuspendRule { payload: Some(Mapping(json!(broken))), ..Default::default() }),
    ];
    for (key, rule) in rules {
        let world = World::of(vec![run("a").asking(rule).tries(3)]);
        let line = &world.started()[1];
        assert!(line.starts_with(&format!("a fails: suspend.{key}: ")), "{line}");
        assert_eq!(world.status(), Status::Error, "{key}");
    }
}

#[test]
fn the_payload_is_checked() {
    let asks =
        |payload: Value| SuspendRule { payload: Some(Mapping(payload)), ..SuspendRule::default() };
    let number = json!({ "type": "number" });
    let world = World::of(vec![run("a").asking(asks(json!("'text'"))).shows(number.clone())]);
    let line = &world.started()[1];
    assert!(line.starts_with("a fails: suspend payload validation failed: "), "{line}");

    let mut definition = workflow(vec![run("a").asking(asks(json!("'text'")))]);
    definition.suspend_schema = Some(number.clone());
    let world = Setting::default().start(definition);
    assert_eq!(world.status(), Status::Error, "the workflow's schema is the default");

    let mut world = World::of(vec![run("a").shows(number).tries(2)]);
    let payload = Some(Arc::new(json!("text")));
    let lines = world.end_step("a", StepResult::Suspended { reason: None, payload });
    assert!(lines[0].ends_with("; again at 100"), "a body's payload too: {lines:?}");
}

#[test]
fn a_payload_of_null_is_none() {
    let rule = SuspendRule { payload: Some(Mapping(json!("none"))), ..SuspendRule::default() };
    let world = World::of(vec![run("a").asking(rule)]);
    assert_eq!(world.started()[1], "a asks: Suspended at step a");
}

#[test]
fn a_retry_keeps_the_resume_data() {
    let mut world = World::of(vec![run("a").asks().tries(2)]);
    world.resume("yes");
    assert_eq!(*world.machine.function_call("a").unwrap().resume.unwrap(), json!("yes"));
    world.fail("a", "boom");
    assert_eq!(world.due("a"), ["a is due", "a starts #2"]);
    assert_eq!(*world.machine.function_call("a").unwrap().resume.unwrap(), json!("yes"));
}

#[test]
fn a_function_may_suspend_its_step_and_is_called_again() {
    let mut world = World::of(vec![run("a").tries(2)]);
    assert_eq!(world.machine.function_call("a").unwrap().resume, None);
    assert_eq!(
        world.end_step(
            "a",
            StepResult::Suspended {
                reason: Some("sure?".to_owned()),
                payload: Some(Arc::new(json!(5)))
            }
        ),
        ["a asks: sure? 5", "suspended at a: sure?"]
    );
    assert_eq!(world.running(), Vec::<String>::new());
    assert_eq!(world.resume("yes"), ["resumed", "a is answered \"yes\"", "a starts #2"]);
    assert_eq!(*world.machine.function_call("a").unwrap().resume.unwrap(), json!("yes"));
    assert_eq!(
        world.fail("a", "boom"),
        ["a fails: boom; again at 300"].map(|line| line.replace("300", "100")),
        "asking is no failed attempt"
    );
    world.due("a");
    assert_eq!(
        world.ask("a"),
        ["a asks: Suspended at step a", "suspended at a: Suspended at step a"]
    );
}

#[test]
fn resume_data_of_null_survives_a_snapshot() {
    let mut world = World::of(vec![run("a")]);
    world.ask("a");
    world.resume(Value::Null);
    world.restore_from(usize::MAX);
    world.recover();
    assert_eq!(world.machine.function_call("a").unwrap().resume.as_deref(), Some(&Value::Null));
}

#[test]
fn the_first_deadline_fails_the_step() {
    let mut world = World::of(vec![run("a").asks_for(500).tries(3)]);
    assert_eq!(
        world.due("a"),
        ["a is due", "a fails: deadline passed", "resumed", "failed at a: deadline passed"],
        "waiting is no attempt that could be repeated"
    );
    let mut world = World::of(vec![run("a").asks_for(500).ignoring()]);
    assert_eq!(
        world.due("a"),
        ["a is due", "a fails: deadline passed; continues with 1", "resumed", "completed 1"]
    );
}

#[test]
fn what_still_waits_is_announced_when_the_announced_step_passes() {
    let left = vec![run("a").asks_for(500).ignoring()];
    let right = vec![map("c", "resume").asks()];
    let mut world = World::of(vec![all("both", [("left", left), ("right", right)])]);
    let shown = |world: &World| {
        let shown = world.machine.state().announced_suspension.clone();
        shown.map(|suspension| suspension.path.to_string())
    };
    assert_eq!(shown(&world).as_deref(), Some("both/left/a"));
    assert_eq!(
        world.due("both/left/a"),
        [
            "both/left/a is due",
            "both/left/a fails: deadline passed; continues with 1",
            "resumed",
            "suspended at both/right/c: Suspended at step c"
        ]
    );
    assert_eq!(shown(&world).as_deref(), Some("both/right/c"));
    assert_eq!(world.resume_at("both/right/c", 7)[0], "resumed");
}

#[test]
fn a_deadline_may_resume_the_step() {
    let answer = json!({ "n": "data + 1" });
    let mut world = World::of(vec![map("a", "resume.n").asks_until(500, answer)]);
    assert_eq!(
        world.due("a"),
        [
            "a is due",
            "resumed",
            "a answers itself {\"n\":2}",
            "a starts #1",
            "a gives 2",
            "completed 2"
        ]
    );
}

#[test]
fn the_data_of_a_deadline_is_checked_like_that_of_a_resume() {
    let schema = json!({ "type": "string" });
    let mut world = World::of(vec![map("a", "resume").asks_until(500, "data").wants(schema)]);
    let line = world.due("a").remove(1);
    assert!(line.starts_with("a fails: deadline passed; on_timeout: "), "{line}");

    let mut world = World::of(vec![map("a", "resume").asks_until(500, "data.no").instead("7")]);
    let line = world.due("a").remove(1);
    assert!(line.ends_with("; continues with 7"), "on_error applies: {line}");
}

#[test]
fn a_deadline_answers_no_question_of_the_tool_of_a_step() {
    let of_step = json!({ "type": "string" });
    let mut world = World::of(vec![run("a").asks_until(1000, "'no'").wants(of_step)]);
    world.resume("go");
    let of_tool = json!({ "type": "object" });
    let question = Question { schema: Some(of_tool.clone()), can_decline: false, memo: None };
    let asked = ToolQuestion {
        reason: "Which one?".to_owned(),
        to: Vec::new(),
        deadline_ms: Some(500),
        question: Arc::new(question),
    };
    world.end_step("a", StepResult::Asked(Box::new(asked)));
    let causes: Vec<_> = world.why(false).into_iter().map(|awaited| awaited.cause).collect();
    let [Cause::Resume { schema, deadline, .. }] = causes.as_slice() else { panic!("{causes:?}") };
    assert_eq!((schema.as_ref(), *deadline), (Some(&of_tool), Some(AtDeadline::Fails)));
    assert_eq!(world.due("a")[..2], ["a is due", "a fails: deadline passed"]);
}

#[test]
fn the_first_of_resume_and_deadline_wins() {
    let mut world = World::of(vec![run("a").asks_for(500)]);
    world.now = world.now.plus_ms(900);
    assert_eq!(world.resume("yes")[1], "a is answered \"yes\"", "late, but first");
    assert!(world.timers.is_empty());
    let fired = greenroom_domain::machine::Command::TimerFired { path: "a".into() };
    assert_eq!(world.send(fired), Vec::<String>::new());

    let mut world = World::of(vec![run("a").asks_for(500)]);
    world.due("a");
    assert_eq!(world.refused(None, "yes"), Refusal::NotSuspended);
}

/// Returns a paused execution with a step that waits for 500 ms, and a step beside it.
fn paused_before_a_deadline() -> World {
    let asking = ("one", vec![run("q").asks_for(500)]);
    let mut world = World::of(vec![all("both", [asking, ("two", vec![run("a")])])]);
    world.hold();
    world
}

#[test]
fn a_deadline_during_a_pause_takes_effect_after_it() {
    let mut world = paused_before_a_deadline();
    assert_eq!(world.due("both/one/q"), ["both/one/q is due"]);
    assert_eq!(
        world.refused(Some("q"), "late"),
        Refusal::StepNotSuspended("q".to_owned()),
        "the deadline was recorded first"
    );
    assert_eq!(
        world.resume(Value::Null)[..3],
        ["lifted with null", "resumed", "both/one/q fails: deadline passed"]
    );
}

#[test]
fn a_recorded_deadline_does_not_depend_on_the_clock() {
    let mut world = paused_before_a_deadline();
    world.due("both/one/q");
    world.now = crate::machine::world::ZERO;
    assert_eq!(world.resume(Value::Null)[2], "both/one/q fails: deadline passed");
}

#[test]
fn a_resume_during_a_pause_before_the_deadline_is_accepted() {
    let answer = OnTimeout::Resume(Mapping(json!("'nobody'")));
    let rule = SuspendRule { deadline_ms: Some(500), on_timeout: answer, ..SuspendRule::default() };
    let mut world = World::of(vec![all(
        "both",
        [("one", vec![map("q", "resume").asking(rule)]), ("two", vec![run("a")])],
    )]);
    world.hold();
    assert_eq!(
        world.resume_at("q", "ann"),
        [
            "lifted with null",
            "resumed",
            "both/one/q is answered \"ann\"",
            "both/one/q starts #1",
            "both/one/q gives \"ann\"",
        ]
    );
}
