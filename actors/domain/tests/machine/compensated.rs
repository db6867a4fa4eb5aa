//! Completeness of compensations, for the random executions of `properties`.

use std::collections::BTreeSet;

use greenroom_domain::definition::{StepDefinition, StepKind};
use greenroom_domain::fact::Fact;
use greenroom_domain::ids::{compensated_path, step_id_of};
use greenroom_domain::state::Phase;
use greenroom_domain::status::Status;

use crate::machine::world::World;

/// Checks that a failed execution compensated all that had completed.
pub(crate) fn everything_is_compensated(world: &World) {
    let state = world.machine.state();
    let Some(compensating) = &state.compensating else {
        let completed = completed_compensable(world);
        let compensates = match state.announced {
            Status::Error => true,
            Status::Cancelled => world.machine.plan().definition.compensate_on_cancel,
            Status::Completed | Status::Running | Status::Suspended => false,
        };
        assert!(!compensates || completed.is_empty(), "{completed:?} was not compensated");
        return;
    };
    assert_eq!(compensating.due.len(), 0, "compensations were left out");
    for begun in &compensating.begun {
        assert!(matches!(begun.node.phase, Phase::Completed { .. }), "{} is left", begun.path);
    }
    let paths = compensating.begun.iter().filter_map(|begun| compensated_path(&begun.path));
    let compensated: BTreeSet<String> = paths.map(str::to_owned).collect();
    assert_eq!(compensated, completed_compensable(world));
}

fn completed_compensable(world: &World) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for recorded in world.facts() {
        let Fact::StepCompleted { path, compensable, .. } = &recorded.fact else { continue };
        let definition = &world.machine.plan().definition;
        let step = step_at(&definition.steps, step_id_of(path)).expect("it is in the definition");
        // one without `compensate` is reversed
        let is_reversed = matches!(step.kind, StepKind::Workflow { .. }) && *compensable;
        if compensated_path(path).is_none() && (step.compensate.is_some() || is_reversed) {
            found.insert(path.to_string());
        }
    }
    found
}

fn step_at<'a>(steps: &'a [StepDefinition], id: &str) -> Option<&'a StepDefinition> {
    steps.iter().find_map(|step| {
        let mut blocks = step.kind.blocks().into_iter();
        if step.id == id { Some(step) } else { blocks.find_map(|block| step_at(&block.steps, id)) }
    })
}

/// Returns true if any step has a compensation.
pub(crate) fn compensates(steps: &[StepDefinition]) -> bool {
    steps.iter().any(|step| {
        let blocks = step.kind.blocks();
        step.compensate.is_some() || blocks.into_iter().any(|block| compensates(&block.steps))
    })
}
