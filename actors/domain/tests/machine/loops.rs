//! andDoWhile and andDoUntil.

use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, for_each, map, repeat, run, when, workflow};
use crate::machine::world::{Setting, World};

#[test]
fn iterations_end_with_the_condition() {
    for (until, when, bound, expected) in [
        (true, "data == 3", 5, "completed 3"),
        (true, "data == 3", 1, "failed at rounds: `when` asks for more than max_iterations = 1"),
        (true, "data == 3", 2, "completed 3"),
        (true, "true", 1, "completed 2"),
        (false, "data < 4", 5, "completed 4"),
        (false, "data < 4", 2, "failed at rounds: `when` asks for more than max_iterations = 2"),
        (false, "false", 1, "completed 2"),
        (true, "index == 2", 9, "completed 4"),
        (true, "steps.plus == 4 and input == 1", 9, "completed 4"),
    ] {
        let rounds = repeat("rounds", until, when, bound, vec![map("plus", "data + 1")]);
        let world = World::of(vec![rounds]);
        assert_eq!(world.started().last().unwrap(), expected, "until {until}, {when}, {bound}");
    }
}

#[test]
fn each_iteration_has_a_path_and_the_output_of_the_one_before() {
    let mut world =
        World::of(vec![repeat("rounds", true, "data == 'b'", 5, vec![run("a"), run("b")])]);
    assert_eq!(world.started(), ["start", "rounds starts #1", "rounds[0]/a starts #1"]);
    world.finish("rounds[0]/a", 1);
    assert_eq!(
        world.finish("rounds[0]/b", "again"),
        ["rounds[0]/b gives \"again\"", "rounds[1]/a starts #1"]
    );
    let (_, node) = world.machine.node("rounds[1]/a").unwrap();
    assert_eq!(*node.input, json!("again"));
    world.finish("rounds[1]/a", 1);
    assert_eq!(
        world.finish("rounds[1]/b", "b"),
        ["rounds[1]/b gives \"b\"", "rounds gives \"b\"", "completed \"b\""]
    );
}

#[test]
fn earlier_iterations_are_in_scope() {
    let count = map("count", "(steps.count if steps.count is defined else 0) + 1");
    let world = World::of(vec![
        repeat("rounds", true, "index == 3", 9, vec![count]),
        map("after", "steps.count"),
    ]);
    assert_eq!(world.started().last().unwrap(), "completed 4");
}

#[test]
fn outputs_of_earlier_iterations_stay_in_scope() {
    let first =
        crate::machine::build::branch("way", vec![("index == 0", vec![map("a", "'once'")])], None);
    let world =
        World::of(vec![repeat("rounds", true, "index == 2", 9, vec![first, map("b", "steps.a")])]);
    assert_eq!(world.started().last().unwrap(), "completed \"once\"");
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_it() {
    let rounds = || repeat("rounds", false, "data.no.such", 3, vec![map("a", "data")]);
    let last = World::of(vec![rounds()]).started().pop().unwrap();
    assert!(last.starts_with("failed at rounds: when: "), "{last}");
    let world = World::of(vec![rounds().ignoring()]);
    assert_eq!(world.started().last().unwrap(), "completed 1");
}

#[test]
fn a_failed_iteration_fails_it() {
    let mut world = World::of(vec![repeat("rounds", true, "false", 3, vec![run("a").tries(2)])]);
    world.finish("rounds[0]/a", 1);
    assert_eq!(world.fail("rounds[1]/a", "boom"), ["rounds[1]/a fails: boom; again at 100"]);
    world.due("rounds[1]/a");
    assert_eq!(
        world.fail("rounds[1]/a", "boom"),
        ["rounds[1]/a fails: boom", "rounds fails: boom", "failed at a: boom"]
    );
}

#[test]
fn every_iteration_may_suspend() {
    let ask = run("a").asks();
    let mut world = World::of(vec![repeat("rounds", true, "data == 'yes'", 5, vec![ask])]);
    world.resume("first");
    world.finish("rounds[0]/a", "no");
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.shown().unwrap(), "rounds[1]/a");
    // A later iteration does not see the data of an earlier resume.
    assert_eq!(world.machine.node("rounds[1]/a").unwrap().1.resume, None);
    world.resume_at("rounds[1]/a", "second");
    assert_eq!(world.finish("rounds[1]/a", "yes").last().unwrap(), "completed \"yes\"");
}

#[test]
fn a_pause_between_two_iterations() {
    let mut world = World::of(vec![repeat("rounds", true, "data == 2", 5, vec![run("a")])]);
    world.hold();
    assert_eq!(world.finish("rounds[0]/a", 1), ["rounds[0]/a gives 1"]);
    world.restore_from(2);
    let lines = world.resume(Value::Null);
    assert!(lines.contains(&"rounds[1]/a starts #1".to_owned()), "{lines:?}");
    assert_eq!(world.finish("rounds[1]/a", 2).last().unwrap(), "completed 2");
}

#[test]
fn an_interrupted_iteration_is_repeated() {
    let mut world = World::of(vec![repeat("rounds", true, "data == 2", 5, vec![run("a")])]);
    world.finish("rounds[0]/a", 1);
    world.crash();
    assert_eq!(world.recover(), ["rounds[1]/a starts #2 after a crash"]);
    assert_eq!(world.finish("rounds[1]/a", 2).last().unwrap(), "completed 2");
}

#[test]
fn loops_inside_containers_inside_loops() {
    let inner = repeat("inner", true, "index == 1", 3, vec![map("a", "data + 1")]);
    let both = all("both", [("l", vec![inner]), ("r", vec![map("m", "data")])]);
    let each = for_each("each", "data", 2, vec![map("n", "item * 2")]);
    let outer = repeat("outer", false, "index < 1", 3, vec![both, each, map("s", "data | sum")]);
    let world = World::of(vec![outer]);
    // 1 -> [3, 1] -> [6, 2] -> 8; 8 -> [10, 8] -> [20, 16] -> 36
    assert_eq!(world.started().last().unwrap(), "completed 36");
    assert!(world.all_lines().contains(&"outer[1]/both/l/inner[1]/a gives 10".to_owned()));
}

#[test]
fn a_loop_ends_with_the_events_of_an_execution() {
    let mut setting = Setting::default();
    setting.limits.events_max = 50;
    let rounds = repeat("rounds", true, "false", 100_000, vec![map("a", "data")]);
    let world = setting.start(workflow(vec![rounds]));
    assert_eq!(world.started().last().unwrap(), "failed: more than 50 events");
}

/// Outputs of early iterations, of inner containers, and of the last two iterations.
#[test]
fn the_newest_output_of_each_step_is_in_scope() {
    let inner = for_each("each", "[10, 20]", 1, vec![map("item", "item + index")]);
    let seen = json!({
        "rare": "steps.rare if steps.rare is defined else 'none'",
        "item": "steps.item if steps.item is defined else 'none'",
        "late": "steps.late if steps.late is defined else 'none'",
    });
    let rounds = repeat(
        "rounds",
        true,
        "index == 4",
        9,
        vec![
            map("before", seen),
            when("once", "index == 1", vec![map("rare", "index")]),
            when("now_and_then", "index in [1, 3]", vec![inner]),
            map("late", "index * 100"),
        ],
    );
    let world = World::of(vec![rounds, map("after", "[steps.rare, steps.item, steps.late]")]);
    let before = |round: usize| {
        let (_, node) = world.machine.node(&format!("rounds[{round}]/before")).unwrap();
        Value::clone(&node.output().unwrap())
    };
    for (round, rare, item, late) in [
        (0, json!("none"), json!("none"), json!("none")),
        (1, json!("none"), json!("none"), json!(0)),
        (2, json!(1), json!(21), json!(100)),
        (3, json!(1), json!(21), json!(200)),
        (4, json!(1), json!(21), json!(300)),
    ] {
        let expected = json!({ "rare": rare, "item": item, "late": late });
        assert_eq!(before(round), expected, "round {round}");
    }
    assert_eq!(world.started().last().unwrap(), "completed [1,21,400]");
}
