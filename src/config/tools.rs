//! `[tools.*]`: tools of agents.

pub(super) mod approval;
mod coded;
mod command;
mod http;
mod parts;
mod waiting;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::tool::{ASK_USER, ToolDefinition};
use greenroom_actors::agent::{Approval, OnCrash};
use greenroom_actors::domain::call::{CommandCall, HttpCall};
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::domain::schema::Schema;
use serde_json::{Value, json};

pub(crate) use self::parts::Parts;
pub(super) use self::waiting::warn_of_waiting;
pub(crate) use super::calls::{MEMORY_BYTES, OUTPUT_BYTES};

use super::Config;
use super::names::{NameKind, Reference};
use super::problem::{ConfigProblem, Spot};
use super::section::Section;
use super::texts::TextScope;
use super::workflows::deepest;
use crate::nearest::nearest;

/// Bounds of `concurrency`.
pub(crate) const CONCURRENCY: RangeInclusive<i64> = 1..=1_000_000;

/// Longest name of a tool, in characters; providers accept no longer ones.
const NAME_CHARS_MAX: usize = 64;

/// Tool that the runtime adds to agents with sub-agents.
pub(super) const DELEGATE_TASK: &str = "delegate_task";

const ON_CRASH: [(&str, OnCrash); 3] =
    [("repeat", OnCrash::Repeat), ("tell", OnCrash::Tell), ("ask", OnCrash::Ask)];

const KINDS: [&str; 4] = ["workflow", "agent", "http", "command"];
/// Often written as a kind.
const MCP_KIND: &str = "mcp";

/// Returns the names that templates and expressions of a tool with these parameters can read.
pub(crate) fn in_scope(parameters: Option<&Value>) -> TextScope {
    TextScope::of(&["args", "context", "user"]).with("args", parameters)
}

/// A tool as configured.
#[derive(Debug, Clone)]
pub struct ToolConfig {
    /// Description for models.
    pub description: String,
    /// JSON Schema of the arguments. Default: the input schema of the workflow, or the prompt of
    /// the agent.
    pub parameters: Option<Value>,
    /// Time limit of one call. Default: `[limits] tool_timeout`.
    pub timeout: Option<Duration>,
    /// Maximum number of concurrent calls; further ones wait.
    pub concurrency: Option<usize>,
    /// Approval that calls of agents need.
    pub approval: Option<Approval>,
    /// Treatment of a call of an agent that a crash interrupted.
    pub on_crash: OnCrash,
    /// The kind of the tool, with its settings.
    pub kind: ToolKind,
    /// The place in the file or in Rust code, for checks that need the whole configuration.
    pub(crate) spot: Spot,
}

/// The kind of a configured tool.
#[derive(Debug, Clone)]
pub enum ToolKind {
    /// Runs this workflow with the arguments as its input.
    Workflow(String),
    /// Asks this agent.
    Agent(String),
    /// Calls another server.
    Http(HttpCall),
    /// Runs a program.
    Command(CommandCall),
}

impl ToolConfig {
    /// Returns the schema of the arguments, configured or derived; `None` if the workflow is not
    /// among these.
    pub(crate) fn parameters_in(&self, workflows: &BTreeMap<String, Arc<Plan>>) -> Option<Value> {
        let without = || match &self.kind {
            ToolKind::Workflow(id) => workflows.get(id).map(|plan| parameters_of(plan)),
            ToolKind::Agent(_) => Some(ToolDefinition::agent_parameters()),
            ToolKind::Http(_) | ToolKind::Command(_) => None,
        };
        self.parameters.clone().or_else(without)
    }

    /// Returns the reference to the definition that it calls.
    pub(crate) fn reference(&self) -> Option<Reference> {
        let (kind, key, id) = match &self.kind {
            ToolKind::Workflow(id) => (NameKind::Workflow, "workflow", id),
            ToolKind::Agent(id) => (NameKind::Agent, "agent", id),
            ToolKind::Http(_) | ToolKind::Command(_) => return None,
        };
        Some(Reference::new(kind, id, Spot { key: key.to_owned(), ..self.spot.clone() }))
    }
}

/// Returns the problem of a tool's name.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(fits) {
        let problem = "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -";
        return Some(problem.to_owned());
    }
    if name == ASK_USER {
        return Some(format!("{ASK_USER} is built in: agents list it without a definition"));
    }
    let is_reserved = name == DELEGATE_TASK;
    is_reserved.then(|| format!("{DELEGATE_TASK} is reserved for agents with sub-agents"))
}

/// Returns the problem of a schema of arguments.
pub(crate) fn parameters_problem(parameters: &Value) -> Option<String> {
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Some("arguments are an object: the schema needs type = \"object\"".to_owned());
    }
    Schema::compile(parameters).err().map(|error| error.to_string())
}

/// Returns the schema of the arguments of a tool that runs a workflow: its input schema.
pub(crate) fn parameters_of(plan: &Plan) -> Value {
    plan.definition.input_schema.clone().unwrap_or_else(|| json!({ "type": "object" }))
}

/// Returns errors for tools whose workflow takes an input that is not an object. `plan_of` returns
/// a workflow by its id.
pub(crate) fn check_workflows<'p>(
    config: &Config,
    plan_of: impl Fn(&str) -> Option<&'p Arc<Plan>>,
) -> Vec<ConfigProblem> {
    let problem = |tool: &ToolConfig| {
        let ToolKind::Workflow(id) = &tool.kind else { return None };
        let parameters = parameters_of(plan_of(id)?);
        let problem = parameters_problem(&parameters).filter(|_| tool.parameters.is_none())?;
        Some(tool.spot.error(format!("takes the input of workflow {id}, but {problem}")))
    };
    config.tools.values().filter_map(problem).collect()
}

/// Reads a tool; names that it refers to are looked up later.
pub(crate) fn read(
    name: &str,
    section: Section<'_>,
    references: &mut Vec<Reference>,
) -> Option<ToolConfig> {
    if let Some(problem) = name_problem(name) {
        section.place.refuse(problem);
    }
    let spot = section.place.spot();
    let description = section.required("description").and_then(|entry| entry.filled_text());
    let parameters = section.get("parameters").and_then(|entry| {
        let parameters = entry.schema()?;
        if let Some(problem) = parameters_problem(&parameters) {
            entry.place.refuse(problem);
        }
        Some(parameters)
    });
    let timeout = section.get("timeout").and_then(|entry| entry.duration());
    let concurrency = section.get("concurrency").and_then(|entry| {
        let count = entry.integer(CONCURRENCY)?;
        usize::try_from(count).ok()
    });
    let kind = section.required("kind").and_then(|entry| {
        let written = entry.text()?;
        if let Some(known) = KINDS.into_iter().find(|kind| *kind == written) {
            return Some(known);
        }
        let spot = entry.place.spot();
        entry.place.findings.report(if written == MCP_KIND {
            spot.error("tools of MCP servers need no definition: [mcp.NAME] brings all of them")
        } else {
            let meant = nearest(&written, KINDS);
            let kinds = KINDS.join(", ");
            let others =
                if meant.is_none() { format!("; it is one of {kinds}") } else { String::new() };
            spot.error(format!("unknown kind {written:?}{others}")).meant(meant)
        });
        None
    });
    let on_crash = section.get("on_crash").and_then(|entry| entry.one_of(&ON_CRASH));
    let scope = in_scope(parameters.as_ref());
    let spot_of = |keys: &[String]| deepest(section.place.clone(), section.table, keys).spot();
    let report = |problem| section.place.findings.report(problem);
    let parts = Parts { scope: &scope, spot: &spot_of, report: &report };
    parameters.iter().for_each(|parameters| parts.warn_of_formats(parameters));
    let approval = section.get("approval").and_then(|entry| approval::read(&entry, &parts));
    // the other keys cannot be checked without a kind
    let kind = kind_of(kind?, &section, &parts, references);
    section.close();
    Some(ToolConfig {
        description: description?,
        parameters,
        timeout,
        concurrency,
        approval,
        on_crash: on_crash.unwrap_or_default(),
        kind: kind?,
        spot,
    })
}

fn kind_of(
    kind: &str,
    section: &Section<'_>,
    parts: &Parts<'_>,
    references: &mut Vec<Reference>,
) -> Option<ToolKind> {
    let mut named = |key, kind| section.required(key)?.reference(kind, references);
    match kind {
        "workflow" => named("workflow", NameKind::Workflow).map(ToolKind::Workflow),
        "agent" => named("agent", NameKind::Agent).map(ToolKind::Agent),
        "command" => {
            section.required("parameters");
            command::read(section, parts).map(ToolKind::Command)
        }
        _ => {
            section.required("parameters");
            http::read(section, parts).map(ToolKind::Http)
        }
    }
}
