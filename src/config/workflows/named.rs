//! What a workflow that was built in Rust refers to by name.

use greenroom_actors::domain::definition::{Body, StepDefinition, StepKind};
use greenroom_actors::domain::plan::Plan;

use super::findings::spot;
use crate::config::names::{NameKind, Reference};

/// The agents, functions, tools and workflows that the steps of a plan name.
pub(crate) fn named(plan: &Plan) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(&plan.definition.steps, plan, &mut found);
    found
}

fn collect(steps: &[StepDefinition], plan: &Plan, found: &mut Vec<Reference>) {
    for step in steps {
        let name = match &step.kind {
            StepKind::Then { body } | StepKind::Tap { body } => match body {
                Body::Run { function, .. } => Some((NameKind::Function, "run", function)),
                Body::Tool { tool, .. } => Some((NameKind::Tool, "tool", tool)),
                Body::Map(_) | Body::Http(_) | Body::Command(_) => None,
            },
            StepKind::Agent { agent, .. } => Some((NameKind::Agent, "agent", agent)),
            StepKind::Workflow { workflow, .. } => Some((NameKind::Workflow, "workflow", workflow)),
            StepKind::When { .. }
            | StepKind::All { .. }
            | StepKind::Race { .. }
            | StepKind::ForEach { .. }
            | StepKind::Branch { .. }
            | StepKind::DoWhile { .. }
            | StepKind::DoUntil { .. }
            | StepKind::Map { .. }
            | StepKind::Sleep { .. }
            | StepKind::SleepUntil { .. } => None,
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
