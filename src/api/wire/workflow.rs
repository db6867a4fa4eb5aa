//! Workflows on the wire.

use greenroom_actors::domain::definition::{Block, Called, StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::json::{Closed, Object, present};
use crate::api::wire::shape::{
    json_schema, nullable_schema, optional_execution_id, optional_id, optional_object, step_kind,
    workflow_status,
};

/// Item of `GET /workflows`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowSummary)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSummaryView<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub purpose: &'a str,
    pub steps_count: usize,
    #[schema(schema_with = workflow_status)]
    pub status: &'static str,
}

impl<'a> WorkflowSummaryView<'a> {
    /// Shows a definition. `is_running`: true if it has a running execution.
    pub fn of(definition: &'a WorkflowDefinition, is_running: bool) -> Self {
        Self {
            id: &definition.id,
            name: &definition.name,
            purpose: &definition.purpose,
            steps_count: definition.steps.len(),
            status: if is_running { "running" } else { "idle" },
        }
    }
}

/// `GET /workflows/:id`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowDetail)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowView<'a> {
    #[serde(flatten)]
    pub summary: WorkflowSummaryView<'a>,
    /// Hash of this version.
    pub definition_hash: &'a str,
    pub steps: Vec<StepView<'a>>,
    /// Schema of the input; any object if the workflow has none.
    #[schema(schema_with = json_schema)]
    pub input_schema: SchemaView<'a>,
    #[schema(schema_with = nullable_schema, required)]
    pub suspend_schema: Option<&'a Value>,
    #[schema(schema_with = nullable_schema, required)]
    pub resume_schema: Option<&'a Value>,
}

impl<'a> WorkflowView<'a> {
    /// Shows a definition with its steps and schemas.
    pub fn of(plan: &'a Plan, is_running: bool) -> Self {
        let definition = &plan.definition;
        Self {
            summary: WorkflowSummaryView::of(definition, is_running),
            definition_hash: &plan.hash,
            steps: definition.steps.iter().map(StepView::of).collect(),
            input_schema: SchemaView(definition.input_schema.as_ref()),
            suspend_schema: definition.suspend_schema.as_ref(),
            resume_schema: definition.resume_schema.as_ref(),
        }
    }
}

/// A schema; any object if there is none.
#[derive(Debug)]
pub struct SchemaView<'a>(Option<&'a Value>);

impl Serialize for SchemaView<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(schema) => schema.serialize(serializer),
            None => {
                Map::from_iter([("type".to_owned(), Value::from("object"))]).serialize(serializer)
            }
        }
    }
}

/// A step of a workflow. Bodies, expressions and templates are not shown.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowStep)]
#[serde(rename_all = "camelCase")]
pub struct StepView<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(rename = "type")]
    #[schema(schema_with = step_kind)]
    pub kind: &'static str,
    pub purpose: &'a str,
    #[schema(schema_with = json_schema, required = false)]
    pub input_schema: Option<&'a Value>,
    #[schema(schema_with = json_schema, required = false)]
    pub output_schema: Option<&'a Value>,
    #[schema(schema_with = json_schema, required = false)]
    pub suspend_schema: Option<&'a Value>,
    #[schema(schema_with = json_schema, required = false)]
    pub resume_schema: Option<&'a Value>,
    pub agent_id: Option<&'a str>,
    pub workflow_id: Option<&'a str>,
    /// Kind of the work that undoes the step if the execution fails: `run`, `http`, `command`, `tool` or `workflow`.
    pub compensation: Option<&'static str>,
    /// Name of the block that it is in; absent for a step of the workflow itself.
    pub block: Option<&'a str>,
    /// Steps of its blocks, block by block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion, required = false)]
    pub steps: Vec<StepView<'a>>,
}

impl<'a> StepView<'a> {
    fn of(step: &'a StepDefinition) -> Self {
        let (agent_id, workflow_id) = match step.kind.called() {
            Some(Called::Agent(agent)) => (Some(agent), None),
            Some(Called::Workflow(workflow)) => (None, Some(workflow)),
            Some(Called::Function(_) | Called::Tool(_)) | None => (None, None),
        };
        let nested = |block: &'a Block| {
            let name = Some(block.name.as_str());
            block.steps.iter().map(move |step| StepView { block: name, ..StepView::of(step) })
        };
        Self {
            id: &step.id,
            name: &step.name,
            kind: step.kind.name(),
            purpose: &step.purpose,
            input_schema: step.input_schema.as_ref(),
            output_schema: step.output_schema.as_ref(),
            suspend_schema: step.suspend_schema.as_ref(),
            resume_schema: step.resume_schema.as_ref(),
            agent_id,
            workflow_id,
            compensation: step.compensate.as_ref().map(|it| it.work()),
            block: None,
            steps: step.kind.blocks().into_iter().flat_map(nested).collect(),
        }
    }
}

/// Body of execute and stream.
#[derive(Debug, Deserialize)]
pub struct ExecuteBody {
    #[serde(default, deserialize_with = "present")]
    pub input: Option<Value>,
    #[serde(default)]
    pub options: Option<Object<ExecuteOptions>>,
}

impl Closed for ExecuteBody {
    const KEYS: &'static [&'static str] = &[
        "input",
        "options",
        "options.userId",
        "options.conversationId",
        "options.executionId",
        "options.context",
    ];
}

/// `options` of execute and stream.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteOptions {
    #[schema(schema_with = optional_id)]
    pub user_id: Option<String>,
    #[schema(schema_with = optional_id)]
    pub conversation_id: Option<String>,
    /// Id of the new execution.
    #[schema(schema_with = optional_execution_id)]
    pub execution_id: Option<String>,
    /// Value of `context` in steps.
    #[schema(schema_with = optional_object)]
    pub context: Option<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::definition::{Body, Mapping, StepKind};
    use serde_json::json;

    use super::*;

    fn step(id: &str, kind: StepKind) -> StepDefinition {
        StepDefinition { name: id.to_uppercase(), ..StepDefinition::new(id, kind) }
    }

    #[test]
    fn a_detail_shows_nested_steps_and_no_source() {
        let body = Body::Map(Mapping(json!("data.secret")));
        let inner = step("inner", StepKind::Then { body });
        let block = Block { name: "one".into(), steps: vec![inner] };
        let workflow = "other".to_owned();
        let steps = vec![
            step("all", StepKind::All { blocks: vec![block] }),
            step("child", StepKind::Workflow { workflow, input: None }),
        ];
        let definition = WorkflowDefinition {
            name: "Order".into(),
            purpose: "Orders".into(),
            resume_schema: Some(json!({ "type": "object" })),
            ..WorkflowDefinition::new("order", steps)
        };
        let plan = Plan::compile(definition).unwrap();
        let shown = serde_json::to_value(WorkflowView::of(&plan, true)).unwrap();
        let expected = json!({
            "id": "order", "name": "Order", "purpose": "Orders", "stepsCount": 2,
            "status": "running", "definitionHash": &*plan.hash,
            "steps": [
                { "id": "all", "name": "ALL", "type": "andAll", "purpose": "", "steps": [
                    { "id": "inner", "name": "INNER", "type": "andThen", "purpose": "",
                      "block": "one" }
                ] },
                { "id": "child", "name": "CHILD", "type": "andWorkflow", "purpose": "",
                  "workflowId": "other" }
            ],
            "inputSchema": { "type": "object" },
            "suspendSchema": null,
            "resumeSchema": { "type": "object" }
        });
        assert_eq!(shown, expected);
    }
}
