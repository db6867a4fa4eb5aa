//! Steps, by kind, and what may surround them.

use std::time::Duration;

use greenroom_actors::domain::definition::{
    self, Body, Case, OnError, Projection, StepDefinition, StepKind,
};
use greenroom_actors::domain::plan::Problem;
use serde_json::Value;

use super::{Block, Retry, Suspend};
use crate::config::workflows::kind;
use crate::config::{AgentOptions, milliseconds};

/// A body that maps: strings are expressions, arrays and objects are taken apart.
pub fn map(value: Value) -> Body {
    Body::Map(Projection(value))
}

/// A body that calls a registered function.
pub fn run(function: impl Into<String>) -> Body {
    Body::Run { function: function.into(), version: None }
}

/// A step being built.
#[derive(Debug, Clone)]
pub struct Step {
    step: StepDefinition,
    /// Keys that were set, to see whether they fit.
    set: Vec<&'static str>,
    misfits: Vec<Problem>,
}

impl Step {
    /// Runs a body; its output is the next step's `data`.
    pub fn then(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Then { body })
    }

    /// Maps; short for [`Step::then`] with [`map`].
    pub fn map(id: impl Into<String>, value: Value) -> Self {
        Self::then(id, map(value))
    }

    /// Calls a registered function; short for [`Step::then`] with [`run`].
    pub fn run(id: impl Into<String>, function: impl Into<String>) -> Self {
        Self::then(id, run(function))
    }

    /// Runs a body for its effect; `data` passes through.
    pub fn tap(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Tap { body })
    }

    /// Runs the block when the expression holds; else `data` passes through.
    pub fn when(id: impl Into<String>, expression: impl Into<String>, block: Block) -> Self {
        let Block { block, misfits } = block;
        let step = Self::new(id, StepKind::When { when: expression.into(), block });
        Self { misfits, ..step }
    }

    /// Runs all blocks at once; output: an array in their order.
    pub fn all(id: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::container(id, blocks, |blocks| StepKind::All { blocks })
    }

    /// Runs all blocks at once; output: that of the first to complete.
    pub fn race(id: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::container(id, blocks, |blocks| StepKind::Race { blocks })
    }

    /// Runs an agent on the text of the step's `data`; see [`Step::prompt`].
    pub fn agent(id: impl Into<String>, agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self::new(id, StepKind::Agent { agent, prompt: None, schema: None, options: None })
    }

    /// Runs another workflow on the step's `data`; see [`Step::input`].
    pub fn workflow(id: impl Into<String>, workflow: impl Into<String>) -> Self {
        Self::new(id, StepKind::Workflow { workflow: workflow.into(), input: None })
    }

    /// Waits; `data` passes through.
    pub fn sleep(id: impl Into<String>, duration: Duration) -> Self {
        Self::new(id, StepKind::Sleep { duration_ms: milliseconds(duration) })
    }

    /// Waits until a point in time; `data` passes through. The expression gives an ISO 8601 text
    /// with a zone, or milliseconds since 1970.
    pub fn sleep_until(id: impl Into<String>, expression: impl Into<String>) -> Self {
        Self::new(id, StepKind::SleepUntil { until: expression.into() })
    }

    /// Runs the block for each item of an array, one after another unless
    /// [`Step::concurrency`] says otherwise; output: an array in the order of the items. Inside,
    /// `data` and `item` are the item and `index` counts from 0.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let charge = Block::new("charge").step(Step::run("pay", "charge"));
    /// let orders = Workflow::new("orders")
    ///     .step(Step::for_each("each", json!("input.orders"), charge).concurrency(4));
    /// assert!(orders.build().is_ok());
    /// ```
    pub fn for_each(id: impl Into<String>, items: Value, block: Block) -> Self {
        let Block { block, misfits } = block;
        let kind = StepKind::ForEach { items: Projection(items), block, concurrency: 1 };
        Self { misfits, ..Self::new(id, kind) }
    }

    /// Runs the block of the first case whose expression holds; with none, the
    /// [`Step::otherwise`] block, else `data` passes through.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let small = Block::new("small").step(Step::map("pay", json!("'at once'")));
    /// let large = Block::new("large").step(Step::map("ask", json!("'after a question'")));
    /// let pays = Step::branch("pays", [("input.amount < 100", small)]).otherwise(large);
    /// assert!(Workflow::new("expenses").step(pays).compile().is_ok());
    /// ```
    pub fn branch<W: Into<String>>(
        id: impl Into<String>,
        cases: impl IntoIterator<Item = (W, Block)>,
    ) -> Self {
        let mut misfits = Vec::new();
        let case = |(when, block): (W, Block)| {
            misfits.extend(block.misfits);
            Case { when: when.into(), block: block.block }
        };
        let cases = cases.into_iter().map(case).collect();
        Self { misfits, ..Self::new(id, StepKind::Branch { cases, default: None }) }
    }

    /// Runs the block, and again while the expression holds of what it gave; each round's output
    /// is the next one's `data`. After `max_iterations` rounds that ask for more, the step fails.
    pub fn do_while(
        id: impl Into<String>,
        block: Block,
        expression: impl Into<String>,
        max_iterations: u32,
    ) -> Self {
        let (Block { block, misfits }, when) = (block, expression.into());
        let kind = StepKind::DoWhile { when, block, max_iterations };
        Self { misfits, ..Self::new(id, kind) }
    }

    /// Runs the block, and again until the expression holds of what it gave; like
    /// [`Step::do_while`] otherwise.
    pub fn do_until(
        id: impl Into<String>,
        block: Block,
        expression: impl Into<String>,
        max_iterations: u32,
    ) -> Self {
        let (Block { block, misfits }, when) = (block, expression.into());
        let kind = StepKind::DoUntil { when, block, max_iterations };
        Self { misfits, ..Self::new(id, kind) }
    }

    /// What people call it; without it, its id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.step.name = name.into();
        self
    }

    /// What it is for.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.step.purpose = purpose.into();
        self
    }

    /// How many items [`Step::for_each`] has at work at once; 1 without it.
    pub fn concurrency(mut self, items: u32) -> Self {
        if let StepKind::ForEach { concurrency, .. } = &mut self.step.kind {
            *concurrency = items;
        }
        self.setting("concurrency")
    }

    /// What [`Step::branch`] runs when no case holds.
    pub fn otherwise(mut self, block: Block) -> Self {
        let Block { block, misfits } = block;
        self.misfits.extend(misfits);
        if let StepKind::Branch { default, .. } = &mut self.step.kind {
            *default = Some(block);
        }
        self.setting("default")
    }

    /// Template of an agent step's prompt.
    pub fn prompt(mut self, template: impl Into<String>) -> Self {
        if let StepKind::Agent { prompt, .. } = &mut self.step.kind {
            *prompt = Some(template.into());
        }
        self.setting("prompt")
    }

    /// JSON Schema of the object that an agent step answers with.
    pub fn schema(mut self, json_schema: Value) -> Self {
        if let StepKind::Agent { schema, .. } = &mut self.step.kind {
            *schema = Some(json_schema);
        }
        self.setting("schema")
    }

    /// Options of an agent step's call.
    pub fn options(mut self, agent_options: AgentOptions) -> Self {
        if let StepKind::Agent { options, .. } = &mut self.step.kind {
            *options = agent_options.into_wire();
        }
        self.setting("options")
    }

    /// Input of a sub-workflow. Strings are expressions.
    pub fn input(mut self, value: Value) -> Self {
        if let StepKind::Workflow { input, .. } = &mut self.step.kind {
            *input = Some(Projection(value));
        }
        self.setting("input")
    }

    /// Asks for a resume before the work starts.
    pub fn suspend(mut self, suspend: Suspend) -> Self {
        self.step.suspend = Some(suspend.rule);
        self.setting("suspend")
    }

    /// JSON Schema of the step's `data`.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.step.input_schema = Some(schema);
        self
    }

    /// JSON Schema of the step's output.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.step.output_schema = Some(schema);
        self
    }

    /// JSON Schema of the payload of its suspension.
    pub fn suspend_schema(mut self, schema: Value) -> Self {
        self.step.suspend_schema = Some(schema);
        self.setting("suspend_schema")
    }

    /// JSON Schema of the data that resumes it.
    pub fn resume_schema(mut self, schema: Value) -> Self {
        self.step.resume_schema = Some(schema);
        self.setting("resume_schema")
    }

    /// Repeats a failing attempt.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.step.retry = Some(retry.policy);
        self.setting("retry")
    }

    /// Bounds one attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.step.timeout_ms = Some(milliseconds(timeout));
        self.setting("timeout")
    }

    /// What a failure means for the flow.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.step.on_error = on_error;
        self
    }

    fn new(id: impl Into<String>, kind: StepKind) -> Self {
        let id = id.into();
        let step = StepDefinition {
            name: id.clone(),
            id,
            purpose: String::new(),
            kind,
            suspend: None,
            input_schema: None,
            output_schema: None,
            suspend_schema: None,
            resume_schema: None,
            retry: None,
            timeout_ms: None,
            on_error: OnError::Fail,
        };
        Self { step, set: Vec::new(), misfits: Vec::new() }
    }

    fn container(
        id: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
        kind: fn(Vec<definition::Block>) -> StepKind,
    ) -> Self {
        let parts = blocks.into_iter().map(|Block { block, misfits }| (block, misfits));
        let (blocks, misfits): (Vec<_>, Vec<_>) = parts.unzip();
        let step = Self::new(id, kind(blocks));
        Self { misfits: misfits.into_iter().flatten().collect(), ..step }
    }

    fn setting(mut self, key: &'static str) -> Self {
        self.set.push(key);
        self
    }

    /// Puts the step where it belongs, and what does not fit where it is seen.
    pub(super) fn add_to(self, steps: &mut Vec<StepDefinition>, misfits: &mut Vec<Problem>) {
        let Self { step, set, misfits: inner } = self;
        let kind = step.kind.wire_name();
        let fitting = kind::keys_of(kind).unwrap_or_default();
        misfits.extend(inner);
        misfits.extend(set.into_iter().filter(|key| !fitting.contains(key)).map(|key| Problem {
            place: vec!["steps".to_owned(), step.id.clone(), key.to_owned()],
            message: kind::misfit(key, kind),
        }));
        steps.push(step);
    }
}
