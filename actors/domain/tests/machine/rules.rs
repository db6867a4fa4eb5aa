//! Every rule inside every container and in nested containers: the containers around a step do not
//! change its behaviour, and their ends follow from its end.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::machine::{ChildStatus, StepResult};
use serde_json::{Value, json};

use crate::machine::build::{Adorned, child, map, run, sleep, workflow};
use crate::machine::places::{Kind, Place, definition, everywhere};
use crate::machine::why;
use crate::machine::world::{Setting, World};

/// A rule: the inner step, the commands, and the last lines of the record.
struct Rule {
    name: &'static str,
    step: fn() -> StepDefinition,
    /// Modifiers of the outermost container.
    outermost: fn(StepDefinition) -> StepDefinition,
    happens: fn(&mut World, &str) -> Vec<String>,
    ends: fn(&Place) -> Vec<String>,
}

fn unchanged(step: StepDefinition) -> StepDefinition {
    step
}

const fn rule(
    name: &'static str,
    step: fn() -> StepDefinition,
    happens: fn(&mut World, &str) -> Vec<String>,
    ends: fn(&Place) -> Vec<String>,
) -> Rule {
    Rule { name, step, outermost: unchanged, happens, ends }
}

fn after(mut lines: Vec<String>, first: String) -> Vec<String> {
    lines.insert(0, first);
    lines
}

fn crash_once(world: &mut World) -> Vec<String> {
    world.crash();
    world.recover()
}

const RULES: &[Rule] = &[
    rule(
        "the containers end with the step",
        || run("a"),
        |world, path| world.finish(path, 9),
        |place| after(place.completes(9), format!("{} gives 9", place.path)),
    ),
    rule(
        "a pure step runs at once",
        || map("a", "[data, item if item is not none else 1]"),
        |world, _| world.started(),
        |place| place.completes(json!([1, 1])),
    ),
    rule(
        "a failure fails the containers",
        || run("a"),
        |world, path| world.fail(path, "boom"),
        |place| place.fails("boom"),
    ),
    Rule {
        name: "the container ignores a failure",
        step: || run("a"),
        outermost: Adorned::ignoring,
        happens: |world, path| world.fail(path, "boom"),
        ends: |_| vec!["c0 fails: boom; continues with 1".to_owned(), "completed 1".to_owned()],
    },
    Rule {
        name: "the container replaces a failure",
        step: || run("a"),
        outermost: |step| step.instead("data + 6"),
        happens: |world, path| world.fail(path, "boom"),
        ends: |_| vec!["c0 fails: boom; continues with 7".to_owned(), "completed 7".to_owned()],
    },
    rule(
        "the step replaces a failure",
        || run("a").instead("data + 6"),
        |world, path| world.fail(path, "boom"),
        |place| after(place.completes(7), format!("{} fails: boom; continues with 7", place.path)),
    ),
    rule(
        "a retry after its delay and a crash",
        || run("a").tries(2),
        |world, path| {
            world.fail(path, "boom");
            world.crash();
            world.due(path);
            world.finish(path, 9)
        },
        |place| place.completes(9),
    ),
    rule(
        "the last attempt fails",
        || run("a").tries(2),
        |world, path| {
            world.fail(path, "boom");
            world.due(path);
            world.fail(path, "again")
        },
        |place| place.fails("again"),
    ),
    rule(
        "no retry while paused",
        || run("a").tries(2),
        |world, path| {
            world.fail(path, "boom");
            world.hold();
            world.due(path)
        },
        |place| vec![format!("{} is due", place.path)],
    ),
    rule(
        "no container ends while paused",
        || run("a"),
        |world, path| {
            world.hold();
            world.finish(path, 9)
        },
        |place| vec![format!("{} gives 9", place.path)],
    ),
    rule(
        "containers end after a pause, from a snapshot",
        || run("a"),
        |world, path| {
            world.hold();
            world.finish(path, 9);
            world.restore_from(2);
            world.resume(Value::Null)
        },
        |place| place.completes(9),
    ),
    rule(
        "an interrupted body starts again",
        || run("a"),
        |world, _| crash_once(world),
        |place| vec![format!("{} starts #2 after a crash", place.path)],
    ),
    rule(
        "the third interruption fails the step",
        || run("a").tries(5),
        |world, _| {
            crash_once(world);
            crash_once(world);
            crash_once(world)
        },
        |place| place.fails("interrupted 3 times"),
    ),
    Rule {
        name: "a cancel starts with the innermost step",
        step: || run("a"),
        outermost: |step| step.ignoring(),
        happens: |world, _| world.cancel(),
        ends: |place| {
            let all = std::iter::once(&place.path).chain(place.around.iter().map(|(path, _)| path));
            let cancelled = all.map(|path| format!("{path} is cancelled"));
            cancelled.chain(["cancelled: enough".to_owned()]).collect()
        },
    },
    rule(
        "a suspension is shown by path and resumed by step id",
        || run("a").asks(),
        |world, path| {
            assert_eq!(world.shown().as_deref(), Some(path));
            world.resume_at("a", 5);
            assert_eq!(world.machine.function_call(path).unwrap().resume, Some(json!(5).into()));
            world.finish(path, 9)
        },
        |place| place.completes(9),
    ),
    rule(
        "a suspension is resumed by path after a crash",
        || run("a").asks(),
        |world, path| {
            world.crash();
            world.restore_from(1);
            world.resume_at(path, 5)
        },
        |place| vec![format!("{} starts #1", place.path)],
    ),
    rule(
        "resume data is checked",
        || run("a").asks().wants(json!({ "type": "boolean" })),
        |world, path| {
            world.refused(Some(path), "perhaps");
            world.resume_at(path, true);
            world.finish(path, 9)
        },
        |place| place.completes(9),
    ),
    rule(
        "a body suspends its step",
        || run("a"),
        |world, path| {
            world.ask(path);
            world.resume(5);
            world.finish(path, 9)
        },
        |place| place.completes(9),
    ),
    rule(
        "a deadline fails",
        || run("a").asks_for(1000),
        |world, path| {
            let mut lines = world.due(path);
            lines.retain(|line| line != "resumed");
            lines
        },
        |place| place.fails("deadline passed"),
    ),
    rule(
        "a deadline resumes, after a crash",
        || run("a").asks_until(1000, "data + 1"),
        |world, path| {
            world.crash();
            world.due(path)
        },
        |place| vec![format!("{} starts #1", place.path)],
    ),
    rule(
        "a resume of a step that suspended while paused ends the pause",
        || run("a"),
        |world, path| {
            world.hold();
            world.ask(path);
            world.resume_at(path, 5)
        },
        |place| vec![format!("{} starts #2", place.path)],
    ),
    rule(
        "a sleep ends after a crash",
        || sleep("a", 50),
        |world, path| {
            world.crash();
            assert_eq!(world.recover(), [""; 0]);
            world.due(path)
        },
        |place| place.completes(1),
    ),
    rule(
        "the result of a child",
        || child("a"),
        |world, path| {
            world.crash();
            world.report(
                path,
                3,
                ChildStatus::Completed {
                    result: json!(9).into(),
                    compensable: false,
                    skipped: false,
                },
            )
        },
        |place| place.completes(9),
    ),
    rule(
        "a child is abandoned with its containers",
        || child("a"),
        |world, _| {
            let lines = world.cancel();
            assert_eq!(world.abandoned.len(), 1);
            lines
        },
        |_| vec!["c0 is cancelled".to_owned(), "cancelled: enough".to_owned()],
    ),
    rule(
        "an output is checked at its step",
        || run("a").gives(json!({ "type": "string" })),
        |world, path| {
            let lines = world.finish(path, 9);
            vec![lines.first().unwrap()[..path.len() + 32].to_owned()]
        },
        |place| vec![format!("{} fails: output validation failed", place.path)],
    ),
    Rule {
        name: "a container's output is checked",
        step: || run("a"),
        outermost: |step| step.gives(json!({ "type": "string" })).instead("'saved'"),
        happens: |world, path| world.finish(path, 9),
        ends: |_| vec!["completed \"saved\"".to_owned()],
    },
    Rule {
        name: "a container's input is checked",
        step: || run("a"),
        outermost: |step| step.takes(json!({ "type": "string" })).instead("'saved'"),
        happens: |world, _| {
            let lines = world.started();
            assert_eq!(lines.len(), 3, "nothing inside begins: {lines:?}");
            lines
        },
        ends: |_| vec!["completed \"saved\"".to_owned()],
    },
    rule(
        "a late end is ignored",
        || run("a").tries(3),
        |world, path| {
            world.fail(path, "boom");
            world.due(path);
            let stale = greenroom_domain::machine::Command::StepFinished {
                path: path.into(),
                attempt: 1,
                result: StepResult::Completed(Arc::new(json!(0))),
                spent: greenroom_domain::machine::Spent::default(),
            };
            assert_eq!(world.send(stale), [""; 0]);
            world.finish(path, 9)
        },
        |place| place.completes(9),
    ),
];

/// Runs a test at every place, and compares the last lines.
fn assert_everywhere(
    rule: &str,
    run: impl Fn(&[&Kind], &Place) -> (Vec<String>, Vec<String>),
) -> Vec<String> {
    let mut wrong = Vec::new();
    for kinds in everywhere() {
        let place = Place::of(&kinds);
        let (lines, ends) = run(&kinds, &place);
        if !lines.ends_with(&ends) {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            wrong.push(format!("{rule}, in {names:?}:\n  {lines:?}\n  instead of {ends:?}"));
        }
    }
    wrong
}

#[test]
fn rules_hold_in_every_container() {
    let mut wrong = Vec::new();
    for Rule { name, step, outermost, happens, ends } in RULES {
        wrong.extend(assert_everywhere(name, |kinds, place| {
            let mut world = World::of(vec![definition(kinds, step(), *outermost)]);
            (happens(&mut world, &place.path), ends(place))
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_missing_function_blocks_in_every_container() {
    let wrong = assert_everywhere("missing", |kinds, place| {
        let mut setting = Setting::default();
        setting.missing.insert("a".to_owned());
        let mut world = setting.start(workflow(vec![definition(kinds, run("a"), unchanged)]));
        // It has not begun, so it has no path yet.
        assert_eq!(why::why(&world), ["(a): function a is not registered from 0"]);
        assert_eq!(world.recover(), [""; 0]);
        world.missing.clear();
        (world.recover(), vec![format!("{} starts #1", place.path)])
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn results_and_replays_read_inner_steps() {
    let wrong = assert_everywhere("replay", |kinds, place| {
        let steps = vec![definition(kinds, run("a"), unchanged), map("after", "[data, steps.a]")];
        let mut definition = workflow(steps);
        definition.result = Some(greenroom_domain::definition::Mapping(json!({
            "after": "steps.after", "inner": "steps.a",
        })));
        let mut first = Setting::default().start(definition);
        let lines = first.finish(&place.path, 9);
        let result = json!({ "after": [place.result(9), 9], "inner": 9 });
        let completed = format!("completed {result}");
        assert_eq!(lines.last(), Some(&completed));
        let second = first.replay("after", None).unwrap();
        (second.started(), vec![completed])
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn causes_of_waiting_have_a_path() {
    for (step, expected) in [
        (run("a"), "works #1 from 0"),
        (run("a").within(500), "works #1 from 0 to 500"),
        (run("a").asks(), "asks Suspended at step a from 0"),
        (run("a").asks_for(1000), "asks Suspended at step a or fails from 0 to 1000"),
        (sleep("a", 50), "sleeps from 0 to 50"),
        (child("a"), "child c1 from 0"),
    ] {
        let wrong = assert_everywhere(expected, |kinds, place| {
            let mut world = World::of(vec![definition(kinds, step.clone(), unchanged)]);
            world.crash();
            if expected.starts_with("works") {
                let interrupted = format!("{}: interrupted #1 from 0", place.path);
                assert_eq!(why::why(&world), [interrupted]);
                world.restore_from(1);
                world.recover();
                let again = expected.replace("#1", "#2");
                return (why::why(&world), vec![format!("{}: {again}", place.path)]);
            }
            (why::why(&world), vec![format!("{}: {expected}", place.path)])
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
