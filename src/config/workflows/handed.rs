//! What steps hand to other workflows and to tools, against what those take.

use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::plan::{Callee, Finding, Given, Plan, given};
use greenroom_actors::domain::schema::Schema;

use super::findings::{problem, spot};
use super::places::Places;
use crate::config::problem::{ConfigProblem, Spot};

/// Something that is known before it is handed on, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Handed {
    given: Given,
    /// Of each place that a misfit can have.
    spots: Vec<(Vec<String>, Spot)>,
}

impl Handed {
    pub(super) fn of(definition: &WorkflowDefinition, places: &Places<'_>) -> Vec<Self> {
        Self::located(definition, |keys| places.spot(keys))
    }

    /// Of a workflow that was built in Rust.
    pub(crate) fn of_plan(plan: &Plan) -> Vec<Self> {
        Self::located(&plan.definition, |keys| spot(plan, keys))
    }

    fn located(definition: &WorkflowDefinition, spot: impl Fn(&[String]) -> Spot) -> Vec<Self> {
        let handed = |given: Given| {
            let places = given.places().into_iter();
            let spots = places.map(|place| (place.clone(), spot(&place))).collect();
            Self { given, spots }
        };
        given(definition).into_iter().map(handed).collect()
    }

    /// What whoever it is handed to does not take.
    pub(crate) fn check(
        &self,
        taken: impl Fn(Callee, &str) -> Option<Schema>,
    ) -> Option<ConfigProblem> {
        let Self { given, spots } = self;
        let finding: Finding = given.misfit(&taken(given.callee, &given.name)?)?;
        let (_, spot) = spots.iter().find(|(place, _)| *place == finding.place)?;
        Some(problem(finding, spot))
    }
}
