//! Why what a text reads is not there, or may not be.

use crate::definition::{Body, StepDefinition, StepKind};

use super::conditions::truth;
use super::here::Here;
use super::texts::{Asked, Text};
use super::{Finding, Way, place_of};

/// Why the data of a resume cannot be read, if it cannot.
pub(super) fn resume_problem(
    step: Option<&StepDefinition>,
    text: &Text<'_>,
) -> Option<&'static str> {
    let Some(step) = step else {
        return Some(": a result is made when nothing waits; `steps.<id>` has what a step gave");
    };
    match (&step.suspend, text.asked) {
        (Some(_), Asked::BeforeAnswer) => Some(": this is asked before anybody answers"),
        (Some(_), Asked::AtWork | Asked::AfterRound | Asked::AfterFailure) => None,
        (None, _) if may_suspend_itself(step) => None,
        (None, _) => {
            Some(", unless the execution was suspended from outside: the step has no `suspend`")
        }
    }
}

/// The schemas of a suspension that a step never has.
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
        let message = "nothing is held to it: the step has no `suspend`".to_owned();
        Finding { place, message, is_error: false, misspelt: None }
    });
    idle.collect()
}

/// Whether the work of a step may ask for a resume.
fn may_suspend_itself(step: &StepDefinition) -> bool {
    matches!(step.kind, StepKind::Then { body: Body::Run { .. } })
}

/// Why a step that there is cannot have run.
pub(super) fn not_yet(
    id: &str,
    way: &Way<'_>,
    step: Option<&StepDefinition>,
    here: &Here<'_>,
) -> String {
    let own = step.map_or("", |step| &step.id);
    if id == own {
        return format!("step {id} is this step, which has given nothing yet");
    }
    if here.around.iter().any(|(container, _)| container.id == id) {
        return format!("step {id} has given nothing yet: this is inside of it");
    }
    if way.iter().any(|(container, _)| container.id == own) {
        return format!("step {id} has not run yet: it is inside of this step");
    }
    let parting = here
        .around
        .iter()
        .zip(way)
        .find(|((one, lane), (other, its_lane))| one.id != other.id || lane != its_lane);
    if let Some(((one, _), (other, _))) = parting
        && one.id == other.id
    {
        let container = &one.id;
        return if matches!(one.kind, StepKind::Branch { .. }) {
            format!("step {id} is in another case of {container}, and only one case runs")
        } else {
            format!("step {id} is in another block of {container}, which runs at the same time")
        };
    }
    format!("step {id} has not run yet: it comes later")
}

/// Why a step that comes before may not have run, if it may not.
pub(super) fn unsure(step: &StepDefinition, way: &Way<'_>, here: &Here<'_>) -> Option<String> {
    let id = step.id.as_str();
    if here.asked_about.iter().any(|path| path.step() == Some(id)) {
        return None;
    }
    if here.of_earlier_rounds.contains(id) {
        return Some("has not run in the first round".to_owned());
    }
    let outside = way.iter().filter(|(container, lane)| !here.is_inside(container, *lane));
    let mut reasons = outside.filter_map(|(container, _)| {
        let (kind, container) = (&container.kind, &container.id);
        if let StepKind::When { when, .. } = kind {
            let is_sure = truth(when) == Some(true);
            let reason = || format!("does not run when the condition of {container} does not hold");
            (!is_sure).then(reason)
        } else if let StepKind::Branch { .. } = kind {
            Some(format!("does not run when {container} takes another case"))
        } else if let StepKind::Race { .. } = kind {
            Some(format!("does not end when another block of {container} is faster"))
        } else if let StepKind::ForEach { .. } = kind {
            Some(format!("does not run when {container} has no items"))
        } else {
            None
        }
    });
    reasons.next().or_else(|| skipped(step))
}

/// Why a step itself may be skipped, which gives nothing then.
fn skipped(step: &StepDefinition) -> Option<String> {
    let is_sure = |when: &str| truth(when) == Some(true);
    if let StepKind::When { when, .. } = &step.kind
        && !is_sure(when)
    {
        return Some("gives nothing when its condition does not hold".to_owned());
    }
    if let StepKind::Branch { cases, default: None } = &step.kind
        && !cases.iter().any(|case| is_sure(&case.when))
    {
        return Some("gives nothing when none of its cases holds".to_owned());
    }
    None
}
