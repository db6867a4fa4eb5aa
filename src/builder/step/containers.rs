//! Containers: a constructor for each kind, and its optional keys.

use greenroom_actors::domain::definition::{self, Case, Mapping, StepKind};

use super::Step;
use crate::builder::code::Code;
use crate::builder::{Block, Computation, Condition};

impl Step {
    /// Runs the block if the condition is true, an expression or a closure over a
    /// [`Scope`](crate::builder::Scope); otherwise `data` passes through.
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
        let items = Mapping(items);
        Self::around(id, block, |block| StepKind::ForEach { items, block, concurrency: 1 })
            .carrying(closure)
    }

    /// Sets the number of items that [`Step::for_each`] runs at once. Default: 1.
    pub fn concurrency(mut self, items: u32) -> Self {
        if let StepKind::ForEach { concurrency, .. } = &mut self.step.kind {
            *concurrency = items;
        }
        self.setting("concurrency")
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

    /// Adds a case to [`Step::branch`], whose condition may be a closure.
    ///
    /// ```
    /// use greenroom::builder::{Block, Scope, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let small = Block::new("small").step(Step::map("pay", json!("'at once'")));
    /// let large = Block::new("large").step(Step::map("ask", json!("'after a question'")));
    /// let pays = Step::branch("pays", [("input < 10", small)])
    ///     .case(|cx: &Scope| Ok(cx.input::<u64>()? < 100), large);
    /// assert!(Workflow::new("expenses").step(pays).compile().is_ok());
    /// ```
    pub fn case<Shape>(mut self, condition: impl Condition<Shape>, block: Block) -> Self {
        let Block { block, misfits, code } = block;
        self.misfits.extend(misfits);
        self.code.add(code);
        let mut closure = None;
        if let StepKind::Branch { cases, .. } = &mut self.step.kind {
            // by block: executions that were started before find it when cases are added
            let name = format!("{}.cases.{}", self.step.id, block.name);
            let (when, named) = condition.given().named(&name);
            closure = named;
            cases.push(Case { when, block });
        }
        self.carrying(closure).setting("cases")
    }

    /// Sets the block that [`Step::branch`] runs if no case is true.
    pub fn otherwise(mut self, block: Block) -> Self {
        let Block { block, misfits, code } = block;
        self.misfits.extend(misfits);
        self.code.add(code);
        if let StepKind::Branch { default, .. } = &mut self.step.kind {
            *default = Some(block);
        }
        self.setting("default")
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
}
