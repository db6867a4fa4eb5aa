//! Kinds of steps, with one table of their names and keys.
//!
//! Add a new kind here first; `CONTRIBUTING.md` lists the other places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Block, Body, Projection};

/// Kind of a step with its contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Runs a body; its output is the next step's `data`.
    Then { body: Body },
    /// Runs a body for its effect; `data` passes through.
    Tap { body: Body },
    /// Runs the block if the expression is true; otherwise `data` passes through.
    When { when: String, block: Block },
    /// Runs all blocks concurrently; output: an array in their order.
    All { blocks: Vec<Block> },
    /// Runs all blocks concurrently; output: that of the first to complete.
    Race { blocks: Vec<Block> },
    /// Runs an agent; output: `{text, usage}`, or the object if there is a schema.
    Agent {
        agent: String,
        /// Template; defaults to the step's `data` as text.
        prompt: Option<String>,
        schema: Option<Value>,
        /// Generation options in the wire form (`maxSteps`, `temperature`, ...).
        options: Option<Value>,
    },
    /// Runs another workflow as a child execution.
    Workflow {
        workflow: String,
        /// Defaults to the step's `data`.
        input: Option<Projection>,
    },
    /// Waits; `data` passes through.
    Sleep { duration_ms: u64 },
    /// Waits until a point in time; `data` passes through.
    SleepUntil {
        /// Expression: an ISO 8601 time with a zone, or milliseconds since 1970.
        until: String,
    },
    /// Evaluates a value: an andThen whose body is a mapping.
    Map { map: Projection },
    /// Runs the block for each item; output: an array in the order of the items.
    ForEach {
        /// Must evaluate to an array.
        items: Projection,
        block: Block,
        /// Maximum number of items in progress.
        concurrency: u32,
    },
    /// Runs the block of the first case that is true, otherwise `default`; without one, `data`
    /// passes through.
    Branch { cases: Vec<Case>, default: Option<Block> },
    /// Runs the block, and repeats it while the expression over its output is true.
    DoWhile { when: String, block: Block, max_iterations: u32 },
    /// Runs the block, and repeats it until the expression over its output is true.
    DoUntil { when: String, block: Block, max_iterations: u32 },
}

/// A case of an andBranch step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    pub when: String,
    pub block: Block,
}

/// Kind of a step without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepType {
    Then,
    Tap,
    When,
    All,
    Race,
    Agent,
    Workflow,
    Sleep,
    SleepUntil,
    Map,
    ForEach,
    Branch,
    DoWhile,
    DoUntil,
}

/// A row of the table of kinds.
struct Row {
    name: &'static str,
    /// Keys of the kind's contents.
    keys: &'static [&'static str],
    /// True if it has attempts: `retry` and `timeout`.
    takes_retry: bool,
    /// True if it may suspend: `suspend` and its schemas.
    can_suspend: bool,
    /// True if it acts outside, which `compensate` undoes.
    can_compensate: bool,
}

const BODY_KEYS: &[&str] = &["map", "run", "http", "command", "tool", "args"];
const LOOP_KEYS: &[&str] = &["block", "when", "max_iterations"];
const SUSPEND_KEYS: &[&str] = &["suspend", "suspend_schema", "resume_schema"];
const RETRY_KEYS: &[&str] = &["retry", "timeout"];
const COMPENSATE_KEYS: &[&str] = &["compensate"];

impl StepType {
    pub const ALL: [Self; 14] = [
        Self::Then,
        Self::Tap,
        Self::When,
        Self::All,
        Self::Race,
        Self::Agent,
        Self::Workflow,
        Self::Sleep,
        Self::SleepUntil,
        Self::Map,
        Self::ForEach,
        Self::Branch,
        Self::DoWhile,
        Self::DoUntil,
    ];

    fn row(self) -> Row {
        let row = |name, keys, (takes_retry, can_suspend, can_compensate)| Row {
            name,
            keys,
            takes_retry,
            can_suspend,
            can_compensate,
        };
        let (whole, tap) = ((true, true, true), (true, false, true));
        let (pure, plain) = ((true, true, false), (false, false, false));
        match self {
            Self::Then => row("andThen", BODY_KEYS, whole),
            Self::Tap => row("andTap", BODY_KEYS, tap),
            Self::When => row("andWhen", &["when", "block"], plain),
            Self::All => row("andAll", &["blocks"], plain),
            Self::Race => row("andRace", &["blocks"], plain),
            Self::Agent => row("andAgent", &["agent", "prompt", "schema", "options"], whole),
            Self::Workflow => row("andWorkflow", &["workflow", "input"], whole),
            Self::Sleep => row("andSleep", &["duration"], plain),
            Self::SleepUntil => row("andSleepUntil", &["until"], plain),
            Self::Map => row("andMap", &["map"], pure),
            Self::ForEach => row("andForEach", &["items", "block", "concurrency"], plain),
            Self::Branch => row("andBranch", &["cases", "default"], plain),
            Self::DoWhile => row("andDoWhile", LOOP_KEYS, plain),
            Self::DoUntil => row("andDoUntil", LOOP_KEYS, plain),
        }
    }

    /// Returns the name on the wire and in configuration.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the keys of a step of this kind in addition to those of every step.
    pub fn keys(self) -> Vec<&'static str> {
        let Row { keys, takes_retry, can_suspend, can_compensate, .. } = self.row();
        let suspend = if can_suspend { SUSPEND_KEYS } else { &[] };
        let retry = if takes_retry { RETRY_KEYS } else { &[] };
        let compensate = if can_compensate { COMPENSATE_KEYS } else { &[] };
        [keys, suspend, retry, compensate].concat()
    }

    /// Returns true if the kind has attempts, with retries and a timeout.
    pub fn takes_retry(self) -> bool {
        self.row().takes_retry
    }

    /// Returns true if a step of this kind acts outside of the machine and can be compensated.
    pub fn can_compensate(self) -> bool {
        self.row().can_compensate
    }

    /// Returns true if a step of this kind may suspend.
    pub fn can_suspend(self) -> bool {
        self.row().can_suspend
    }
}

/// Source of an expression, a template or a projection.
#[derive(Debug, Clone, Copy)]
pub enum KindText<'d> {
    Expression(&'d str),
    Template(&'d str),
    Projection(&'d Projection),
}

/// The condition of a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopRule<'d> {
    pub when: &'d str,
    /// Value of `when` that starts another iteration.
    pub again_if: bool,
    pub max_iterations: u32,
}

impl StepKind {
    /// Returns the kind without its contents.
    pub fn step_type(&self) -> StepType {
        match self {
            Self::Then { .. } => StepType::Then,
            Self::Tap { .. } => StepType::Tap,
            Self::When { .. } => StepType::When,
            Self::All { .. } => StepType::All,
            Self::Race { .. } => StepType::Race,
            Self::Agent { .. } => StepType::Agent,
            Self::Workflow { .. } => StepType::Workflow,
            Self::Sleep { .. } => StepType::Sleep,
            Self::SleepUntil { .. } => StepType::SleepUntil,
            Self::Map { .. } => StepType::Map,
            Self::ForEach { .. } => StepType::ForEach,
            Self::Branch { .. } => StepType::Branch,
            Self::DoWhile { .. } => StepType::DoWhile,
            Self::DoUntil { .. } => StepType::DoUntil,
        }
    }

    /// Returns the name on the wire.
    pub fn name(&self) -> &'static str {
        self.step_type().name()
    }

    /// Returns the body, for the kinds that run one.
    pub fn body(&self) -> Option<&Body> {
        if let Self::Then { body } | Self::Tap { body } = self { Some(body) } else { None }
    }

    /// Returns the condition, for the kinds that repeat their block.
    pub fn loop_rule(&self) -> Option<LoopRule<'_>> {
        if let Self::DoWhile { when, max_iterations, .. } = self {
            Some(LoopRule { when, again_if: true, max_iterations: *max_iterations })
        } else if let Self::DoUntil { when, max_iterations, .. } = self {
            Some(LoopRule { when, again_if: false, max_iterations: *max_iterations })
        } else {
            None
        }
    }

    /// Returns the blocks that the step contains, in their order.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::When { block, .. }
            | Self::ForEach { block, .. }
            | Self::DoWhile { block, .. }
            | Self::DoUntil { block, .. } => vec![block],
            Self::All { blocks } | Self::Race { blocks } => blocks.iter().collect(),
            Self::Branch { cases, default } => {
                cases.iter().map(|case| &case.block).chain(default).collect()
            }
            Self::Then { .. }
            | Self::Tap { .. }
            | Self::Agent { .. }
            | Self::Workflow { .. }
            | Self::Sleep { .. }
            | Self::SleepUntil { .. }
            | Self::Map { .. } => Vec::new(),
        }
    }

    /// Returns the blocks mutably, in the order of [`StepKind::blocks`].
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Self::When { block, .. }
            | Self::ForEach { block, .. }
            | Self::DoWhile { block, .. }
            | Self::DoUntil { block, .. } => vec![block],
            Self::All { blocks } | Self::Race { blocks } => blocks.iter_mut().collect(),
            Self::Branch { cases, default } => {
                cases.iter_mut().map(|case| &mut case.block).chain(default).collect()
            }
            Self::Then { .. }
            | Self::Tap { .. }
            | Self::Agent { .. }
            | Self::Workflow { .. }
            | Self::Sleep { .. }
            | Self::SleepUntil { .. }
            | Self::Map { .. } => Vec::new(),
        }
    }

    /// Returns the sources to evaluate, each with its key (parts joined by dots), except those of
    /// the body and of the blocks.
    pub fn texts(&self) -> Vec<(String, KindText<'_>)> {
        let one = |key: &str, text| vec![(key.to_owned(), text)];
        let value = |key: &str, value| one(key, KindText::Projection(value));
        match self {
            Self::When { when, .. } | Self::DoWhile { when, .. } | Self::DoUntil { when, .. } => {
                one("when", KindText::Expression(when))
            }
            Self::SleepUntil { until } => one("until", KindText::Expression(until)),
            Self::Agent { prompt: Some(prompt), .. } => one("prompt", KindText::Template(prompt)),
            Self::Workflow { input: Some(input), .. } => value("input", input),
            Self::Map { map } => value("map", map),
            Self::ForEach { items, .. } => value("items", items),
            Self::Branch { cases, .. } => {
                let whens = cases.iter().map(|case| KindText::Expression(&case.when));
                whens.enumerate().map(|(at, when)| (format!("cases.{at}.when"), when)).collect()
            }
            Self::Agent { prompt: None, .. }
            | Self::Workflow { input: None, .. }
            | Self::Then { .. }
            | Self::Tap { .. }
            | Self::All { .. }
            | Self::Race { .. }
            | Self::Sleep { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in StepType::ALL {
            assert_eq!(StepType::named(kind.name()), Some(kind));
        }
        assert_eq!(StepType::named("andNothing"), None);
    }

    #[test]
    fn keys_follow_from_what_a_kind_takes() {
        for kind in StepType::ALL {
            let keys = kind.keys();
            assert_eq!(keys.contains(&"retry"), kind.takes_retry(), "{kind:?}");
            assert_eq!(keys.contains(&"suspend"), kind.can_suspend(), "{kind:?}");
            assert_eq!(keys.contains(&"compensate"), kind.can_compensate(), "{kind:?}");
        }
    }
}
