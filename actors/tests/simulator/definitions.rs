//! Random definitions. A workflow calls only later ones, so that children are finite.

use greenroom_actors::domain::definition::{
    Block, Body, Case, CommandBody, HttpBody, HttpMethod, Mapping, OnError, OnTimeout, RetryPolicy,
    StepDefinition, StepKind, SuspendRule, WorkflowDefinition,
};
use greenroom_actors::testkit::EPOCH_MS;
use serde_json::{Value, json};

use crate::simulator::dice::Dice;

const VALUES: [&str; 7] =
    ["data", "input", "resume", "1.5", "steps | length", "[data, input.n]", "data.no.such"];
const CONDITIONS: [&str; 5] = ["true", "false", "data is number", "resume is none", "input.n > 9"];
/// An expression that exceeds the budget of a turn: it searches each of 400 numbers among them.
const COSTLY: &str = "range(400) | select('in', range(400)) | list | length";
/// Answers of deadlines.
const ANSWERS: [&str; 3] = ["{'ok': true}", "none", "data.no.such"];
/// Maximum wait of a definition.
const WAIT_MS: u64 = 200_000;

pub(crate) fn workflows(dice: &mut Dice) -> Vec<WorkflowDefinition> {
    let count = dice.between(2, 5);
    (0..count).map(|number| Author { dice, number, count, steps: 0 }.workflow()).collect()
}

/// Returns a workflow of one step.
pub(crate) fn workflow(id: &str, kind: StepKind) -> WorkflowDefinition {
    WorkflowDefinition::new(id, vec![StepDefinition::new("s1", kind)])
}

/// Generator of one workflow.
struct Author<'a> {
    dice: &'a mut Dice,
    number: u64,
    /// Number of workflows.
    count: u64,
    steps: u64,
}

impl Author<'_> {
    fn workflow(mut self) -> WorkflowDefinition {
        let id = format!("w{}", self.number);
        let result = self.dice.chance(20).then(|| Mapping(json!({ "got": "data" })));
        let steps = self.block(0);
        WorkflowDefinition { result, ..WorkflowDefinition::new(id, steps) }
    }

    fn block(&mut self, depth: u64) -> Vec<StepDefinition> {
        let steps = self.dice.between(1, if depth == 0 { 5 } else { 2 });
        (0..steps).map(|_| self.step(depth)).collect()
    }

    fn blocks(&mut self, depth: u64) -> Vec<Block> {
        let blocks = self.dice.between(1, 3);
        let mut named = Vec::new();
        for index in 0..blocks {
            named.push(Block { name: format!("b{index}"), steps: self.block(depth + 1) });
        }
        named
    }

    fn step(&mut self, depth: u64) -> StepDefinition {
        self.steps += 1;
        let id = format!("s{}", self.steps);
        let may_nest = depth < 2 && self.steps < 14;
        let mut asks = true;
        let kind = match self.dice.below(if may_nest { 100 } else { 72 }) {
            0..10 => StepKind::Then { body: self.map() },
            10..36 => StepKind::Then { body: self.body() },
            36..42 => {
                asks = false;
                let body = if self.dice.chance(70) { self.body() } else { self.map() };
                StepKind::Tap { body }
            }
            42..50 => self.agent(),
            50..62 if self.number + 1 < self.count => self.child(),
            50..62 => StepKind::Then { body: run() },
            choice => {
                let kind = if choice < 72 { self.pure() } else { self.container(depth) };
                return StepDefinition {
                    on_error: self.on_error(),
                    ..StepDefinition::new(id, kind)
                };
            }
        };
        self.adorned(StepDefinition::new(id, kind), asks)
    }

    /// Returns a sleep or a mapping.
    fn pure(&mut self) -> StepKind {
        match self.dice.below(8) {
            0..4 => StepKind::Sleep { duration_ms: self.dice.millis(WAIT_MS) },
            4..6 => {
                // some times have passed, some are far ahead
                let ms = EPOCH_MS + i64::try_from(self.dice.millis(3_000_000)).unwrap();
                let until = if self.dice.chance(90) { ms.to_string() } else { "data".to_owned() };
                StepKind::SleepUntil { until }
            }
            _ => StepKind::Map { map: Mapping(json!(self.dice.pick(&VALUES))) },
        }
    }

    fn container(&mut self, depth: u64) -> StepKind {
        let when = self.dice.pick(&CONDITIONS).to_owned();
        match self.dice.below(7) {
            0 => StepKind::When { when, block: self.one_block("then", depth) },
            1 => StepKind::All { blocks: self.blocks(depth) },
            2 => StepKind::Race { blocks: self.blocks(depth) },
            3 => {
                let items = self.dice.pick(&["[data, input, 3]", "[]", "range(5)", "data"]);
                let concurrency = u32::try_from(self.dice.between(1, 4)).unwrap();
                let items = Mapping(json!(items));
                StepKind::ForEach { items, block: self.one_block("each", depth), concurrency }
            }
            4 => {
                let blocks = self.blocks(depth);
                let mut cases: Vec<Case> = blocks
                    .into_iter()
                    .map(|block| Case { when: self.dice.pick(&CONDITIONS).to_owned(), block })
                    .collect();
                let last = (cases.len() > 1 && self.dice.chance(60)).then(|| cases.pop());
                StepKind::Branch { cases, default: last.flatten().map(|case| case.block) }
            }
            loops => {
                let block = self.one_block("again", depth);
                let max_iterations = u32::try_from(self.dice.between(1, 5)).unwrap();
                match loops {
                    5 => StepKind::DoWhile { when, block, max_iterations },
                    _ => StepKind::DoUntil { when, block, max_iterations },
                }
            }
        }
    }

    fn one_block(&mut self, name: &str, depth: u64) -> Block {
        Block { name: name.to_owned(), steps: self.block(depth + 1) }
    }

    fn map(&mut self) -> Body {
        let costly = self.dice.chance(10);
        Body::Map(Mapping(json!(if costly { COSTLY } else { self.dice.pick(&VALUES) })))
    }

    /// Returns work in this process, or a call out of it.
    fn body(&mut self) -> Body {
        match self.dice.below(5) {
            0 => Body::Http(HttpBody {
                method: HttpMethod::Post,
                url: "https://outside.example/".to_owned(),
                headers: [].into(),
                query: [].into(),
                body: None,
            }),
            1 => Body::Command(CommandBody {
                argv: vec!["/bin/outside".to_owned()],
                ..CommandBody::default()
            }),
            _ => run(),
        }
    }

    fn agent(&mut self) -> StepKind {
        let schema = self.dice.chance(20).then(|| json!({ "type": "object", "required": ["n"] }));
        StepKind::Agent { agent: "helper".to_owned(), prompt: None, schema, options: None }
    }

    fn child(&mut self) -> StepKind {
        let workflow = format!("w{}", self.dice.between(self.number + 1, self.count - 1));
        let input = self.dice.chance(30).then(|| Mapping(json!({ "n": 1, "of": "data" })));
        StepKind::Workflow { workflow, input }
    }

    fn adorned(&mut self, step: StepDefinition, asks: bool) -> StepDefinition {
        let has_body = !matches!(&step.kind, StepKind::Then { body: Body::Map(_) });
        let suspend = (asks && self.dice.chance(22)).then(|| self.rule());
        let retry = (has_body && self.dice.chance(45)).then(|| RetryPolicy {
            attempts: u32::try_from(self.dice.between(1, 4)).unwrap(),
            delay_ms: self.dice.millis(20_000),
            jitter: self.dice.chance(50),
            ..RetryPolicy::default()
        });
        let timeout_ms = (has_body && self.dice.chance(20)).then(|| 1 + self.dice.millis(60_000));
        StepDefinition {
            suspend,
            resume_schema: self.dice.chance(35).then(wants_ok),
            retry,
            timeout_ms,
            on_error: self.on_error(),
            ..step
        }
    }

    fn rule(&mut self) -> SuspendRule {
        let deadline_ms = self.dice.chance(50).then(|| 1 + self.dice.millis(WAIT_MS));
        let on_timeout = match deadline_ms.is_some() && self.dice.chance(50) {
            true => OnTimeout::Resume(Mapping(json!(self.dice.pick(&ANSWERS)))),
            false => OnTimeout::Fail,
        };
        SuspendRule {
            when: self.dice.chance(40).then(|| self.dice.pick(&CONDITIONS).to_owned()),
            reason: None,
            payload: self
                .dice
                .chance(20)
                .then(|| Mapping(json!(self.dice.pick(&["input", "input", COSTLY])))),
            deadline_ms,
            on_timeout,
            ..SuspendRule::default()
        }
    }

    fn on_error(&mut self) -> OnError {
        match self.dice.below(10) {
            0..5 => OnError::Fail,
            5..8 => OnError::Ignore,
            8 => OnError::Value(Mapping(json!({ "instead": COSTLY }))),
            _ => OnError::Value(Mapping(json!({ "instead": "input" }))),
        }
    }
}

/// Resume schema of some steps.
fn wants_ok() -> Value {
    json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } })
}

fn run() -> Body {
    Body::Run { function: "work".to_owned(), version: None }
}
