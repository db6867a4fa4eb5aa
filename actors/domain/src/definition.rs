//! The definition of a workflow: an immutable tree, built from TOML or from Rust.
//!
//! Plain data. Expressions, templates and schemas are in source form; [`crate::plan::Plan`] is the
//! compiled and checked form that the machine runs.

mod body;
mod compensation;
mod kind;
mod nature;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::compensation_path;

pub use self::body::{CommandBody, HttpBody, HttpMethod};
pub use self::compensation::Compensation;
pub use self::kind::{Case, StepKind, StepType};
pub use self::nature::{Called, Container, Course, KindText, LoopRule, Output};

/// A workflow as its author wrote it, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowDefinition {
    pub id: String,
    pub name: String,
    pub purpose: String,
    pub input_schema: Option<Value>,
    /// Default for `suspend_schema` of the steps.
    pub suspend_schema: Option<Value>,
    /// Default for `resume_schema` of the steps.
    pub resume_schema: Option<Value>,
    /// Result of the execution; defaults to the last step's output.
    pub result: Option<Mapping>,
    /// Compensates a cancelled execution as well as one that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensate_on_cancel: bool,
    pub steps: Vec<StepDefinition>,
}

impl WorkflowDefinition {
    /// Returns a workflow that is named like its id and has nothing but steps.
    pub fn new(id: impl Into<String>, steps: Vec<StepDefinition>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            purpose: String::new(),
            input_schema: None,
            suspend_schema: None,
            resume_schema: None,
            result: None,
            compensate_on_cancel: false,
            steps,
        }
    }

    /// Returns false for an input that is not an object, unless the input schema alone decides: it
    /// names another type than `object`, or no type and nothing about members of objects. Without a
    /// schema the specification requires an object.
    pub fn admits_input(&self, input: &Value) -> bool {
        input.is_object() || self.admits_other_inputs()
    }

    fn admits_other_inputs(&self) -> bool {
        let Some(schema) = &self.input_schema else { return false };
        match schema.get("type") {
            Some(Value::String(name)) => name != "object",
            Some(Value::Array(names)) => names.iter().any(|name| name != "object"),
            Some(_) => true,
            None => ["properties", "required"].iter().all(|it| schema.get(it).is_none()),
        }
    }

    /// Returns all steps, each before those inside it.
    pub fn each_step(&self) -> Vec<&StepDefinition> {
        fn collect<'d>(steps: &'d [StepDefinition], found: &mut Vec<&'d StepDefinition>) {
            for step in steps {
                found.push(step);
                step.kind.blocks().into_iter().for_each(|block| collect(&block.steps, found));
            }
        }
        let mut found = Vec::new();
        collect(&self.steps, &mut found);
        found
    }

    /// Returns the ids of all steps, and the names of their compensations (`pay:compensate`), also
    /// of the reversals of children.
    pub fn step_names(&self) -> Vec<String> {
        let names = |step: &StepDefinition| {
            let can_be_compensated =
                step.compensate.is_some() || step.kind.child_workflow().is_some();
            let compensation = can_be_compensated.then(|| compensation_path(&step.id));
            [step.id.clone()].into_iter().chain(compensation.map(|name| name.to_string()))
        };
        self.each_step().into_iter().flat_map(names).collect()
    }
}

/// A step of a workflow or of one of its blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepDefinition {
    pub id: String,
    pub name: String,
    pub purpose: String,
    pub kind: StepKind,
    /// Suspends the step before its body runs.
    pub suspend: Option<SuspendRule>,
    pub input_schema: Option<Value>,
    pub output_schema: Option<Value>,
    pub suspend_schema: Option<Value>,
    pub resume_schema: Option<Value>,
    pub retry: Option<RetryPolicy>,
    /// Timeout of one attempt while its body runs.
    pub timeout_ms: Option<u64>,
    pub on_error: OnError,
    /// Undoes the step after it has completed, if the execution fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensate: Option<Box<Compensation>>,
}

impl StepDefinition {
    /// Returns a step that is named like its id and has no modifiers.
    pub fn new(id: impl Into<String>, kind: StepKind) -> Self {
        let id = id.into();
        Self {
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
            compensate: None,
        }
    }
}

/// A named sequence of steps inside a container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub name: String,
    pub steps: Vec<StepDefinition>,
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Evaluated by the machine itself.
    Map(Mapping),
    /// A registered Rust function, by name. The version selects nothing; it only changes the hash.
    Run { function: String, version: Option<String> },
    /// Calls another server.
    Http(HttpBody),
    /// Runs a program.
    Command(CommandBody),
    /// Calls a registered tool; `args` defaults to the step's `data`.
    Tool { tool: String, args: Option<Mapping> },
}

/// A value made from expressions: strings are expressions, arrays and objects are mapped
/// recursively, numbers, booleans and null are literal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mapping(pub Value);

/// Condition and contents of a step's suspension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SuspendRule {
    /// Expression; without it, the step always suspends.
    pub when: Option<String>,
    /// Template; default `Suspended at step <id>`.
    pub reason: Option<String>,
    pub payload: Option<Mapping>,
    /// Longest wait; then `on_timeout` applies.
    pub deadline_ms: Option<u64>,
    pub on_timeout: OnTimeout,
    /// Templates of those who may resume the step (see [`Assignee`](crate::assignment::Assignee)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Times of reminders, after the step has suspended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remind_ms: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<EscalateRule>,
}

/// Asks others in addition if the step still waits after a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EscalateRule {
    pub after_ms: u64,
    /// Templates, as those of [`SuspendRule::to`].
    pub to: Vec<String>,
}

/// Action when the deadline passes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Fails the step with `deadline passed`.
    #[default]
    Fail,
    /// Resumes the step with this value, which is checked like that of any resume.
    Resume(Mapping),
}

/// Number of attempts, and delays between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Total number of attempts, the first included.
    pub attempts: u32,
    pub delay_ms: u64,
    /// Multiplies the delay after each failure.
    pub factor: f64,
    pub max_delay_ms: Option<u64>,
    /// Randomizes each delay within its upper half.
    pub jitter: bool,
    /// Expression over `error`: true if the failure is worth another attempt. By default all are,
    /// except those of [`ErrorClass::is_final`](crate::failure::ErrorClass::is_final).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Expression over `error`: true if the failure is never retried. Takes precedence over `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<String>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            delay_ms: 200,
            factor: 2.0,
            max_delay_ms: None,
            jitter: false,
            on: None,
            never: None,
        }
    }
}

/// Effect of a step's failure on the flow, after the last attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    #[default]
    Fail,
    /// `data` passes through.
    Ignore,
    /// This value is the step's output.
    Value(Mapping),
}
