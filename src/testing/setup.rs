//! A world that is being prepared: a server's definitions, with mocks in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::domain::definition::{Body, WorkflowDefinition};
use greenroom_actors::domain::ids::compensation_path;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::answer_guard::AnswerGuard;
use greenroom_actors::ports::model::LanguageModel;
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::EPOCH_MS;
use greenroom_actors::{Placement, RetentionRules, RuntimeLimits};

use super::mock::Mock;
use super::names::meant;
use super::outside::Outside;
use super::swap::swap;
use super::world::World;
use crate::Greenroom;
use crate::app::{self, Registered, checks};
use crate::config::Config;
use crate::config::workflow_tests::WorkflowTest;
use crate::greenroom::error::Problems;
use crate::nearest::nearest;

/// Interval of the runtime's regular work, so that years pass quickly. Timers, reminders and
/// deadlines do not wait for it.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(24 * 3600);

/// A world that is being prepared, made by [`Greenroom::test`](crate::Greenroom::test): the
/// definitions of a server, with mocks in place of some.
///
/// Calls of servers, programs and providers of models that are not mocked fail, and
/// [`World::refused`] names them.
#[derive(Debug)]
#[must_use = "a world begins with its launch"]
pub struct Setup {
    config: Config,
    registered: Registered,
    problems: Vec<String>,
    mocks: Mocks,
    start: Timestamp,
}

/// Mocks by what they stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mocks {
    /// By workflow, then by step.
    pub(crate) steps: BTreeMap<String, BTreeMap<String, Mock>>,
    pub(crate) tools: BTreeMap<String, Mock>,
    pub(crate) models: BTreeMap<String, Model>,
}

/// A mock of a model.
#[derive(Clone)]
pub(crate) struct Model(pub(crate) Arc<dyn LanguageModel>);

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Model").field(&self.0.name()).finish()
    }
}

/// Everything that worlds of the same kind share.
#[derive(Clone)]
pub(super) struct Blueprint {
    pub(super) registry: Registry,
    /// Check of answers of the program.
    pub(super) answer_guard: Option<Arc<dyn AnswerGuard>>,
    pub(super) limits: RuntimeLimits,
    pub(super) outside: Outside,
    pub(super) start: Timestamp,
}

impl std::fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blueprint").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Greenroom {
    /// Prepares a test of what is registered and configured, in virtual time and without HTTP; see
    /// [`testing`](crate::testing). Secrets, addresses, stores and clocks are not used.
    pub fn test(self) -> Setup {
        let (config, registered, problems) = self.assembled();
        Setup::new(config, registered, problems)
    }
}

impl Setup {
    fn new(config: Config, registered: Registered, problems: Vec<String>) -> Self {
        let start = Timestamp(EPOCH_MS);
        Self { config, registered, problems, mocks: Mocks::default(), start }
    }

    /// Puts a mock in place of a step of a workflow, named by its id. With `:compensate` after it,
    /// the mock stands for its compensation. What the step waits for, its retries and its schemas
    /// stay.
    pub fn mock_step(mut self, workflow: &str, step: &str, mock: Mock) -> Self {
        let steps = self.mocks.steps.entry(workflow.to_owned()).or_default();
        steps.insert(step.to_owned(), mock);
        self
    }

    /// Puts a mock in place of what a tool does. Its description, schema and approval stay.
    pub fn mock_tool(mut self, tool: &str, mock: Mock) -> Self {
        self.mocks.tools.insert(tool.to_owned(), mock);
        self
    }

    /// Puts a model in place of another one, such as a
    /// [`ScriptedModel`](super::ScriptedModel).
    pub fn mock_model(mut self, name: &str, model: Arc<dyn LanguageModel>) -> Self {
        self.mocks.models.insert(name.to_owned(), Model(model));
        self
    }

    /// Sets the time at which the world begins, in place of 2026-01-01T00:00:00Z. A text that is not
    /// RFC 3339 is a problem of the launch.
    pub fn starting_at(mut self, time: &str) -> Self {
        match read_time(time) {
            Ok(start) => self.start = start,
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    pub(crate) fn mocking(mut self, mocks: Mocks, start: Option<Timestamp>) -> Self {
        for (workflow, steps) in mocks.steps {
            self.mocks.steps.entry(workflow).or_default().extend(steps);
        }
        self.mocks.tools.extend(mocks.tools);
        self.mocks.models.extend(mocks.models);
        self.start = start.unwrap_or(self.start);
        self
    }

    /// Launches the world. Names that are not there are refused, mocked ones with the nearest name.
    pub async fn launch(self) -> Result<World, Problems> {
        World::launch(self.blueprint(|_| Vec::new())?).await
    }

    /// Returns the names in a test of the configuration that nothing has.
    pub(super) fn misnamed_in(&self, test: &WorkflowTest) -> Vec<String> {
        let wrong = test.misnamed(&self.config.names(), &checks::names(&self.registered));
        wrong.iter().map(ToString::to_string).collect()
    }

    /// Builds the definitions with the mocks in them. `check` returns problems of the definitions
    /// without mocks.
    pub(super) fn blueprint(
        self,
        check: impl FnOnce(&Registry) -> Vec<String>,
    ) -> Result<Blueprint, Problems> {
        let Self { config, mut registered, mut problems, mocks, start } = self;
        let outside = Outside::default();
        problems.extend(misnamed(&config, &registered));
        for (name, model) in &config.models {
            if model.is_remote() {
                let models = &mut registered.registry.models;
                models.entry(name.clone()).or_insert_with(|| outside.model(name));
            }
        }
        let outward = |name: &str, _: app::OutwardCall<'_>| Ok(outside.tool(name).into());
        let built = app::registry(&config, &outward, registered.registry);
        let mut registry = match built {
            Ok(registry) => registry,
            Err(error) => {
                problems.push(error.to_string());
                return Err(Problems(problems));
            }
        };
        problems.extend(check(&registry));
        problems.extend(mocks.put(&mut registry));
        problems.extend(registry.workflows.values().flat_map(|plan| unknown(plan, &registry)));
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let limits = RuntimeLimits {
            placement: Placement::Here,
            watchdog_every: Duration::ZERO,
            housekeeping_every: HOUSEKEEPING_EVERY,
            subscriber_stall_timeout: HOUSEKEEPING_EVERY,
            retention: RetentionRules::default(),
            ..config.runtime_limits()
        };
        let answer_guard = registered.parts.answer_guard;
        Ok(Blueprint { registry, answer_guard, limits, outside, start })
    }
}

impl Mocks {
    /// Puts the mocks in place of what they stand for, and returns the names that are not there.
    fn put(&self, registry: &mut Registry) -> Vec<String> {
        let mut problems = Vec::new();
        for (workflow, mocks) in &self.steps {
            let Some(plan) = registry.workflows.get_mut(workflow) else {
                problems.push(nowhere("workflow", workflow, registry.workflows.keys()));
                continue;
            };
            let mut definition = plan.definition.clone();
            let swapped = swap(&mut definition, mocks).and_then(|functions| {
                let plan = Plan::compile(definition).map_err(|problems| {
                    let lines = problems.into_iter();
                    let shown = |it: greenroom_actors::domain::plan::Problem| {
                        format!("workflow {workflow}: {}: {}", it.place.join("."), it.message)
                    };
                    lines.map(shown).collect::<Vec<_>>()
                })?;
                Ok((plan, functions))
            });
            match swapped {
                Ok((swapped, functions)) => {
                    *plan = Arc::new(swapped);
                    let functions = functions.into_iter();
                    registry
                        .functions
                        .extend(functions.map(|(name, mock)| (name, mock.step_function())));
                }
                Err(refused) => problems.extend(refused),
            }
        }
        for (name, mock) in &self.tools {
            match registry.tools.get_mut(name) {
                Some(tool) => {
                    let body = ToolBody::Function(mock.tool_function(name));
                    *tool = Arc::new(ToolDefinition { body, ..ToolDefinition::clone(tool) });
                }
                None => problems.push(nowhere("tool", name, registry.tools.keys())),
            }
        }
        for (name, Model(model)) in &self.models {
            match registry.models.get_mut(name) {
                Some(known) => known.clone_from(model),
                None => problems.push(nowhere("model", name, registry.models.keys())),
            }
        }
        problems
    }

    /// Returns all mocks of steps and tools, each with its name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Mock)> {
        let steps = self.steps.values().flatten();
        steps.chain(&self.tools).map(|(name, mock)| (name.as_str(), mock))
    }
}

pub(super) fn read_time(text: &str) -> Result<Timestamp, String> {
    let time = Timestamp::from_iso(text);
    time.ok_or_else(|| format!("{text:?} is not a time, as 2026-03-01T09:00:00Z"))
}

fn nowhere<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let meant = meant(name, known.map(String::as_str));
    format!("there is no {kind} {name} to mock{meant}")
}

/// Returns problems of references between the definitions, except for functions: their steps may be
/// mocked. What is mocked has its own check.
pub(crate) fn misnamed(config: &Config, registered: &Registered) -> Vec<String> {
    let mut names = checks::names(registered);
    for plan in config.workflows.values() {
        let called = calls(&plan.definition);
        names.functions.extend(called.into_iter().map(|(_, function)| function.to_owned()));
    }
    config.check_definitions(&names).iter().map(ToString::to_string).collect()
}

/// Returns the problems of steps whose functions are neither registered nor mocked.
fn unknown(plan: &Plan, registry: &Registry) -> Vec<String> {
    let calls = calls(&plan.definition).into_iter();
    let unknown = calls.filter(|(_, function)| !registry.functions.contains_key(*function));
    let problem = |(step, function): (String, &str)| {
        let workflow = &plan.definition.id;
        let meant = nearest(function, registry.functions.keys().map(String::as_str));
        let meant = meant.map(|it| format!(", did you mean {it}?")).unwrap_or_default();
        format!(
            "step {step} of workflow {workflow} runs the function {function}, which is not \
             registered{meant}: mock the step"
        )
    };
    unknown.map(problem).collect()
}

/// Returns the functions that steps and their compensations run, each with the name of its step.
fn calls(definition: &WorkflowDefinition) -> Vec<(String, &str)> {
    let mut calls = Vec::new();
    for step in definition.each_step() {
        if let Some(Body::Run { function, .. }) = step.kind.body() {
            calls.push((step.id.clone(), function.as_str()));
        }
        let compensation = step.compensate.as_ref().and_then(|it| it.kind.body());
        if let Some(Body::Run { function, .. }) = compensation {
            calls.push((compensation_path(&step.id).to_string(), function.as_str()));
        }
    }
    calls
}
