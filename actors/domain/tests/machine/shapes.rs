//! Random definitions of every kind of step.

use greenroom_domain::definition::{
    Mapping, OnError, OnTimeout, RetryPolicy, StepDefinition, SuspendRule,
};
use proptest::prelude::{Strategy, any};
use proptest::{collection, option, prop_oneof, sample};
use serde_json::{Value, json};

use crate::machine::build::{self, Adorned};

/// A step without names; these are added when it is built.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Map(usize),
    Run(Extras),
    Tap(Extras),
    Agent(Extras),
    Child(Extras),
    Sleep(u64),
    SleepUntil(usize),
    ForEach { items: usize, concurrency: u32, steps: Vec<Shape>, on_error: usize },
    Choice { cases: Vec<(usize, Vec<Shape>)>, default: Option<Vec<Shape>> },
    Loop { until: bool, when: usize, rounds: u32, steps: Vec<Shape>, on_error: usize },
    When(usize, Vec<Shape>),
    Container { is_race: bool, blocks: Vec<Vec<Shape>>, on_error: usize },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extras {
    suspend: Option<Ask>,
    wants_ok: bool,
    retry: Option<(u32, u64)>,
    on_error: usize,
    /// Number of attempts of the compensation, and whether it is a child.
    compensate: Option<(u32, bool)>,
}

#[derive(Debug, Clone, Copy)]
struct Ask {
    when: usize,
    payload: usize,
    deadline: Option<(u64, usize)>,
}

const MAPS: [&str; 6] = ["data", "input", "resume", "1.5", "steps | length", "data.no.such"];
const ITEMS: [&str; 4] = ["[]", "[1, 'two', none]", "range(5) | list", "data"];
const ENDS: [&str; 4] = ["true", "index == 1", "steps | length > 1", "data.no.such"];
const TIMES: [&str; 3] = ["1700000000200", "'2023-11-14T22:13:20.100Z'", "data"];
const CONDITIONS: [&str; 5] = ["true", "false", "data is number", "resume is none", "data.no.such"];
const PAYLOADS: [Option<&str>; 3] = [None, Some("none"), Some("input")];
const ANSWERS: [Option<&str>; 4] = [None, Some("{'ok': true}"), Some("none"), Some("data.no.such")];

/// Returns the schema of [`Extras::wants_ok`].
pub(crate) fn ok_schema() -> Value {
    json!({
        "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } },
    })
}

fn extras() -> impl Strategy<Value = Extras> {
    let deadline = option::of((1..500_u64, 0..ANSWERS.len()));
    let ask = (0..CONDITIONS.len(), 0..PAYLOADS.len(), deadline)
        .prop_map(|(when, payload, deadline)| Ask { when, payload, deadline });
    let retry = option::of((1..4_u32, 0..300_u64));
    let compensate = option::of((1..3_u32, sample::select(vec![false, false, true])));
    (option::of(ask), any::<bool>(), retry, 0..3_usize, compensate).prop_map(
        |(suspend, wants_ok, retry, on_error, compensate)| Extras {
            suspend,
            wants_ok,
            retry,
            on_error,
            compensate,
        },
    )
}

pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        2 => (0..MAPS.len()).prop_map(Shape::Map),
        4 => extras().prop_map(Shape::Run),
        1 => extras().prop_map(Shape::Tap),
        1 => extras().prop_map(Shape::Agent),
        2 => extras().prop_map(Shape::Child),
        1 => (0..400_u64).prop_map(Shape::Sleep),
        1 => (0..TIMES.len()).prop_map(Shape::SleepUntil),
    ];
    leaf.prop_recursive(3, 14, 3, |inner| {
        let block = collection::vec(inner, 1..3);
        let blocks = collection::vec(block.clone(), 1..4);
        prop_oneof![
            (0..CONDITIONS.len(), block.clone()).prop_map(|(when, steps)| Shape::When(when, steps)),
            (0..ITEMS.len(), 1..3_u32, block.clone(), 0..3_usize).prop_map(
                |(items, concurrency, steps, on_error)| Shape::ForEach {
                    items,
                    concurrency,
                    steps,
                    on_error,
                }
            ),
            (
                collection::vec((0..CONDITIONS.len(), block.clone()), 1..3),
                option::of(block.clone())
            )
                .prop_map(|(cases, default)| Shape::Choice { cases, default }),
            (any::<bool>(), 0..ENDS.len(), 1..4_u32, block, 0..3_usize).prop_map(
                |(until, when, rounds, steps, on_error)| Shape::Loop {
                    until,
                    when,
                    rounds,
                    steps,
                    on_error,
                }
            ),
            (any::<bool>(), blocks, 0..3_usize).prop_map(|(is_race, blocks, on_error)| {
                Shape::Container { is_race, blocks, on_error }
            }),
        ]
    })
}

pub(crate) fn build(shapes: Vec<Shape>, named: &mut usize) -> Vec<StepDefinition> {
    shapes.into_iter().map(|shape| build_one(shape, named)).collect()
}

fn build_one(shape: Shape, named: &mut usize) -> StepDefinition {
    *named += 1;
    let id = format!("s{named}");
    match shape {
        Shape::Map(source) => build::map(&id, MAPS[source]),
        Shape::Run(extras) => adorn(build::run(&id), extras),
        Shape::Tap(extras) => adorn(build::tap(&id), Extras { suspend: None, ..extras }),
        Shape::Agent(extras) => adorn(build::agent(&id, None), extras),
        Shape::Child(extras) => adorn(build::child(&id), extras),
        Shape::Sleep(ms) => build::sleep(&id, ms),
        Shape::SleepUntil(time) => build::sleep_until(&id, TIMES[time]),
        Shape::ForEach { items, concurrency, steps, on_error } => {
            build::for_each(&id, ITEMS[items], concurrency, build(steps, named))
                .on_error(on_error_of(on_error))
        }
        Shape::Choice { cases, default } => {
            let cases = cases
                .into_iter()
                .map(|(when, steps)| (CONDITIONS[when], build(steps, named)))
                .collect();
            build::branch(&id, cases, default.map(|steps| build(steps, named)))
        }
        Shape::Loop { until, when, rounds, steps, on_error } => {
            build::repeat(&id, until, ENDS[when], rounds, build(steps, named))
                .on_error(on_error_of(on_error))
        }
        Shape::When(when, steps) => build::when(&id, CONDITIONS[when], build(steps, named)),
        Shape::Container { is_race, blocks, on_error } => {
            let blocks = blocks.into_iter().map(|steps| build(steps, named)).collect();
            build::container(&id, is_race, blocks).on_error(on_error_of(on_error))
        }
    }
}

fn on_error_of(choice: usize) -> OnError {
    match choice {
        0 => OnError::Fail,
        1 => OnError::Ignore,
        _ => OnError::Value(Mapping(json!({ "instead": "input" }))),
    }
}

fn adorn(step: StepDefinition, extras: Extras) -> StepDefinition {
    let Extras { suspend, wants_ok, retry, on_error, compensate } = extras;
    let retry = retry.map(|(attempts, delay_ms)| RetryPolicy {
        attempts,
        delay_ms,
        jitter: delay_ms % 2 == 0,
        ..RetryPolicy::default()
    });
    StepDefinition {
        suspend: suspend.map(rule),
        resume_schema: wants_ok.then(ok_schema),
        retry,
        on_error: on_error_of(on_error),
        compensate: compensate
            .map(|(attempts, is_child)| Box::new(build::compensation("undo", is_child, attempts))),
        ..step
    }
}

fn rule(ask: Ask) -> SuspendRule {
    let answer = ask.deadline.and_then(|(_, answer)| ANSWERS[answer]);
    SuspendRule {
        when: Some(CONDITIONS[ask.when].to_owned()),
        reason: None,
        payload: PAYLOADS[ask.payload].map(|source| Mapping(json!(source))),
        deadline_ms: ask.deadline.map(|(ms, _)| ms),
        on_timeout: answer
            .map_or(OnTimeout::Fail, |source| OnTimeout::Resume(Mapping(json!(source)))),
        ..SuspendRule::default()
    }
}
