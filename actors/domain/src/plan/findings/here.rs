//! What can be read at a place of a definition.

use std::collections::HashSet;
use std::rc::Rc;

use crate::definition::{StepDefinition, StepKind};

use crate::expression::Path;

use super::shape::Shape;
use super::{Way, collect_inside};

/// What can be read at a place.
#[derive(Clone, Default)]
pub(super) struct Here<'d> {
    /// Steps that may have run.
    pub(super) visible: HashSet<&'d str>,
    /// Those of them that have run in an earlier round of a loop, or not at all.
    pub(super) of_earlier_rounds: HashSet<&'d str>,
    /// What the conditions around this place read: where they hold it is there, or was asked about.
    pub(super) asked_about: Vec<Path>,
    pub(super) around: Way<'d>,
    pub(super) has_item: bool,
    pub(super) has_index: bool,
    pub(super) data: Rc<Shape>,
    pub(super) item: Rc<Shape>,
}

impl<'d> Here<'d> {
    /// In a block of the step; earlier rounds of a loop can be read in it.
    pub(super) fn inside(&self, step: &'d StepDefinition) -> Self {
        let mut inside = self.clone();
        if let StepKind::ForEach { .. } = step.kind {
            (inside.has_item, inside.has_index) = (true, true);
        } else if step.kind.loop_rule().is_some() {
            inside.has_index = true;
            // the first round is given what came before, the others what the last one gave
            inside.data = Rc::default();
            collect_inside(step, &mut inside.visible);
            collect_inside(step, &mut inside.of_earlier_rounds);
        }
        inside
    }

    /// A step, and all that is inside of it, is behind this place.
    pub(super) fn pass(&mut self, step: &'d StepDefinition) {
        let mut passed = HashSet::from([step.id.as_str()]);
        collect_inside(step, &mut passed);
        self.of_earlier_rounds.retain(|id| !passed.contains(id));
        self.visible.extend(passed);
    }

    /// Whether this place is in a lane of the container.
    pub(super) fn is_inside(&self, container: &StepDefinition, lane: usize) -> bool {
        self.around.iter().any(|(around, in_lane)| around.id == container.id && *in_lane == lane)
    }
}
