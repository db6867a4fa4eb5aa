//! Steps, by kind.

mod modifiers;

use std::time::Duration;

use greenroom_actors::domain::definition::{
    self, Body, Case, OnError, Projection, StepDefinition, StepKind,
};
use greenroom_actors::domain::plan::Problem;
use serde_json::Value;

use super::{Block, run};
use crate::config::milliseconds;
use crate::config::workflows::kind;

/// A step being built: what it does, and then what surrounds it. What does not fit its kind is
/// refused when the workflow is compiled.
///
/// ```
/// use greenroom::builder::{Retry, Step, Workflow};
/// use std::time::Duration;
///
/// let nap = Step::sleep("nap", Duration::from_secs(1)).retry(Retry::attempts(2));
/// let problems = Workflow::new("w").step(nap).compile().unwrap_err();
/// assert_eq!(problems[0].message, "key `retry` does not belong to andSleep");
/// ```
#[derive(Debug, Clone)]
pub struct Step {
    step: StepDefinition,
    /// Keys that were set, to see whether they fit.
    set: Vec<&'static str>,
    misfits: Vec<Problem>,
}

impl Step {
    /// Runs a body; its output is the next step's `data`.
    ///
    /// ```
    /// use greenroom::builder::{Http, Step, http, run};
    ///
    /// let price = Step::then("price", run("price"));
    /// let stock = Step::then("stock", http(Http::get("https://stock.example/{{ input.item }}")));
    /// # drop((price, stock));
    /// ```
    pub fn then(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Then { body })
    }

    /// Maps: strings are expressions, arrays and objects are taken apart. Like [`Step::then`] with
    /// [`map()`](super::map()), by its own kind.
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use serde_json::json;
    ///
    /// let total = Step::map("total", json!({ "sum": "data.price * input.count", "vat": 0.2 }));
    /// # drop(total);
    /// ```
    pub fn map(id: impl Into<String>, value: Value) -> Self {
        Self::new(id, StepKind::Map { map: Projection(value) })
    }

    /// Calls a registered function; short for [`Step::then`] with [`run`].
    pub fn run(id: impl Into<String>, function: impl Into<String>) -> Self {
        Self::then(id, run(function))
    }

    /// Runs a body for its effect, beside the flow; `data` passes through, also when it fails.
    ///
    /// ```
    /// use greenroom::builder::{Step, tool};
    /// use serde_json::json;
    ///
    /// let tell = Step::tap("tell", tool("send_mail")).args(json!({ "to": "input.employee" }));
    /// # drop(tell);
    /// ```
    pub fn tap(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Tap { body })
    }

    /// Runs the block when the expression holds; else `data` passes through.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let refund = Block::new("refund").then("pay-back", run("pay_back"));
    /// let step = Step::when("if-paid", "steps.pay.status == 'paid'", refund);
    /// # drop(step);
    /// ```
    pub fn when(id: impl Into<String>, expression: impl Into<String>, block: Block) -> Self {
        let Block { block, misfits } = block;
        let step = Self::new(id, StepKind::When { when: expression.into(), block });
        Self { misfits, ..step }
    }

    /// Runs all blocks at once; output: an array in their order. One that fails cancels the others.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let blocks = ["flight", "hotel"].map(|id| Block::new(id).then(id, run(id)));
    /// let offers = Step::all("offers", blocks);
    /// # drop(offers);
    /// ```
    pub fn all(id: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::container(id, blocks, |blocks| StepKind::All { blocks })
    }

    /// Runs all blocks at once; output: that of the first to complete, and the others are
    /// cancelled.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let answer = Block::new("answer").then("ask", run("ask"));
    /// let late = Block::new("late").step(Step::sleep("wait", Duration::from_secs(60)));
    /// let first = Step::race("first", [answer, late]);
    /// # drop(first);
    /// ```
    pub fn race(id: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::container(id, blocks, |blocks| StepKind::Race { blocks })
    }

    /// Runs an agent on the text of the step's `data`, or on [`Step::prompt`]. Output: `text` and
    /// `usage`, or with a [`Step::schema`] the object.
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use greenroom::config::AgentOptions;
    /// use serde_json::json;
    ///
    /// let sort = Step::agent("sort", "assistant")
    ///     .prompt("Is this urgent? {{ input.text }}")
    ///     .schema(json!({ "type": "object", "properties": { "urgent": { "type": "boolean" } } }))
    ///     .options(AgentOptions { max_steps: Some(1), ..AgentOptions::default() });
    /// # drop(sort);
    /// ```
    pub fn agent(id: impl Into<String>, agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self::new(id, StepKind::Agent { agent, prompt: None, schema: None, options: None })
    }

    /// Runs another workflow, as an execution of its own, on the step's `data` or on
    /// [`Step::input`].
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use serde_json::json;
    ///
    /// let pay = Step::workflow("pay", "payment").input(json!({ "amount": "data.total" }));
    /// # drop(pay);
    /// ```
    pub fn workflow(id: impl Into<String>, workflow: impl Into<String>) -> Self {
        Self::new(id, StepKind::Workflow { workflow: workflow.into(), input: None })
    }

    /// Waits; `data` passes through. The timer survives a restart.
    pub fn sleep(id: impl Into<String>, duration: Duration) -> Self {
        Self::new(id, StepKind::Sleep { duration_ms: milliseconds(duration) })
    }

    /// Waits until a point in time; `data` passes through. The expression gives an ISO 8601 text
    /// with a zone, or milliseconds since 1970.
    ///
    /// ```
    /// use greenroom::builder::Step;
    ///
    /// let departure = Step::sleep_until("departure", "input.departs");
    /// # drop(departure);
    /// ```
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
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let page = Block::new("page").then("fetch", run("next_page"));
    /// let pages = Step::do_while("pages", page, "data.cursor is not none", 50);
    /// # drop(pages);
    /// ```
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
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let look = Block::new("look")
    ///     .step(Step::sleep("pause", Duration::from_secs(10)))
    ///     .then("ask", run("job_status"));
    /// let done = Step::do_until("done", look, "data.state == 'done'", 100);
    /// # drop(done);
    /// ```
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

    /// Puts the step where it belongs, and what does not fit where it is seen.
    pub(super) fn add_to(self, steps: &mut Vec<StepDefinition>, misfits: &mut Vec<Problem>) {
        let Self { step, set, misfits: inner } = self;
        let kind = step.kind.step_type();
        let fitting = kind.keys();
        misfits.extend(inner);
        misfits.extend(set.into_iter().filter(|key| !fitting.contains(key)).map(|key| Problem {
            place: vec!["steps".to_owned(), step.id.clone(), key.to_owned()],
            message: kind::misfit(key, kind),
        }));
        steps.push(step);
    }
}
