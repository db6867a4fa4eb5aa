//! Scopes of expressions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::definition::Container;
use crate::expression::{CLOSURE, Scope};
use crate::ids::{PathHead, compensated_path};
use crate::machine::place::Site;
use crate::machine::{Machine, Moment};
use crate::plan::Step;
use crate::question::Given;
use crate::state::{Node, Sequence};

/// Outputs of steps by id.
pub type Outputs = BTreeMap<Arc<str>, Arc<Value>>;

/// Value of `steps` if no expression uses it.
static NOTHING: LazyLock<Arc<Outputs>> = LazyLock::new(Arc::default);

/// The expensive names that an expression uses.
#[derive(Clone, Copy)]
pub(super) struct Named {
    steps: bool,
    execution: bool,
    closures: bool,
}

impl Named {
    /// All of them.
    pub(super) const ALL: Self = Self { steps: true, execution: true, closures: true };

    pub(super) fn by(uses: impl Fn(&str) -> bool) -> Self {
        if uses(CLOSURE) {
            return Self::ALL;
        }
        Self { steps: uses("steps"), execution: uses("execution"), closures: false }
    }

    /// Returns those that are among the names.
    pub(super) fn among<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let none = Self { steps: false, execution: false, closures: false };
        names.fold(none, |named, name| match name {
            CLOSURE => Self::ALL,
            "steps" => Self { steps: true, ..named },
            "execution" => Self { execution: true, ..named },
            _ => named,
        })
    }
}

impl Machine {
    /// Returns the scope of a node, with the names in `named`.
    pub(super) fn scope_at(&self, site: &Site<'_>, named: Named) -> Scope {
        let Site { node, moment, .. } = *site;
        self.scope(&site.path(), &node.input, Some(node), named, moment)
    }

    /// Returns the scope at a path, with the names in `named`.
    pub(super) fn scope(
        &self,
        path: &str,
        data: &Arc<Value>,
        resumed: Option<&Node>,
        named: Named,
        moment: &Moment<'_>,
    ) -> Scope {
        let outputs =
            if named.steps { Arc::new(self.outputs_before(path)) } else { Arc::clone(&NOTHING) };
        // A compensation is where its step is.
        let compensated = compensated_path(path);
        let error = compensated.and_then(|_| self.cause_in_scope());
        let Iterated { item, index } = self.iterated(compensated.unwrap_or(path));
        let execution = named.execution.then(|| Arc::new(self.execution()));
        let start = &self.state.start;
        let answer = resumed.and_then(Node::own_answer);
        let scope = Scope::new()
            .value_bytes_max(moment.limits.value_bytes_max)
            .with("data", Arc::clone(data))
            .with("input", Arc::clone(&start.input))
            .with("context", Arc::clone(&start.context))
            .with_optional("execution", execution)
            .with_optional("user", self.user.clone())
            .with_optional("resume", answer.as_ref().map(|answer| Arc::clone(&answer.data)))
            .with_optional("resumed_by", answer.and_then(resumed_by))
            .with_optional("item", item)
            .with_optional("index", index)
            .with_optional("error", error)
            .with_map("steps", outputs);
        match named.closures {
            true => scope.with_closures((moment.closures)(), Arc::clone(&start.workflow_id)),
            false => scope,
        }
    }

    fn execution(&self) -> Value {
        let start = &self.state.start;
        serde_json::json!({
            "id": self.acts_for(),
            "workflowId": start.workflow_id,
            "userId": start.user_id,
            "conversationId": start.conversation_id,
            "startedAt": self.state.created_at.to_iso(),
        })
    }

    /// Returns the item and the index of the innermost iterations around a path.
    fn iterated(&self, path: &str) -> Iterated {
        let mut found = Iterated::default();
        if !path.contains('[') {
            return found;
        }
        let mut place = Some((self.plan.steps.as_slice(), &self.state.root, path));
        while let Some((steps, sequence, path)) = place {
            let Some((inside, rest)) = Inside::of(steps, sequence, path) else { break };
            if inside.step.work.is_iterated() {
                found.index = Some(Arc::new(Value::from(inside.lane)));
                if let Some(item) = inside.node.items.get(inside.lane) {
                    found.item = Some(Arc::clone(item));
                }
            }
            place = inside.sequence().map(|sequence| (inside.steps(), sequence, rest));
        }
        found
    }

    /// Returns the outputs of the steps before a path: earlier steps of its block and of the blocks
    /// around it, with those inside them, and earlier iterations of the loops around it. Parallel
    /// branches and other items are excluded, so that a scope does not depend on which was faster.
    pub(super) fn outputs_before(&self, path: &str) -> Outputs {
        let mut outputs = Outputs::new();
        let compensated = compensated_path(path);
        let path = compensated.unwrap_or(path);
        let mut steps = self.plan.steps.as_slice();
        let mut place = Some((&self.state.root, path));
        while let Some((sequence, path)) = place {
            // An empty id is the end of the sequence, so all its steps are before it.
            let step_id = PathHead::of(path).map_or("", |head| head.step_id);
            let index =
                steps.iter().position(|step| &*step.id == step_id).unwrap_or(sequence.nodes.len());
            gather(steps, sequence, index, &mut outputs);
            let Some((inside, rest)) = Inside::of(steps, sequence, path) else { break };
            if inside.step.work.container().is_some_and(Container::sees_earlier_lanes) {
                gather_newest(inside.step, inside.node, inside.lane, &mut outputs);
            }
            steps = inside.steps();
            place = inside.sequence().map(|sequence| (sequence, rest));
        }
        let own = compensated.and_then(|path| self.node(path));
        if let Some((step, output)) = own.and_then(|(step, node)| Some((step, node.output()?))) {
            outputs.insert(Arc::clone(&step.id), output);
        }
        outputs
    }
}

/// Returns `resumed_by` of expressions: the principal of `resume`; `None` if unknown.
fn resumed_by(answer: Given) -> Option<Arc<Value>> {
    let by = answer.by?;
    Some(Arc::new(serde_json::json!({ "id": by.id, "verified": by.verified })))
}

/// `item` and `index` of expressions.
#[derive(Default)]
struct Iterated {
    item: Option<Arc<Value>>,
    index: Option<Arc<Value>>,
}

/// A container around a path, and the lane of it that the path is in. The lane may not have begun.
struct Inside<'a> {
    step: &'a Step,
    node: &'a Node,
    lane: usize,
}

impl<'a> Inside<'a> {
    fn of<'p>(steps: &'a [Step], sequence: &'a Sequence, path: &'p str) -> Option<(Self, &'p str)> {
        let PathHead { step_id, inner } = PathHead::of(path)?;
        let (lane, rest) = inner?;
        let index = steps.iter().position(|step| &*step.id == step_id)?;
        let (step, node) = (steps.get(index)?, sequence.nodes.get(index)?);
        let lane = step.work.lane_index(lane)?;
        Some((Self { step, node, lane }, rest))
    }

    fn steps(&self) -> &'a [Step] {
        self.step.work.branch_of(self.lane).map_or(&[], |branch| &branch.steps)
    }

    fn sequence(&self) -> Option<&'a Sequence> {
        self.node.branches.get(self.lane)
    }
}

/// Adds the outputs of the first `count` nodes and of the nodes inside them.
fn gather(steps: &[Step], sequence: &Sequence, count: usize, outputs: &mut Outputs) {
    for (step, node) in steps.iter().zip(&sequence.nodes).take(count) {
        gather_inside(step, node, outputs);
        if let Some(output) = node.output().filter(|_| node.has_own_output()) {
            outputs.insert(Arc::clone(&step.id), output);
        }
    }
}

fn gather_inside(step: &Step, node: &Node, outputs: &mut Outputs) {
    if step.work.is_iterated() {
        gather_newest(step, node, node.branches.len(), outputs);
        return;
    }
    for (branch, sequence) in step.work.branches().iter().zip(&node.branches) {
        gather(&branch.steps, sequence, sequence.nodes.len(), outputs);
    }
}

/// Adds the newest output of each step among the first `count` iterations. Newest means the
/// highest index, also for items that were in progress at the same time.
fn gather_newest(step: &Step, node: &Node, count: usize, outputs: &mut Outputs) {
    let Some(branch) = step.work.branch_of(0) else { return };
    let lanes = node.lanes.iter().flat_map(|lanes| lanes.with_newest(count));
    for sequence in lanes.filter_map(|lane| node.branches.get(lane)) {
        gather(&branch.steps, sequence, sequence.nodes.len(), outputs);
    }
}
