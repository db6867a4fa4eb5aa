//! Secrets and programs that steps need on the machine that runs them.

use std::sync::Arc;

use greenroom_actors::domain::call::{UnresolvedPart, UnresolvedTemplate};
use greenroom_actors::domain::plan::{Call, Plan, Step, Work};

use super::asked::Assignment;
use super::calls::{header_secret_problem, plain_secret_problem};
use super::features::PROVIDERS;
use super::problem::{ConfigProblem, Spot};
use super::programs::Program;
use super::secret::problem_of;
use super::tools::{ToolConfig, ToolKind};
use super::workflows::spot_in;

/// Programs and secrets that steps need on this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    pub(crate) secrets: Vec<StepSecret>,
    pub(crate) programs: Vec<Program>,
}

/// A secret that a step, or a tool of Rust code, names.
#[derive(Debug, Clone)]
pub(crate) struct StepSecret {
    /// Name of the environment variable.
    pub(crate) name: String,
    /// The place in the file.
    spot: Spot,
    is_header: bool,
}

/// Returns the secrets of the steps of a workflow. `spot` maps keys of the workflow to places.
pub(super) fn secrets_at(plan: &Plan, spot: impl Fn(&[String]) -> Spot) -> Vec<StepSecret> {
    let found = calls(&plan.steps).into_iter().flat_map(|(step, call)| {
        let (texts, keys): (&[_], _) = match call {
            Call::Http(call) => (&call.headers, ["http", "headers"]),
            Call::Command(call) => (&call.env, ["command", "env"]),
            Call::Function(_) | Call::Tool { .. } => (&[], ["", ""]),
        };
        let secrets =
            texts.iter().flat_map(|(key, text)| text.secrets().map(move |name| (key, name)));
        let secret = |(key, name): (&Arc<str>, &str)| {
            let place = place_in(step, &[keys[0], keys[1], key]);
            let is_header = keys == ["http", "headers"];
            StepSecret { name: name.to_owned(), spot: spot(&place), is_header }
        };
        secrets.map(secret).collect::<Vec<_>>()
    });
    found.collect()
}

/// Returns the secrets of workflows that were built in Rust.
pub(crate) fn secrets<'a>(
    plans: impl IntoIterator<Item = &'a Arc<Plan>>,
) -> impl Iterator<Item = StepSecret> {
    plans.into_iter().flat_map(|plan| secrets_at(plan, |keys| spot_in(plan, keys)))
}

/// Returns the secrets of a tool of Rust code.
pub(crate) fn tool_secrets(tool: &ToolConfig) -> Vec<StepSecret> {
    let (texts, key, is_header): (&[_], _, _) = match &tool.kind {
        ToolKind::Http(call) => (&call.headers, "headers", true),
        ToolKind::Command(call) => (&call.env, "env", false),
        ToolKind::Workflow(_) | ToolKind::Agent(_) => (&[], "", false),
    };
    let secrets = texts.iter().flat_map(|(name, text)| {
        let spot = Spot { key: format!("{key}.{name}"), ..tool.spot.clone() };
        text.secrets().map(move |name| StepSecret {
            name: name.to_owned(),
            spot: spot.clone(),
            is_header,
        })
    });
    secrets.collect()
}

/// Returns warnings about headers of workflows that were built in Rust, whose names say that they are
/// secrets.
pub(crate) fn plain_secrets(plan: &Plan) -> Vec<ConfigProblem> {
    let found = calls(&plan.steps).into_iter().flat_map(|(step, call)| {
        let headers: &[_] = match call {
            Call::Http(call) => &call.headers,
            Call::Command(_) | Call::Function(_) | Call::Tool { .. } => &[],
        };
        let warning = |(name, text): &(Arc<str>, UnresolvedTemplate)| {
            let [UnresolvedPart::Text(written)] = text.0.as_slice() else { return None };
            let problem = plain_secret_problem(name, written.source())?;
            Some(spot_in(plan, &place_in(step, &["http", "headers", name])).warning(problem))
        };
        headers.iter().filter_map(warning).collect::<Vec<_>>()
    });
    found.collect()
}

/// Returns who is asked by suspensions of a workflow that was built in Rust.
pub(crate) fn assignments(plan: &Plan) -> Vec<Assignment> {
    fn of(plan: &Plan, steps: &[Step], found: &mut Vec<Assignment>) {
        for step in steps {
            let asking = step.suspend.as_ref().map(|suspend| &suspend.asking);
            let to = asking.map(|it| (&["suspend", "to"][..], &it.to));
            let escalate = asking.and_then(|it| it.escalate.as_ref());
            let escalate = escalate.map(|it| (&["suspend", "escalate", "to"][..], &it.to));
            found.extend(to.into_iter().chain(escalate).map(|(keys, to)| {
                let to = to.iter().map(|template| template.source().to_owned());
                Assignment::of(spot_in(plan, &place_in(step, keys)), to)
            }));
            step.work.branches().iter().for_each(|branch| of(plan, &branch.steps, found));
        }
    }
    let mut found = Vec::new();
    of(plan, &plan.steps, &mut found);
    found
}

/// Returns the calls of steps and their compensations, including nested ones, each with its step.
pub(crate) fn calls(steps: &[Step]) -> Vec<(&Step, &Call)> {
    let found = steps.iter().flat_map(|step| {
        let compensation = step.compensate.as_deref().and_then(own_call);
        let inside = step.work.branches().iter().flat_map(|branch| calls(&branch.steps));
        own_call(step).into_iter().chain(compensation).chain(inside).collect::<Vec<_>>()
    });
    found.collect()
}

fn own_call(step: &Step) -> Option<(&Step, &Call)> {
    if let Work::Call(call) = &step.work { Some((step, call)) } else { None }
}

/// Returns the place of keys inside a step, or inside the compensation of one.
pub(super) fn place_in(step: &Step, keys: &[&str]) -> Vec<String> {
    let inside = step.is_compensation().then_some("compensate");
    let place = ["steps", &step.id].into_iter().chain(inside).chain(keys.iter().copied());
    place.map(str::to_owned).collect()
}

/// Returns a refusal of each HTTP step, if this program cannot make HTTP calls.
pub(crate) fn without_http<'a>(
    plans: impl IntoIterator<Item = &'a Arc<Plan>>,
) -> Vec<ConfigProblem> {
    let Some(refusal) = PROVIDERS.lacking("make HTTP calls") else { return Vec::new() };
    let found = plans.into_iter().flat_map(|plan| {
        let http = calls(&plan.steps).into_iter().filter(|(_, call)| matches!(call, Call::Http(_)));
        let refused = |(step, _): (&Step, _)| {
            spot_in(plan, &place_in(step, &["http"])).error(refusal.as_str())
        };
        http.map(refused).collect::<Vec<_>>()
    });
    found.collect()
}

impl StepSecret {
    /// Returns an error if the variable is missing or unusable.
    pub(crate) fn check(
        &self,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigProblem> {
        let Self { name, spot, is_header } = self;
        let check = |value: &str| header_secret_problem(value).filter(|_| *is_header);
        problem_of(name, environment, check).map(|problem| spot.error(problem))
    }
}
