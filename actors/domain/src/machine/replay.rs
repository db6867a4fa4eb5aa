//! Beginning again in the middle: what another execution takes from this one.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{Block, StepDefinition};
use crate::fact::Replayed;
use crate::ids::StepPath;
use crate::machine::Machine;
use crate::plan::{Call, Plan, Step, Work};
use crate::principal::Principal;
use crate::state::{Node, Outcome, Phase};

/// From where an execution is to be replayed, and how.
#[derive(Debug, Clone, Default)]
pub struct ReplayFrom {
    /// A top-level step; without one, the step that failed.
    pub step_id: Option<String>,
    /// What answers the question of the step before it is asked.
    pub answer: Option<Arc<Value>>,
    /// The definition to go on with, in place of the one that the execution began with.
    pub plan: Option<Arc<Plan>>,
    pub by: Option<Arc<Principal>>,
}

/// Why an execution cannot be replayed from a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRefusal {
    UnknownStep(String),
    /// It is inside a block, or the steps before it have not all let the flow pass.
    NotReplayable {
        step: String,
        /// From which steps it can be.
        from: Vec<Arc<str>>,
    },
    /// No step is named, and none failed.
    NoStepFailed {
        from: Vec<Arc<str>>,
    },
    /// There is an answer, and nothing that asks.
    DoesNotSuspend(String),
    /// What was recorded does not belong to the definition that is to be used.
    DefinitionDiffers(String),
}

impl Machine {
    /// What a new execution takes with it to begin with a step: the nodes before it, and the
    /// answer for what the step will ask, unchecked: a schema of answers may cost more than others
    /// can wait for.
    pub fn replayed_from(&self, wanted: ReplayFrom) -> Result<Replayed, ReplayRefusal> {
        let ReplayFrom { step_id, answer, plan, by } = wanted;
        let plan = plan.as_deref().unwrap_or(&self.plan);
        let step_id = match step_id {
            Some(step_id) => step_id,
            None => self
                .failed_step()
                .ok_or_else(|| ReplayRefusal::NoStepFailed { from: self.replayable_steps(plan) })?,
        };
        let not_replayable = || ReplayRefusal::NotReplayable {
            step: step_id.clone(),
            from: self.replayable_steps(plan),
        };
        let Some(index) = plan.steps.iter().position(|step| *step.id == *step_id) else {
            let is_inside = plan.step(&step_id).is_some();
            return Err(if is_inside {
                not_replayable()
            } else {
                ReplayRefusal::UnknownStep(step_id)
            });
        };
        self.check_definition(plan, index)?;
        let nodes = self.state.root.nodes.get(..index).ok_or_else(not_replayable)?;
        if nodes.iter().any(|node| node.output().is_none()) {
            return Err(not_replayable());
        }
        let step = plan.steps.get(index).ok_or_else(not_replayable)?;
        if answer.is_some() && !may_ask(step) {
            return Err(ReplayRefusal::DoesNotSuspend(step_id));
        }
        Ok(Replayed {
            execution: self.state.id.clone(),
            step_id: Arc::clone(&step.id),
            nodes: nodes.iter().map(Node::to_be_stored).collect(),
            answer,
            by,
        })
    }

    /// The top-level step whose failure ended the execution.
    fn failed_step(&self) -> Option<String> {
        let end = self.state.end.as_ref()?;
        if !matches!(end.outcome, Outcome::Failed { .. }) {
            return None;
        }
        let last = self.state.root.nodes.len().checked_sub(1)?;
        let has_failed =
            matches!(self.state.root.nodes[last].phase, Phase::Failed { output: None, .. });
        has_failed.then(|| self.plan.steps.get(last).map(|step| step.id.to_string()))?
    }

    /// The top-level steps before which all others have let the flow pass and fit the definition.
    pub(super) fn replayable_steps(&self, plan: &Plan) -> Vec<Arc<str>> {
        let nodes = &self.state.root.nodes;
        let passed = nodes.iter().take_while(|node| node.output().is_some()).count();
        let steps = plan.steps.iter().take(passed + 1).enumerate();
        let fitting = steps.take_while(|(index, _)| self.check_definition(plan, *index).is_ok());
        fitting.map(|(_, step)| Arc::clone(&step.id)).collect()
    }

    /// Whether the first steps are in another definition what they are in this one.
    fn check_definition(&self, plan: &Plan, count: usize) -> Result<(), ReplayRefusal> {
        if plan.hash == self.plan.hash {
            return Ok(());
        }
        let (known, wanted) = (&self.plan.definition.steps, &plan.definition.steps);
        same_steps(known, &wanted[..count], "").map_err(ReplayRefusal::DefinitionDiffers)
    }

    /// What answers the question of the step at this path before it is asked.
    pub(super) fn answer_brought(&self, path: &StepPath) -> Option<Arc<Value>> {
        let replayed = self.state.start.replayed.as_ref();
        replayed.filter(|replayed| replayed.step_id == *path)?.answer.clone()
    }
}

/// Compares as many steps as are wanted; says where the first differs.
fn same_steps(
    known: &[StepDefinition],
    wanted: &[StepDefinition],
    place: &str,
) -> Result<(), String> {
    for (index, wanted) in wanted.iter().enumerate() {
        let now = format!("{} ({})", wanted.id, wanted.kind.name());
        let at = format!("{place}step {}", index + 1);
        let Some(known) = known.get(index) else {
            return Err(format!("{at} is {now} now, and there was none"));
        };
        if known.id != wanted.id || known.kind.name() != wanted.kind.name() {
            let then = format!("{} ({})", known.id, known.kind.name());
            return Err(format!("{at} was {then} and is {now} now"));
        }
        same_blocks(known, wanted)?;
    }
    Ok(())
}

fn same_blocks(known: &StepDefinition, wanted: &StepDefinition) -> Result<(), String> {
    let (before, now) = (known.kind.blocks(), wanted.kind.blocks());
    let names = |blocks: &[&Block]| {
        let names: Vec<_> = blocks.iter().map(|block| block.name.clone()).collect();
        names.join(", ")
    };
    let (names_before, names_now) = (names(&before), names(&now));
    if names_before != names_now {
        let id = &wanted.id;
        return Err(format!("the blocks of {id} were {names_before} and are {names_now} now"));
    }
    for (before, now) in before.into_iter().zip(now) {
        let place = format!("in {}/{}, ", wanted.id, now.name);
        same_steps(&before.steps, &now.steps, &place)?;
        if before.steps.len() != now.steps.len() {
            let (then, now) = (before.steps.len(), now.steps.len());
            return Err(format!("{place}there were {then} steps and are {now} now"));
        }
    }
    Ok(())
}

fn may_ask(step: &Step) -> bool {
    // A function may ask from within; a tap may not.
    let may_ask_itself = matches!(step.work, Work::Call(Call::Function(_))) && !step.is_tap;
    step.suspend.is_some() || may_ask_itself
}
