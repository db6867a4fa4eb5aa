//! Costly decisions: put off, repeated with a larger budget, or failed.

use std::sync::Arc;

use greenroom_domain::definition::{Mapping, StepDefinition, SuspendRule};
use greenroom_domain::effort::Budget;
use greenroom_domain::fact::Fact;
use greenroom_domain::failure::ErrorKind;
use greenroom_domain::machine::{
    Command, Decision, Handled, MachineLimits, Refusal, Spent, StepResult,
};
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{
    Adorned, all, branch, child_with, for_each, map, repeat, run, sleep, sleep_until, when,
    workflow,
};
use crate::machine::world::{Setting, World, resume};

/// Reads n * n / 2 numbers.
const SQUARE: &str = "range(input.n) | select('in', range(input.n)) | list | length";

fn numbers(count: usize) -> Value {
    json!({ "n": count, "text": "a".repeat(300) })
}

fn world(count: usize, steps: Vec<StepDefinition>) -> World {
    Setting { input: numbers(count), ..Setting::default() }.start(workflow(steps))
}

fn all_is_decided(world: &mut World) -> Vec<String> {
    world.budget = Budget::whole();
    let mut lines = Vec::new();
    loop {
        lines.extend(world.send(Command::Recover));
        if !world.machine.has_more() {
            return lines;
        }
    }
}

#[test]
fn cheap_decisions_are_made_at_once() {
    let mut world = world(100, vec![map("a", SQUARE)]);
    assert!(!world.machine.has_more());
    assert_eq!(world.status(), Status::Completed);
    assert_eq!(world.send(Command::Recover), [""; 0]);
}

#[test]
fn costly_evaluations_are_put_off() {
    let rows: [(&str, StepDefinition); 5] = [
        ("map", map("a", SQUARE)),
        ("when", when("a", &format!("({SQUARE}) > 1"), vec![map("b", "1")])),
        ("items", for_each("a", format!("[{SQUARE}]"), 1, vec![map("b", "item")])),
        ("a loop", repeat("a", true, &format!("({SQUARE}) > 1"), 3, vec![map("b", "index")])),
        (
            "a schema of inputs",
            map("a", "1").takes(json!({
            "properties": { "text": { "pattern": "^([a-z]{1,20}){1,20}$" } } })),
        ),
    ];
    for (name, step) in rows {
        let mut world = world(2000, vec![step]);
        assert!(world.machine.is_costly() && world.machine.has_work(), "{name}");
        assert_eq!(world.status(), Status::Running, "{name}");
        let before = world.facts().len();
        assert_eq!(world.send(Command::Recover), [""; 0], "{name}: as costly as before");
        assert!(world.machine.is_costly(), "{name}");
        all_is_decided(&mut world);
        assert_eq!(world.status(), Status::Completed, "{name}");
        assert!(world.facts().len() > before && !world.machine.is_costly(), "{name}");
    }
}

#[test]
fn evaluations_beyond_the_budget_fail() {
    let rows: [(&str, StepDefinition, &str); 3] = [
        ("map", map("a", SQUARE), "takes more than 30000000 steps in `range"),
        (
            "a template",
            map("a", "1").asking(SuspendRule {
                reason: Some(
                    "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"
                        .to_owned(),
                ),
                ..SuspendRule::default()
            }),
            "suspend.reason: takes more than 100000 steps",
        ),
        (
            "a schema of outputs",
            map("a", "'a' * input.n").gives(json!({
                "pattern": "^(([a-z]{1,10} ?){1,20}){1,20}$" })),
            "output validation failed: the check takes more than 30000000 steps",
        ),
    ];
    for (name, step, said) in rows {
        let mut world = world(40_000, vec![step.tries(3)]);
        all_is_decided(&mut world);
        assert_eq!(world.status(), Status::Error, "{name}");
        let lines = world.all_lines();
        let failures: Vec<&String> = lines.iter().filter(|line| line.contains(said)).collect();
        assert!(!failures.is_empty(), "{name}: {lines:#?}");
        let starts = lines.iter().filter(|line| line.contains("a starts")).count();
        assert!(starts <= 1, "{name} is retried: {lines:#?}");
    }
}

/// Exceeds any budget.
const TOO_MUCH: &str = "([0] * 50000000) | length";

/// Exceeds any budget for a text of 100,000 letters.
fn costly_schema() -> Value {
    json!({ "pattern": "^(([a-z]{1,10} ?){1,20}){1,20}$" })
}

/// Returns the kinds of the recorded failures, in order.
fn kinds(world: &World) -> Vec<ErrorKind> {
    let facts = world.facts().into_iter();
    let classes = facts.filter_map(|recorded| match recorded.fact {
        Fact::StepFailed { class, .. } | Fact::WorkflowFailed { class, .. } => class,
        _ => None,
    });
    classes.map(|class| class.kind).collect()
}

#[test]
fn evaluations_beyond_the_budget_fail_with_the_kind_cost() {
    let long = "'a' * 100000";
    let asks = |rule: SuspendRule| map("a", "1").asking(rule);
    let shown = Mapping(json!(long));
    let again = format!("({TOO_MUCH}) > 1");
    let one = |id: &str| vec![map(id, "1")];
    let rows: [(&str, StepDefinition); 11] = [
        ("map", map("a", TOO_MUCH).tries(3)),
        ("when", when("a", TOO_MUCH, one("b"))),
        ("cases", branch("a", vec![("false", one("b")), (TOO_MUCH, one("c"))], None)),
        ("items", for_each("a", TOO_MUCH, 1, one("b"))),
        ("until of a sleep", sleep_until("a", TOO_MUCH)),
        ("until of a loop", repeat("a", true, &again, 3, one("b"))),
        ("while of a loop", repeat("a", false, &again, 3, one("b"))),
        ("input of a child", child_with("a", TOO_MUCH).tries(3)),
        ("a schema of inputs", map("a", "1").takes(costly_schema()).tries(3)),
        ("suspend.when", map("a", "1").asks_when(TOO_MUCH).tries(3)),
        (
            "a schema of payloads",
            asks(SuspendRule { payload: Some(shown), ..SuspendRule::default() })
                .shows(costly_schema())
                .tries(3),
        ),
    ];
    for (name, step) in rows {
        let first = map("first", long);
        let mut world = world(1, vec![first, step]);
        all_is_decided(&mut world);
        assert_eq!(world.status(), Status::Error, "{name}");
        assert!(kinds(&world).iter().all(|kind| *kind == ErrorKind::Cost), "{name}");
        assert_eq!(kinds(&world).len(), 2, "{name}: {:#?}", world.all_lines());
    }
}

#[test]
fn a_payload_that_is_too_costly_to_check_is_not_retried() {
    let mut world = world(1, vec![run("a").shows(costly_schema()).tries(3)]);
    world.budget = Budget::whole();
    let payload = Some(Arc::new(json!("a".repeat(100_000))));
    world.end_step("a", StepResult::Suspended { reason: None, payload });
    assert_eq!(world.status(), Status::Error);
    assert_eq!(kinds(&world), [ErrorKind::Cost; 2]);
}

#[test]
fn a_result_that_cannot_be_evaluated_has_a_reason() {
    let inner = format!("{}1{}", "[".repeat(45), "]".repeat(45));
    let rows = [
        (json!(TOO_MUCH), ErrorKind::Cost),
        (json!("input.nope"), ErrorKind::Expression),
        ((0..60).fold(json!(inner), |inner, _| json!([inner])), ErrorKind::Limit),
    ];
    for (result, kind) in rows {
        let mut definition = workflow(vec![map("a", "1")]);
        definition.result = Some(Mapping(result));
        let mut world = Setting::default().start(definition);
        all_is_decided(&mut world);
        assert_eq!(kinds(&world), [kind], "{:#?}", world.all_lines());
    }
}

#[test]
fn on_error_handles_evaluations_beyond_the_budget() {
    let rows: [(&str, StepDefinition); 4] = [
        ("an expression", map("a", TOO_MUCH)),
        ("a template", map("a", "1").asking(SuspendRule {
            reason: Some("{% for a in range(99999) %}{% endfor %}{% for a in range(99999) %}{% endfor %}".to_owned()),
            ..SuspendRule::default()
        })),
        ("a condition", when("a", TOO_MUCH, vec![map("c", "1")])),
        ("a check", map("a", "'a' * 100000").gives(costly_schema())),
    ];
    for (name, step) in rows {
        let mut world = world(1, vec![step.instead("error.kind"), map("b", "data")]);
        all_is_decided(&mut world);
        assert_eq!(world.all_lines().last().unwrap(), "completed \"cost\"", "{name}");
    }
    let mut world = world(1, vec![map("a", TOO_MUCH).instead(TOO_MUCH)]);
    all_is_decided(&mut world);
    let lines = world.all_lines();
    let failed = lines.iter().find(|line| line.contains("on_error: takes more than 30000000"));
    assert!(failed.is_some(), "{lines:#?}");
}

#[test]
fn a_costly_end_of_a_body_is_put_off_unchanged() {
    let schema = json!({ "pattern": "^([a-z]{1,20}){1,20}$" });
    let output = Arc::new(json!("a".repeat(300)));
    for result in [
        StepResult::Completed(output.clone()),
        StepResult::Suspended { reason: None, payload: Some(output) },
    ] {
        let step = run("a").gives(schema.clone()).shows(schema.clone());
        let mut world = world(1, vec![step]);
        let command = Command::StepFinished {
            path: Arc::from("a"),
            attempt: 1,
            result,
            spent: Spent::default(),
        };
        let before = world.facts();
        assert_eq!(world.try_send(command.clone()), Ok(Handled::PutOff(command.clone())));
        assert_eq!(world.facts(), before);
        world.budget = Budget::whole();
        assert!(!world.send(command).is_empty());
        assert_ne!(world.status(), Status::Running);
    }
}

#[test]
fn costly_resume_data_is_put_off_or_refused() {
    let schema = json!({ "pattern": "^([a-z]{1,20}){1,20}$" });
    for (length, is_taken) in [(300, true), (100_000, false)] {
        let step = map("a", "resume").asks().wants(schema.clone());
        let mut world = world(1, vec![step]);
        let command = resume(None, "a".repeat(length));
        assert_eq!(world.try_send(command.clone()), Ok(Handled::PutOff(command.clone())));
        world.budget = Budget::whole();
        match world.try_send(command) {
            Ok(Handled::Decided(Decision::Recorded(_))) => assert!(is_taken),
            Err(Refusal::InvalidData(why)) => {
                assert!(!is_taken && why.contains("takes more than"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cancel_is_never_put_off() {
    let mut world = world(2000, vec![map("a", SQUARE)]);
    assert!(world.machine.is_costly());
    world.send(Command::Cancel { reason: Arc::from("enough"), by: None, compensate: false });
    assert_eq!(world.status(), Status::Cancelled);
}

#[test]
fn many_cheap_evaluations_take_several_turns() {
    let item = "range(20000) | sum";
    let mut world =
        world(50, vec![for_each("each", "range(input.n) | list", 1, vec![map("a", item)])]);
    let mut turns = 1;
    while world.machine.has_more() {
        assert!(!world.machine.is_costly());
        world.send(Command::Recover);
        turns += 1;
    }
    assert_eq!(world.status(), Status::Completed);
    assert!((10..=50).contains(&turns), "{turns}");
}

/// Recovery of an interrupted body may be costly: the command is recorded before it, and not
/// repeated.
#[test]
fn costly_recovery_does_not_delay_a_command() {
    type Asked = fn(&mut World) -> Vec<String>;
    let limits = MachineLimits { crash_attempts: 1, ..MachineLimits::default() };
    let rows: [(&str, Asked, &[&str]); 3] = [
        (
            "resume",
            |world| {
                world.hold();
                world.crash();
                world.resume(Value::Null)
            },
            &["lifted with null", "resumed"],
        ),
        (
            "a timer",
            |world| {
                world.crash();
                world.due("both/two/nap")
            },
            &["both/two/nap is due"],
        ),
        (
            "cancel",
            |world| {
                world.crash();
                world.cancel()
            },
            &["both/one/a is cancelled", "both/two/nap is cancelled", "both is cancelled"],
        ),
    ];
    for (name, asked, begins) in rows {
        let steps = vec![all(
            "both",
            [("one", vec![run("a").instead(SQUARE)]), ("two", vec![sleep("nap", 100)])],
        )];
        let input = numbers(2000);
        let mut world = Setting { input, limits, ..Setting::default() }.start(workflow(steps));
        let lines = asked(&mut world);
        assert!(lines.len() >= begins.len(), "{name}: {lines:?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{name}: {lines:?}");
        }
        assert_eq!(world.machine.is_costly(), name != "cancel", "{name}");
        assert_eq!(world.running(), [""; 0], "{name}: not before it is recorded");
        if name != "cancel" {
            let after = all_is_decided(&mut world);
            let fails = after.iter().filter(|line| line.contains("interrupted 1 times"));
            assert_eq!(fails.count(), 1, "{name}: {after:?}");
        }
    }
}

/// After a costly evaluation, the next one is put off even within a large budget.
#[test]
fn one_costly_evaluation_is_made_at_a_time() {
    let asks = map("a", "1").asks().wants(json!({ "pattern": "^([a-z]{1,20}){1,20}$" }));
    let mut world = world(2000, vec![asks, map("b", SQUARE), map("c", SQUARE)]);
    world.budget = Budget::whole();
    let mut turns = Vec::new();
    let mut command = resume(None, "a".repeat(300));
    loop {
        turns.push(world.send(command).into_iter().filter(|line| line.contains(" gives ")).count());
        if !world.machine.has_more() {
            break;
        }
        command = Command::Recover;
    }
    assert_eq!(world.status(), Status::Completed);
    assert_eq!(turns, [1, 1, 1, 0], "{:?}", world.all_lines());
}
