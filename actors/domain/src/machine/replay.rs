//! Replay: a new execution that begins at a step of an earlier one.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::AskRules;
use crate::definition::{Block, StepDefinition};
use crate::fact::Replayed;
use crate::ids::{PathHead, StepPath, compensated_path, step_id_of};
use crate::machine::Machine;
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::state::{Node, Outcome, Phase};

/// Parameters of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayFrom {
    /// A top-level step; defaults to the step that failed, or to the first one whose effects were
    /// undone. It has to be given if a person skipped a compensation.
    pub step_id: Option<String>,
    /// Resume data for the step, supplied before it suspends.
    pub answer: Option<Arc<Value>>,
    /// The definition to use instead of that of the replayed execution.
    pub plan: Option<Arc<Plan>>,
    pub by: Option<Arc<Principal>>,
    /// Roles of a principal who has to be among those who are asked for the answer; `None`: the
    /// answer counts in any case.
    pub roles: Option<Vec<Arc<str>>>,
    /// True if `by` is only a claim of the caller, who then is an unknown person to those who are asked.
    pub is_claim: bool,
}

/// Reason why an execution cannot be replayed from a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRefusal {
    UnknownStep(String),
    /// It is inside a block, or not all steps before it have an output.
    NotReplayable {
        step: String,
        /// Steps at which a replay can begin.
        from: Vec<Arc<str>>,
    },
    /// No step is given, and none failed.
    NoStepFailed {
        from: Vec<Arc<str>>,
    },
    /// No step is given, and a person skipped a compensation: what it should have undone would happen
    /// twice.
    CompensationSkipped {
        /// The step that was not compensated.
        path: StepPath,
        from: Vec<Arc<str>>,
    },
    /// No step is given, and the execution compensates: what will have been undone is open.
    Compensating,
    /// Resume data is given for a step that does not suspend.
    DoesNotSuspend(String),
    /// The record does not match the definition to use.
    DefinitionDiffers(String),
}

impl Machine {
    /// Returns the state that a new execution needs to begin at a step: the nodes before it, and
    /// the resume data. The data is not checked here, because its schema may be costly.
    pub fn replayed_from(&self, wanted: ReplayFrom) -> Result<Replayed, ReplayRefusal> {
        let ReplayFrom { step_id, answer, plan, by, roles, is_claim } = wanted;
        let plan = plan.as_deref().unwrap_or(&self.plan);
        let is_compensating = self.state.end.is_none() && self.state.compensating.is_some();
        let step_id = match step_id {
            Some(step_id) => step_id,
            None if is_compensating => return Err(ReplayRefusal::Compensating),
            None => self.default_step(plan)?,
        };
        let not_replayable = || ReplayRefusal::NotReplayable {
            step: step_id.clone(),
            from: self.replayable_steps(plan),
        };
        let Some(index) = plan.steps.iter().position(|step| *step.id == *step_id) else {
            let is_inside = plan.step(step_id_of(&step_id)).is_some();
            return Err(if is_inside {
                not_replayable()
            } else {
                ReplayRefusal::UnknownStep(step_id)
            });
        };
        self.check_definition(plan, index)?;
        let nodes = self.state.root.nodes.get(..index).ok_or_else(not_replayable)?;
        if nodes.iter().any(|node| node.output().is_none()) || index > self.kept_steps(plan) {
            return Err(not_replayable());
        }
        let step = plan.steps.get(index).ok_or_else(not_replayable)?;
        if answer.is_some() && !may_suspend(step) {
            return Err(ReplayRefusal::DoesNotSuspend(step_id));
        }
        Ok(Replayed {
            execution: self.state.id.clone(),
            step_id: Arc::clone(&step.id),
            nodes: nodes.iter().map(Node::to_be_stored).collect(),
            roles: roles.filter(|_| answer.is_some()),
            is_claim: is_claim && answer.is_some(),
            answer,
            by,
        })
    }

    /// Returns the number of top-level steps before the first one whose effects were undone, or will
    /// be.
    fn kept_steps(&self, plan: &Plan) -> usize {
        let Some(compensating) = &self.state.compensating else { return plan.steps.len() };
        let begun = compensating.begun.iter().map(|begun| &begun.path);
        let heads = begun.chain(&compensating.due).filter_map(|path| PathHead::of(path));
        let undone: Vec<_> = heads.map(|head| step_id_of(head.step_id)).collect();
        let is_undone = |step: &Step| undone.contains(&&*step.id);
        plan.steps.iter().position(is_undone).unwrap_or(plan.steps.len())
    }

    /// Returns the step at which a replay begins that names none: the one that failed, or the first
    /// one whose effects were undone, which is the latest one with all outputs before it. An effect
    /// that a person left as it is would happen twice: only a caller who names the step wants that.
    fn default_step(&self, plan: &Plan) -> Result<String, ReplayRefusal> {
        let from = || self.replayable_steps(plan);
        let failed =
            self.failed_step().ok_or_else(|| ReplayRefusal::NoStepFailed { from: from() })?;
        let kept = self.kept_steps(&self.plan);
        let mut skipped = self.state.compensating.iter().flat_map(|it| it.skipped());
        if let Some(skipped) = skipped.next() {
            let path = compensated_path(&skipped.path).unwrap_or(&skipped.path);
            return Err(ReplayRefusal::CompensationSkipped { path: path.into(), from: from() });
        }
        let first = self.plan.steps.get(failed.min(kept));
        let first = first.ok_or_else(|| ReplayRefusal::NoStepFailed { from: from() })?;
        Ok(first.id.to_string())
    }

    /// Returns the place of the top-level step whose failure ended the execution.
    fn failed_step(&self) -> Option<usize> {
        let end = self.state.end.as_ref()?;
        if !matches!(end.outcome, Outcome::Failed { .. }) {
            return None;
        }
        let last = self.state.root.nodes.len().checked_sub(1)?;
        let has_failed =
            matches!(self.state.root.nodes[last].phase, Phase::Failed { output: None, .. });
        has_failed.then_some(last)
    }

    /// Returns the top-level steps whose predecessors all have an output and match the definition.
    pub(super) fn replayable_steps(&self, plan: &Plan) -> Vec<Arc<str>> {
        let nodes = &self.state.root.nodes;
        let passed = nodes.iter().take_while(|node| node.output().is_some()).count();
        let passed = passed.min(self.kept_steps(plan));
        let steps = plan.steps.iter().take(passed + 1).enumerate();
        let fitting = steps.take_while(|(index, _)| self.check_definition(plan, *index).is_ok());
        fitting.map(|(_, step)| Arc::clone(&step.id)).collect()
    }

    /// Checks that the first `count` steps are the same in another definition.
    fn check_definition(&self, plan: &Plan, count: usize) -> Result<(), ReplayRefusal> {
        if plan.hash == self.plan.hash {
            return Ok(());
        }
        let (known, wanted) = (&self.plan.definition.steps, &plan.definition.steps);
        same_steps(known, &wanted[..count], "").map_err(ReplayRefusal::DefinitionDiffers)
    }

    /// Returns the resume data that a replay supplied for the step at this path.
    pub(super) fn replay_answer(&self, path: &str) -> Option<Arc<Value>> {
        let replayed = self.state.start.replayed.as_ref();
        replayed.filter(|replayed| *replayed.step_id == *path)?.answer.clone()
    }

    /// Returns true if the step at this path asks with these rules although a replay supplied its
    /// resume data: the one who gave them is not among those who are asked.
    pub fn has_unused_answer(&self, path: &str, ask: Option<&AskRules>) -> bool {
        self.replay_answer(path).is_some() && !self.may_replayer_answer(ask)
    }

    /// Returns true if the one who gave the resume data of a replay is among those who are asked.
    pub(super) fn may_replayer_answer(&self, ask: Option<&AskRules>) -> bool {
        let replayed = self.state.start.replayed.as_ref();
        let given = replayed.and_then(|it| it.roles.as_ref().map(|roles| (it, roles)));
        let (Some(rules), Some((given, roles))) = (ask, given) else { return true };
        let user = given.by.as_ref().filter(|_| !given.is_claim).map(|by| &*by.id);
        rules.admits(user, roles, self.state.start.user_id.as_deref())
    }
}

/// Compares the steps; an error names the first difference.
fn same_steps(
    known: &[StepDefinition],
    wanted: &[StepDefinition],
    place: &str,
) -> Result<(), String> {
    for (index, wanted) in wanted.iter().enumerate() {
        let now = format!("{} ({})", wanted.id, wanted.kind.name());
        let at = format!("{place}step {}", index + 1);
        let Some(known) = known.get(index) else {
            return Err(format!("{at} is new: {now}"));
        };
        if known.id != wanted.id || known.kind.name() != wanted.kind.name() {
            let then = format!("{} ({})", known.id, known.kind.name());
            return Err(format!("{at} was {then} and is now {now}"));
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
        return Err(format!("the blocks of {id} were {names_before} and are now {names_now}"));
    }
    for (before, now) in before.into_iter().zip(now) {
        let place = format!("in {}/{}, ", wanted.id, now.name);
        same_steps(&before.steps, &now.steps, &place)?;
        if before.steps.len() != now.steps.len() {
            let (then, now) = (before.steps.len(), now.steps.len());
            return Err(format!("{place}there were {then} steps and are now {now}"));
        }
    }
    Ok(())
}

fn may_suspend(step: &Step) -> bool {
    // A function may suspend its step, except in a tap.
    let calls_function = step.work.called().is_some_and(|called| called.is_function());
    let may_suspend_itself = calls_function && !step.is_tap;
    step.suspend.is_some() || may_suspend_itself
}
