//! Compiled definitions: checked and immutable.

mod asking;
mod compile;
mod lints;

pub use self::asking::Asking;
pub use self::compile::compile_command;
pub use self::lints::{
    Callee, Callers, ConstantInput, ERROR_KEYS, EXECUTION_KEYS, Finding, Form, Misspelt,
    PRINCIPAL_KEYS, Remark, Shape, constant_condition, constant_inputs, format_remarks, lints,
    no_function, remarks,
};

use std::sync::Arc;

use serde_json::Value;

use crate::call::{CommandCall, HttpCall};
use crate::definition::{Called, Container, RetryPolicy, WorkflowDefinition};
use crate::expression::{CompiledMapping, Expression, Template};
use crate::ids::{Lane, compensated_path, step_id_of};
use crate::schema::Schema;

/// A compiled workflow.
#[derive(Debug)]
pub struct Plan {
    pub definition: WorkflowDefinition,
    /// Canonical hash of the definition, which identifies its version.
    pub hash: Arc<str>,
    pub input_schema: Option<Schema>,
    pub result: Option<CompiledMapping>,
    pub steps: Vec<Step>,
    /// True if any step has a compensation, or starts a workflow that may have one.
    pub compensates: bool,
}

/// A compiled step.
#[derive(Debug)]
pub struct Step {
    pub id: Arc<str>,
    pub work: Work,
    pub suspend: Option<Suspend>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    /// Defaults to the workflow's.
    pub suspend_schema: Option<Schema>,
    /// Defaults to the workflow's.
    pub resume_schema: Option<Schema>,
    pub retry: Option<Retry>,
    pub timeout_ms: Option<u64>,
    pub on_error: AfterLastAttempt,
    /// True if the output is discarded and a failure is only recorded.
    pub is_tap: bool,
    /// Undoes the step after it has completed. It has the id of the step. For an andWorkflow step
    /// without `compensate`, it compensates the steps of the child.
    pub compensate: Option<Box<Step>>,
}

impl Step {
    /// Returns true if the step undoes another one.
    pub fn is_compensation(&self) -> bool {
        matches!(self.on_error, AfterLastAttempt::Ask)
    }

    /// Returns true if the step calls a tool.
    pub fn calls_tool(&self) -> bool {
        self.work.tool().is_some()
    }

    /// Returns true if a suspension after this many attempts is that of a generation, whose calls of
    /// tools have asks of their own. Before its first attempt, a step suspends by its own rule.
    pub fn waits_for_generation(&self, attempts: u32) -> bool {
        attempts > 0 && self.work.agent().is_some()
    }
}

/// Work of a compiled step.
#[derive(Debug)]
pub enum Work {
    Map(CompiledMapping),
    Call(Call),
    When {
        when: Expression,
        branches: Vec<Branch>,
    },
    All(Vec<Branch>),
    Race(Vec<Branch>),
    Agent(AgentWork),
    Workflow {
        workflow: Arc<str>,
        input: Option<CompiledMapping>,
    },
    /// Compensates an andWorkflow step: an execution in which the steps of the child are compensated.
    Reversal,
    Sleep {
        duration_ms: u64,
    },
    SleepUntil {
        until: Expression,
    },
    /// The branch runs once per item.
    ForEach {
        items: CompiledMapping,
        concurrency: usize,
        branches: Vec<Branch>,
    },
    /// One condition for each branch, and one more branch if there is a default.
    Choice {
        cases: Vec<Expression>,
        branches: Vec<Branch>,
    },
    /// The branch is repeated as long as `when` equals `again_if`.
    Loop {
        when: Expression,
        again_if: bool,
        rounds_max: usize,
        branches: Vec<Branch>,
    },
}

/// Place where the work of a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkClass {
    /// In the machine.
    Pure,
    /// In a body outside the machine; its attempt ends with the process.
    Outside,
    /// In its blocks.
    Container(Container),
    /// In a child execution, which is independent of this one.
    Child,
    /// Nowhere: the step waits for a timer.
    Timer,
}

/// A body outside the machine, other than an agent.
#[derive(Debug)]
pub enum Call {
    /// A registered Rust function, by name.
    Function(Arc<str>),
    Http(Box<HttpCall>),
    Command(Box<CommandCall>),
    /// A registered tool, by name; `args` defaults to the step's `data`.
    Tool {
        tool: Arc<str>,
        args: Option<CompiledMapping>,
    },
}

/// A call of an agent.
#[derive(Debug)]
pub struct AgentWork {
    pub agent: Arc<str>,
    pub prompt: Option<Template>,
    pub schema: Option<Arc<Value>>,
    pub options: Option<Value>,
}

/// A compiled block.
#[derive(Debug)]
pub struct Branch {
    pub name: Arc<str>,
    pub steps: Vec<Step>,
}

/// A compiled suspend rule.
#[derive(Debug)]
pub struct Suspend {
    pub when: Option<Expression>,
    pub reason: Option<Template>,
    pub payload: Option<CompiledMapping>,
    pub deadline_ms: Option<u64>,
    /// Data with which a passed deadline resumes the step; without it, the step fails.
    pub on_timeout: Option<CompiledMapping>,
    pub asking: Asking,
}

/// A compiled retry policy.
#[derive(Debug)]
pub struct Retry {
    pub policy: RetryPolicy,
    pub on: Option<Expression>,
    pub never: Option<Expression>,
}

/// Effect of a failed last attempt on the flow.
#[derive(Debug)]
pub enum AfterLastAttempt {
    Fail,
    Ignore,
    Value(CompiledMapping),
    /// The step is a compensation: it asks a person.
    Ask,
}

impl Work {
    /// Returns the name of what is called, if it has one.
    pub fn called(&self) -> Option<Called<&Arc<str>>> {
        match self {
            Self::Call(Call::Function(function)) => Some(Called::Function(function)),
            Self::Call(Call::Tool { tool, .. }) => Some(Called::Tool(tool)),
            Self::Agent(AgentWork { agent, .. }) => Some(Called::Agent(agent)),
            Self::Workflow { workflow, .. } => Some(Called::Workflow(workflow)),
            Self::Call(Call::Http(_) | Call::Command(_))
            | Self::Map(_)
            | Self::When { .. }
            | Self::All(_)
            | Self::Race(_)
            | Self::Reversal
            | Self::Sleep { .. }
            | Self::SleepUntil { .. }
            | Self::ForEach { .. }
            | Self::Choice { .. }
            | Self::Loop { .. } => None,
        }
    }

    /// Returns the name of the tool that is called, if one is.
    pub fn tool(&self) -> Option<&Arc<str>> {
        if let Some(Called::Tool(tool)) = self.called() { Some(tool) } else { None }
    }

    /// Returns the call of an agent, if it is one.
    pub fn agent(&self) -> Option<&AgentWork> {
        if let Self::Agent(work) = self { Some(work) } else { None }
    }

    /// Returns true if it compensates the steps of a child.
    pub fn is_reversal(&self) -> bool {
        matches!(self, Self::Reversal)
    }

    /// Returns the blocks, in order.
    pub fn branches(&self) -> &[Branch] {
        match self {
            Self::When { branches, .. }
            | Self::ForEach { branches, .. }
            | Self::Choice { branches, .. }
            | Self::Loop { branches, .. }
            | Self::All(branches)
            | Self::Race(branches) => branches,
            Self::Map(_)
            | Self::Call(_)
            | Self::Agent(_)
            | Self::Workflow { .. }
            | Self::Reversal
            | Self::Sleep { .. }
            | Self::SleepUntil { .. } => &[],
        }
    }

    /// Returns the place where the work is done.
    pub fn class(&self) -> WorkClass {
        match self {
            Self::Map(_) => WorkClass::Pure,
            Self::Call(_) | Self::Agent(_) => WorkClass::Outside,
            Self::When { .. } => WorkClass::Container(Container::Optional),
            Self::All(_) => WorkClass::Container(Container::All),
            Self::Race(_) => WorkClass::Container(Container::Race),
            Self::ForEach { .. } => WorkClass::Container(Container::Items),
            Self::Choice { .. } => WorkClass::Container(Container::OneOf),
            Self::Loop { .. } => WorkClass::Container(Container::Rounds),
            Self::Workflow { .. } | Self::Reversal => WorkClass::Child,
            Self::Sleep { .. } | Self::SleepUntil { .. } => WorkClass::Timer,
        }
    }

    /// Returns how the blocks run; `None` without blocks.
    pub fn container(&self) -> Option<Container> {
        match self.class() {
            WorkClass::Container(container) => Some(container),
            WorkClass::Pure | WorkClass::Outside | WorkClass::Child | WorkClass::Timer => None,
        }
    }

    /// Returns true if the work has one branch that runs many times, each time in a new lane.
    pub fn is_iterated(&self) -> bool {
        self.container().is_some_and(Container::is_repeated)
    }

    /// Returns the branch that runs in a lane.
    pub fn branch_of(&self, lane: usize) -> Option<&Branch> {
        self.branches().get(if self.is_iterated() { 0 } else { lane })
    }

    /// Returns the number of a lane, which may not have begun.
    pub fn lane_index(&self, lane: Lane<'_>) -> Option<usize> {
        match lane {
            Lane::Iteration(index) => self.is_iterated().then_some(index),
            Lane::Block(_) if self.is_iterated() => None,
            Lane::Block(name) => self.branches().iter().position(|branch| &*branch.name == name),
        }
    }

    /// Returns the path of a node inside a lane of the node at `path`. An empty id gives the path
    /// of the lane.
    pub fn inner_path(&self, path: &str, lane: usize, step_id: &str) -> String {
        match self.branch_of(lane) {
            Some(branch) if !self.is_iterated() => format!("{path}/{}/{step_id}", branch.name),
            Some(_) | None => format!("{path}[{lane}]/{step_id}"),
        }
    }
}

/// An error in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Keys from the workflow down, such as `["steps", "manager", "suspend", "when"]`. A step is
    /// identified by its id, also inside blocks.
    pub place: Vec<String>,
    pub message: String,
}

impl Plan {
    /// Checks and compiles a definition; returns all problems, not only the first.
    pub fn compile(definition: WorkflowDefinition) -> Result<Self, Vec<Problem>> {
        compile::plan(definition)
    }

    /// Returns the step with this id, also inside blocks.
    pub fn step(&self, id: &str) -> Option<&Step> {
        find(&self.steps, id)
    }

    /// Returns the step of a node by its path: a compensation, or the step itself.
    pub fn step_at(&self, path: &str) -> Option<&Step> {
        let step = self.step(step_id_of(path))?;
        if compensated_path(path).is_some() { step.compensate.as_deref() } else { Some(step) }
    }
}

fn find<'a>(steps: &'a [Step], id: &str) -> Option<&'a Step> {
    steps.iter().find_map(|step| {
        if &*step.id == id {
            return Some(step);
        }
        step.work.branches().iter().find_map(|branch| find(&branch.steps, id))
    })
}
