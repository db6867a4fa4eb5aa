//! Names in a case, checked before it runs.

use greenroom_actors::agent::tool::ASK_USER;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::ids::{compensated_path, step_id_of};
use greenroom_actors::registry::Registry;

use super::case::Case;
use crate::nearest::nearest;

/// Returns the names in a case that nothing has: of its workflow, of the steps that are expected to
/// run, and of what it answers. The registry is that without mocks.
pub(super) fn misnamed(case: &Case, registry: &Registry) -> Vec<String> {
    let Some(plan) = registry.workflows.get(&case.workflow) else {
        let meant = meant(&case.workflow, registry.workflows.keys().map(String::as_str));
        return vec![format!("there is no workflow {}{meant}", case.workflow)];
    };
    let definition = &plan.definition;
    let expected = [("ran", &case.expected.ran), ("not_ran", &case.expected.not_ran)];
    let steps = expected.into_iter().flat_map(|(key, steps)| steps.iter().map(move |it| (key, it)));
    let steps = steps.filter_map(|(key, step)| {
        let why = wrong_step(step, definition, registry)?;
        Some(format!("{key}: {why}"))
    });
    let answers = case.answers.iter().zip(1..).filter_map(|(answer, number)| {
        let meant = wrong_subject(&answer.about, definition, registry)?;
        let about = &answer.about;
        Some(format!("answer {number} ({about}): there is no such step or tool{meant}"))
    });
    steps.chain(answers).collect()
}

/// Returns the end of a sentence about a name that is not there: the nearest one, if there is one.
pub(super) fn meant<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map(|it| format!("; did you mean {it}?")).unwrap_or_default()
}

/// Returns the problem if a workflow has no step of a name.
fn wrong_step(name: &str, definition: &WorkflowDefinition, registry: &Registry) -> Option<String> {
    let (id, known) = (&definition.id, definition.step_names());
    let has = |name: &str| known.iter().any(|it| it == name);
    if has(name) {
        return None;
    }
    if let Some(step) = compensated_path(name).filter(|step| has(step)) {
        return Some(format!("step {step} of workflow {id} has no compensation"));
    }
    let of_path = step_id_of(name);
    let meant = if has(of_path) {
        format!("; steps have their ids here: {of_path}")
    } else {
        let mut others = registry.workflows.values().map(|plan| &plan.definition);
        match others.find(|other| other.step_names().iter().any(|it| it == name)) {
            Some(other) => format!("; workflow {} has one, in another execution", other.id),
            None => meant(name, known.iter().map(String::as_str)),
        }
    };
    Some(format!("workflow {id} has no step {name}{meant}"))
}

/// Returns the nearest name, as the end of a sentence, if nothing of this name can ask: a step of any
/// workflow, since others may run within this one, by its id or its path, or a tool.
fn wrong_subject(
    about: &str,
    definition: &WorkflowDefinition,
    registry: &Registry,
) -> Option<String> {
    let tools = registry.tools.keys().map(String::as_str).chain([ASK_USER]);
    let own: Vec<_> = ids(definition).chain(tools).collect();
    let others = registry.workflows.values().flat_map(|plan| ids(&plan.definition));
    let others: Vec<_> = others.collect();
    if own.iter().chain(&others).any(|it| *it == about || *it == step_id_of(about)) {
        return None;
    }
    let near = [own, others].map(|names| meant(step_id_of(about), names));
    Some(near.into_iter().find(|it| !it.is_empty()).unwrap_or_default())
}

fn ids(definition: &WorkflowDefinition) -> impl Iterator<Item = &str> {
    definition.each_step().into_iter().map(|step| step.id.as_str())
}
