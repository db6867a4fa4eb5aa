//! Kinds of steps, with one table of their names and keys.
//!
//! Add a new kind here first; `CONTRIBUTING.md` lists the other places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::nature::{Called, Container, Course, Keys, KindText, LoopRule, Output};
use super::{Block, Body, Mapping};

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
        input: Option<Mapping>,
    },
    /// Waits; `data` passes through.
    Sleep { duration_ms: u64 },
    /// Waits until a point in time; `data` passes through.
    SleepUntil {
        /// Expression: an ISO 8601 time with a zone, or milliseconds since 1970.
        until: String,
    },
    /// Evaluates a value: an andThen whose body is a mapping.
    Map { map: Mapping },
    /// Runs the block for each item; output: an array in the order of the items.
    ForEach {
        /// Must evaluate to an array.
        items: Mapping,
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

/// Defines the kinds without contents, and the array of all of them.
macro_rules! step_types {
    ($($kind:ident),* $(,)?) => {
        /// Kind of a step without its contents.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum StepType {
            $($kind),*
        }

        impl StepType {
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];
        }
    };
}

step_types! {
    Then, Tap, When, All, Race, Agent, Workflow, Sleep, SleepUntil, Map, ForEach, Branch, DoWhile,
    DoUntil,
}

/// A row of the table of kinds.
struct Row {
    name: &'static str,
    course: Course,
    /// Keys of the kind's contents.
    keys: Keys,
    /// True if it has attempts: `retry` and `timeout`.
    takes_retry: bool,
    /// True if it may suspend: `suspend` and its schemas.
    can_suspend: bool,
    /// True if it acts outside, which `compensate` undoes.
    can_compensate: bool,
    /// True if `compensate` may be of this kind.
    is_compensation: bool,
}

const BODY: Keys =
    Keys { one_of: &["map", "run", "http", "command", "tool"], required: &[], optional: &["args"] };
const LOOP: Keys =
    Keys { one_of: &[], required: &["when", "block", "max_iterations"], optional: &[] };
const SUSPEND_KEYS: &[&str] = &["suspend", "suspend_schema", "resume_schema"];
const RETRY_KEYS: &[&str] = &["retry", "timeout"];
const COMPENSATE_KEYS: &[&str] = &["compensate"];

impl StepType {
    fn row(self) -> Row {
        use Course::{Blocks, Wait, Work};
        let row = |name, course, keys, features| {
            let (takes_retry, can_suspend, can_compensate, is_compensation) = features;
            Row { name, course, keys, takes_retry, can_suspend, can_compensate, is_compensation }
        };
        let keys = |required, optional| Keys { one_of: &[], required, optional };
        let (whole, agent) = ((true, true, true, true), (true, true, true, false));
        let (tap, pure) = ((true, false, true, false), (true, true, false, false));
        let plain = (false, false, false, false);
        match self {
            Self::Then => row("andThen", Work, BODY, whole),
            Self::Tap => row("andTap", Work, BODY, tap),
            Self::When => {
                row("andWhen", Blocks(Container::Optional), keys(&["when", "block"], &[]), plain)
            }
            Self::All => row("andAll", Blocks(Container::All), keys(&["blocks"], &[]), plain),
            Self::Race => row("andRace", Blocks(Container::Race), keys(&["blocks"], &[]), plain),
            Self::Agent => {
                row("andAgent", Work, keys(&["agent"], &["prompt", "schema", "options"]), agent)
            }
            Self::Workflow => row("andWorkflow", Work, keys(&["workflow"], &["input"]), whole),
            Self::Sleep => row("andSleep", Wait, keys(&["duration"], &[]), plain),
            Self::SleepUntil => row("andSleepUntil", Wait, keys(&["until"], &[]), plain),
            Self::Map => row("andMap", Work, keys(&["map"], &[]), pure),
            Self::ForEach => {
                let keys = keys(&["items", "block"], &["concurrency"]);
                row("andForEach", Blocks(Container::Items), keys, plain)
            }
            Self::Branch => {
                row("andBranch", Blocks(Container::OneOf), keys(&["cases"], &["default"]), plain)
            }
            Self::DoWhile => row("andDoWhile", Blocks(Container::Rounds), LOOP, plain),
            Self::DoUntil => row("andDoUntil", Blocks(Container::Rounds), LOOP, plain),
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
        let Keys { one_of, required, optional } = keys;
        let suspend = if can_suspend { SUSPEND_KEYS } else { &[] };
        let retry = if takes_retry { RETRY_KEYS } else { &[] };
        let compensate = if can_compensate { COMPENSATE_KEYS } else { &[] };
        [one_of, required, optional, suspend, retry, compensate].concat()
    }

    /// Returns the keys that a step of this kind has to have.
    pub fn required_keys(self) -> &'static [&'static str] {
        self.row().keys.required
    }

    /// Returns the keys of which a step of this kind has exactly one; empty: there are none.
    pub fn alternative_keys(self) -> &'static [&'static str] {
        self.row().keys.one_of
    }

    /// Returns what a step of this kind does until it ends.
    pub fn course(self) -> Course {
        self.row().course
    }

    /// Returns how its blocks run, for the kinds with blocks.
    pub fn container(self) -> Option<Container> {
        match self.course() {
            Course::Blocks(container) => Some(container),
            Course::Work | Course::Wait => None,
        }
    }

    /// Returns true if the kind has attempts, with retries and a timeout.
    pub fn takes_retry(self) -> bool {
        self.row().takes_retry
    }

    /// Returns true if a step of this kind acts outside of the machine and can be compensated.
    pub fn can_compensate(self) -> bool {
        self.row().can_compensate
    }

    /// Returns true if the compensation of a step can be of this kind.
    pub fn is_compensation(self) -> bool {
        self.row().is_compensation
    }

    /// Returns true if a step of this kind may suspend.
    pub fn can_suspend(self) -> bool {
        self.row().can_suspend
    }
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

    /// Returns the kind of a step that has this body in place of its contents: a tap stays one.
    pub fn with_body(&self, body: Body) -> Self {
        if let Self::Tap { .. } = self { Self::Tap { body } } else { Self::Then { body } }
    }

    /// Returns the name of what the step calls, if it has one.
    pub fn called(&self) -> Option<Called<&str>> {
        match self {
            Self::Then { body } | Self::Tap { body } => match body {
                Body::Run { function, .. } => Some(Called::Function(function)),
                Body::Tool { tool, .. } => Some(Called::Tool(tool)),
                Body::Map(_) | Body::Http(_) | Body::Command(_) => None,
            },
            Self::Agent { agent, .. } => Some(Called::Agent(agent)),
            Self::Workflow { workflow, .. } => Some(Called::Workflow(workflow)),
            Self::When { .. }
            | Self::All { .. }
            | Self::Race { .. }
            | Self::Sleep { .. }
            | Self::SleepUntil { .. }
            | Self::Map { .. }
            | Self::ForEach { .. }
            | Self::Branch { .. }
            | Self::DoWhile { .. }
            | Self::DoUntil { .. } => None,
        }
    }

    /// Returns the id of the workflow that the step runs, if it runs one.
    pub fn child_workflow(&self) -> Option<&str> {
        if let Some(Called::Workflow(workflow)) = self.called() { Some(workflow) } else { None }
    }

    /// Returns what the kind says about the step's output.
    pub fn output(&self) -> Output<'_> {
        match self {
            Self::Then { body: Body::Map(map) } | Self::Map { map } => Output::Mapping(map),
            Self::Agent { schema, .. } => Output::Answer(schema.as_ref()),
            Self::Tap { .. } | Self::Sleep { .. } | Self::SleepUntil { .. } => Output::Data,
            Self::DoWhile { .. } | Self::DoUntil { .. } => Output::OfBlock,
            Self::ForEach { .. } => Output::ListOfBlock,
            Self::All { .. } => Output::List,
            Self::Then {
                body: Body::Run { .. } | Body::Http(_) | Body::Command(_) | Body::Tool { .. },
            }
            | Self::When { .. }
            | Self::Race { .. }
            | Self::Branch { .. }
            | Self::Workflow { .. } => Output::Unknown,
        }
    }

    /// Returns the items, for the kinds that run their block for each.
    pub fn items(&self) -> Option<&Mapping> {
        if let Self::ForEach { items, .. } = self { Some(items) } else { None }
    }

    /// Returns the conditions of the blocks in their order, each with its key (parts joined by
    /// dots). A block without one runs if none of them is true.
    pub fn conditions(&self) -> Vec<(String, &str)> {
        if !self.step_type().container().is_some_and(Container::is_conditional) {
            return Vec::new();
        }
        let conditions = self.texts().into_iter().filter_map(|(key, text)| match text {
            KindText::Expression(when) => Some((key, when)),
            KindText::Template(_) | KindText::Mapping(_) => None,
        });
        conditions.collect()
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
        let value = |key: &str, value| one(key, KindText::Mapping(value));
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
