//! Arguments of steps against the input schemas of the workflows and tools that they call.

use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::plan::{Callee, ConstantInput, Finding, Plan, constant_inputs};
use greenroom_actors::domain::schema::Schema;

use super::findings::{problem, spot};
use super::places::Places;
use crate::config::problem::{ConfigProblem, Spot};

/// Arguments of a step whose value or type is known before it runs.
#[derive(Debug, Clone)]
pub(crate) struct StepArguments {
    given: ConstantInput,
    /// The spot of each place that a misfit can have.
    spots: Vec<(Vec<String>, Spot)>,
}

impl StepArguments {
    pub(super) fn of(definition: &WorkflowDefinition, places: &Places<'_>) -> Vec<Self> {
        Self::located(definition, |keys| places.spot(keys))
    }

    /// Returns the arguments in a workflow that was built in Rust.
    pub(crate) fn of_plan(plan: &Plan) -> Vec<Self> {
        Self::located(&plan.definition, |keys| spot(plan, keys))
    }

    fn located(definition: &WorkflowDefinition, spot: impl Fn(&[String]) -> Spot) -> Vec<Self> {
        let arguments = |given: ConstantInput| {
            let places = given.places().into_iter();
            let spots = places.map(|place| (place.clone(), spot(&place))).collect();
            Self { given, spots }
        };
        constant_inputs(definition).into_iter().map(arguments).collect()
    }

    /// Returns the mismatch with the schema of the callee.
    pub(crate) fn check(
        &self,
        schema_of: impl Fn(Callee, &str) -> Option<Schema>,
    ) -> Option<ConfigProblem> {
        let Self { given, spots } = self;
        let finding: Finding = given.mismatch(&schema_of(given.callee, &given.name)?)?;
        let (_, spot) = spots.iter().find(|(place, _)| *place == finding.place)?;
        Some(problem(finding, spot))
    }
}
