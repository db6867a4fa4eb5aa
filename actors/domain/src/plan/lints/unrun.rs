//! Reads of resume data and of steps that are not available, or may not be.

use crate::definition::{Container, StepDefinition};

use super::constants::truth;
use super::here::Here;
use super::texts::{Text, Timing};
use super::{Containers, Finding, place_of};

/// Returns the reason why resume data is not available to a text.
pub(super) fn resume_problem(
    step: Option<&StepDefinition>,
    text: &Text<'_>,
) -> Option<&'static str> {
    let Some(step) = step else {
        return Some(
            ": `result` is evaluated after all steps; `steps.<id>` is the output of a step",
        );
    };
    match (&step.suspend, text.timing) {
        (Some(_), Timing::BeforeResume) => Some(": this is evaluated before the resume"),
        (Some(_), Timing::InBody | Timing::AfterIteration | Timing::AfterFailure) => None,
        (None, _) if may_suspend_itself(step) => None,
        (None, _) => Some(" unless a caller paused the execution: the step has no `suspend`"),
    }
}

/// Reports schemas of suspensions on a step that never suspends.
pub(super) fn idle_schemas(step: &StepDefinition) -> Vec<Finding> {
    if step.suspend.is_some() || may_suspend_itself(step) {
        return Vec::new();
    }
    let written = [
        ("suspend_schema", step.suspend_schema.is_some()),
        ("resume_schema", step.resume_schema.is_some()),
    ];
    let idle = written.into_iter().filter(|(_, is_written)| *is_written).map(|(key, _)| {
        let place = place_of(step).into_iter().chain([key.to_owned()]).collect();
        let message = "is not used: the step has no `suspend`".to_owned();
        Finding { place, message, is_error: false, misspelt: None }
    });
    idle.collect()
}

/// Returns true if the body of a step may suspend it.
fn may_suspend_itself(step: &StepDefinition) -> bool {
    let calls_function = step.kind.called().is_some_and(|called| called.is_function());
    calls_function && step.kind.step_type().can_suspend()
}

/// Returns the reason why an existing step cannot have run yet.
pub(super) fn not_yet(
    id: &str,
    way: &Containers<'_>,
    step: Option<&StepDefinition>,
    here: &Here<'_>,
) -> String {
    let own = step.map_or("", |step| &step.id);
    if id == own {
        return format!("step {id} is this step, which has no output yet");
    }
    if here.containers.iter().any(|(container, _)| container.id == id) {
        return format!("step {id} has no output yet: this is inside it");
    }
    if way.iter().any(|(container, _)| container.id == own) {
        return format!("step {id} has not run yet: it is inside this step");
    }
    let parting = here
        .containers
        .iter()
        .zip(way)
        .find(|((one, lane), (other, its_lane))| one.id != other.id || lane != its_lane);
    if let Some(((one, _), (other, _))) = parting
        && one.id == other.id
    {
        let container = &one.id;
        return if one.kind.step_type().container() == Some(Container::OneOf) {
            format!("step {id} is in another case of {container}, and only one case runs")
        } else {
            format!("step {id} is in another block of {container}, which runs at the same time")
        };
    }
    format!("step {id} has not run yet: it comes later")
}

/// Returns the reason why an earlier step may not have run.
pub(super) fn unsure(
    step: &StepDefinition,
    way: &Containers<'_>,
    here: &Here<'_>,
) -> Option<String> {
    let id = step.id.as_str();
    if here.tested_paths.iter().any(|path| path.step() == Some(id)) {
        return None;
    }
    if here.of_earlier_iterations.contains(id) {
        return Some("has not run in the first iteration".to_owned());
    }
    let outside = way.iter().filter(|(container, lane)| !here.is_inside(container, *lane));
    let mut reasons = outside.filter_map(|(container, _)| may_not_run(container));
    reasons.next().or_else(|| skipped(step))
}

/// Returns the reason why a block of a container may not run to its end.
fn may_not_run(container: &StepDefinition) -> Option<String> {
    let (kind, id) = (&container.kind, &container.id);
    match kind.step_type().container()? {
        Container::Optional => {
            let always_runs = kind.conditions().into_iter().all(|(_, when)| is_sure(when));
            (!always_runs).then(|| format!("does not run if the condition of {id} is false"))
        }
        Container::OneOf => Some(format!("does not run if {id} takes another case")),
        Container::Race => Some(format!("is cancelled if another block of {id} is faster")),
        Container::Items => Some(format!("does not run if {id} has no items")),
        Container::All | Container::Rounds => None,
    }
}

/// Returns the reason why a step may be skipped, and have no output.
fn skipped(step: &StepDefinition) -> Option<String> {
    let conditions = step.kind.conditions();
    let has_default = step.kind.blocks().len() > conditions.len();
    if has_default || conditions.into_iter().any(|(_, when)| is_sure(when)) {
        return None;
    }
    match step.kind.step_type().container()? {
        Container::Optional => Some("has no output if its condition is false".to_owned()),
        Container::OneOf => Some("has no output if none of its cases is true".to_owned()),
        Container::All | Container::Race | Container::Items | Container::Rounds => None,
    }
}

fn is_sure(condition: &str) -> bool {
    truth(condition) == Some(true)
}
