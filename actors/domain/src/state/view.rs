//! What callers see of the state: every step with its place, and every wait.

use std::sync::Arc;

use crate::fact::{Others, Suspension};
use crate::failure::AttemptError;
use crate::hash::short_hash;
use crate::ids::ExecutionId;
use crate::plan::{Plan, Step};
use crate::state::node::{Node, Phase, Resumed};
use crate::state::{Hold, State};
use crate::step_state::{StepResume, StepState, StepStatus};

/// Waits that are told beside the first wherever an execution that is suspended is shown without
/// its whole state: each announcement repeats them.
const OTHERS_MAX: usize = 49;
/// Bytes of their reasons and payloads, all together.
const OTHERS_BYTES_MAX: usize = 64 * 1024;

/// The id of a suspension: of a node that asks for the n-th time, or of the n-th hold, whose path
/// is empty.
pub(crate) fn suspension_id(execution: &ExecutionId, path: &str, count: u32) -> Arc<str> {
    Arc::from(short_hash(&[execution.as_str(), path, "suspension", &count.to_string()]))
}

impl State {
    /// The suspension that callers see: the hold, else the node that has waited longest.
    pub fn shown_suspension(&self, plan: &Plan) -> Option<Suspension> {
        match &self.hold {
            Some(hold) => held(hold, plan),
            None => self.waiting(plan).into_iter().min_by_key(|wait| wait.suspended_at),
        }
    }

    /// Everything that waits for a resume: the hold, then nodes, those that have waited longest
    /// first.
    pub fn suspensions(&self, plan: &Plan) -> Vec<Suspension> {
        if self.end.is_some() {
            return Vec::new();
        }
        let mut all = self.waiting(plan);
        all.sort_by_key(|wait| wait.suspended_at);
        all.splice(0..0, self.hold.as_ref().and_then(|hold| held(hold, plan)));
        all
    }

    /// The suspension that callers see, and what else is waited for, as far as it is told.
    pub fn told_suspensions(&self, plan: &Plan) -> Option<(Suspension, Option<Box<Others>>)> {
        let mut all = self.suspensions(plan).into_iter();
        let shown = all.next()?;
        let count = all.len();
        let mut bytes = 0;
        let told = all.take(OTHERS_MAX).take_while(|other| {
            bytes += other.value_bytes();
            bytes <= OTHERS_BYTES_MAX
        });
        let suspensions: Vec<_> = told.collect();
        let omitted = count - suspensions.len();
        Some((shown, (count > 0).then(|| Box::new(Others { suspensions, omitted }))))
    }

    /// Every node that waits for a resume, in the order of the definition.
    pub fn waiting(&self, plan: &Plan) -> Vec<Suspension> {
        let mut found = Vec::new();
        self.each_live_node(plan, &mut |index, path, step, node| {
            if let Phase::Waiting(wait) = &node.phase {
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
                });
            }
        });
        found
    }

    /// Every node, parents before children.
    pub fn steps(&self, plan: &Plan) -> Vec<StepState> {
        let mut found = Vec::new();
        self.each_node(plan, &mut |_, path, step, node| {
            found.push(StepState {
                step_id: Arc::clone(&step.id),
                path: Arc::from(path),
                status: status_of(node),
                attempts: node.attempt,
                started_at: node.started_at,
                ended_at: node.ended_at,
                output: node.output(),
                error: error_of(node),
                errors: errors_of(node),
                resume: resume_of(node),
                child: node.child.as_ref().map(|child| child.id.clone()),
            });
        });
        found
    }

    /// Visits every node with the index of its top-level step and its path, parents before
    /// children.
    pub fn each_node<'a>(&'a self, plan: &'a Plan, visit: &mut Visit<'_, 'a>) {
        for (index, (step, node)) in plan.steps.iter().zip(&self.root.nodes).enumerate() {
            visit_all(index, &step.id, step, node, visit);
        }
    }

    /// Visits every node that has not ended, in the same way.
    pub fn each_live_node<'a>(&'a self, plan: &'a Plan, visit: &mut Visit<'_, 'a>) {
        let last = self.root.nodes.len().checked_sub(1);
        let found = last.and_then(|last| Some((last, plan.steps.get(last)?)));
        if let Some((last, step)) = found {
            visit_live(last, &step.id, step, &self.root.nodes[last], visit);
        }
    }
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
    })
}

/// What is done with a node: the index of its top-level step, its path, its step.
pub(super) type Visit<'v, 'a> = dyn FnMut(usize, &str, &'a Step, &'a Node) + 'v;

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

/// Every attempt that failed, as far as they are kept.
pub(crate) fn errors_of(node: &Node) -> Vec<AttemptError> {
    let last = match &node.phase {
        Phase::Failed { error, class, .. } => Some(AttemptError {
            attempt: node.attempt,
            at: node.ended_at.unwrap_or(node.phase_since),
            message: Arc::clone(error),
            class: *class,
        }),
        Phase::Ready
        | Phase::Running
        | Phase::Waiting(_)
        | Phase::Sleeping { .. }
        | Phase::Completed { .. }
        | Phase::Skipped
        | Phase::Cancelled => None,
    };
    node.errors.iter().cloned().chain(last).collect()
}

fn error_of(node: &Node) -> Option<Arc<str>> {
    match &node.phase {
        Phase::Failed { error, .. } => Some(Arc::clone(error)),
        Phase::Ready
        | Phase::Running
        | Phase::Waiting(_)
        | Phase::Sleeping { .. }
        | Phase::Completed { .. }
        | Phase::Skipped
        | Phase::Cancelled => None,
    }
}

/// The resume that a node took last; of an andWorkflow step, that of its child.
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
