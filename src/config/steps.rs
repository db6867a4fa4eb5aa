//! Secrets that steps name.

use greenroom_actors::domain::call::SealedTemplate;
use greenroom_actors::domain::plan::{Call, Plan, Step, Work};

use super::calls::header_secret_problem;
use super::problem::{ConfigProblem, Spot};
use super::workflows::spot_in;

/// A secret that a step names.
#[derive(Debug, Clone)]
pub(crate) struct StepSecret {
    /// The variable of the environment.
    pub(crate) name: String,
    /// Where it is named.
    spot: Spot,
    is_header: bool,
}

/// The secrets of all steps of a workflow, one by one. `spot` says where keys of the workflow
/// stand.
pub(super) fn secrets_at(plan: &Plan, spot: impl Fn(&[String]) -> Spot) -> Vec<StepSecret> {
    let mut found = Vec::new();
    collect(&plan.steps, &spot, &mut found);
    found
}

/// The secrets of workflows that were built in Rust.
pub(crate) fn secrets<'a>(
    plans: impl IntoIterator<Item = &'a std::sync::Arc<Plan>>,
) -> impl Iterator<Item = StepSecret> {
    plans.into_iter().flat_map(|plan| secrets_at(plan, |keys| spot_in(plan, keys)))
}

fn collect(steps: &[Step], spot: &impl Fn(&[String]) -> Spot, found: &mut Vec<StepSecret>) {
    for step in steps {
        let (texts, keys) = match &step.work {
            Work::Call(Call::Http(call)) => (&call.headers, ["http", "headers"]),
            Work::Call(Call::Command(call)) => (&call.env, ["command", "env"]),
            other => {
                other.branches().iter().for_each(|it| collect(&it.steps, spot, found));
                continue;
            }
        };
        let is_header = keys == ["http", "headers"];
        for (key, text) in texts {
            let place = ["steps", &step.id, keys[0], keys[1], key].map(str::to_owned);
            found.extend(SealedTemplate::secrets(text).map(|name| StepSecret {
                name: name.to_owned(),
                spot: spot(&place),
                is_header,
            }));
        }
    }
}

impl StepSecret {
    /// What is wrong with its variable.
    pub(crate) fn check(
        &self,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigProblem> {
        let Self { name, spot, is_header } = self;
        let problem = match environment(name) {
            None => Some("is not set"),
            Some(value) if value.is_empty() => Some("is empty"),
            Some(value) if *is_header => header_secret_problem(&value),
            Some(_) => None,
        }?;
        Some(spot.error(format!("the environment variable {name} {problem}")))
    }
}
