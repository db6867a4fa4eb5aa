//! Where a node is, and what a decision about it needs.

use std::sync::Arc;

use crate::ids::StepPath;
use crate::machine::Moment;
use crate::plan::{Step, Work};
use crate::state::Node;

/// A node that is decided about: its step, where it is, and the moment of the decision.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) step: &'a Step,
    pub(super) node: &'a Node,
    pub(super) place: Place<'a>,
    pub(super) moment: &'a Moment<'a>,
}

impl<'a> Site<'a> {
    /// Makes the site of a node whose path is known.
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

    /// Returns a lane of the container that the node is.
    pub(super) fn within(&self, lane: usize) -> Within<'_> {
        self.place.within(self.step, lane)
    }
}

/// Path of a node while the tree is walked; its text is made only when a fact needs one.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    outer: Option<Within<'a>>,
    /// Id of the step; without `outer`, its whole path.
    step: &'a Arc<str>,
}

/// A lane of the container at a place.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    place: &'a Place<'a>,
    work: &'a Work,
    lane: usize,
}

impl<'a> Place<'a> {
    /// Makes the place of a node whose path is known.
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
