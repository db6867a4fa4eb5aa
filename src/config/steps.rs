//! Secrets that steps name.

use std::sync::Arc;

use greenroom_actors::domain::plan::{Call, Plan, Step, Work};

use super::calls::header_secret_problem;
use super::problem::{ConfigProblem, Spot};

/// A secret that a step names.
pub(crate) struct StepSecret {
    /// The variable of the environment.
    pub(crate) name: String,
    /// Where it is named, in keys.
    place: String,
    is_header: bool,
}

/// The secrets of all steps of the workflows, one by one.
pub(crate) fn secrets<'a>(
    plans: impl IntoIterator<Item = &'a Arc<Plan>>,
) -> impl Iterator<Item = StepSecret> {
    let mut found = Vec::new();
    for plan in plans {
        collect(&format!("workflows.{}", plan.definition.id), &plan.steps, &mut found);
    }
    found.into_iter()
}

fn collect(place: &str, steps: &[Step], found: &mut Vec<StepSecret>) {
    for step in steps {
        let (names, key): (Vec<_>, _) = match &step.work {
            Work::Call(Call::Http(call)) => (call.secrets().collect(), "http.headers"),
            Work::Call(Call::Command(call)) => (call.secrets().collect(), "command.env"),
            other => {
                other.branches().iter().for_each(|it| collect(place, &it.steps, found));
                continue;
            }
        };
        found.extend(names.into_iter().map(|name| StepSecret {
            name: name.to_owned(),
            place: format!("{place}.steps.{}.{key}", step.id),
            is_header: key == "http.headers",
        }));
    }
}

impl StepSecret {
    /// What is wrong with its variable.
    pub(crate) fn check(
        &self,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigProblem> {
        let Self { name, place, is_header } = self;
        let problem = match environment(name) {
            None => Some("is not set"),
            Some(value) if value.is_empty() => Some("is empty"),
            Some(value) if *is_header => header_secret_problem(&value),
            Some(_) => None,
        }?;
        Some(Spot::nowhere(place).error(format!("the environment variable {name} {problem}")))
    }
}
