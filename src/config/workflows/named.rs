//! Names that workflows built in Rust refer to.

use greenroom_actors::domain::definition::{Called, StepDefinition, StepKind};
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
        found.extend(name_in(&step.kind).map(|(kind, key, name)| {
            let place = ["steps", &step.id, key].map(str::to_owned);
            Reference::new(kind, name, spot(plan, &place)).of_step()
        }));
        let compensation = step.compensate.as_ref().and_then(|it| name_in(&it.kind));
        found.extend(compensation.map(|(kind, key, name)| {
            let place = ["steps", &step.id, "compensate", key].map(str::to_owned);
            Reference::new(kind, name, spot(plan, &place)).of_step()
        }));
        for block in step.kind.blocks() {
            collect(&block.steps, plan, found);
        }
    }
}

/// Returns the name in a step or a compensation, with its key.
fn name_in(kind: &StepKind) -> Option<(NameKind, &'static str, &str)> {
    let called = kind.called()?;
    let (of, name) = match called {
        Called::Function(name) => (NameKind::Function, name),
        Called::Tool(name) => (NameKind::Tool, name),
        Called::Agent(name) => (NameKind::Agent, name),
        Called::Workflow(name) => (NameKind::Workflow, name),
    };
    Some((of, called.key(), name))
}
