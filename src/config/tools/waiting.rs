//! Tools of agents whose workflows wait for people, so that the agents do not get their results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::domain::plan::Plan;

use super::ToolKind;
use crate::config::Config;
use crate::config::problem::ConfigProblem;

/// Warns of each tool that an agent lists and whose workflow, or one that it runs, asks a person.
pub(crate) fn warn_of_waiting(config: &Config) -> Vec<ConfigProblem> {
    let listed = config.agents.values().filter_map(|agent| agent.tools.fixed()).flatten();
    let listed: BTreeSet<_> = listed.map(String::as_str).collect();
    let used = config.tools.iter().filter(|(name, _)| listed.contains(name.as_str()));
    let warnings = used.filter_map(|(name, tool)| {
        let ToolKind::Workflow(id) = &tool.kind else { return None };
        let (workflow, step) = waiting_in(id, &config.workflows)?;
        Some(tool.spot.warning(format!(
            "step {step} of workflow {workflow} waits for an answer: an agent that calls {name} \
             does not get its result"
        )))
    });
    warnings.collect()
}

/// Returns the first workflow that asks a person, among one and those that it runs, and its step.
fn waiting_in<'p>(
    id: &'p str,
    plans: &'p BTreeMap<String, Arc<Plan>>,
) -> Option<(&'p str, &'p str)> {
    let mut seen = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(next) = open.pop() {
        let Some(plan) = plans.get(next) else { continue };
        let mut children = Vec::new();
        if let Some(step) = asking_in(&plan.definition.steps, &mut children) {
            return Some((next, step));
        }
        open.extend(children.into_iter().filter(|child| seen.insert(child)));
    }
    None
}

/// Returns the first step that suspends; adds the workflows that the steps before it run.
fn asking_in<'p>(steps: &'p [StepDefinition], children: &mut Vec<&'p str>) -> Option<&'p str> {
    steps.iter().find_map(|step| {
        if step.suspend.is_some() {
            return Some(step.id.as_str());
        }
        children.extend(step.kind.child_workflow());
        let mut blocks = step.kind.blocks().into_iter();
        blocks.find_map(|block| asking_in(&block.steps, children))
    })
}
