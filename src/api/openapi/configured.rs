//! What runs here, as typed paths: each workflow with its input, each tool with its parameters.

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
use crate::api::workflows::{admits_other_types, sample_input};

/// What a segment of a path cannot hold as it is.
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

/// The paths that a route has for each thing that runs here, with their operations.
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

/// The same route for one thing alone, which its path names.
fn narrowed(described: &Described, id: &str, parameter: &str, about: String) -> Described {
    let mut narrowed = described.clone();
    narrowed.operation_id = format!("{}_{id}", described.operation_id).into();
    let is_named = |it: &Value| it["in"] == "path" && it["name"] == parameter;
    narrowed.parameters.retain(|it| !is_named(it));
    narrowed.about = Some(about);
    narrowed
}

/// An added route that answers as another one does, for one workflow or agent.
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
    // It is there, or the server had not started.
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

/// What the workflow takes.
fn input_of(definition: &WorkflowDefinition, components: &mut Components) -> Value {
    let Some(schema) = &definition.input_schema else { return json!({ "type": "object" }) };
    let name = format!("Workflow.{}.Input", definition.id);
    if admits_other_types(definition) {
        return components.outside(&name, schema);
    }
    // Unless it names another type, the input is an object whatever else it must be.
    let mut schema = schema.clone();
    match &mut schema {
        Value::Object(keywords) => drop(keywords.insert("type".to_owned(), json!("object"))),
        Value::Bool(true) => schema = json!({ "type": "object" }),
        // no value at all
        Value::Bool(false)
        | Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_) => {}
    }
    components.outside(&name, &schema)
}

/// None of a workflow whose waiting steps say nothing of what they take.
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
        taken.push(components.outside(&name, schema));
    }
    let data = match taken.as_slice() {
        [only] => only.clone(),
        _ => json!({ "description": "What the waiting step takes", "anyOf": taken }),
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

/// Nothing counts as null.
fn takes_null(schema: &Value) -> bool {
    Schema::compile(schema).is_ok_and(|schema| schema.check(&Value::Null).is_ok())
}

/// Steps with a schema of their own for what resumes them, at any depth.
fn collect<'a>(steps: &'a [StepDefinition], found: &mut Vec<(String, &'a Value)>) {
    for step in steps {
        found.extend(step.resume_schema.iter().map(|schema| (format!(".{}", step.id), schema)));
        step.kind.blocks().into_iter().for_each(|block: &Block| collect(&block.steps, found));
    }
}

fn called(described: &Described, spec: &ToolSpec, components: &mut Components) -> Described {
    let input = components.outside(&format!("Tool.{}.Input", spec.name), &spec.parameters);
    let sample = json!({ "input": sample_input(Some(&spec.parameters)) });
    let mut called = narrowed(described, &spec.name, "name", spec.description.clone());
    called.body = Some(parts::request_body(tools::call_body(&input), true, sample));
    called
}

/// The `id` of a path of an agent. Those that are here are examples: a client that was made of this
/// document goes on when others are added.
pub(super) fn agent_id(registry: &Registry, components: &mut Components) -> Value {
    let agents = registry.agents.values();
    let agents = agents.map(|agent| (agent.id.as_str(), agent.description.as_str()));
    parts::path("id", "Id of the agent", any_of_those(components, "AgentId", agents))
}

/// The `agentId` of a query: those that remember are examples; named where there are several agents.
pub(super) fn remembering_agent(registry: &Registry, components: &mut Components) -> Value {
    let agents = registry.agents.values().filter(|agent| agent.memory);
    let agents = agents.map(|agent| (agent.id.as_str(), agent.description.as_str()));
    let schema = any_of_those(components, "RememberingAgentId", agents);
    let about = "The agent; may be left out where there is one alone";
    match registry.agents.len() {
        0 | 1 => parts::query("agentId", about, schema),
        _ => parts::required_query("agentId", about, schema),
    }
}

/// The `id` of a path of a workflow that has to be configured.
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
