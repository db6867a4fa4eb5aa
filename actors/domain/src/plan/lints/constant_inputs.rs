//! Inputs of workflows and tools, and payloads of suspensions, as far as they are known before a
//! run, checked against the schemas.

use serde_json::{Map, Value, json};

use super::constants::constant;
use super::{Finding, Misspelt, place_of};
use crate::definition::{
    Body, Mapping, OnTimeout, StepDefinition, StepKind, SuspendRule, WorkflowDefinition,
};
use crate::schema::Schema;

/// Receiver of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    Workflow,
    Tool,
}

/// Input of a workflow or a tool that is at least partly constant.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantInput {
    /// As in [`Problem`](super::super::Problem).
    pub place: Vec<String>,
    pub callee: Callee,
    /// Name of the workflow or the tool.
    pub name: String,
    value: Known,
}

/// Known part of a value.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    /// All of it.
    Whole(Value),
    /// Its keys, with those values that are constant.
    Keys(Vec<(String, Option<Value>)>),
}

/// Returns the inputs in a definition that are at least partly known.
pub fn constant_inputs(definition: &WorkflowDefinition) -> Vec<ConstantInput> {
    let mut found = Vec::new();
    collect(&definition.steps, &mut found);
    found
}

fn collect(steps: &[StepDefinition], found: &mut Vec<ConstantInput>) {
    for step in steps {
        found.extend(of_kind(&step.kind, place_of(step)));
        if let Some(compensation) = &step.compensate {
            let mut place = place_of(step);
            place.push("compensate".to_owned());
            found.extend(of_kind(&compensation.kind, place));
        }
        for block in step.kind.blocks() {
            collect(&block.steps, found);
        }
    }
}

fn of_kind(kind: &StepKind, mut place: Vec<String>) -> Option<ConstantInput> {
    let (callee, key, name, mapping) =
        if let StepKind::Workflow { workflow, input: Some(input) } = kind {
            (Callee::Workflow, "input", workflow, input)
        } else if let Some(Body::Tool { tool, args: Some(args) }) = kind.body() {
            (Callee::Tool, "args", tool, args)
        } else {
            return None;
        };
    let value = known(mapping)?;
    place.push(key.to_owned());
    Some(ConstantInput { place, callee, name: name.clone(), value })
}

fn known(mapping: &Mapping) -> Option<Known> {
    if let Some(value) = constant(mapping) {
        return Some(Known::Whole(value));
    }
    let Mapping(Value::Object(members)) = mapping else { return None };
    let member = |(key, value): (&String, &Value)| (key.clone(), constant(&Mapping(value.clone())));
    Some(Known::Keys(members.iter().map(member).collect()))
}

/// Checks the payload of a suspension and the data of `on_timeout` against the schemas of the
/// step, or those of the workflow.
pub(super) fn of_suspension(
    step: &StepDefinition,
    definition: &WorkflowDefinition,
) -> Vec<Finding> {
    let Some(SuspendRule { payload, on_timeout, .. }) = &step.suspend else { return Vec::new() };
    let answer = match on_timeout {
        OnTimeout::Fail => None,
        OnTimeout::Resume(answer) => Some(answer),
    };
    let shown = step.suspend_schema.as_ref().or(definition.suspend_schema.as_ref());
    let asked = step.resume_schema.as_ref().or(definition.resume_schema.as_ref());
    let checked = [
        (payload.as_ref(), shown, "suspend_schema", ["suspend", "payload"].as_slice()),
        (answer, asked, "resume_schema", &["suspend", "on_timeout", "resume"]),
    ];
    let mismatches = checked.into_iter().filter_map(|(value, schema, key, keys)| {
        let value = known(value?)?;
        let schema = Schema::compile(schema?).ok()?;
        let place = place_of(step).into_iter().chain(keys.iter().map(|key| (*key).to_owned()));
        value.mismatch(&schema, &place.collect::<Vec<_>>(), key)
    });
    mismatches.collect()
}

impl ConstantInput {
    /// Returns all places that a mismatch can have.
    pub fn places(&self) -> Vec<Vec<String>> {
        let keys = match &self.value {
            Known::Whole(_) => [].as_slice(),
            Known::Keys(keys) => keys,
        };
        let inner = |(key, _): &(String, _)| self.place.iter().chain([key]).cloned().collect();
        keys.iter().map(inner).chain([self.place.clone()]).collect()
    }

    /// Returns the first mismatch with the schema of the callee.
    pub fn mismatch(&self, schema: &Schema) -> Option<Finding> {
        let callee = match self.callee {
            Callee::Workflow => "input of workflow",
            Callee::Tool => "parameters of tool",
        };
        self.value.mismatch(schema, &self.place, &format!("{callee} {}", self.name))
    }
}

impl Known {
    /// Returns the first mismatch with a schema. `taker` names the schema in the message.
    fn mismatch(&self, schema: &Schema, place: &[String], taker: &str) -> Option<Finding> {
        let finding = |key: Option<&String>, why: String, misspelt| {
            let message = format!("does not match the {taker}: {why}");
            let place = place.iter().chain(key).cloned().collect();
            Some(Finding { place, message, is_error: true, misspelt })
        };
        let keys = match self {
            Self::Whole(value) => {
                let violation = schema.check(value).err()?;
                return finding(None, violation.to_string(), None);
            }
            Self::Keys(keys) => keys,
        };
        match mismatch_of_keys(keys, schema.source()) {
            Some(Mismatch::Missing(key)) => finding(None, format!("key `{key}` is missing"), None),
            Some(Mismatch::Unknown(misspelt)) => {
                let key = misspelt.written.clone();
                finding(Some(&key), format!("unknown key `{key}`"), Some(misspelt))
            }
            None => keys.iter().find_map(|(key, value)| {
                let violation =
                    of_members(schema.source())?.check(&json!({ key: value.as_ref()? }));
                finding(Some(key), violation.err()?.to_string(), None)
            }),
        }
    }
}

/// Returns the part of a schema that concerns single members.
fn of_members(schema: &Value) -> Option<Schema> {
    const KEPT: [&str; 5] = ["$schema", "$id", "$defs", "definitions", "properties"];
    let kept = |(key, value): (&String, &Value)| {
        KEPT.contains(&key.as_str()).then(|| (key.clone(), value.clone()))
    };
    let kept: Map<_, _> = schema.as_object()?.iter().filter_map(kept).collect();
    Schema::compile(&Value::Object(kept)).ok()
}

enum Mismatch {
    Missing(String),
    Unknown(Misspelt),
}

/// Finds a required key that is missing, or a key that is not allowed. Other rules about keys are
/// checked when the value is known.
fn mismatch_of_keys(keys: &[(String, Option<Value>)], schema: &Value) -> Option<Mismatch> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    let is_known = |key: &String| properties.is_some_and(|it| it.contains_key(key));
    if let Some(unknown) = keys.iter().map(|(key, _)| key).find(|key| is_closed && !is_known(key)) {
        let known = properties.map(|it| it.keys().cloned().collect()).unwrap_or_default();
        return Some(Mismatch::Unknown(Misspelt { written: unknown.clone(), known }));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut required = required.filter_map(Value::as_str);
    let missing = required.find(|key| !keys.iter().any(|(there, _)| there == key))?;
    Some(Mismatch::Missing(missing.to_owned()))
}
