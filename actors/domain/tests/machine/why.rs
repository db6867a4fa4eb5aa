//! Causes of waiting.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_domain::definition::{Body, Mapping, RetryPolicy, SuspendRule};
use greenroom_domain::machine::{AtDeadline, Awaited, Cause, ChildStatus, Command};
use greenroom_domain::note::{CallStage, Queued};
use serde_json::json;

use crate::machine::build::{Adorned, all, body, child, map, run, sleep, workflow};
use crate::machine::world::{Setting, World, ZERO};

/// Returns one line for each: path, cause, since, until; times in milliseconds since the start.
fn lines(awaited: &[Awaited]) -> Vec<String> {
    awaited.iter().map(line).collect()
}

fn line(awaited: &Awaited) -> String {
    let place = match (&awaited.path, &awaited.step_id) {
        (Some(path), _) => path.to_string(),
        (None, Some(step)) => format!("({step})"),
        (None, None) => "all".to_owned(),
    };
    let until = awaited.until.map_or_else(String::new, |it| format!(" to {}", it.ms_since(ZERO)));
    let what = match &awaited.cause {
        Cause::Hold { reason, .. } => format!("hold {reason}"),
        Cause::Resume { reason, payload, schema, deadline, has_unused_answer, .. } => {
            let payload = payload.as_ref().map_or_else(String::new, |it| format!(" {it}"));
            let schema = schema.as_ref().map_or("", |_| " checked");
            let deadline = match deadline {
                None => "",
                Some(AtDeadline::Fails) => " or fails",
                Some(AtDeadline::Resumes) => " or is answered",
            };
            let unused = if *has_unused_answer { " despite an answer" } else { "" };
            format!("asks {reason}{payload}{schema}{deadline}{unused}")
        }
        Cause::Asks { reason, .. } => format!("waits for answers: {reason}"),
        Cause::Child { child, asks, .. } => {
            let asks = asks.as_ref().map_or_else(String::new, |it| format!(" asks {}", it.reason));
            format!("child {child}{asks}")
        }
        Cause::Sleep => "sleeps".to_owned(),
        Cause::Retry { failures, attempts_max, errors } => {
            let error = &errors.last().expect("a failure comes before a retry").message;
            format!("pauses {failures}/{attempts_max} {error}")
        }
        Cause::Body { attempt, tool, stage, .. } => {
            let tool = tool.as_ref().map_or_else(String::new, |tool| format!(" in {tool}"));
            let stage = match stage {
                CallStage::Works => "works",
                CallStage::WaitsForPlace => "queues",
                CallStage::Follows => "follows",
                CallStage::Asks => "asks",
            };
            format!("{stage} #{attempt}{tool}")
        }
        Cause::Missing { what } => what.clone(),
        Cause::Interrupted { attempt } => format!("interrupted #{attempt}"),
        Cause::Turn => "its turn".to_owned(),
        Cause::Deciding => "deciding".to_owned(),
        Cause::Draining => "drain".to_owned(),
        // no machine knows that
        Cause::Elsewhere { .. } => "elsewhere".to_owned(),
    };
    format!("{place}: {what} from {}{until}", awaited.since.ms_since(ZERO))
}

pub(crate) fn why(world: &World) -> Vec<String> {
    lines(&world.why(false))
}

fn without(function: &str) -> Setting {
    Setting { missing: BTreeSet::from([function.to_owned()]), ..Setting::default() }
}

#[test]
fn a_running_body_is_listed_until_its_timeout() {
    let mut world = World::of(vec![map("a", json!(1)), run("b").within(500)]);
    assert_eq!(why(&world), ["b: works #1 from 0 to 500"]);
    world.finish("b", 2);
    assert_eq!(why(&world), [""; 0], "an ended execution waits for nothing");
}

#[test]
fn a_running_body_names_the_tool_that_it_calls() {
    let tool = Body::Tool { tool: "own.stay".to_owned(), args: None };
    let mut world = World::of(vec![map("a", json!(1)), body("b", tool).within(500)]);
    assert_eq!(why(&world), ["b: works #1 in own.stay from 0 to 500"]);
    for (memo, stage) in
        [(Queued::default().to_note(), "queues"), (json!({ "task": 1 }), "follows")]
    {
        let memo = Arc::new(memo);
        world.send(Command::NoteStep { path: Arc::from("b"), attempt: 1, memo });
        assert_eq!(why(&world), [format!("b: {stage} #1 in own.stay from 0 to 500")]);
    }
    world.finish("b", 2);
    assert_eq!(why(&world), [""; 0]);
}

#[test]
fn a_suspended_step_shows_its_schema_and_deadline() {
    let rule = SuspendRule {
        payload: Some(Mapping(json!({ "n": "data" }))),
        deadline_ms: Some(1000),
        ..SuspendRule::default()
    };
    let mut step = run("a").asking(rule);
    step.resume_schema = Some(json!({ "type": "boolean" }));
    let mut world = World::of(vec![step]);
    let asks = "a: asks Suspended at step a {\"n\":1} checked or fails from 0 to 1000";
    assert_eq!(why(&world), [asks]);
    world.now = world.now.plus_ms(30);
    world.resume(true);
    assert_eq!(why(&world), ["a: works #1 from 30"]);
    world.ask("a");
    assert_eq!(why(&world), ["a: asks Suspended at step a checked from 30"]);
}

#[test]
fn a_pause_is_listed_before_running_work() {
    let mut world =
        World::of(vec![all("c", [("l", vec![run("a")]), ("r", vec![run("b").asks()])])]);
    world.now = world.now.plus_ms(7);
    world.hold();
    assert_eq!(
        why(&world),
        ["c: hold stop from 7", "c/l/a: works #1 from 0", "c/r/b: asks Suspended at step b from 0"]
    );
    // steps that would come next are not listed during a pause
    world.finish("c/l/a", 1);
    world.resume_at("b", 1);
    world.hold();
    world.finish("c/r/b", 1);
    assert_eq!(why(&world), ["c: hold stop from 7"]);
}

#[test]
fn timers_are_listed_with_the_last_error_before_a_retry() {
    let policy = RetryPolicy { attempts: 3, delay_ms: 200, ..RetryPolicy::default() };
    let mut world = World::of(vec![
        all("c", [("l", vec![sleep("nap", 900)]), ("r", vec![run("b").retrying(policy)])]),
        run("z"),
    ]);
    world.now = world.now.plus_ms(50);
    world.fail("c/r/b", "no luck");
    assert_eq!(
        why(&world),
        ["c/l/nap: sleeps from 0 to 900", "c/r/b: pauses 1/3 no luck from 50 to 250"]
    );
    world.restore_from(1);
    assert_eq!(why(&world).len(), 2, "also after a rebuild");
    world.due("c/r/b");
    assert_eq!(why(&world)[1], "c/r/b: works #2 from 250");
}

#[test]
fn a_child_is_listed_while_running_and_suspended() {
    let mut world = World::of(vec![child("a")]);
    assert_eq!(why(&world), ["a: child c1 from 0"]);
    world.now = world.now.plus_ms(9);
    let asks = |deadline| ChildStatus::Suspended {
        id: Arc::from("s1"),
        reason: "may I".into(),
        payload: None,
        deadline,
    };
    let mut other = World::of(vec![child("a")]);
    other.report("a", 3, asks(Some(other.now.plus_ms(70))));
    assert_eq!(why(&other), ["a: child c1 asks may I from 0 to 70"]);
    world.report("a", 3, asks(None));
    assert_eq!(why(&world), ["a: child c1 asks may I from 9"]);
}

#[test]
fn a_missing_name_is_listed_at_every_step_that_needs_it() {
    let blocks = [("l", vec![run("a"), run("gone")]), ("r", vec![sleep("nap", 5)])];
    let mut world = without("gone").start(workflow(vec![all("c", blocks), run("gone-too")]));
    assert_eq!(why(&world), ["c/l/a: works #1 from 0", "c/r/nap: sleeps from 0 to 5"]);
    world.finish("c/l/a", 1);
    assert_eq!(
        why(&world),
        ["c/r/nap: sleeps from 0 to 5", "(gone): function gone is not registered from 0"]
    );
    assert_eq!(lines(&world.why(true))[1], "(gone): drain from 0", "nothing new begins now");
    world.missing.clear();
    assert_eq!(why(&world)[1], "all: its turn from 0", "it is registered again");
    world.recover();
    assert_eq!(why(&world)[0], "c/l/gone: works #1 from 0");
}

#[test]
fn a_top_level_step_that_has_not_begun_has_a_path() {
    let mut world = without("b").start(workflow(vec![run("a"), run("b")]));
    world.now = world.now.plus_ms(4);
    world.finish("a", 1);
    assert_eq!(why(&world), ["b: function b is not registered from 4"]);
}

#[test]
fn an_interrupted_body_waits_for_this_process_or_for_a_missing_name() {
    let mut world = World::of(vec![run("a")]);
    world.crash();
    assert_eq!(why(&world), ["a: interrupted #1 from 0"]);
    assert_eq!(lines(&world.why(true)), ["a: drain from 0"]);
    world.missing.insert("a".to_owned());
    assert_eq!(why(&world), ["a: function a is not registered from 0"]);
    world.missing.clear();
    world.recover();
    assert_eq!(why(&world), ["a: works #2 from 0"]);
}
