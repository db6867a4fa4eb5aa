//! Workflows and agents built in Rust. A workflow gives the same tree as in `config.toml`, and
//! therefore the same hash.
//!
//! Each kind of step has a constructor with its name: an `andForEach` step is [`Step::for_each`], an
//! `andThen` step [`Step::then`] with a body. Keys of the kind are its arguments, or methods of
//! [`Step`].
//!
//! | In `config.toml` | Here |
//! |---|---|
//! | `map`, `run`, `http`, `command`, `tool` | [`map()`], [`run`], [`http()`], [`command()`], [`tool`]; [`Step::call`] for a function in place |
//! | `suspend`, `retry`, `timeout`, `on_error` | [`Step::suspend`], [`Step::retry`], [`Step::timeout`], [`Step::on_error`] |
//! | `compensate`, `compensate_on_cancel` | [`Step::compensate`], [`Workflow::compensate_on_cancel`] |
//! | `[tools.*]` | [`Tool`] |
//! | `[mcp.*]` | [`McpServer`], [`OAuth`] |
//! | `[[routes]]` | [`Route`] |
//! | `[[faces.mcp]]` | [`McpFace`] |
//! | `retention` | [`Workflow::retention`], [`Workflow::keep_forever`] |
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
mod closure;
mod code;
mod compensation;
mod face;
mod mcp;
mod policy;
mod route;
mod step;
#[cfg(test)]
mod tests;
mod tool;

use std::time::Duration;

use greenroom_actors::domain::definition::{self, Body, WorkflowDefinition};
use greenroom_actors::domain::expression::CLOSURE;
use greenroom_actors::domain::plan::{Callers, Plan, Problem, lints, no_function};
use serde_json::Value;

pub use greenroom_actors::domain::definition::{HttpMethod, Mapping, OnError};

pub use crate::config::{AgentAnswer, WorkflowAnswer};

pub use self::agent::Agent;
pub use self::body::{Command, Http, command, http, map, run, tool};
pub use self::closure::{Computation, Computed, Condition, PointInTime, Scope, Written};
pub use self::compensation::Compensation;
pub use self::face::McpFace;
pub use self::mcp::{McpServer, OAuth};
pub use self::policy::{Retry, Suspend};
pub use self::route::{Route, RouteAnswer};
pub use self::step::Step;
pub use self::tool::Tool;
pub(crate) use self::tool::{Checked, Made, approval_problems};

use crate::config::workflows::suggestion;

use self::code::Code;

/// Builder of a workflow, for [`crate::Greenroom::workflow`].
#[derive(Debug, Clone)]
pub struct Workflow {
    definition: WorkflowDefinition,
    misfits: Vec<Problem>,
    /// Functions of [`Step::call`].
    code: Code,
    retention: Option<Retention>,
}

/// Storage time of ended executions; `None`: no limit.
type Retention = Option<Duration>;

impl Workflow {
    /// Creates a workflow without steps, named like its id.
    pub fn new(id: impl Into<String>) -> Self {
        let definition = WorkflowDefinition::new(id, Vec::new());
        Self { definition, misfits: Vec::new(), code: Code::default(), retention: None }
    }

    /// Sets the name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.definition.name = name.into();
        self
    }

    /// Sets the purpose.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.definition.purpose = purpose.into();
        self
    }

    /// Sets the JSON Schema of the input.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.definition.input_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of the input to that of a type.
    #[cfg(feature = "schemars")]
    pub fn input_type<T: schemars::JsonSchema>(self) -> Self {
        self.input_schema(crate::schema::of::<T>())
    }

    /// Sets the JSON Schema of payloads of suspensions, for steps without one.
    pub fn suspend_schema(mut self, schema: Value) -> Self {
        self.definition.suspend_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of resume data, for steps without one.
    pub fn resume_schema(mut self, schema: Value) -> Self {
        self.definition.resume_schema = Some(schema);
        self
    }

    /// Compensates completed steps after a cancellation too, not only after a failure.
    pub fn compensate_on_cancel(mut self) -> Self {
        self.definition.compensate_on_cancel = true;
        self
    }

    /// Sets the result, in place of the last step's output: JSON whose strings are expressions, or a
    /// closure over a [`Scope`].
    pub fn result<Shape>(mut self, result: impl Computation<Shape>) -> Self {
        let (result, closure) = result.given().named("result");
        self.definition.result = Some(Mapping(result));
        self.code.closures.extend(closure);
        self
    }

    /// Sets how long executions are stored after their end, overriding the configuration. It is not
    /// part of the definition and applies when the workflow is registered.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{Step, Workflow};
    ///
    /// let ping = Workflow::new("ping").step(Step::run("ping", "ping"));
    /// let server = Greenroom::new().workflow(ping.retention(Duration::from_secs(3600)));
    /// # drop(server);
    /// ```
    pub fn retention(mut self, retention: Duration) -> Self {
        if retention.is_zero() {
            let place = vec!["retention".to_owned()];
            let message = "must be longer than 0ms".to_owned();
            self.misfits.push(Problem { place, message });
        }
        self.retention = Some(Some(retention));
        self
    }

    /// Stores executions without a time limit, overriding the configuration.
    pub fn keep_forever(mut self) -> Self {
        self.retention = Some(None);
        self
    }

    /// Adds a step at the end.
    pub fn step(mut self, step: Step) -> Self {
        let added = step.add_to(&mut self.definition.steps, &mut self.misfits);
        self.code.add(added);
        self
    }

    /// Adds a step with a body, as from [`map()`] or [`run`], at the end.
    pub fn then(self, id: impl Into<String>, body: Body) -> Self {
        self.step(Step::then(id, body))
    }

    /// Returns the tree, or the modifiers that do not fit the kind of their step. Everything else is
    /// checked when the tree is compiled. Functions of [`Step::call`] and closures are not part of it:
    /// the tree has their names.
    pub fn build(self) -> Result<WorkflowDefinition, Vec<Problem>> {
        if self.misfits.is_empty() { Ok(self.definition) } else { Err(self.misfits) }
    }

    pub(crate) fn id(&self) -> &str {
        &self.definition.id
    }

    /// Returns the id and the retention, if one was set.
    pub(crate) fn configured_retention(&self) -> Option<(String, Retention)> {
        self.retention.map(|retention| (self.definition.id.clone(), retention))
    }

    /// Returns the code that steps carry.
    pub(crate) fn take_code(&mut self) -> Code {
        std::mem::take(&mut self.code)
    }

    /// Compiles the tree with the same checks as for `config.toml`. Functions of [`Step::call`]
    /// and closures are not part of the plan.
    pub fn compile(self) -> Result<Plan, Vec<Problem>> {
        let Self { definition, mut misfits, code: _, retention: _ } = self;
        match Plan::compile(definition) {
            Ok(plan) if misfits.is_empty() => {
                let errors = lint_errors(&plan);
                if errors.is_empty() { Ok(plan) } else { Err(errors) }
            }
            Ok(_) => Err(misfits),
            Err(problems) => {
                // the plan also checks some of the modifiers
                let is_new =
                    |problem: &Problem| !misfits.iter().any(|it| it.place == problem.place);
                let new: Vec<_> = problems.into_iter().filter(is_new).collect();
                misfits.extend(new);
                Err(misfits)
            }
        }
    }
}

/// Returns the lints of a valid plan that are errors, such as reading a later step.
fn lint_errors(plan: &Plan) -> Vec<Problem> {
    let findings = lints(&plan.definition, Callers::Named).into_iter();
    // builders name closures that come with the workflow
    let calls_closure = no_function(CLOSURE);
    findings
        .filter(|finding| finding.is_error && finding.message != calls_closure)
        .map(|finding| {
            let meant = suggestion(&finding).map(|meant| format!("; did you mean {meant}?"));
            let message = format!("{}{}", finding.message, meant.unwrap_or_default());
            Problem { place: finding.place, message }
        })
        .collect()
}

/// A sequence of steps inside a container.
///
/// ```
/// use greenroom::builder::{Block, Step, Workflow, run};
///
/// let paper = Block::new("paper").then("print", run("print")).then("fold", run("fold"));
/// let wire = Block::new("wire").then("mail", run("mail"));
/// let both = Workflow::new("letter").step(Step::all("send", [paper, wire]));
/// assert!(both.compile().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct Block {
    block: definition::Block,
    misfits: Vec<Problem>,
    code: Code,
}

impl Block {
    /// Creates a block without steps. The name is part of the paths of its steps.
    pub fn new(name: impl Into<String>) -> Self {
        let block = definition::Block { name: name.into(), steps: Vec::new() };
        Self { block, misfits: Vec::new(), code: Code::default() }
    }

    /// Adds a step at the end.
    pub fn step(mut self, step: Step) -> Self {
        let added = step.add_to(&mut self.block.steps, &mut self.misfits);
        self.code.add(added);
        self
    }

    /// Adds a step with a body, as from [`map()`] or [`run`], at the end.
    pub fn then(self, id: impl Into<String>, body: Body) -> Self {
        self.step(Step::then(id, body))
    }
}
