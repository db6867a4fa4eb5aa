//! Names and steps that are available at a place of a definition.

use std::collections::HashSet;
use std::rc::Rc;

use crate::definition::StepDefinition;

use crate::expression::Path;

use super::shape::Shape;
use super::{Containers, collect_inside};

/// Names and steps that are available at a place.
#[derive(Clone, Default)]
pub(super) struct Here<'d> {
    /// Steps that may have run.
    pub(super) visible: HashSet<&'d str>,
    /// Visible steps that have run in an earlier iteration of a loop, or never.
    pub(super) of_earlier_iterations: HashSet<&'d str>,
    /// Paths that the conditions around this place read, and which therefore exist or were tested.
    pub(super) tested_paths: Vec<Path>,
    pub(super) containers: Containers<'d>,
    pub(super) has_item: bool,
    pub(super) has_index: bool,
    pub(super) data: Rc<Shape>,
    pub(super) item: Rc<Shape>,
}

impl<'d> Here<'d> {
    /// Returns the place inside a block of the step; earlier iterations of a loop are visible
    /// there.
    pub(super) fn inside(&self, step: &'d StepDefinition) -> Self {
        let mut inside = self.clone();
        let Some(container) = step.kind.step_type().container() else { return inside };
        inside.has_index |= container.is_repeated();
        inside.has_item |= container.has_items();
        if container.sees_earlier_lanes() {
            // the first iteration gets the data before the loop, the others the output of the last
            inside.data = Rc::default();
            collect_inside(step, &mut inside.visible);
            collect_inside(step, &mut inside.of_earlier_iterations);
        }
        inside
    }

    /// Makes a step, and the steps inside it, visible.
    pub(super) fn pass(&mut self, step: &'d StepDefinition) {
        let mut passed = HashSet::from([step.id.as_str()]);
        collect_inside(step, &mut passed);
        self.of_earlier_iterations.retain(|id| !passed.contains(id));
        self.visible.extend(passed);
    }

    /// Returns true if this place is in a lane of the container.
    pub(super) fn is_inside(&self, container: &StepDefinition, lane: usize) -> bool {
        self.containers
            .iter()
            .any(|(around, in_lane)| around.id == container.id && *in_lane == lane)
    }
}
