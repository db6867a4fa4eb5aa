//! A definition made ready to run: checked, compiled, immutable.

mod compile;
mod findings;

pub use self::compile::compile_command;
pub use self::findings::{
    Callee, Callers, ERROR_KEYS, EXECUTION_KEYS, Finding, Form, Given, Misspelt, PRINCIPAL_KEYS,
    Remark, Shape, findings, format_remarks, given, remarks,
};

use std::sync::Arc;

use serde_json::Value;

use crate::call::{CommandCall, HttpCall};
use crate::definition::{RetryPolicy, WorkflowDefinition};
use crate::expression::{CompiledProjection, Expression, Template};
use crate::ids::Lane;
use crate::schema::Schema;

/// A compiled workflow.
#[derive(Debug)]
pub struct Plan {
    pub definition: WorkflowDefinition,
    /// Canonical hash of the definition: its version.
    pub hash: Arc<str>,
    pub input_schema: Option<Schema>,
    pub result: Option<CompiledProjection>,
    pub steps: Vec<Step>,
}

/// A compiled step.
#[derive(Debug)]
pub struct Step {
    pub id: Arc<str>,
    pub work: Work,
    pub suspend: Option<Suspend>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    /// The step's own, else the workflow's.
    pub suspend_schema: Option<Schema>,
    /// The step's own, else the workflow's.
    pub resume_schema: Option<Schema>,
    pub retry: Option<Retry>,
    pub timeout_ms: Option<u64>,
    pub on_error: AfterLastAttempt,
    /// Whether the output is discarded and a failure only noted.
    pub is_tap: bool,
}

/// What a compiled step does.
#[derive(Debug)]
pub enum Work {
    Map(CompiledProjection),
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
        input: Option<CompiledProjection>,
    },
    Sleep {
        duration_ms: u64,
    },
    SleepUntil {
        until: Expression,
    },
    /// The branch runs once per item.
    ForEach {
        items: CompiledProjection,
        concurrency: usize,
        branches: Vec<Branch>,
    },
    /// One condition per branch; one more branch than conditions when there is a default.
    Choice {
        cases: Vec<Expression>,
        branches: Vec<Branch>,
    },
    /// The branch runs again as long as `when` gives `again_if`.
    Loop {
        when: Expression,
        again_if: bool,
        rounds_max: usize,
        branches: Vec<Branch>,
    },
}

/// Where the work of a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkClass {
    /// In the machine, at once.
    Pure,
    /// In a body outside the machine, whose attempt dies with the process.
    Outside,
    /// In the blocks inside.
    Container,
    /// In an execution of its own, which lives without this one.
    Child,
    /// Nowhere: the step waits for time.
    Timer,
}

/// A body outside the machine, other than an agent.
#[derive(Debug)]
pub enum Call {
    /// A registered Rust function, by name.
    Function(Arc<str>),
    Http(Box<HttpCall>),
    Command(Box<CommandCall>),
    /// A registered tool, by name; without `args`, with the step's `data`.
    Tool {
        tool: Arc<str>,
        args: Option<CompiledProjection>,
    },
}

/// An agent's task.
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
    pub payload: Option<CompiledProjection>,
    pub deadline_ms: Option<u64>,
    /// What a passed deadline resumes with; without it the step fails.
    pub on_timeout: Option<CompiledProjection>,
}

/// A compiled retry policy.
#[derive(Debug)]
pub struct Retry {
    pub policy: RetryPolicy,
    pub on: Option<Expression>,
    pub never: Option<Expression>,
}

/// What becomes of the flow when the last attempt has failed.
#[derive(Debug)]
pub enum AfterLastAttempt {
    Fail,
    Ignore,
    Value(CompiledProjection),
}

impl Work {
    /// The blocks inside, in their order.
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
            | Self::Sleep { .. }
            | Self::SleepUntil { .. } => &[],
        }
    }

    /// Returns where the work is done.
    pub fn class(&self) -> WorkClass {
        match self {
            Self::Map(_) => WorkClass::Pure,
            Self::Call(_) | Self::Agent(_) => WorkClass::Outside,
            Self::When { .. }
            | Self::All(_)
            | Self::Race(_)
            | Self::ForEach { .. }
            | Self::Choice { .. }
            | Self::Loop { .. } => WorkClass::Container,
            Self::Workflow { .. } => WorkClass::Child,
            Self::Sleep { .. } | Self::SleepUntil { .. } => WorkClass::Timer,
        }
    }

    /// Whether the one branch runs many times, each in a lane of its own.
    pub fn is_iterated(&self) -> bool {
        matches!(self, Self::ForEach { .. } | Self::Loop { .. })
    }

    /// The branch that runs in a lane.
    pub fn branch_of(&self, lane: usize) -> Option<&Branch> {
        self.branches().get(if self.is_iterated() { 0 } else { lane })
    }

    /// The number of a lane, whether anything has run in it or not.
    pub fn lane_index(&self, lane: Lane<'_>) -> Option<usize> {
        match lane {
            Lane::Iteration(index) => self.is_iterated().then_some(index),
            Lane::Block(_) if self.is_iterated() => None,
            Lane::Block(name) => self.branches().iter().position(|branch| &*branch.name == name),
        }
    }

    /// The path of a node inside a lane of the node at `path`; empty ids name the lane itself.
    pub fn inner_path(&self, path: &str, lane: usize, step_id: &str) -> String {
        match self.branch_of(lane) {
            Some(branch) if !self.is_iterated() => format!("{path}/{}/{step_id}", branch.name),
            Some(_) | None => format!("{path}[{lane}]/{step_id}"),
        }
    }
}

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Keys from the workflow down, e.g. `["steps", "manager", "suspend", "when"]`: a step is
    /// named by its id, whatever block it is in.
    pub place: Vec<String>,
    pub message: String,
}

impl Plan {
    /// Checks and compiles; returns every problem found, not only the first.
    pub fn compile(definition: WorkflowDefinition) -> Result<Self, Vec<Problem>> {
        compile::plan(definition)
    }

    /// The step of this id, wherever it is.
    pub fn step(&self, id: &str) -> Option<&Step> {
        find(&self.steps, id)
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
