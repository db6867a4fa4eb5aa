//! Compensations of random definitions, and their laws: what completed in an execution that failed is
//! compensated exactly once by key, in reverse of the ends; nothing of a completed one is.

use std::collections::BTreeMap;

use greenroom_actors::domain::definition::{
    Block, Body, CommandBody, Compensation, HttpBody, HttpMethod, Mapping, RetryPolicy,
    StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::{ExecutionId, compensated_path};
use greenroom_actors::domain::machine::Machine;
use greenroom_actors::domain::plan::{Work, WorkClass};
use greenroom_actors::domain::state::{BegunCompensation, Compensating, Outcome, Phase};
use serde_json::Value;

use crate::simulator::dice::Dice;
use crate::simulator::due::{due, last_child, reversals_of, start_of, was_taken};
use crate::simulator::stage::Stage;

type Machines = BTreeMap<ExecutionId, Machine>;

/// Adds compensations to the definitions of some worlds. The dice of the world stay as they are.
pub(crate) fn added(
    (seed, percent): (u64, u64),
    workflows: Vec<WorkflowDefinition>,
) -> Vec<WorkflowDefinition> {
    let mut dice = Dice::about(seed, "compensations");
    if dice.chance(100 - percent) {
        return workflows;
    }
    let names: Vec<String> = workflows.iter().map(|workflow| workflow.id.clone()).collect();
    let with = |(number, workflow): (usize, WorkflowDefinition)| {
        let mut author = Author { dice: &mut dice, later: &names[number + 1..], has_any: false };
        let mut steps = workflow.steps;
        author.compensate(&mut steps, true);
        if author.dice.chance(if author.later.is_empty() { 10 } else { 50 }) {
            steps.push(failing());
        }
        let compensate_on_cancel = author.has_any && author.dice.chance(40);
        WorkflowDefinition { steps, compensate_on_cancel, ..workflow }
    };
    workflows.into_iter().enumerate().map(with).collect()
}

struct Author<'a> {
    dice: &'a mut Dice,
    /// Workflows that this one may call.
    later: &'a [String],
    has_any: bool,
}

impl Author<'_> {
    fn compensate(&mut self, steps: &mut [StepDefinition], is_outermost: bool) {
        for step in steps {
            // a child is mostly reversed
            let percent = if matches!(step.kind, StepKind::Workflow { .. }) { 20 } else { 70 };
            if step.kind.step_type().can_compensate() && self.dice.chance(percent) {
                step.compensate = Some(Box::new(self.rule(is_outermost)));
                self.has_any = true;
            }
            for block in blocks_of(&mut step.kind) {
                self.compensate(&mut block.steps, false);
            }
        }
    }

    fn rule(&mut self, is_outermost: bool) -> Compensation {
        let function =
            || StepKind::Then { body: Body::Run { function: "work".to_owned(), version: None } };
        let kind = match self.dice.below(6) {
            0 => StepKind::Then {
                body: Body::Http(HttpBody {
                    method: HttpMethod::Delete,
                    url: "https://outside.example/".to_owned(),
                    headers: [].into(),
                    query: [].into(),
                    body: None,
                }),
            },
            1 => StepKind::Then {
                body: Body::Command(CommandBody {
                    argv: vec!["/bin/outside".to_owned()],
                    ..CommandBody::default()
                }),
            },
            // in an iteration it would be many
            2 if is_outermost && !self.later.is_empty() => {
                StepKind::Workflow { workflow: self.dice.pick(self.later), input: None }
            }
            _ => function(),
        };
        let retry = RetryPolicy {
            attempts: u32::try_from(self.dice.between(1, 3)).unwrap(),
            delay_ms: self.dice.millis(5_000),
            ..RetryPolicy::default()
        };
        let timeout_ms = self.dice.chance(20).then(|| 1 + self.dice.millis(60_000));
        Compensation { retry, timeout_ms, ..Compensation::new(kind) }
    }
}

/// Returns a step that fails, after everything before it.
fn failing() -> StepDefinition {
    let body = Body::Map(Mapping("data.no.such".into()));
    StepDefinition::new("fails", StepKind::Then { body })
}

fn blocks_of(kind: &mut StepKind) -> Vec<&mut Block> {
    match kind {
        StepKind::When { block, .. }
        | StepKind::ForEach { block, .. }
        | StepKind::DoWhile { block, .. }
        | StepKind::DoUntil { block, .. } => vec![block],
        StepKind::All { blocks } | StepKind::Race { blocks } => blocks.iter_mut().collect(),
        StepKind::Branch { cases, default } => {
            cases.iter_mut().map(|case| &mut case.block).chain(default).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the execution whose steps a record compensates: itself, or the one that it reverses.
pub(crate) fn compensated_execution<'a>(
    id: &'a ExecutionId,
    facts: &'a [Recorded],
) -> &'a ExecutionId {
    let reversal = start_of(facts).and_then(|start| start.reversal.as_ref());
    reversal.map_or(id, |reversal| &reversal.execution)
}

/// Checks the compensations of all executions, which have ended.
pub(crate) fn check(stage: &Stage, machines: &Machines) {
    let mut undone: BTreeMap<String, u64> = BTreeMap::new();
    for machine in machines.values() {
        match machine.state().compensating.as_deref() {
            Some(compensating) => {
                everything_is_undone_in_reverse(stage, machine, compensating);
                children_are_reversed(stage, machine, (compensating, machines));
                for begun in calls(machine, compensating) {
                    let id = &machine.state().id;
                    let facts = stage.facts(id);
                    let key = format!("{}/{}", compensated_execution(id, &facts), begun.path);
                    *undone.entry(key).or_default() += 1;
                }
            }
            None => nothing_had_to_be_undone(stage, machine),
        }
        what_no_parent_took_is_reversed(stage, machine, machines);
    }
    for (key, times) in undone {
        stage.require(times == 1, || format!("{key} was undone {times} times"));
        stage.count("compensated by key");
    }
}

fn everything_is_undone_in_reverse(stage: &Stage, machine: &Machine, compensating: &Compensating) {
    let state = machine.state();
    let (id, is_reversal) = (&state.id, state.start.reversal.is_some());
    let has_completed = matches!(compensating.outcome, Outcome::Completed { .. });
    stage.require(has_completed == is_reversal, || {
        format!("{id} compensates before {:?}", compensating.outcome)
    });
    let begun = compensating.begun.iter().filter_map(|begun| compensated_path(&begun.path));
    let begun: Vec<_> = begun.map(str::to_owned).collect();
    let due = due(stage, id);
    stage.require(begun == due, || format!("{id} has to undo {due:?} and undid {begun:?}"));
    for BegunCompensation { path, node, skipped: _ } in &compensating.begun {
        let is_done = matches!(node.phase, Phase::Completed { .. });
        stage.require(is_done, || format!("{id} {path} has not completed: {:?}", node.phase));
    }
    if is_reversal {
        stage.count("reversals");
    }
}

fn nothing_had_to_be_undone(stage: &Stage, machine: &Machine) {
    let state = machine.state();
    let is_due = match state.end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::Failed { .. }) => true,
        Some(Outcome::Cancelled { .. }) => machine.plan().definition.compensate_on_cancel,
        Some(Outcome::Completed { .. }) | None => false,
    };
    let due = due(stage, &state.id);
    stage.require(!is_due || due.is_empty(), || format!("{} did not undo {due:?}", state.id));
}

/// Checks that each reversal is that of the child of its step.
fn children_are_reversed(
    stage: &Stage,
    machine: &Machine,
    (compensating, machines): (&Compensating, &Machines),
) {
    let id = &machine.state().id;
    let facts = stage.facts(compensated_execution(id, &stage.facts(id)));
    for BegunCompensation { path, node, skipped: _ } in &compensating.begun {
        let is_reversal = machine.node(path).is_some_and(|it| matches!(it.0.work, Work::Reversal));
        let Some(child) = node.child.as_ref().filter(|_| is_reversal) else { continue };
        let reversed = machines.get(&child.id).and_then(|it| it.state().start.reversal.as_ref());
        let completed = compensated_path(path).and_then(|step| last_child(&facts, step));
        let is_it = reversed.map(|it| &it.execution) == completed;
        stage.require(is_it, || format!("{id} {path} reversed {reversed:?}"));
    }
}

/// Checks that a child that completed after its step had ended, or whose output its step refused, is
/// reversed: no parent that fails would do it.
fn what_no_parent_took_is_reversed(stage: &Stage, machine: &Machine, machines: &Machines) {
    let (id, start) = (&machine.state().id, &machine.state().start);
    let end = machine.state().end.as_ref();
    let has_completed = end.is_some_and(|end| matches!(end.outcome, Outcome::Completed { .. }));
    let Some(parent) = start.parent.as_ref().filter(|_| has_completed) else { return };
    let undoes = start.reversal.is_some() || compensated_path(&parent.path).is_some();
    if undoes || was_taken(&stage.facts(&parent.execution), &parent.path, id) {
        return;
    }
    let above = machines.get(&parent.execution).and_then(|it| it.state().end.as_ref());
    let was_cancelled = above.is_some_and(|end| matches!(end.outcome, Outcome::Cancelled { .. }));
    let is_optional = was_cancelled && !machine.plan().definition.compensate_on_cancel;
    if is_optional || due(stage, id).is_empty() {
        return;
    }
    let reversals = reversals_of(stage, id).len();
    stage
        .require(reversals == 1, || format!("{id} was left to itself, with {reversals} reversals"));
    stage.count("reversals without a parent");
}

/// Returns the compensations that a person did not skip, without those by other executions.
fn calls<'a>(
    machine: &'a Machine,
    compensating: &'a Compensating,
) -> impl Iterator<Item = &'a BegunCompensation> {
    compensating.begun.iter().filter(|begun| {
        let is_child =
            machine.node(&begun.path).is_some_and(|it| it.0.work.class() == WorkClass::Child);
        !is_child && !is_skipped(begun.node.resume.as_deref())
    })
}

fn is_skipped(answer: Option<&Value>) -> bool {
    answer.is_some_and(|answer| answer["action"] == "skip")
}
