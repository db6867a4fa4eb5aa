//! Steps, by kind.

mod modifiers;

use std::time::Duration;

use greenroom_actors::domain::definition::{
    self, Body, Case, Projection, StepDefinition, StepKind,
};
use greenroom_actors::domain::plan::Problem;
use greenroom_actors::function::StepContext;
use serde_json::Value;

use super::closure::Closure;
use super::code::Code;
use super::{Block, Computation, Condition, PointInTime, run};
use crate::config::milliseconds;
use crate::config::workflows::kind;
use crate::typed::{Carried, TypedFunction};

/// Builder of a step: its work and its modifiers. Modifiers that do not fit the kind are refused
/// when the workflow is compiled.
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
    /// Keys that were set, to check that the kind has them.
    set: Vec<&'static str>,
    misfits: Vec<Problem>,
    code: Code,
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

    /// Evaluates a value: strings are expressions, also inside arrays and objects. Like
    /// [`Step::then`] with [`map()`](super::map()), but of the kind `andMap`.
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

    /// Calls a [typed function](crate::typed), which the step carries: it is registered together
    /// with the workflow, under the id of the step. Another function of this name is refused.
    ///
    /// ```
    /// use greenroom::builder::{Step, Workflow};
    /// use greenroom::step::StepError;
    ///
    /// async fn double(n: u32) -> Result<u32, StepError> {
    ///     n.checked_mul(2).ok_or_else(|| StepError::terminal("too large"))
    /// }
    ///
    /// let twice = Workflow::new("twice").step(Step::call("double", double));
    /// # drop(twice);
    /// ```
    pub fn call<F, Shape>(id: impl Into<String>, function: F) -> Self
    where
        F: TypedFunction<StepContext, Shape>,
    {
        let id = id.into();
        let functions = vec![Carried::new(id.clone(), function)];
        let code = Code { functions, closures: Vec::new() };
        Self { code, ..Self::run(id.clone(), id) }
    }

    /// Runs a body for its effect, beside the flow; `data` passes through, even if it fails.
    ///
    /// ```
    /// use greenroom::builder::{Step, tool};
    /// use serde_json::json;
    ///
    /// let notify = Step::tap("notify", tool("send_mail")).args(json!({ "to": "input.employee" }));
    /// # drop(notify);
    /// ```
    pub fn tap(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Tap { body })
    }

    /// Runs the block if the condition is true, an expression or a closure over a
    /// [`Scope`](super::Scope); otherwise `data` passes through.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let refund = Block::new("refund").then("pay-back", run("pay_back"));
    /// let step = Step::when("if-paid", "steps.pay.status == 'paid'", refund);
    /// # drop(step);
    /// ```
    pub fn when<Shape>(
        id: impl Into<String>,
        condition: impl Condition<Shape>,
        block: Block,
    ) -> Self {
        let id = id.into();
        let (when, closure) = condition.given().named(&format!("{id}.when"));
        Self::around(id, block, |block| StepKind::When { when, block }).carrying(closure)
    }

    /// Runs all blocks at once; output: an array in their order. A failing block cancels the others.
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

    /// Runs all blocks at once and cancels the others when the first completes; output: that of
    /// the first.
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
    /// `usage`, or the object if [`Step::schema`] is set.
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

    /// Runs another workflow as a separate execution, on the step's `data` or on [`Step::input`].
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

    /// Waits until a point in time; `data` passes through. The expression, or the closure over a
    /// [`Scope`](super::Scope), returns an ISO 8601 text with a zone, or milliseconds since 1970.
    ///
    /// ```
    /// use greenroom::builder::Step;
    ///
    /// let departure = Step::sleep_until("departure", "input.departs");
    /// # drop(departure);
    /// ```
    pub fn sleep_until<Shape>(id: impl Into<String>, until: impl PointInTime<Shape>) -> Self {
        let id = id.into();
        let (until, closure) = until.given().named(&format!("{id}.until"));
        Self::new(id, StepKind::SleepUntil { until }).carrying(closure)
    }

    /// Runs the block for each item of an array, one after another unless [`Step::concurrency`] is
    /// set; output: an array in the order of the items. Inside, `data` and `item` are the item, and
    /// `index` counts from 0.
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
    pub fn for_each<Shape>(
        id: impl Into<String>,
        items: impl Computation<Shape>,
        block: Block,
    ) -> Self {
        let id = id.into();
        let (items, closure) = items.given().named(&format!("{id}.items"));
        let items = Projection(items);
        Self::around(id, block, |block| StepKind::ForEach { items, block, concurrency: 1 })
            .carrying(closure)
    }

    /// Runs the block of the first case whose expression is true, else [`Step::otherwise`], else
    /// `data` passes through.
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
        let (mut misfits, mut code) = (Vec::new(), Code::default());
        let case = |(when, block): (W, Block)| {
            misfits.extend(block.misfits);
            code.add(block.code);
            Case { when: when.into(), block: block.block }
        };
        let cases = cases.into_iter().map(case).collect();
        Self { misfits, code, ..Self::new(id, StepKind::Branch { cases, default: None }) }
    }

    /// Runs the block, and repeats it while the condition over its output is true; each output is
    /// the next round's `data`. If more than `max_iterations` rounds are needed, the step fails.
    ///
    /// ```
    /// use greenroom::builder::{Block, Step, run};
    ///
    /// let page = Block::new("page").then("fetch", run("next_page"));
    /// let pages = Step::do_while("pages", page, "data.cursor is not none", 50);
    /// # drop(pages);
    /// ```
    pub fn do_while<Shape>(
        id: impl Into<String>,
        block: Block,
        condition: impl Condition<Shape>,
        max_iterations: u32,
    ) -> Self {
        let id = id.into();
        let (when, closure) = condition.given().named(&format!("{id}.when"));
        Self::around(id, block, |block| StepKind::DoWhile { when, block, max_iterations })
            .carrying(closure)
    }

    /// Runs the block, and repeats it until the condition over its output is true; otherwise like
    /// [`Step::do_while`].
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
    pub fn do_until<Shape>(
        id: impl Into<String>,
        block: Block,
        condition: impl Condition<Shape>,
        max_iterations: u32,
    ) -> Self {
        let id = id.into();
        let (when, closure) = condition.given().named(&format!("{id}.when"));
        Self::around(id, block, |block| StepKind::DoUntil { when, block, max_iterations })
            .carrying(closure)
    }

    /// Adds a closure by its name.
    fn carrying(mut self, closure: Option<(String, Closure)>) -> Self {
        self.code.closures.extend(closure);
        self
    }

    fn new(id: impl Into<String>, kind: StepKind) -> Self {
        let step = StepDefinition::new(id, kind);
        Self { step, set: Vec::new(), misfits: Vec::new(), code: Code::default() }
    }

    /// Returns a step that runs one block.
    fn around(
        id: impl Into<String>,
        block: Block,
        kind: impl FnOnce(definition::Block) -> StepKind,
    ) -> Self {
        let Block { block, misfits, code } = block;
        Self { misfits, code, ..Self::new(id, kind(block)) }
    }

    fn container(
        id: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
        kind: fn(Vec<definition::Block>) -> StepKind,
    ) -> Self {
        let (mut misfits, mut code) = (Vec::new(), Code::default());
        let part = |block: Block| {
            misfits.extend(block.misfits);
            code.add(block.code);
            block.block
        };
        let blocks = blocks.into_iter().map(part).collect();
        Self { misfits, code, ..Self::new(id, kind(blocks)) }
    }

    /// Adds the step to `steps`, and its modifiers that do not fit to `misfits`. Returns the
    /// code that it carries.
    pub(super) fn add_to(
        self,
        steps: &mut Vec<StepDefinition>,
        misfits: &mut Vec<Problem>,
    ) -> Code {
        let Self { step, set, misfits: inner, code } = self;
        let kind = step.kind.step_type();
        let fitting = kind.keys();
        misfits.extend(inner);
        misfits.extend(set.into_iter().filter(|key| !fitting.contains(key)).map(|key| Problem {
            place: vec!["steps".to_owned(), step.id.clone(), key.to_owned()],
            message: kind::misfit(key, kind),
        }));
        steps.push(step);
        code
    }
}
