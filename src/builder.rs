//! Workflows and agents built in Rust. A workflow is word for word the same tree as from
//! `config.toml`, so that both have the same hash.
//!
//! ```
//! use greenroom::builder::{Block, Step, Suspend, Workflow};
//! use serde_json::json;
//!
//! let plan = Workflow::new("expense")
//!     .purpose("Asks a manager about large expenses")
//!     .step(Step::map("classify", json!({ "large": "input.amount > 500" })))
//!     .step(
//!         Step::map("manager", json!("resume.approved if resume is not none else true"))
//!             .suspend(Suspend::when("data.large").reason("{{ input.amount }}")),
//!     )
//!     .step(Step::when("pay", "data", Block::new("payment").step(Step::run("book", "book"))))
//!     .compile()
//!     .expect("the definition is sound");
//! assert_eq!(plan.definition.steps.len(), 3);
//! ```

mod agent;
mod body;
mod policy;
mod step;
#[cfg(test)]
mod tests;

use greenroom_actors::domain::definition::{self, Projection, WorkflowDefinition};
use greenroom_actors::domain::plan::{Plan, Problem, findings};
use serde_json::Value;

pub use self::agent::Agent;
pub use self::body::{Command, Http, command, http, map, run, tool};
pub use self::policy::{Retry, Suspend};
pub use self::step::Step;

use crate::config::workflows::suggestion;

/// A workflow being built.
#[derive(Debug, Clone)]
pub struct Workflow {
    definition: WorkflowDefinition,
    misfits: Vec<Problem>,
}

impl Workflow {
    /// Starts a workflow without steps, named like its id.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let definition = WorkflowDefinition {
            name: id.clone(),
            id,
            purpose: String::new(),
            input_schema: None,
            suspend_schema: None,
            resume_schema: None,
            result: None,
            steps: Vec::new(),
        };
        Self { definition, misfits: Vec::new() }
    }

    /// What people call it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.definition.name = name.into();
        self
    }

    /// What it is for.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.definition.purpose = purpose.into();
        self
    }

    /// JSON Schema of the input.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.definition.input_schema = Some(schema);
        self
    }

    /// JSON Schema of payloads of suspensions, for steps without their own.
    pub fn suspend_schema(mut self, schema: Value) -> Self {
        self.definition.suspend_schema = Some(schema);
        self
    }

    /// JSON Schema of resume data, for steps without their own.
    pub fn resume_schema(mut self, schema: Value) -> Self {
        self.definition.resume_schema = Some(schema);
        self
    }

    /// What the execution gives, in place of the last step's output. Strings are expressions.
    pub fn result(mut self, result: Value) -> Self {
        self.definition.result = Some(Projection(result));
        self
    }

    /// Adds a step at the end.
    pub fn step(mut self, step: Step) -> Self {
        step.add_to(&mut self.definition.steps, &mut self.misfits);
        self
    }

    /// Adds a step with a body, see [`map`] and [`run`], at the end.
    pub fn then(self, id: impl Into<String>, body: definition::Body) -> Self {
        self.step(Step::then(id, body))
    }

    /// The tree. Refuses modifiers that do not fit the kind of their step; everything else is
    /// seen when the tree is compiled.
    pub fn build(self) -> Result<WorkflowDefinition, Vec<Problem>> {
        if self.misfits.is_empty() { Ok(self.definition) } else { Err(self.misfits) }
    }

    /// The tree, checked as one of `config.toml` is, and ready to run.
    pub fn compile(self) -> Result<Plan, Vec<Problem>> {
        let Self { definition, mut misfits } = self;
        match Plan::compile(definition) {
            Ok(plan) if misfits.is_empty() => {
                let wrong = mistakes(&plan);
                if wrong.is_empty() { Ok(plan) } else { Err(wrong) }
            }
            Ok(_) => Err(misfits),
            Err(problems) => {
                // the plan checks some of the modifiers again
                let is_new =
                    |problem: &Problem| !misfits.iter().any(|it| it.place == problem.place);
                let new: Vec<_> = problems.into_iter().filter(is_new).collect();
                misfits.extend(new);
                Err(misfits)
            }
        }
    }
}

/// What a plan that could run cannot have been meant to do, such as reading a later step.
fn mistakes(plan: &Plan) -> Vec<Problem> {
    let wrong = findings(&plan.definition).into_iter().filter(|finding| finding.is_error);
    wrong
        .map(|finding| {
            let meant = suggestion(&finding).map(|meant| format!("; did you mean {meant}?"));
            let message = format!("{}{}", finding.message, meant.unwrap_or_default());
            Problem { place: finding.place, message }
        })
        .collect()
}

/// A sequence of steps inside a container.
#[derive(Debug, Clone)]
pub struct Block {
    block: definition::Block,
    misfits: Vec<Problem>,
}

impl Block {
    /// Starts a block without steps. The name is part of the paths of its steps.
    pub fn new(name: impl Into<String>) -> Self {
        let block = definition::Block { name: name.into(), steps: Vec::new() };
        Self { block, misfits: Vec::new() }
    }

    /// Adds a step at the end.
    pub fn step(mut self, step: Step) -> Self {
        step.add_to(&mut self.block.steps, &mut self.misfits);
        self
    }

    /// Adds a step with a body, see [`map`] and [`run`], at the end.
    pub fn then(self, id: impl Into<String>, body: definition::Body) -> Self {
        self.step(Step::then(id, body))
    }
}
