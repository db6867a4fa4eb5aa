//! Resumes: the suspension that they end, and the order of checks.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::machine::{Cause, Command, Refusal, Resume, StepResult};
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, agent, all, map, run, sleep, workflow};
use crate::machine::world::{Setting, World, resume};

fn boolean() -> Value {
    json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } })
}

/// `q1` suspends first, then `q2`; `a` runs.
fn two_questions() -> World {
    let mut world = World::of(vec![
        all(
            "both",
            [
                ("late", vec![run("b"), map("q2", "resume").asks()]),
                ("early", vec![map("q1", "resume").asks().wants(boolean())]),
                ("work", vec![run("a")]),
            ],
        ),
        map("after", "data"),
    ]);
    world.now = world.now.plus_ms(10);
    world.finish("both/late/b", 1);
    world
}

#[test]
fn a_resume_without_a_step_ends_the_only_suspension() {
    let mut world = two_questions();
    world.finish("both/work/a", 3);
    assert_eq!(world.shown().unwrap(), "both/early/q1");
    let paths = "both/late/q2, both/early/q1".to_owned();
    assert_eq!(world.refused(None, json!({ "ok": true })), Refusal::SeveralWait { paths });
    world.resume_at("q2", 5);
    assert_eq!(
        world.resume(json!({ "ok": true })),
        [
            "resumed",
            "both/early/q1 is answered {\"ok\":true}",
            "both/early/q1 starts #1",
            "both/early/q1 gives {\"ok\":true}",
            "both gives [5,{\"ok\":true},3]",
            "after starts #1",
            "after gives [5,{\"ok\":true},3]",
            "completed [5,{\"ok\":true},3]",
        ]
    );
}

#[test]
fn a_resume_without_a_step_ends_a_pause_first() {
    for questions in [0, 1, 2] {
        let blocks = [("a", vec![run("aq")]), ("b", vec![run("bq")])];
        let mut world = World::of(vec![all("each", blocks)]);
        world.hold();
        for name in ["a", "b"].iter().take(questions) {
            world.ask(&format!("each/{name}/{name}q"));
        }
        let lines = world.resume("of the hold");
        assert_eq!(lines[..2], ["lifted with \"of the hold\"", "resumed"], "{questions} wait");
        assert!(!lines.iter().any(|line| line.contains("answered")), "{lines:?}");
    }
}

#[test]
fn it_names_a_step_or_its_path() {
    for name in ["q2", "both/late/q2"] {
        let mut world = two_questions();
        world.finish("both/work/a", 3);
        assert_eq!(world.resume_at(name, 5)[1], "both/late/q2 is answered 5", "{name}");
        assert_eq!(world.shown().unwrap(), "both/early/q1");
    }
}

#[test]
fn only_suspended_steps_can_be_resumed_while_running() {
    let mut world = two_questions();
    assert_eq!(world.status(), Status::Running);
    for step in [None, Some("a"), Some("after"), Some("both"), Some("nobody")] {
        assert_eq!(world.refused(step, 1), Refusal::NotSuspended, "{step:?}");
    }
    assert!(matches!(world.refused(Some("q1"), 1), Refusal::InvalidData(_)));
    assert_eq!(
        world.resume_at("q2", 5),
        ["both/late/q2 is answered 5", "both/late/q2 starts #1", "both/late/q2 gives 5"],
        "the status does not change"
    );
}

#[test]
fn refusals_in_order() {
    let mut world = two_questions();
    world.finish("both/work/a", 3);
    let named = |step: &str| step.to_owned();
    let cases = [
        ("nobody", Refusal::UnknownStep(named("nobody"))),
        ("both/late/nobody", Refusal::UnknownStep(named("both/late/nobody"))),
        ("after", Refusal::StepNotSuspended(named("after"))),
        ("a", Refusal::StepNotSuspended(named("a"))),
        ("both", Refusal::StepNotSuspended(named("both"))),
    ];
    for (step, refusal) in cases {
        assert_eq!(world.refused(Some(step), 1), refusal);
    }
    let refusal = world.refused(Some("q1"), json!({ "ok": 1 }));
    let Refusal::InvalidData(detail) = refusal else { panic!("{refusal:?}") };
    assert!(detail.starts_with("ok: "), "{detail}");
}

#[test]
fn an_ended_execution_is_not_suspended() {
    let mut ended = [
        World::of(vec![map("a", "1")]),
        World::of(vec![map("a", "data.no")]),
        World::of(vec![run("q").asks()]),
    ];
    ended[2].cancel();
    for world in &mut ended {
        for step in [None, Some("a"), Some("q"), Some("nobody")] {
            assert_eq!(world.refused(step, 1), Refusal::NotSuspended);
        }
    }
}

#[test]
fn the_workflows_schema_is_the_default() {
    let start = |step| {
        let mut definition = workflow(vec![step]);
        definition.resume_schema = Some(boolean());
        Setting::default().start(definition)
    };
    let mut world = start(map("q", "resume").asks());
    assert!(matches!(world.refused(None, 7), Refusal::InvalidData(_)));
    let mut world = start(map("q", "resume").asks().wants(json!({ "type": "number" })));
    assert_eq!(world.resume(7).last().unwrap(), "completed 7");
    let mut world = World::of(vec![map("q", "resume").asks()]);
    assert_eq!(world.resume(Value::Null).last().unwrap(), "completed null", "else anything goes");
}

#[test]
fn a_pause_has_no_schema_and_is_found_by_its_step() {
    let mut world = World::of(vec![run("a").wants(boolean()), run("b")]);
    world.hold();
    assert_eq!(world.refused(Some("b"), 1), Refusal::StepNotSuspended("b".to_owned()));
    assert_eq!(world.refused(Some("nobody"), 1), Refusal::UnknownStep("nobody".to_owned()));
    assert_eq!(world.resume_at("a", 7), ["lifted with 7", "resumed"]);
    assert_eq!(world.refused(Some("a"), 7), Refusal::NotSuspended);
}

#[test]
fn only_one_of_many_resumes_is_accepted() {
    let mut world = World::of(vec![run("q").asks()]);
    let taken = (0..50).filter(|_| world.try_send(resume(None, 1)).is_ok()).count();
    assert_eq!(taken, 1);
    let answers = world.all_lines().iter().filter(|line| line.contains("answered")).count();
    assert_eq!(answers, 1);
}

#[test]
fn a_resume_may_suspend_again_at_once() {
    let mut world = World::of(vec![map("q", "resume").asks(), map("r", "resume").asks()]);
    assert_eq!(world.resume(1).last().unwrap(), "suspended at r: Suspended at step r");
    assert_eq!(world.refused(Some("q"), 1), Refusal::StepNotSuspended("q".to_owned()));
    assert_eq!(world.resume(2).last().unwrap(), "completed 2");
}

#[test]
fn a_sleeping_step_is_not_suspended() {
    let mut world = World::of(vec![all(
        "both",
        [("one", vec![run("q").asks()]), ("two", vec![sleep("s", 9)])],
    )]);
    assert_eq!(world.refused(Some("s"), 1), Refusal::StepNotSuspended("s".to_owned()));
}

#[test]
fn a_step_that_waits_for_its_generation_is_continued_by_that_alone() {
    let asked = agent("helper", None).wants(boolean());
    let mut world = World::of(vec![asked, map("after", "1")]);
    world.ask("helper");
    let causes: Vec<_> = world.why(false).into_iter().map(|awaited| awaited.cause).collect();
    assert!(matches!(causes.as_slice(), [Cause::Asks { .. }]), "{causes:?}");
    for data in [json!(null), json!({ "ok": true })] {
        let refusal = Refusal::AsksOpen("helper".into());
        assert_eq!(world.refused(None, data.clone()), refusal);
        assert_eq!(world.refused(Some("helper"), data), refusal);
    }
    // the schema is for answers to the step's own question
    let resume = Resume { is_of_generation: true, ..Resume::default() };
    let lines = world.send(Command::Resume(resume));
    assert_eq!(lines, ["resumed", "helper is answered null", "helper starts #2"]);
}

#[test]
fn what_a_generation_waits_for_need_not_match_the_schema_of_the_authors_payload() {
    let payload = json!({ "type": "object", "required": ["amount"] });
    let asked = StepDefinition { suspend_schema: Some(payload), ..agent("helper", None) };
    let mut world = World::of(vec![asked]);
    let payload = Some(Arc::new(json!({ "generationId": "g" })));
    world.end_step("helper", StepResult::Suspended { reason: None, payload });
    assert_eq!(world.status(), Status::Suspended);
}
