//! Completeness of compensations, for the random executions of `properties`.

use std::collections::BTreeSet;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::ids::compensated_path;
use greenroom_domain::state::{Phase, is_compensable};
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
    world.machine.state().each_node(world.machine.plan(), &mut |_, path, step, node| {
        if is_compensable(step, node) {
            found.insert(path.to_owned());
        }
    });
    found
}

/// Returns true if any step has a compensation.
pub(crate) fn compensates(steps: &[StepDefinition]) -> bool {
    steps.iter().any(|step| {
        let blocks = step.kind.blocks();
        step.compensate.is_some() || blocks.into_iter().any(|block| compensates(&block.steps))
    })
}
