//! andForEach.

use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{
    Adorned, all, branch, child, for_each, map, repeat, run, sleep, workflow,
};
use crate::machine::world::{Setting, World};

fn over(items: impl Into<Value>, concurrency: u32) -> World {
    World::of(vec![for_each("each", items, concurrency, vec![run("a"), map("b", "data * 10")])])
}

#[test]
fn one_item_after_another() {
    let mut world = over(json!(["1", "2"]), 1);
    assert_eq!(world.started(), ["start", "each starts #1 over 2 items", "each[0]/a starts #1"]);
    assert_eq!(
        world.finish("each[0]/a", 1),
        ["each[0]/a gives 1", "each[0]/b starts #1", "each[0]/b gives 10", "each[1]/a starts #1"]
    );
    assert_eq!(
        world.finish("each[1]/a", 2),
        [
            "each[1]/a gives 2",
            "each[1]/b starts #1",
            "each[1]/b gives 20",
            "each gives [10,20]",
            "completed [10,20]",
        ]
    );
}

#[test]
fn concurrent_items_start_and_end_up_in_order() {
    let mut world = over(json!(["1", "2", "3", "4"]), 2);
    assert_eq!(world.running(), ["each[0]/a #1", "each[1]/a #1"]);
    world.finish("each[1]/a", 2);
    assert_eq!(world.running(), ["each[0]/a #1", "each[2]/a #1"]);
    world.finish("each[2]/a", 3);
    world.finish("each[0]/a", 1);
    assert_eq!(world.running(), ["each[3]/a #1"]);
    assert_eq!(world.finish("each[3]/a", 4).last().unwrap(), "completed [10,20,30,40]");
}

#[test]
fn data_item_and_index_are_in_scope() {
    let seen = json!({ "data": "data", "item": "item", "index": "index", "input": "input" });
    let world = World::of(vec![for_each("each", "['x', none]", 1, vec![map("a", seen)])]);
    assert_eq!(
        world.started().last().unwrap(),
        &format!(
            "completed {}",
            json!([
                { "data": "x", "item": "x", "index": 0, "input": 1 },
                { "data": null, "item": null, "index": 1, "input": 1 },
            ])
        )
    );
}

#[test]
fn the_innermost_item_is_in_scope() {
    let inner = for_each("inner", "item", 1, vec![map("a", "[item, index]")]);
    let world = World::of(vec![for_each(
        "outer",
        "[[1], [2, 3]]",
        1,
        vec![inner, map("b", "[data, index]")],
    )]);
    assert_eq!(world.started().last().unwrap(), "completed [[[[1,0]],0],[[[2,0],[3,1]],1]]");
}

#[test]
fn an_item_is_in_scope_of_a_loop_inside() {
    let rounds = repeat("rounds", true, "index == 1", 5, vec![map("a", "[item, index]")]);
    let world = World::of(vec![for_each("each", "['x', 'y']", 1, vec![rounds])]);
    assert_eq!(world.started().last().unwrap(), "completed [[\"x\",1],[\"y\",1]]");
}

#[test]
fn item_is_none_outside() {
    let world = World::of(vec![
        for_each("each", "[1]", 1, vec![map("a", "item")]),
        map("after", "[item is none, index is none]"),
    ]);
    assert_eq!(world.started().last().unwrap(), "completed [true,true]");
}

#[test]
fn no_items_give_an_empty_array() {
    let world = over("[]", 3);
    assert_eq!(
        world.started(),
        ["start", "each starts #1 over 0 items", "each gives []", "completed []"]
    );
}

#[test]
fn items_must_be_an_array() {
    for (items, what) in [
        ("'text'", "a string"),
        ("none", "null"),
        ("{'a': 1}", "an object"),
        ("1.5", "a number"),
        ("true", "a boolean"),
    ] {
        let world = over(items, 1);
        let expected = format!("failed at each: items: must be an array, not {what}");
        assert_eq!(world.started().last().unwrap(), &expected);
    }
    let last = over("data.no.such", 1).started().pop().unwrap();
    assert!(last.starts_with("failed at each: items: "), "{last}");
}

#[test]
fn the_first_failure_cancels_the_rest() {
    let mut world = over(json!(["1", "2", "3"]), 2);
    assert_eq!(
        world.fail("each[1]/a", "boom"),
        [
            "each[1]/a fails: boom",
            "each[0]/a is cancelled",
            "each fails: boom",
            "failed at a: boom",
        ]
    );
}

#[test]
fn on_error_of_the_container_and_of_a_step_inside() {
    let each = || for_each("each", "[1, 2]", 1, vec![run("a")]);
    let mut world = World::of(vec![each().instead("'none'")]);
    assert_eq!(world.fail("each[0]/a", "boom").last().unwrap(), "completed \"none\"");

    let mut world = World::of(vec![each().ignoring()]);
    assert_eq!(world.fail("each[0]/a", "boom").last().unwrap(), "completed 1");

    let inside = for_each("each", "[1, 2]", 1, vec![run("a").instead("index")]);
    let mut world = World::of(vec![inside]);
    world.fail("each[0]/a", "boom");
    assert_eq!(world.finish("each[1]/a", "fine").last().unwrap(), "completed [0,\"fine\"]");
}

#[test]
fn a_suspended_item_counts_as_in_progress() {
    let asks = run("a").asks_when("item == 'ask'");
    let mut world = World::of(vec![for_each("each", "['ask', 'go', 'go']", 2, vec![asks])]);
    assert_eq!(world.status(), Status::Running);
    world.finish("each[1]/a", 1);
    world.finish("each[2]/a", 2);
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.shown().unwrap(), "each[0]/a");
    world.resume("yes");
    assert_eq!(world.finish("each[0]/a", 0).last().unwrap(), "completed [0,1,2]");
}

#[test]
fn waiting_items_are_resumed_by_their_paths() {
    let asks = run("a").asks();
    let mut world = World::of(vec![for_each("each", "[1, 2]", 2, vec![asks])]);
    let refusal = format!("{:?}", world.refused(Some("a"), 1));
    assert!(refusal.contains("each[0]/a, each[1]/a"), "{refusal}");
    world.resume_at("each[1]/a", "second");
    assert_eq!(world.running(), ["each[1]/a #1"]);
    world.resume_at("a", "first");
    assert_eq!(world.running(), ["each[0]/a #1", "each[1]/a #1"]);
    let refusal = format!("{:?}", world.refused(Some("each[7]/a"), 1));
    assert!(refusal.contains("NotSuspended"), "{refusal}");
}

#[test]
fn no_item_starts_while_paused() {
    let mut world = over(json!(["1", "2"]), 1);
    world.hold();
    assert_eq!(world.finish("each[0]/a", 1), ["each[0]/a gives 1"]);
    let lines = world.resume(Value::Null);
    assert!(lines.contains(&"each[1]/a starts #1".to_owned()), "{lines:?}");
}

#[test]
fn a_missing_function_blocks_only_its_item() {
    let missing = std::iter::once("b".to_owned()).collect();
    let choice = branch("way", vec![("item == 1", vec![run("b")])], Some(vec![run("c")]));
    let steps = vec![for_each("each", "[1, 2]", 2, vec![choice])];
    let mut world = Setting { missing, ..Setting::default() }.start(workflow(steps));
    assert_eq!(world.running(), ["each[1]/way/default/c #1"]);
    world.finish("each[1]/way/default/c", "done");
    world.missing.clear();
    world.recover();
    assert_eq!(world.running(), ["each[0]/way/case1/b #1"]);
    assert_eq!(world.finish("each[0]/way/case1/b", 1).last().unwrap(), "completed [1,\"done\"]");
}

#[test]
fn only_interrupted_items_are_repeated_after_a_crash() {
    let mut world = over(json!(["1", "2", "3"]), 2);
    world.finish("each[0]/a", 1);
    world.crash();
    assert_eq!(
        world.recover(),
        ["each[1]/a starts #2 after a crash", "each[2]/a starts #2 after a crash"]
    );
    world.restore_from(2);
    world.recover();
    world.finish("each[2]/a", 3);
    assert_eq!(world.finish("each[1]/a", 2).last().unwrap(), "completed [10,20,30]");
}

#[test]
fn outputs_of_inner_steps_are_those_of_the_last_item() {
    let mut world = World::of(vec![
        for_each("each", "[1, 2]", 2, vec![run("a")]),
        map("after", "[steps.a, steps.each]"),
    ]);
    world.finish("each[1]/a", "second");
    let last = world.finish("each[0]/a", "first").pop().unwrap();
    assert_eq!(last, "completed [\"second\",[\"first\",\"second\"]]");
}

#[test]
fn outputs_of_other_items_are_not_in_scope() {
    let steps = vec![map("a", "item"), map("b", "steps.a")];
    let world = World::of(vec![for_each("each", "[1, 2]", 2, steps)]);
    assert_eq!(world.started().last().unwrap(), "completed [1,2]");

    // The first item has ended when the second asks for what only the first has.
    let choice = branch("way", vec![("item == 1", vec![map("a", "'mine'")])], None);
    let asks = map("b", "'seen' if steps.a is defined else 'not seen'");
    let world = World::of(vec![for_each("each", "[1, 2]", 1, vec![choice, asks])]);
    assert_eq!(world.started().last().unwrap(), "completed [\"seen\",\"not seen\"]");
}

#[test]
fn every_kind_runs_inside() {
    let inside = vec![
        all("both", [("l", vec![run("f")]), ("r", vec![map("m", "item")])]),
        child("c"),
        sleep("s", 50),
    ];
    let mut world = World::of(vec![for_each("each", "[1]", 1, inside)]);
    world.finish("each[0]/both/l/f", "f");
    let done = greenroom_domain::machine::ChildStatus::Completed {
        result: std::sync::Arc::new(json!("of the child")),
        compensable: false,
        skipped: false,
    };
    world.report("each[0]/c", 5, done);
    assert_eq!(world.due("each[0]/s").last().unwrap(), "completed [\"of the child\"]");
}

#[test]
fn a_cancel_ends_running_items() {
    let mut world = over(json!(["1", "2", "3"]), 2);
    assert_eq!(
        world.cancel(),
        [
            "each[0]/a is cancelled",
            "each[1]/a is cancelled",
            "each is cancelled",
            "cancelled: enough",
        ]
    );
}

#[test]
fn the_output_of_all_items_is_limited_like_any_value() {
    let mut setting = Setting { input: json!("x".repeat(40)), ..Setting::default() };
    // Two items fit, the brackets and the comma included; a third does not.
    setting.limits.value_bytes_max = 2 * 42 + 3;
    let over = |items: &str| vec![for_each("each", items, 1, vec![map("a", "input")])];
    let fits =
        Setting { input: setting.input.clone(), limits: setting.limits, ..Setting::default() }
            .start(workflow(over("[1, 2]")));
    assert_eq!(fits.status(), Status::Completed);
    let world = setting.start(workflow(over("[1, 2, 3]")));
    let last = world.started().pop().unwrap();
    assert_eq!(last, "failed at each: the output is larger than 87 bytes");
}

#[test]
fn the_cost_of_many_items_is_that_of_the_live_ones() {
    let mut setting = Setting::default();
    setting.limits.events_max = 100_000;
    let steps = vec![for_each("each", "range(5000) | list", 1, vec![map("a", "item")])];
    let mut world = setting.start(workflow(steps));
    let mut turns = 1;
    while world.machine.has_more() {
        assert_eq!(world.status(), Status::Running);
        world.recover();
        turns += 1;
    }
    assert_eq!(world.status(), Status::Completed);
    assert_eq!(world.facts().len(), 4 + 2 * 5000);
    assert!((20..=21).contains(&turns), "in {turns} goes of 500 facts");
}

#[test]
fn long_runs_are_split_and_can_be_cancelled() {
    let steps = vec![all(
        "both",
        [
            ("asks", vec![run("q").asks()]),
            ("long", vec![for_each("each", "range(1000) | list", 1, vec![map("a", "item")])]),
        ],
    )];
    let mut world = World::of(steps);
    assert!(world.machine.has_more() && world.machine.has_work());
    assert_eq!(world.status(), Status::Running, "more follows by itself");
    world.crash();
    world.recover();
    world.hold();
    assert!(!world.machine.has_more(), "held");
    world.resume(Value::Null);
    world.resume_at("q", 1);
    assert_eq!(world.running(), ["both/asks/q #1"]);
    assert_eq!(world.cancel().last().unwrap(), "cancelled: enough");
}

#[test]
fn the_total_size_of_values_is_limited() {
    let steps = || vec![for_each("each", "[1, 2, 3, 4]", 1, vec![map("a", "input")])];
    for (max, ends) in [
        // The items, four values of 42 bytes, and all of them in one array.
        (4 + 4 * 42 + 173, "completed"),
        (4 + 4 * 42 + 172, "failed: its values are larger than 344 bytes in total"),
        (4 + 42, "failed: its values are larger than 46 bytes in total"),
    ] {
        let mut setting = Setting { input: json!("x".repeat(40)), ..Setting::default() };
        setting.limits.execution_bytes_max = max;
        let last = setting.start(workflow(steps())).started().pop().unwrap();
        assert!(last.starts_with(ends), "{max}: {last}");
    }
}
