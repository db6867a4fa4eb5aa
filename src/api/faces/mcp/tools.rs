//! Tools that a face offers: workflows, answers to suspended ones, and agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::definition::Called;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::registry::Registry;
use serde_json::{Map, Value, json};

use crate::api::faces::Offered;

const WORKFLOW: &str = "workflow_";
const AGENT: &str = "agent_";
const RESUME: &str = "_resume";

/// Longest name of a tool that clients have to accept.
const NAME_CHARS_MAX: usize = 128;

/// Workflows and agents that a face offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub workflows: Offered,
    pub agents: Offered,
    /// Names of registered tools.
    pub tools: Vec<String>,
}

/// A tool.
#[derive(Debug, Clone)]
pub enum Tool {
    /// Runs a workflow; the arguments are its input.
    Workflow(Arc<Plan>),
    /// Answers what an execution of the workflow waits for.
    Resume(Arc<Plan>),
    /// Asks an agent.
    Agent(Arc<AgentDefinition>),
    /// Calls a registered tool.
    Registered(Arc<ToolDefinition>),
}

impl Offer {
    /// Returns all tools by name.
    pub fn tools(&self, registry: &Registry) -> BTreeMap<String, Tool> {
        let mut names = Vec::new();
        for id in registry.workflows.keys() {
            names.push(format!("{WORKFLOW}{id}"));
            names.push(resume_name(id));
        }
        names.extend(registry.agents.keys().map(|id| format!("{AGENT}{id}")));
        names.extend(self.tools.iter().cloned());
        let found = |name: String| {
            let tool = self.find(registry, &name)?;
            let is_shown = match &tool {
                Tool::Resume(plan) => may_wait(plan),
                Tool::Workflow(_) | Tool::Agent(_) | Tool::Registered(_) => true,
            };
            is_shown.then_some((name, tool))
        };
        names.into_iter().filter_map(found).collect()
    }

    /// Finds a tool by its name. A workflow goes before the answers to another one of a shorter name,
    /// and both before a registered tool.
    pub fn find(&self, registry: &Registry, name: &str) -> Option<Tool> {
        if name.len() > NAME_CHARS_MAX {
            return None;
        }
        let workflow = |id: &str| {
            let plan = registry.workflows.get(id).filter(|_| self.workflows.has(id))?;
            takes_objects(plan).then(|| Arc::clone(plan))
        };
        if let Some(id) = name.strip_prefix(WORKFLOW) {
            let resumed = || Some(Tool::Resume(workflow(id.strip_suffix(RESUME)?)?));
            let found = workflow(id).map(Tool::Workflow).or_else(resumed);
            if found.is_some() {
                return found;
            }
        }
        let agent = name.strip_prefix(AGENT).filter(|id| self.agents.has(id));
        if let Some(agent) = agent.and_then(|id| registry.agents.get(id)) {
            return Some(Tool::Agent(Arc::clone(agent)));
        }
        let named = self.tools.iter().any(|own| own == name);
        let tool = registry.tools.get(name).filter(|_| named)?;
        Some(Tool::Registered(Arc::clone(tool)))
    }
}

/// Returns the name of the tool that answers what executions of a workflow wait for.
pub fn resume_name(workflow: &str) -> String {
    format!("{WORKFLOW}{workflow}{RESUME}")
}

impl Tool {
    /// Returns the schema of its arguments, as far as it is the user's own.
    pub fn parameters(&self) -> Option<&Value> {
        match self {
            Self::Workflow(plan) => plan.definition.input_schema.as_ref(),
            Self::Registered(tool) => Some(&tool.spec.parameters),
            Self::Resume(_) | Self::Agent(_) => None,
        }
    }

    /// Describes the tool.
    pub fn describe(&self, name: &str) -> Value {
        match self {
            Self::Registered(tool) => json!({
                "name": name,
                "description": tool.spec.description,
                "inputSchema": object_schema(Some(&tool.spec.parameters)),
            }),
            Self::Workflow(plan) => {
                let definition = &plan.definition;
                let about = described(&definition.purpose, || {
                    format!("Runs the workflow {}.", definition.name)
                });
                json!({
                    "name": name,
                    "title": definition.name,
                    "description": about,
                    "inputSchema": object_schema(definition.input_schema.as_ref()),
                })
            }
            Self::Resume(plan) => {
                let workflow = &plan.definition.name;
                json!({
                    "name": name,
                    "title": format!("{workflow}: answer"),
                    "description": format!(
                        "Answers what an execution of the workflow {workflow} waits for. Call it after \
                         the workflow has answered with the status `suspended`."
                    ),
                    "inputSchema": {
                        "type": "object",
                        "properties": {
                            "executionId": {
                                "type": "string", "description": "The execution that waits.",
                            },
                            "askId": {
                                "type": "string",
                                "description": "What is answered. Needed if several steps wait.",
                            },
                            "data": {
                                "description": "The answer, as `schema` of the ask describes it.",
                            },
                        },
                        "required": ["executionId"],
                        "additionalProperties": false,
                    },
                })
            }
            Self::Agent(agent) => {
                let about = described(&agent.description, || format!("Asks {}.", agent.name));
                json!({
                    "name": name,
                    "title": agent.name,
                    "description": about,
                    "inputSchema": agent_input(),
                    "outputSchema": agent_output(),
                })
            }
        }
    }
}

fn agent_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "prompt": { "type": "string", "minLength": 1, "description": "What the agent is asked." },
            "conversationId": {
                "type": "string",
                "description": "Conversation that the agent remembers, and continues.",
            },
        },
        "required": ["prompt"],
        "additionalProperties": false,
    })
}

fn agent_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": { "enum": ["completed", "suspended"] },
            "generationId": { "type": "string" },
            "text": { "type": "string" },
            "asks": {
                "type": "array",
                "items": { "type": "object" },
                "description": "Calls of tools that wait for a person, while suspended.",
            },
        },
        "required": ["status", "generationId", "text"],
    })
}

fn described(own: &str, otherwise: impl FnOnce() -> String) -> String {
    if own.is_empty() { otherwise() } else { own.to_owned() }
}

/// Returns true if the input may be an object, which arguments of tools are.
fn takes_objects(plan: &Plan) -> bool {
    match &plan.definition.input_schema {
        None => true,
        Some(Value::Bool(accepts)) => *accepts,
        Some(schema) => match schema.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            Some(_) | None => true,
        },
    }
}

/// Returns a schema of arguments, which say that they are an object.
fn object_schema(schema: Option<&Value>) -> Value {
    let mut whole = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(Value::Object(members)) = schema {
        let others = members.iter().filter(|(key, _)| *key != "type");
        whole.extend(others.map(|(key, member)| (key.clone(), member.clone())));
    }
    Value::Object(whole)
}

/// Returns true if a step of the workflow may wait for a person. Functions and agents decide that
/// while they run.
fn may_wait(plan: &Plan) -> bool {
    plan.definition.each_step().into_iter().any(|step| {
        let decides = match step.kind.called() {
            Some(Called::Function(_) | Called::Agent(_) | Called::Workflow(_)) => true,
            Some(Called::Tool(_)) | None => false,
        };
        step.suspend.is_some() || step.resume_schema.is_some() || decides
    })
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::definition::{StepDefinition, StepKind, WorkflowDefinition};

    use super::*;

    fn registry(workflows: &[(&str, Value)]) -> Registry {
        let plan = |(id, schema): &(&str, Value)| {
            let input_schema = Some(schema.clone()).filter(|schema| !schema.is_null());
            let kind = StepKind::Sleep { duration_ms: 1 };
            let steps = vec![StepDefinition::new("nap", kind)];
            let definition =
                WorkflowDefinition { input_schema, ..WorkflowDefinition::new(*id, steps) };
            ((*id).to_owned(), Arc::new(Plan::compile(definition).unwrap()))
        };
        Registry { workflows: workflows.iter().map(plan).collect(), ..Registry::default() }
    }

    fn only(ids: &[&str]) -> Offered {
        Offered::Only(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn tools_are_those_offered_in_the_order_of_their_names() {
        let registry = registry(&[("b", Value::Null), ("a", Value::Null), ("c", Value::Null)]);
        let names = |workflows| {
            let offer = Offer { workflows, agents: Offered::All, tools: Vec::new() };
            offer.tools(&registry).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names(Offered::All), ["workflow_a", "workflow_b", "workflow_c"]);
        assert_eq!(names(only(&["c", "a", "x"])), ["workflow_a", "workflow_c"]);
        assert!(names(only(&[])).is_empty());
    }

    #[test]
    fn only_workflows_that_take_objects_are_tools() {
        let long = "x".repeat(NAME_CHARS_MAX);
        let rows = [
            ("a", Value::Null, true),
            ("b", json!({ "type": "object" }), true),
            ("c", json!({ "type": ["null", "object"] }), true),
            ("d", json!({ "required": ["n"] }), true),
            ("e", json!(true), true),
            ("f", json!({ "type": "integer" }), false),
            ("g", json!({ "type": ["null", "string"] }), false),
            (&long, Value::Null, false),
        ];
        let offer = Offer { workflows: Offered::All, agents: only(&[]), tools: Vec::new() };
        for (id, schema, expected) in rows {
            let registry = registry(&[(id, schema.clone())]);
            let found = offer.find(&registry, &format!("workflow_{id}"));
            assert_eq!(found.is_some(), expected, "{id}: {schema}");
            if let Some(tool) = found {
                let input = &tool.describe("t")["inputSchema"];
                assert_eq!(input["type"], "object", "{schema}");
            }
        }
    }

    #[test]
    fn the_name_of_a_workflow_is_not_read_as_that_of_an_answer() {
        let both = registry(&[("a", Value::Null), ("a_resume", Value::Null)]);
        let offer = Offer { workflows: Offered::All, agents: only(&[]), tools: Vec::new() };
        let found = |registry: &Registry, name: &str| match offer.find(registry, name) {
            Some(Tool::Workflow(plan)) => format!("run {}", plan.definition.id),
            Some(Tool::Resume(plan)) => format!("resume {}", plan.definition.id),
            Some(Tool::Agent(agent)) => format!("ask {}", agent.id),
            Some(Tool::Registered(tool)) => format!("call {}", tool.spec.name),
            None => "none".to_owned(),
        };
        assert_eq!(found(&both, "workflow_a_resume"), "run a_resume");
        assert_eq!(found(&both, "workflow_a_resume_resume"), "resume a_resume");
        let one = registry(&[("a", Value::Null)]);
        assert_eq!(found(&one, "workflow_a_resume"), "resume a");
        for name in
            ["", "a", "workflow_", "workflow_b", "agent_a", "workflow__resume", "WORKFLOW_a"]
        {
            assert_eq!(found(&one, name), "none", "{name}");
        }
    }
}
