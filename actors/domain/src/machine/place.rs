//! Where a node is while the tree is walked.

use std::sync::Arc;

use crate::ids::StepPath;
use crate::plan::{Step, Work};

/// Path of a node; a text is made only when a fact needs one.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    outer: Option<Within<'a>>,
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
