//! Typed paths of the configuration: each workflow with its input, each tool with its parameters.

use greenroom_actors::domain::definition::{Block, StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::schema::Schema;
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::registry::Registry;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::operation::{Access, Answers, operation};
use super::{Source, parts, routes, templated, tools, workflows};
use crate::api::catalogue::{Likeness, ROUTES, Route, RouteName, Tag};
use crate::api::error::ApiError;
use crate::api::examples::example_of;
use crate::api::workflows::sample_input;

/// Characters that are encoded in a segment of a path.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Returns the paths of a route for each configured workflow or tool, with their operations.
pub(super) fn variants(
    row: &Route,
    source: &Source<'_>,
    described: &Described,
    answers: &mut Answers,
    components: &mut Components,
) -> Vec<(String, Value)> {
    let registry = source.registry;
    let workflows = registry.workflows.values().map(|plan| &plan.definition);
    let mut variants = Vec::new();
    let mut add = |id: &str, described: Described, components: &mut Components| {
        let raw = row.path.replacen([":id", ":name"][usize::from(is_tool(row))], &segment(id), 1);
        let path = templated(&raw);
        let access = Access::of(row, &raw, source);
        variants.push((path, operation(row, &described, &access, answers, components)));
    };
    if matches!(row.name, RouteName::ExecuteWorkflow | RouteName::StreamWorkflow) {
        for definition in workflows {
            let started = started(described, definition, components);
            add(&definition.id, started, components);
        }
    } else if row.name == RouteName::ResumeExecution {
        for definition in workflows {
            if let Some(resumed) = resumed(described, definition, components) {
                add(&definition.id, resumed, components);
            }
        }
    } else if is_tool(row) {
        for tool in registry.tools.values() {
            let called = called(described, &tool.spec, components);
            add(&tool.spec.name, called, components);
        }
    }
    variants
}

fn is_tool(row: &Route) -> bool {
    row.name == RouteName::ExecuteTool
}

fn segment(id: &str) -> String {
    utf8_percent_encode(id, SEGMENT).to_string()
}

/// Returns the same route for one id, which is part of its path.
fn narrowed(described: &Described, id: &str, parameter: &str, about: String) -> Described {
    let mut narrowed = described.clone();
    narrowed.operation_id = format!("{}_{id}", described.operation_id).into();
    let is_named = |it: &Value| it["in"] == "path" && it["name"] == parameter;
    narrowed.parameters.retain(|it| !is_named(it));
    narrowed.about = Some(about);
    narrowed
}

/// Describes an added route that repeats a built-in one for one workflow or agent.
pub(super) fn like(
    like: &Likeness,
    index: usize,
    registry: &Registry,
    components: &mut Components,
) -> Described {
    let operation_id = format!("custom{}", index + 1);
    let Some(row) = ROUTES.iter().find(|row| row.name == like.name) else {
        return Described::new(operation_id);
    };
    let general = routes::describe(row, registry, components);
    let workflow = registry.workflows.get(&*like.id).map(|plan| &plan.definition);
    let mut described = match (workflow.filter(|_| row.tag == Tag::Workflows), like) {
        (Some(definition), Likeness { takes_input_alone: true, .. }) => {
            let mut started = narrowed(&general, &like.id, "id", introduced(definition));
            let sample = sample_input(definition.input_schema.as_ref());
            let input = input_of(definition, components);
            started.body = Some(parts::request_body(input, true, sample));
            started
        }
        (Some(definition), _) => started(&general, definition, components),
        (None, _) => {
            let agent = registry.agents.get(&*like.id);
            let about = agent.map(|agent| agent.description.clone()).unwrap_or_default();
            narrowed(&general, &like.id, "id", about)
        }
    };
    described.operation_id = operation_id.into();
    // The server does not start without it.
    let is_missing =
        |it: &ApiError| matches!(it, ApiError::WorkflowNotFound(_) | ApiError::AgentNotFound(_));
    described.refusals.retain(|it| !is_missing(it));
    described
}

fn introduced(definition: &WorkflowDefinition) -> String {
    let WorkflowDefinition { name, purpose, .. } = definition;
    if purpose.is_empty() { name.clone() } else { format!("{name}: {purpose}") }
}

fn started(
    described: &Described,
    definition: &WorkflowDefinition,
    components: &mut Components,
) -> Described {
    let input = input_of(definition, components);
    let body = workflows::start_body(&input, components);
    let sample = json!({ "input": sample_input(definition.input_schema.as_ref()) });
    let mut started = narrowed(described, &definition.id, "id", introduced(definition));
    started.body = Some(parts::request_body(body, true, sample));
    started
}

/// Returns the schema of the input of a workflow.
fn input_of(definition: &WorkflowDefinition, components: &mut Components) -> Value {
    let Some(schema) = &definition.input_schema else { return json!({ "type": "object" }) };
    let name = format!("Workflow.{}.Input", definition.id);
    components.configured(&name, schema)
}

/// Describes the resume of a workflow; `None` if it has no resume schema.
fn resumed(
    described: &Described,
    definition: &WorkflowDefinition,
    components: &mut Components,
) -> Option<Described> {
    let default = definition.resume_schema.iter().map(|schema| (String::new(), schema));
    let mut schemas: Vec<(String, &Value)> = default.collect();
    collect(&definition.steps, &mut schemas);
    let example = example_of(schemas.first()?.1);
    let mut taken: Vec<Value> = Vec::new();
    let mut may_be_missing = false;
    for (step, schema) in schemas {
        may_be_missing |= takes_null(schema);
        let name = format!("Workflow.{}.Resume{step}", definition.id);
        taken.push(components.configured(&name, schema));
    }
    let data = match taken.as_slice() {
        [only] => only.clone(),
        _ => json!({ "description": "Data for the suspended step", "anyOf": taken }),
    };
    let mut resumed = narrowed(described, &definition.id, "id", introduced(definition));
    let mut body = workflows::resume_body(&data, components);
    if !may_be_missing {
        body["required"] = json!(["resumeData"]);
    }
    let example = json!({ "resumeData": example });
    resumed.body = Some(parts::request_body(body, !may_be_missing, example));
    Some(resumed)
}

/// Returns true if `resumeData` may be absent, which counts as null.
fn takes_null(schema: &Value) -> bool {
    Schema::compile(schema).is_ok_and(|schema| schema.check(&Value::Null).is_ok())
}

/// Collects the resume schemas of steps, at any depth.
fn collect<'a>(steps: &'a [StepDefinition], found: &mut Vec<(String, &'a Value)>) {
    for step in steps {
        found.extend(step.resume_schema.iter().map(|schema| (format!(".{}", step.id), schema)));
        step.kind.blocks().into_iter().for_each(|block: &Block| collect(&block.steps, found));
    }
}

fn called(described: &Described, spec: &ToolSpec, components: &mut Components) -> Described {
    let input = components.configured(&format!("Tool.{}.Input", spec.name), &spec.parameters);
    let sample = json!({ "input": sample_input(Some(&spec.parameters)) });
    let mut called = narrowed(described, &spec.name, "name", spec.description.clone());
    called.body = Some(parts::request_body(tools::call_body(&input), true, sample));
    called
}

/// Returns the path parameter `id` of an agent. The configured ids are only examples, so that
/// generated clients still work when agents are added.
pub(super) fn agent_id(registry: &Registry, components: &mut Components) -> Value {
    let agents = registry.agents.values();
    let agents = agents.map(|agent| (agent.id.as_str(), agent.description.as_str()));
    parts::path("id", "Id of the agent", any_of_those(components, "AgentId", agents))
}

/// Returns the query parameter `agentId`, required if there are several agents. Those with memory
/// are examples.
pub(super) fn remembering_agent(registry: &Registry, components: &mut Components) -> Value {
    let agents = registry.agents.values().filter(|agent| agent.memory);
    let agents = agents.map(|agent| (agent.id.as_str(), agent.description.as_str()));
    let schema = any_of_those(components, "RememberingAgentId", agents);
    let about = "Id of the agent; optional if there is only one";
    match registry.agents.len() {
        0 | 1 => parts::query("agentId", about, schema),
        _ => parts::required_query("agentId", about, schema),
    }
}

/// Returns the path parameter `id` of a configured workflow.
pub(super) fn workflow_id(registry: &Registry, components: &mut Components) -> Value {
    let definitions = registry.workflows.values().map(|plan| &plan.definition);
    let workflows = definitions.map(|it| (it.id.as_str(), it.purpose.as_str()));
    parts::path("id", "Id of the workflow", any_of_those(components, "WorkflowId", workflows))
}

fn any_of_those<'a>(
    components: &mut Components,
    name: &str,
    known: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return parts::any_id();
    }
    components.add(name, || {
        let ids: Vec<&str> = known.iter().map(|(id, _)| *id).collect();
        let lines = known.iter().filter(|(_, text)| !text.is_empty());
        let lines: Vec<_> = lines.map(|(id, text)| format!("- `{id}`: {text}")).collect();
        let mut schema = parts::any_id();
        schema["examples"] = json!(ids);
        schema["description"] = json!(lines.join("\n"));
        schema
    })
}
