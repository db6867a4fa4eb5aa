//! Definitions with mocks in place of steps.

use std::collections::BTreeMap;

use greenroom_actors::domain::definition::{Body, StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::ids::compensated_path;

use super::mock::Mock;
use super::names::meant;

/// Puts mocks in place of steps; returns each with the name of its function. Steps are named by id,
/// which is unique in a workflow, or id and `:compensate`. Problems name what is not there.
pub(super) fn swap(
    definition: &mut WorkflowDefinition,
    mocks: &BTreeMap<String, Mock>,
) -> Result<Vec<(String, Mock)>, Vec<String>> {
    let known = definition.step_names();
    let (mut functions, mut problems) = (Vec::new(), Vec::new());
    for (name, mock) in mocks {
        let function = format!("mock of {}/{name}", definition.id);
        match put(&mut definition.steps, name, &function) {
            Put::Done => functions.push((function, mock.clone())),
            Put::Nowhere => {
                let meant = meant(name, known.iter().map(String::as_str));
                problems
                    .push(format!("workflow {} has no step {name} to mock{meant}", definition.id));
            }
            Put::Without => problems.push(format!(
                "step {} of workflow {} has no compensation to mock",
                compensated_path(name).unwrap_or(name),
                definition.id
            )),
        }
    }
    if problems.is_empty() { Ok(functions) } else { Err(problems) }
}

/// Effect of a mock on a list of steps.
enum Put {
    Done,
    /// No step has the name.
    Nowhere,
    /// The step has no compensation.
    Without,
}

fn put(steps: &mut [StepDefinition], name: &str, function: &str) -> Put {
    for step in steps {
        if step.id == compensated_path(name).unwrap_or(name) {
            let kind = if compensated_path(name).is_none() {
                &mut step.kind
            } else if let Some(compensation) = &mut step.compensate {
                &mut compensation.kind
            } else {
                return Put::Without;
            };
            *kind = kind.with_body(Body::Run { function: function.to_owned(), version: None });
            return Put::Done;
        }
        for block in step.kind.blocks_mut() {
            match put(&mut block.steps, name, function) {
                Put::Nowhere => {}
                found => return found,
            }
        }
    }
    Put::Nowhere
}
