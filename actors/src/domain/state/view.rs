//! What callers see of the state: every step with its place, and every wait.

use std::sync::Arc;

use crate::domain::fact::Suspension;
use crate::domain::plan::{Plan, Step};
use crate::domain::state::State;
use crate::domain::state::node::{Node, Phase, Sequence};
use crate::domain::step_state::{StepState, StepStatus};

impl State {
    /// Every node that waits for a resume, in the order of the definition.
    pub fn waiting(&self, plan: &Plan) -> Vec<Suspension> {
        let mut found = Vec::new();
        self.each_node(plan, &mut |index, path, step, node| {
            if let Phase::Waiting(wait) = &node.phase {
                found.push(Suspension {
                    reason: Arc::clone(&wait.reason),
                    suspended_at: wait.since,
                    step_id: Arc::clone(&step.id),
                    path: Arc::from(path),
                    step_index: index,
                    payload: wait.payload.clone(),
                    deadline: wait.deadline,
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
                child: node.child.as_ref().map(|child| child.id.clone()),
            });
        });
        found
    }

    /// Visits every node with the index of its top-level step and its path.
    pub fn each_node<'a>(
        &'a self,
        plan: &'a Plan,
        visit: &mut dyn FnMut(usize, &str, &'a Step, &'a Node),
    ) {
        for (index, (step, node)) in plan.steps.iter().zip(&self.root.nodes).enumerate() {
            visit_node(index, &step.id, step, node, visit);
        }
    }
}

fn visit_node<'a>(
    index: usize,
    path: &str,
    step: &'a Step,
    node: &'a Node,
    visit: &mut dyn FnMut(usize, &str, &'a Step, &'a Node),
) {
    visit(index, path, step, node);
    for (branch, sequence) in step.work.branches().iter().zip(&node.branches) {
        let Sequence { nodes, .. } = sequence;
        for (inner_step, inner_node) in branch.steps.iter().zip(nodes) {
            let inner_path = format!("{path}/{}/{}", branch.name, inner_step.id);
            visit_node(index, &inner_path, inner_step, inner_node, visit);
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
