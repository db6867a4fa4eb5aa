//! What expressions of a step may name.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::domain::expression::Scope;
use crate::domain::machine::{Machine, Moment};
use crate::domain::plan::Step;
use crate::domain::state::{Node, Phase, Sequence};

type Outputs = BTreeMap<Arc<str>, Arc<Value>>;

/// What `steps` is when nobody asks for it.
static NOTHING: LazyLock<Arc<Outputs>> = LazyLock::new(Arc::default);

/// Which names an expression asks for, of those that cost something to have.
#[derive(Clone, Copy)]
pub(super) struct Named {
    steps: bool,
    execution: bool,
}

impl Named {
    /// Whatever is asked for.
    pub(super) const ALL: Self = Self { steps: true, execution: true };

    pub(super) fn by(uses: impl Fn(&str) -> bool) -> Self {
        Self { steps: uses("steps"), execution: uses("execution") }
    }

    /// Those among the names.
    pub(super) fn among<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        names.fold(Self { steps: false, execution: false }, |named, name| Self {
            steps: named.steps || name == "steps",
            execution: named.execution || name == "execution",
        })
    }
}

impl Machine {
    /// The scope at a path, with what is `named`.
    pub(super) fn scope(
        &self,
        path: &str,
        data: &Arc<Value>,
        resume: Option<&Arc<Value>>,
        named: Named,
        moment: &Moment<'_>,
    ) -> Scope {
        let outputs =
            if named.steps { Arc::new(self.outputs_before(path)) } else { Arc::clone(&NOTHING) };
        let execution = named.execution.then(|| Arc::new(self.execution()));
        let start = &self.state.start;
        Scope::new()
            .value_bytes_max(moment.limits.value_bytes_max)
            .with("data", Arc::clone(data))
            .with("input", Arc::clone(&start.input))
            .with("context", Arc::clone(&start.context))
            .with_optional("execution", execution)
            .with_optional("user", self.user.clone())
            .with_optional("resume", resume.cloned())
            .with_optional("item", None)
            .with_optional("index", None)
            .with_map("steps", outputs)
    }

    fn execution(&self) -> Value {
        let start = &self.state.start;
        serde_json::json!({
            "id": self.state.id,
            "workflowId": start.workflow_id,
            "userId": start.user_id,
            "conversationId": start.conversation_id,
            "startedAt": self.state.created_at.to_iso(),
        })
    }

    /// Outputs of the steps on the way to a path: earlier ones of its own block and of the blocks
    /// around it, whatever is inside those included. Parallel branches are not on the way, so
    /// that what a step sees does not depend on who was faster.
    fn outputs_before(&self, path: &str) -> Outputs {
        let mut outputs = Outputs::new();
        let mut steps = self.plan.steps.as_slice();
        let mut sequence = Some(&self.state.root);
        let mut parts = path.split('/');
        while let (Some(step_id), Some(current)) = (parts.next(), sequence) {
            // An empty id is the end of the workflow: everything is before it.
            let index =
                steps.iter().position(|step| &*step.id == step_id).unwrap_or(current.nodes.len());
            gather(steps, current, index, &mut outputs);
            let block = parts.next();
            let inner = steps.get(index).zip(current.nodes.get(index)).zip(block);
            sequence = inner.and_then(|((step, node), block)| {
                let branches = step.work.branches();
                let branch = branches.iter().position(|branch| &*branch.name == block)?;
                steps = &branches.get(branch)?.steps;
                node.branches.get(branch)
            });
        }
        outputs
    }
}

/// Adds the outputs of the first `count` nodes and of all that is inside them.
fn gather(steps: &[Step], sequence: &Sequence, count: usize, outputs: &mut Outputs) {
    for (step, node) in steps.iter().zip(&sequence.nodes).take(count) {
        gather_inside(step, node, outputs);
        // What a skipped step lets pass is no output of its own: it did not run.
        if let Some(output) = node.output().filter(|_| node.phase != Phase::Skipped) {
            outputs.insert(Arc::clone(&step.id), output);
        }
    }
}

fn gather_inside(step: &Step, node: &Node, outputs: &mut Outputs) {
    for (branch, sequence) in step.work.branches().iter().zip(&node.branches) {
        gather(&branch.steps, sequence, sequence.nodes.len(), outputs);
    }
}
