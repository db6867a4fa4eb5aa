//! Children and replays of the executions that an operation selects.

use std::collections::{HashMap, HashSet};
use std::iter;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{BULK_PREVIEW_MAX, BulkAction, BulkOperation};
use crate::domain::fact::Parent;
use crate::domain::ids::{ExecutionId, PathHead, compensated_path};
use crate::domain::status::Status;
use crate::ports::store::{ExecutionFilter, Projection, ReadError};
use crate::replay::ReplayError;
use crate::requests::{StartError, Unavailable};
use crate::runtime::Runtime;

/// Number of executions whose children or replays are read at once.
const AT_ONCE: usize = 16;

/// Number of executions above one that are looked up.
const ABOVE_MAX: usize = 100;

/// Number of children in a page.
const PAGE: usize = 500;

/// Unfinished executions that selected ones have started, directly or not.
#[derive(Debug, Default)]
pub(super) struct Family {
    selected: HashSet<ExecutionId>,
    /// Each with the execution that started it.
    children: HashMap<ExecutionId, ExecutionId>,
    /// True if there are more than were read.
    pub(super) is_cut: bool,
}

/// A page of executions, sorted by what the command of the operation fits.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) fitting: Vec<Projection>,
    /// Number of the others.
    pub(super) skipped: u64,
    /// Number of those skipped because they were replayed before.
    pub(super) replayed: u64,
}

impl Family {
    /// Returns the number of those that are not selected themselves.
    pub(super) fn count(&self) -> u64 {
        self.unselected().count() as u64
    }

    /// Returns the number of those that are not selected themselves, and that these selected ones have
    /// started.
    pub(super) fn count_of(&self, some: &HashSet<ExecutionId>) -> u64 {
        let is_of_these = |child: &&ExecutionId| {
            let mut above = iter::successors(self.children.get(child), |it| self.children.get(it));
            above.any(|it| some.contains(it))
        };
        self.unselected().filter(is_of_these).count() as u64
    }

    fn unselected(&self) -> impl Iterator<Item = &ExecutionId> {
        self.children.keys().filter(|child| !self.selected.contains(child))
    }

    /// Adds a child; returns false if it is known.
    fn add(&mut self, child: &ExecutionId, parent: &ExecutionId) -> bool {
        if self.children.contains_key(child) {
            return false;
        }
        self.is_cut |= self.children.len() >= BULK_PREVIEW_MAX;
        if !self.is_cut {
            self.children.insert(child.clone(), parent.clone());
        }
        !self.is_cut
    }
}

impl Runtime {
    /// Adds selected executions, and the unfinished ones that they have started.
    pub(super) async fn add_children(
        &self,
        selected: &[Projection],
        family: &mut Family,
    ) -> Result<(), Unavailable> {
        let ids = selected.iter().map(|execution| execution.header.id.clone());
        let mut parents: Vec<_> = ids.collect();
        family.selected.extend(parents.iter().cloned());
        while !parents.is_empty() && !family.is_cut {
            let of_one = |parent: ExecutionId| async move {
                let (children, is_cut) = self.unfinished_children(&parent).await?;
                Ok::<_, Unavailable>((parent, children, is_cut))
            };
            let mut read = stream::iter(std::mem::take(&mut parents)).map(of_one).buffered(AT_ONCE);
            while let Some((parent, children, is_cut)) = read.try_next().await? {
                family.is_cut |= is_cut;
                parents.extend(children.into_iter().filter(|child| family.add(child, &parent)));
            }
        }
        Ok(())
    }

    /// Reads the unfinished executions that one has started; true if there are more.
    async fn unfinished_children(
        &self,
        parent: &ExecutionId,
    ) -> Result<(Vec<ExecutionId>, bool), Unavailable> {
        let mut children = Vec::new();
        for status in [Status::Running, Status::Suspended] {
            let filter = ExecutionFilter {
                parent_id: Some(parent.to_string()),
                status: Some(status),
                ..ExecutionFilter::default()
            };
            let mut after = None;
            loop {
                let (page, next) = self.shared.store.list(&filter, after, PAGE).await?;
                children.extend(page.into_iter().map(|child| child.header.id.clone()));
                if next.is_none() {
                    break;
                }
                if children.len() >= BULK_PREVIEW_MAX {
                    return Ok((children, true));
                }
                after = next;
            }
        }
        Ok((children, false))
    }

    /// Sorts a page by what the command fits. Of replays, what others started that deal with it
    /// themselves is left out. So is what was replayed before the operation began, unless it is to be
    /// replayed again. Replays of the operation itself do not count: a
    /// repeated page finds them by their keys.
    pub(super) async fn sort(
        &self,
        operation: &BulkOperation,
        mut page: Vec<Projection>,
    ) -> Result<Sorted, Unavailable> {
        let count = page.len();
        page.retain(|execution| operation.fits(execution));
        if operation.action == BulkAction::Replay {
            page = self.without_started(operation, page).await?;
        }
        let fits = page.len();
        if operation.action == BulkAction::Replay && !operation.again {
            page = self.without_replayed(operation, page).await?;
        }
        Ok(Sorted {
            skipped: (count - page.len()) as u64,
            replayed: (fits - page.len()) as u64,
            fitting: page,
        })
    }

    /// Leaves out executions that would refuse the command, by the rules of the command itself. At
    /// most `looks` more are read for that; the others are kept.
    pub(super) async fn without_refusing(
        &self,
        operation: &BulkOperation,
        Sorted { fitting, skipped, replayed }: Sorted,
        looks: &mut usize,
    ) -> Sorted {
        let count = fitting.len();
        let mut known = Vec::with_capacity(count);
        for execution in fitting {
            let mut accepts = self.accepts_by_row(operation, &execution).await;
            if accepts.is_none() {
                match looks.checked_sub(1) {
                    Some(left) => *looks = left,
                    None => accepts = Some(true),
                }
            }
            known.push((execution, accepts));
        }
        let look = |(execution, known): (Projection, Option<bool>)| async move {
            let accepts = match known {
                Some(accepts) => accepts,
                None => self.may_accept(operation, &execution).await,
            };
            accepts.then_some(execution)
        };
        let looked = stream::iter(known).map(look).buffered(AT_ONCE);
        let fitting: Vec<_> = looked.filter_map(std::future::ready).collect().await;
        Sorted { skipped: skipped + (count - fitting.len()) as u64, fitting, replayed }
    }

    /// Returns whether the execution accepts the command as it is, if its row and its definition say
    /// that.
    async fn accepts_by_row(
        &self,
        operation: &BulkOperation,
        execution: &Projection,
    ) -> Option<bool> {
        match (operation.action, &execution.suspension) {
            (BulkAction::Suspend | BulkAction::Resume, _) => Some(true),
            (BulkAction::Replay, _) => None,
            // its steps have ended when it compensates
            (BulkAction::Cancel, Some(waits)) if !waits.is_pause() => {
                Some(compensated_path(&waits.path).is_none())
            }
            (BulkAction::Cancel, _) => {
                let plan = self.shared.plan(&execution.header.definition_hash).await.ok()?;
                (!plan.compensates).then_some(true)
            }
        }
    }

    /// Returns false if the execution, which is read whole, refuses the command. True if that cannot
    /// be read now.
    async fn may_accept(&self, operation: &BulkOperation, execution: &Projection) -> bool {
        let target = operation.target_of(execution);
        match operation.action {
            BulkAction::Suspend | BulkAction::Resume => true,
            BulkAction::Replay => self.may_replay(&target, operation.definition()).await,
            BulkAction::Cancel => {
                let described = self.describe(&target).await;
                described.map_or(true, |state| state.compensation.is_none())
            }
        }
    }

    /// Leaves out what the replay of another selected execution starts anew, directly or not, and what
    /// was started by one that has not ended, unless it is named: that one deals with it.
    async fn without_started(
        &self,
        operation: &BulkOperation,
        selected: Vec<Projection>,
    ) -> Result<Vec<Projection>, Unavailable> {
        let look = |execution: Projection| async move {
            let is_started = self.is_started_anew(operation, &execution).await?;
            Ok::<_, Unavailable>((!is_started).then_some(execution))
        };
        let looked = stream::iter(selected).map(look).buffered(AT_ONCE);
        looked.try_filter_map(|it| async move { Ok(it) }).try_collect().await
    }

    async fn is_started_anew(
        &self,
        operation: &BulkOperation,
        execution: &Projection,
    ) -> Result<bool, Unavailable> {
        let mut parent = execution.header.parent.clone();
        for _ in 0..ABOVE_MAX {
            let Some(Parent { execution, path }) = parent else { break };
            let above = match self.shared.store.describe(&execution).await {
                Ok(Some(above)) => above,
                Ok(None) | Err(ReadError::Corrupt(_)) => break,
                Err(error) => return Err(error.into()),
            };
            if above.ended_at.is_none() {
                return Ok(operation.execution_ids.is_empty());
            }
            if operation.selects(&above) && self.replay_repeats(operation, &above, &path).await? {
                return Ok(true);
            }
            parent = above.header.parent.clone();
        }
        Ok(false)
    }

    /// Returns true if the replay of an execution that has ended runs the step at this path again.
    async fn replay_repeats(
        &self,
        operation: &BulkOperation,
        execution: &Projection,
        path: &str,
    ) -> Result<bool, Unavailable> {
        let target = operation.target_of(execution);
        let original = match self.original_of(&target, operation.definition()).await {
            Ok(original) => original,
            Err(ReplayError::Start(StartError::Unavailable(why))) => return Err(why),
            Err(_) => return Ok(false),
        };
        let steps = &original.plan.steps;
        let place = |id: &str| steps.iter().position(|step| *step.id == *id);
        let begins = place(&original.replayed.step_id);
        let started = match compensated_path(path) {
            // compensations are no steps of the replay
            Some(_) => None,
            None => PathHead::of(path).and_then(|head| place(head.step_id)),
        };
        Ok(started.is_some_and(|started| begins.is_some_and(|begins| begins <= started)))
    }

    async fn without_replayed(
        &self,
        operation: &BulkOperation,
        selected: Vec<Projection>,
    ) -> Result<Vec<Projection>, Unavailable> {
        let look = |execution: Projection| async move {
            let filter = ExecutionFilter {
                replay_of: Some(execution.header.id.to_string()),
                to: operation.began,
                ..ExecutionFilter::default()
            };
            let (replays, _) = self.shared.store.list(&filter, None, 1).await?;
            Ok::<_, Unavailable>(replays.is_empty().then_some(execution))
        };
        let looked = stream::iter(selected).map(look).buffered(AT_ONCE);
        looked.try_filter_map(|it| async move { Ok(it) }).try_collect().await
    }
}
