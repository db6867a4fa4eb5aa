//! Workflows that call themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_actors::domain::definition::{StepDefinition, StepKind};
use greenroom_actors::domain::plan::Plan;

use crate::config::problem::{ConfigProblem, Spot};

/// Warns of each workflow that is its own sub-workflow, directly or through others. That is allowed,
/// but ends only if some condition ends it.
pub(crate) fn warn_of_recursion(
    plans: &BTreeMap<String, Arc<Plan>>,
    spots: &BTreeMap<String, Spot>,
) -> Vec<ConfigProblem> {
    let runs: BTreeMap<&str, BTreeSet<&str>> =
        plans.iter().map(|(id, plan)| (id.as_str(), children_of(plan))).collect();
    let is_recursive = |id: &str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            let children = runs.get(next).into_iter().flatten().copied();
            open.extend(children.filter(|child| reached.insert(*child)));
        }
        reached.contains(id)
    };
    let recursive = spots.iter().filter(|(id, _)| is_recursive(id));
    recursive.map(|(_, spot)| spot.warning("calls itself as a sub-workflow")).collect()
}

/// Returns the ids of the workflows that the steps of a workflow start, and their compensations.
pub(crate) fn children_of(plan: &Plan) -> BTreeSet<&str> {
    let mut children = BTreeSet::new();
    collect(&plan.definition.steps, &mut children);
    children
}

fn collect<'a>(steps: &'a [StepDefinition], children: &mut BTreeSet<&'a str>) {
    for step in steps {
        let compensation = step.compensate.as_ref().map(|it| &it.kind);
        let kinds = compensation.into_iter().chain([&step.kind]);
        children.extend(kinds.filter_map(StepKind::child_workflow));
        for block in step.kind.blocks() {
            collect(&block.steps, children);
        }
    }
}
