//! Views of the state for callers: steps and suspensions.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fact::{Others, Suspension};
use crate::failure::AttemptError;
use crate::ids::{PathHead, compensated_path, step_generation_id};
use crate::plan::{Plan, Step};
use crate::state::node::{Node, Phase, Resumed};
use crate::state::{BegunCompensation, Hold, Sequence, State};
use crate::step_state::{StepResume, StepState, StepStatus};

impl State {
    /// Returns the suspension to show: the pause, otherwise that of the node that has waited
    /// longest.
    pub fn shown_suspension(&self, plan: &Plan) -> Option<Suspension> {
        match &self.hold {
            Some(hold) => held(hold, plan),
            None => self.waiting(plan).into_iter().min_by_key(|wait| wait.suspended_at),
        }
    }

    /// Returns all suspensions: the pause, then those of nodes, oldest first.
    pub fn suspensions(&self, plan: &Plan) -> Vec<Suspension> {
        if self.end.is_some() {
            return Vec::new();
        }
        let mut all = self.waiting(plan);
        all.sort_by_key(|wait| wait.suspended_at);
        all.splice(0..0, self.hold.as_ref().and_then(|hold| held(hold, plan)));
        all
    }

    /// Returns the suspension to show, and the others up to a limit.
    pub fn announced_suspensions(&self, plan: &Plan) -> Option<(Suspension, Option<Box<Others>>)> {
        let mut all = self.suspensions(plan).into_iter();
        let shown = all.next()?;
        let (count, announced) = (all.len(), Others::announced(all.as_slice()));
        let (suspensions, omitted) = (all.take(announced).collect(), count - announced);
        Some((shown, (count > 0).then(|| Box::new(Others { suspensions, omitted }))))
    }

    /// Returns the suspensions of nodes, in the order of the definition.
    pub fn waiting(&self, plan: &Plan) -> Vec<Suspension> {
        let mut found = Vec::new();
        self.each_live_node(plan, &mut |index, path, step, node| {
            if let Some(wait) = node.wait() {
                found.push(Suspension {
                    id: Some(Arc::clone(&wait.id)),
                    reason: Arc::clone(&wait.reason),
                    suspended_at: wait.since,
                    step_id: Arc::clone(&step.id),
                    path: Arc::from(path),
                    step_index: index,
                    payload: wait.payload.clone(),
                    deadline: wait.deadline,
                    by: None,
                    pause: false,
                    payload_omitted: false,
                });
            }
        });
        found
    }

    /// Returns the states of all nodes, parents before children.
    pub fn steps(&self, plan: &Plan) -> Vec<StepState> {
        let mut found = Vec::new();
        let skipped = self.compensating.iter().flat_map(|it| it.skipped());
        let skipped: BTreeSet<&str> = skipped.map(|begun| &*begun.path).collect();
        self.each_node(plan, &mut |_, path, step, node| {
            let is_skipped = skipped.contains(path);
            found.push(StepState {
                step_id: Arc::clone(&step.id),
                path: Arc::from(path),
                status: if is_skipped { StepStatus::Skipped } else { status_of(node) },
                attempts: node.attempt,
                started_at: node.started_at,
                ended_at: node.ended_at,
                output: node.output(),
                error: node.failure().map(|(error, _)| Arc::clone(error)),
                errors: errors_of(node),
                resume: resume_of(node),
                child: node.child.as_ref().map(|child| child.id.clone()),
                generation_id: generation_of(step, node)
                    .map(|retry| step_generation_id(&self.id, path, retry)),
            });
        });
        found
    }

    /// Visits every node with the index of its top-level step and its path, parents before
    /// children, then those of compensations.
    pub fn each_node<'a>(&'a self, plan: &'a Plan, visit: &mut Visit<'_, 'a>) {
        self.each_step_node(plan, visit);
        for begun in self.compensating.iter().flat_map(|it| &it.begun) {
            visit_compensation(plan, begun, visit);
        }
    }

    /// Visits every node of a step, without those of compensations.
    pub(super) fn each_step_node<'a>(&'a self, plan: &'a Plan, visit: &mut Visit<'_, 'a>) {
        for (index, (step, node)) in plan.steps.iter().zip(&self.root.nodes).enumerate() {
            visit_all(index, &step.id, step, node, visit);
        }
    }

    /// Returns true if there is such a live node. No paths are made, and the first one ends the search.
    pub fn has_live_node(&self, plan: &Plan, is_such: &impl Fn(&Step, &Node) -> bool) -> bool {
        let last = plan.steps.iter().zip(&self.root.nodes).next_back();
        if last.is_some_and(|(step, node)| has_live(step, node, is_such)) {
            return true;
        }
        let compensation = self.compensating.as_ref().and_then(|it| it.current());
        compensation.is_some_and(|current| {
            let step = plan.step_at(&current.path);
            step.is_some_and(|step| has_live(step, &current.node, is_such))
        })
    }

    /// Visits the live node at a path and those inside it: none if it has ended, or one around it.
    pub fn each_live_node_at<'a>(&'a self, plan: &'a Plan, path: &str, visit: &mut Visit<'_, 'a>) {
        if compensated_path(path).is_none() {
            if let Some((index, step, node)) = self.live_node_at(plan, path) {
                visit_live(index, path, step, node, visit);
            }
            return;
        }
        let compensation = self.compensating.as_ref().and_then(|it| it.current());
        let named = compensation.filter(|current| *current.path == *path);
        if let Some(current) = named.filter(|current| current.node.is_live()) {
            visit_compensation(plan, current, visit);
        }
    }

    /// Returns a live node inside live ones, with its step and the index of its top-level step.
    fn live_node_at<'a>(
        &'a self,
        plan: &'a Plan,
        path: &str,
    ) -> Option<(usize, &'a Step, &'a Node)> {
        let top = self.root.nodes.len().checked_sub(1)?;
        let (mut sequence, mut steps, mut path) = (&self.root, &plan.steps[..], path);
        loop {
            let PathHead { step_id, inner } = PathHead::of(path)?;
            let (step, node) = steps.iter().zip(&sequence.nodes).next_back()?;
            if *step.id != *step_id || !node.is_live() {
                return None;
            }
            let Some((lane, rest)) = inner else { return Some((top, step, node)) };
            let lane = step.work.lane_index(lane)?;
            steps = &step.work.branch_of(lane)?.steps;
            node.lanes.as_ref()?.live.binary_search(&lane).ok()?;
            sequence = node.branches.get(lane)?;
            path = rest;
        }
    }

    /// Visits every live node, in the same way.
    pub fn each_live_node<'a>(&'a self, plan: &'a Plan, visit: &mut Visit<'_, 'a>) {
        let last = self.root.nodes.len().checked_sub(1);
        let found = last.and_then(|last| Some((last, plan.steps.get(last)?)));
        if let Some((last, step)) = found {
            visit_live(last, &step.id, step, &self.root.nodes[last], visit);
        }
        let compensation = self.compensating.as_ref().and_then(|it| it.current());
        if let Some(current) = compensation.filter(|current| current.node.is_live()) {
            visit_compensation(plan, current, visit);
        }
    }
}

/// Returns the number of the retry with the newest generation of an andAgent step; `None` if it has
/// none.
fn generation_of(step: &Step, node: &Node) -> Option<u32> {
    if step.work.agent().is_none() || node.attempt == 0 {
        return None;
    }
    Some(match node.phase {
        // counted by the failure
        Phase::Failed { .. } | Phase::Sleeping { .. } => node.failures.saturating_sub(1),
        Phase::Ready
        | Phase::Running
        | Phase::Waiting(_)
        | Phase::Completed { .. }
        | Phase::Skipped
        | Phase::Cancelled => node.failures,
    })
}

fn held(hold: &Hold, plan: &Plan) -> Option<Suspension> {
    let step_index = hold.step_index;
    let step = plan.steps.get(step_index)?;
    Some(Suspension {
        id: Some(Arc::clone(&hold.id)),
        reason: Arc::clone(&hold.reason),
        suspended_at: hold.since,
        step_id: Arc::clone(&step.id),
        path: Arc::clone(&step.id),
        step_index,
        payload: None,
        deadline: None,
        by: hold.by.clone(),
        pause: true,
        payload_omitted: false,
    })
}

/// Visitor of nodes: the index of the top-level step, the path, the step, the node.
pub(super) type Visit<'v, 'a> = dyn FnMut(usize, &str, &'a Step, &'a Node) + 'v;

fn visit_compensation<'a>(plan: &'a Plan, begun: &'a BegunCompensation, visit: &mut Visit<'_, 'a>) {
    let head = PathHead::of(compensated_path(&begun.path).unwrap_or(&begun.path));
    let is_top = |step: &Step| head.is_some_and(|head| &*step.id == head.step_id);
    let index = plan.steps.iter().position(is_top);
    if let (Some(index), Some(step)) = (index, plan.step_at(&begun.path)) {
        visit(index, &begun.path, step, &begun.node);
    }
}

fn visit_all<'a>(
    index: usize,
    path: &str,
    step: &'a Step,
    node: &'a Node,
    visit: &mut Visit<'_, 'a>,
) {
    visit(index, path, step, node);
    for (lane, sequence) in node.branches.iter().enumerate() {
        let Some(branch) = step.work.branch_of(lane) else { continue };
        for (inner_step, inner_node) in branch.steps.iter().zip(&sequence.nodes) {
            let inner_path = step.work.inner_path(path, lane, &inner_step.id);
            visit_all(index, &inner_path, inner_step, inner_node, visit);
        }
    }
}

fn visit_live<'a>(
    index: usize,
    path: &str,
    step: &'a Step,
    node: &'a Node,
    visit: &mut Visit<'_, 'a>,
) {
    if !node.is_live() {
        return;
    }
    visit(index, path, step, node);
    for (lane, sequence) in node.live_lanes() {
        let steps = step.work.branch_of(lane).map_or(&[][..], |branch| &branch.steps);
        if let Some((inner_step, inner_node)) = steps.iter().zip(&sequence.nodes).next_back() {
            let inner_path = step.work.inner_path(path, lane, &inner_step.id);
            visit_live(index, &inner_path, inner_step, inner_node, visit);
        }
    }
}

fn has_live(step: &Step, node: &Node, is_such: &impl Fn(&Step, &Node) -> bool) -> bool {
    let has_inside = |(lane, sequence): (usize, &Sequence)| {
        let branch = step.work.branch_of(lane);
        let last = branch.and_then(|it| it.steps.iter().zip(&sequence.nodes).next_back());
        last.is_some_and(|(step, node)| has_live(step, node, is_such))
    };
    node.is_live() && (is_such(step, node) || node.live_lanes().any(has_inside))
}

fn status_of(node: &Node) -> StepStatus {
    match &node.phase {
        Phase::Ready | Phase::Running => StepStatus::Running,
        Phase::Waiting(_) => StepStatus::Suspended,
        Phase::Sleeping { .. } => StepStatus::Sleeping,
        Phase::Completed { .. } => StepStatus::Completed,
        Phase::Failed { .. } => StepStatus::Failed,
        Phase::Skipped => StepStatus::Skipped,
        Phase::Cancelled => StepStatus::Cancelled,
    }
}

/// Returns the failed attempts of a node, as far as they are kept.
pub(crate) fn errors_of(node: &Node) -> Vec<AttemptError> {
    let last = node.failure().map(|(error, class)| AttemptError {
        attempt: node.attempt,
        at: node.ended_at.unwrap_or(node.phase_since),
        message: Arc::clone(error),
        class,
    });
    node.errors.iter().cloned().chain(last).collect()
}

/// Returns the newest resume of a node; for an andWorkflow step, that of its child.
fn resume_of(node: &Node) -> Option<StepResume> {
    let of = |resumed: &Resumed, data| {
        let Resumed { at, by, by_deadline, id } = resumed.clone();
        StepResume { at, by, by_deadline, id, data }
    };
    let of_child = node.child.as_ref().and_then(|child| child.resumed.as_ref());
    of_child.map(|resumed| of(resumed, None)).or_else(|| {
        let data = node.resume.clone().unwrap_or_default();
        node.resumed.as_ref().map(|resumed| of(resumed, Some(data)))
    })
}
