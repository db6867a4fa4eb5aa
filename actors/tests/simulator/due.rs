//! Steps that an execution has to undo, by its definition and its record alone: not by what the
//! product says of either.

use greenroom_actors::domain::definition::{StepDefinition, StepKind, WorkflowDefinition};
use greenroom_actors::domain::fact::{Fact, Recorded, Start};
use greenroom_actors::domain::ids::{ExecutionId, compensated_path, step_id_of};

use crate::simulator::stage::Stage;

/// Returns the start in a record.
pub(crate) fn start_of(facts: &[Recorded]) -> Option<&Start> {
    let Fact::WorkflowStarted(start) = &facts.first()?.fact else { return None };
    Some(start)
}

/// Returns the paths of the steps that have completed and have to be undone if the execution fails, the
/// last one first. A reversal has to undo what its execution would have had to.
pub(crate) fn due(stage: &Stage, id: &ExecutionId) -> Vec<String> {
    let facts = stage.facts(id);
    let Some(start) = start_of(&facts) else { return Vec::new() };
    if let Some(reversal) = &start.reversal {
        return due(stage, &reversal.execution);
    }
    let Some(plan) = stage.plans.get(&*start.workflow_id) else { return Vec::new() };
    let completed = facts.iter().rev().filter_map(|recorded| match &recorded.fact {
        Fact::StepCompleted { path, .. } => Some(path),
        _ => None,
    });
    let due = completed.filter(|path| {
        compensated_path(path).is_none() && has_to_be_undone(stage, &plan.definition, &facts, path)
    });
    due.map(ToString::to_string).collect()
}

fn has_to_be_undone(
    stage: &Stage,
    definition: &WorkflowDefinition,
    facts: &[Recorded],
    path: &str,
) -> bool {
    let Some(step) = step_at(&definition.steps, step_id_of(path)) else { return false };
    let is_child = matches!(step.kind, StepKind::Workflow { .. });
    step.compensate.is_some()
        || is_child && last_child(facts, path).is_some_and(|child| !due(stage, child).is_empty())
}

fn step_at<'a>(steps: &'a [StepDefinition], id: &str) -> Option<&'a StepDefinition> {
    steps.iter().find_map(|step| {
        let mut blocks = step.kind.blocks().into_iter();
        if step.id == id { Some(step) } else { blocks.find_map(|block| step_at(&block.steps, id)) }
    })
}

/// Returns the child of the last attempt at a path.
pub(crate) fn last_child<'a>(facts: &'a [Recorded], at: &str) -> Option<&'a ExecutionId> {
    facts.iter().rev().find_map(|recorded| match &recorded.fact {
        Fact::ChildStarted { path, child, .. } if **path == *at => Some(child),
        _ => None,
    })
}

/// Returns true if the step at a path has completed with this child.
pub(crate) fn was_taken(facts: &[Recorded], at: &str, child: &ExecutionId) -> bool {
    last_child(facts, at) == Some(child)
        && facts.iter().any(
            |recorded| matches!(&recorded.fact, Fact::StepCompleted { path, .. } if **path == *at),
        )
}

/// Returns the executions that reverse this one.
pub(crate) fn reversals_of(stage: &Stage, id: &ExecutionId) -> Vec<ExecutionId> {
    let all = stage.executions().into_iter().map(|row| row.header.id.clone());
    let reverses = |it: &ExecutionId| {
        let facts = stage.facts(it);
        let reversal = start_of(&facts).and_then(|start| start.reversal.as_ref());
        reversal.is_some_and(|reversal| reversal.execution == *id)
    };
    all.filter(reverses).collect()
}
