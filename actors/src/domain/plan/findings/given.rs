//! What steps hand to other workflows and to tools, as far as it is known before they run.

use serde_json::Value;

use super::conditions::constant;
use super::{Finding, Misspelt, place_of};
use crate::domain::definition::{Body, Projection, StepDefinition, StepKind, WorkflowDefinition};
use crate::domain::schema::Schema;

/// Who is given something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    Workflow,
    Tool,
}

/// What a step hands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// As in [`Problem`](super::super::Problem).
    pub place: Vec<String>,
    pub callee: Callee,
    /// Of the workflow or the tool.
    pub name: String,
    value: Known,
}

/// What can be said of a value before anything runs.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    /// All of it.
    Whole(Value),
    /// Its keys.
    Keys(Vec<String>),
}

/// Everything that steps hand on and that can be said something of.
pub fn given(definition: &WorkflowDefinition) -> Vec<Given> {
    let mut found = Vec::new();
    collect(&definition.steps, &mut found);
    found
}

fn collect(steps: &[StepDefinition], found: &mut Vec<Given>) {
    for step in steps {
        let handed = match &step.kind {
            StepKind::Workflow { workflow, input: Some(input) } => {
                Some((Callee::Workflow, "input", workflow, input))
            }
            StepKind::Then { body: Body::Tool { tool, args: Some(args) } }
            | StepKind::Tap { body: Body::Tool { tool, args: Some(args) } } => {
                Some((Callee::Tool, "args", tool, args))
            }
            StepKind::Then {
                body:
                    Body::Map(_)
                    | Body::Run { .. }
                    | Body::Http(_)
                    | Body::Command(_)
                    | Body::Tool { args: None, .. },
            }
            | StepKind::Tap {
                body:
                    Body::Map(_)
                    | Body::Run { .. }
                    | Body::Http(_)
                    | Body::Command(_)
                    | Body::Tool { args: None, .. },
            }
            | StepKind::Workflow { input: None, .. }
            | StepKind::When { .. }
            | StepKind::All { .. }
            | StepKind::Race { .. }
            | StepKind::ForEach { .. }
            | StepKind::Branch { .. }
            | StepKind::DoWhile { .. }
            | StepKind::DoUntil { .. }
            | StepKind::Map { .. }
            | StepKind::Agent { .. }
            | StepKind::Sleep { .. }
            | StepKind::SleepUntil { .. } => None,
        };
        if let Some((callee, key, name, projection)) = handed
            && let Some(value) = known(projection)
        {
            let place = place_of(step).into_iter().chain([key.to_owned()]).collect();
            found.push(Given { place, callee, name: name.clone(), value });
        }
        for block in step.kind.blocks() {
            collect(&block.steps, found);
        }
    }
}

fn known(projection: &Projection) -> Option<Known> {
    if let Some(value) = constant(projection) {
        return Some(Known::Whole(value));
    }
    let Projection(Value::Object(members)) = projection else { return None };
    Some(Known::Keys(members.keys().cloned().collect()))
}

impl Given {
    /// Every place that a misfit can have.
    pub fn places(&self) -> Vec<Vec<String>> {
        let keys = match &self.value {
            Known::Whole(_) => [].as_slice(),
            Known::Keys(keys) => keys,
        };
        let inner = |key: &String| self.place.iter().chain([key]).cloned().collect();
        keys.iter().map(inner).chain([self.place.clone()]).collect()
    }

    /// The first thing about it that the callee's schema does not allow.
    pub fn misfit(&self, schema: &Schema) -> Option<Finding> {
        let callee = match self.callee {
            Callee::Workflow => "input of workflow",
            Callee::Tool => "parameters of tool",
        };
        let finding = |place: Vec<String>, why: String, misspelt| {
            let message = format!("does not fit the {callee} {}: {why}", self.name);
            Some(Finding { place, message, is_error: true, misspelt })
        };
        match &self.value {
            Known::Whole(value) => {
                let violation = schema.check(value).err()?;
                finding(self.place.clone(), violation.to_string(), None)
            }
            Known::Keys(keys) => match misfit_of_keys(keys, schema.source())? {
                Misfit::Missing(key) => {
                    finding(self.place.clone(), format!("key `{key}` is missing"), None)
                }
                Misfit::Unknown(misspelt) => {
                    let key = misspelt.written.clone();
                    let place = self.place.iter().cloned().chain([key.clone()]).collect();
                    finding(place, format!("it has no key `{key}`"), Some(misspelt))
                }
            },
        }
    }
}

enum Misfit {
    Missing(String),
    Unknown(Misspelt),
}

/// Of values that are not known, the keys still are: one that is required and not there, one that
/// is there and not allowed. What else a schema says of keys is seen when the value is there.
fn misfit_of_keys(keys: &[String], schema: &Value) -> Option<Misfit> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    let is_known = |key: &String| properties.is_some_and(|it| it.contains_key(key));
    if let Some(unknown) = keys.iter().find(|key| is_closed && !is_known(key)) {
        let known = properties.map(|it| it.keys().cloned().collect()).unwrap_or_default();
        return Some(Misfit::Unknown(Misspelt { written: unknown.clone(), known }));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut required = required.filter_map(Value::as_str);
    let missing = required.find(|key| !keys.iter().any(|there| there == key))?;
    Some(Misfit::Missing(missing.to_owned()))
}
