//! Places of nodes, and the inputs of decisions about them.

use std::sync::Arc;

use crate::ids::StepPath;
use crate::machine::Moment;
use crate::plan::{Step, Work};
use crate::state::Node;

/// Subject of a decision: a node with its step, its place, and the moment.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) step: &'a Step,
    pub(super) node: &'a Node,
    pub(super) place: Place<'a>,
    pub(super) moment: &'a Moment<'a>,
}

impl<'a> Site<'a> {
    /// Creates the site of a node from its path.
    pub(super) fn at(
        path: &'a StepPath,
        (step, node): (&'a Step, &'a Node),
        moment: &'a Moment<'a>,
    ) -> Self {
        Self { step, node, place: Place::whole(path), moment }
    }

    pub(super) fn path(&self) -> StepPath {
        self.place.path()
    }

    /// Returns a lane of the node, which is a container.
    pub(super) fn within(&self, lane: usize) -> Within<'_> {
        self.place.within(self.step, lane)
    }
}

/// Path of a node during a walk of the tree. Its text is built only when a fact needs it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    outer: Option<Within<'a>>,
    /// Id of the step, or the whole path if there is no `outer`.
    step: &'a Arc<str>,
}

/// A lane of a container.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    place: &'a Place<'a>,
    work: &'a Work,
    lane: usize,
}

impl<'a> Place<'a> {
    /// Creates the place of a node from its path.
    pub(super) fn whole(path: &'a StepPath) -> Self {
        Self { outer: None, step: path }
    }

    pub(super) fn of(step: &'a Step, outer: Option<Within<'a>>) -> Self {
        Self { outer, step: &step.id }
    }

    pub(super) fn within(&'a self, step: &'a Step, lane: usize) -> Within<'a> {
        Within { place: self, work: &step.work, lane }
    }

    pub(super) fn path(&self) -> StepPath {
        match self.outer {
            None => Arc::clone(self.step),
            Some(Within { place, work, lane }) => {
                Arc::from(work.inner_path(&place.path(), lane, self.step))
            }
        }
    }
}
