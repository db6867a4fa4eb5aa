//! Names that workflows built in Rust refer to.

use greenroom_actors::domain::definition::{Body, StepDefinition, StepKind};
use greenroom_actors::domain::plan::Plan;

use super::findings::spot;
use crate::config::names::{NameKind, Reference};

/// Returns the agents, functions, tools and workflows that the steps of a plan name.
pub(crate) fn named(plan: &Plan) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(&plan.definition.steps, plan, &mut found);
    found
}

fn collect(steps: &[StepDefinition], plan: &Plan, found: &mut Vec<Reference>) {
    for step in steps {
        let name = if let Some(Body::Run { function, .. }) = step.kind.body() {
            Some((NameKind::Function, "run", function))
        } else if let Some(Body::Tool { tool, .. }) = step.kind.body() {
            Some((NameKind::Tool, "tool", tool))
        } else if let StepKind::Agent { agent, .. } = &step.kind {
            Some((NameKind::Agent, "agent", agent))
        } else if let StepKind::Workflow { workflow, .. } = &step.kind {
            Some((NameKind::Workflow, "workflow", workflow))
        } else {
            None
        };
        found.extend(name.map(|(kind, key, name)| {
            let place = ["steps", &step.id, key].map(str::to_owned);
            Reference::new(kind, name, spot(plan, &place))
        }));
        for block in step.kind.blocks() {
            collect(&block.steps, plan, found);
        }
    }
}
