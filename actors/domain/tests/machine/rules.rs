//! Every rule inside of every container, and of containers in containers: whatever stands around a
//! step, what becomes of it is the same, and what stands around it follows.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::machine::{ChildStatus, StepResult};
use serde_json::{Value, json};

use crate::machine::build::{Adorned, child, map, run, sleep, workflow};
use crate::machine::places::{Kind, Place, definition, everywhere};
use crate::machine::why;
use crate::machine::world::{Setting, World};

/// A rule: what is inside, what happens, and how the record ends then.
struct Rule {
    name: &'static str,
    step: fn() -> StepDefinition,
    /// What the outermost container has besides.
    outermost: fn(StepDefinition) -> StepDefinition,
    happens: fn(&mut World, &str) -> Vec<String>,
    ends: fn(&Place) -> Vec<String>,
}

fn as_it_is(step: StepDefinition) -> StepDefinition {
    step
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
    Rule {
        name: "an end is the end of what is around it",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| world.finish(path, 9),
        ends: |place| after(place.completes(9), format!("{} gives 9", place.path)),
    },
    Rule {
        name: "a pure step needs nobody",
        step: || map("a", "[data, item if item is not none else 1]"),
        outermost: as_it_is,
        happens: |world, _| world.started(),
        ends: |place| place.completes(json!([1, 1])),
    },
    Rule {
        name: "a failure fails what is around it",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| world.fail(path, "boom"),
        ends: |place| place.fails("boom"),
    },
    Rule {
        name: "a failure that the container lets pass",
        step: || run("a"),
        outermost: Adorned::ignoring,
        happens: |world, path| world.fail(path, "boom"),
        ends: |_| vec!["c0 fails: boom; goes on with 1".to_owned(), "completed 1".to_owned()],
    },
    Rule {
        name: "a failure that the container replaces",
        step: || run("a"),
        outermost: |step| step.instead("data + 6"),
        happens: |world, path| world.fail(path, "boom"),
        ends: |_| vec!["c0 fails: boom; goes on with 7".to_owned(), "completed 7".to_owned()],
    },
    Rule {
        name: "a failure that the step replaces",
        step: || run("a").instead("data + 6"),
        outermost: as_it_is,
        happens: |world, path| world.fail(path, "boom"),
        ends: |place| {
            after(place.completes(7), format!("{} fails: boom; goes on with 7", place.path))
        },
    },
    Rule {
        name: "a retry after its pause, over a crash",
        step: || run("a").tries(2),
        outermost: as_it_is,
        happens: |world, path| {
            world.fail(path, "boom");
            world.crash();
            world.due(path);
            world.finish(path, 9)
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "the last attempt is the last",
        step: || run("a").tries(2),
        outermost: as_it_is,
        happens: |world, path| {
            world.fail(path, "boom");
            world.due(path);
            world.fail(path, "again")
        },
        ends: |place| place.fails("again"),
    },
    Rule {
        name: "a retry has no place under a hold",
        step: || run("a").tries(2),
        outermost: as_it_is,
        happens: |world, path| {
            world.fail(path, "boom");
            world.hold();
            world.due(path)
        },
        ends: |place| vec![format!("{} is due", place.path)],
    },
    Rule {
        name: "under a hold nothing around it ends",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| {
            world.hold();
            world.finish(path, 9)
        },
        ends: |place| vec![format!("{} gives 9", place.path)],
    },
    Rule {
        name: "after a hold everything around it ends, from a kept state",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| {
            world.hold();
            world.finish(path, 9);
            world.restore_from(2);
            world.resume(Value::Null)
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "what a crash cut off begins anew",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, _| crash_once(world),
        ends: |place| vec![format!("{} starts #2 after a crash", place.path)],
    },
    Rule {
        name: "it is cut off three times and no more",
        step: || run("a").tries(5),
        outermost: as_it_is,
        happens: |world, _| {
            crash_once(world);
            crash_once(world);
            crash_once(world)
        },
        ends: |place| place.fails("interrupted 3 times"),
    },
    Rule {
        name: "a cancel goes from the inside out",
        step: || run("a"),
        outermost: |step| step.ignoring(),
        happens: |world, _| world.cancel(),
        ends: |place| {
            let all = std::iter::once(&place.path).chain(place.around.iter().map(|(path, _)| path));
            let cancelled = all.map(|path| format!("{path} is cancelled"));
            cancelled.chain(["cancelled: enough".to_owned()]).collect()
        },
    },
    Rule {
        name: "a question is shown by its path, and is answered by its id",
        step: || run("a").asks(),
        outermost: as_it_is,
        happens: |world, path| {
            assert_eq!(world.shown().as_deref(), Some(path));
            world.resume_at("a", 5);
            assert_eq!(world.machine.function_call(path).unwrap().resume, Some(json!(5).into()));
            world.finish(path, 9)
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "a question is answered by its path, under a hold, after a crash",
        step: || run("a").asks(),
        outermost: as_it_is,
        happens: |world, path| {
            world.crash();
            world.restore_from(1);
            world.resume_at(path, 5)
        },
        ends: |place| vec![format!("{} starts #1", place.path)],
    },
    Rule {
        name: "an answer is checked",
        step: || run("a").asks().wants(json!({ "type": "boolean" })),
        outermost: as_it_is,
        happens: |world, path| {
            world.refused(Some(path), "perhaps");
            world.resume_at(path, true);
            world.finish(path, 9)
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "a body asks by itself",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| {
            world.ask(path);
            world.resume(5);
            world.finish(path, 9)
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "a deadline fails",
        step: || run("a").asks_for(1000),
        outermost: as_it_is,
        happens: |world, path| {
            let mut lines = world.due(path);
            lines.retain(|line| line != "resumed");
            lines
        },
        ends: |place| place.fails("deadline passed"),
    },
    Rule {
        name: "a deadline answers, over a crash",
        step: || run("a").asks_until(1000, "data + 1"),
        outermost: as_it_is,
        happens: |world, path| {
            world.crash();
            world.due(path)
        },
        ends: |place| vec![format!("{} starts #1", place.path)],
    },
    Rule {
        name: "an answer to what asked under a hold lifts it",
        step: || run("a"),
        outermost: as_it_is,
        happens: |world, path| {
            world.hold();
            world.ask(path);
            world.resume_at(path, 5)
        },
        ends: |place| vec![format!("{} starts #2", place.path)],
    },
    Rule {
        name: "a sleep ends, over a crash",
        step: || sleep("a", 50),
        outermost: as_it_is,
        happens: |world, path| {
            world.crash();
            assert_eq!(world.recover(), [""; 0]);
            world.due(path)
        },
        ends: |place| place.completes(1),
    },
    Rule {
        name: "a child's result",
        step: || child("a"),
        outermost: as_it_is,
        happens: |world, path| {
            world.crash();
            world.hear(path, 3, ChildStatus::Completed { result: json!(9).into() })
        },
        ends: |place| place.completes(9),
    },
    Rule {
        name: "a child is abandoned with what is around it",
        step: || child("a"),
        outermost: as_it_is,
        happens: |world, _| {
            let lines = world.cancel();
            assert_eq!(world.abandoned.len(), 1);
            lines
        },
        ends: |_| vec!["c0 is cancelled".to_owned(), "cancelled: enough".to_owned()],
    },
    Rule {
        name: "an output is checked where it is made",
        step: || run("a").gives(json!({ "type": "string" })),
        outermost: as_it_is,
        happens: |world, path| {
            let lines = world.finish(path, 9);
            vec![lines.first().unwrap()[..path.len() + 32].to_owned()]
        },
        ends: |place| vec![format!("{} fails: output validation failed", place.path)],
    },
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
    Rule {
        name: "a late end is not heard",
        step: || run("a").tries(3),
        outermost: as_it_is,
        happens: |world, path| {
            world.fail(path, "boom");
            world.due(path);
            let stale = greenroom_domain::machine::Command::StepFinished {
                path: path.into(),
                attempt: 1,
                result: StepResult::Completed(Arc::new(json!(0))),
                usage: None,
            };
            assert_eq!(world.tell(stale), [""; 0]);
            world.finish(path, 9)
        },
        ends: |place| place.completes(9),
    },
];

/// Tells a story at every place; what they end with must be as expected.
fn assert_everywhere(
    rule: &str,
    told: impl Fn(&[&Kind], &Place) -> (Vec<String>, Vec<String>),
) -> Vec<String> {
    let mut wrong = Vec::new();
    for kinds in everywhere() {
        let place = Place::of(&kinds);
        let (lines, ends) = told(&kinds, &place);
        if !lines.ends_with(&ends) {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            wrong.push(format!("{rule}, in {names:?}:\n  {lines:?}\n  instead of {ends:?}"));
        }
    }
    wrong
}

#[test]
fn a_rule_is_the_same_wherever_a_step_stands() {
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
fn a_missing_function_is_waited_for_wherever_a_step_stands() {
    let wrong = assert_everywhere("missing", |kinds, place| {
        let mut setting = Setting::default();
        setting.missing.insert("a".to_owned());
        let mut world = setting.start(workflow(vec![definition(kinds, run("a"), as_it_is)]));
        // It has not begun, so it has no place yet.
        assert_eq!(why::why(&world), ["(a): function a is not registered from 0"]);
        assert_eq!(world.recover(), [""; 0]);
        world.missing.clear();
        (world.recover(), vec![format!("{} starts #1", place.path)])
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_result_and_a_replay_see_what_was_inside() {
    let wrong = assert_everywhere("replay", |kinds, place| {
        let steps = vec![definition(kinds, run("a"), as_it_is), map("after", "[data, steps.a]")];
        let mut definition = workflow(steps);
        definition.result = Some(greenroom_domain::definition::Projection(json!({
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
fn what_is_awaited_has_its_place() {
    for (step, expected) in [
        (run("a"), "works #1 from 0"),
        (run("a").within(500), "works #1 from 0 to 500"),
        (run("a").asks(), "asks Suspended at step a from 0"),
        (run("a").asks_for(1000), "asks Suspended at step a or fails from 0 to 1000"),
        (sleep("a", 50), "sleeps from 0 to 50"),
        (child("a"), "child c1 from 0"),
    ] {
        let wrong = assert_everywhere(expected, |kinds, place| {
            let mut world = World::of(vec![definition(kinds, step.clone(), as_it_is)]);
            world.crash();
            if expected.starts_with("works") {
                let cut_off = format!("{}: cut off #1 from 0", place.path);
                assert_eq!(why::why(&world), [cut_off]);
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
