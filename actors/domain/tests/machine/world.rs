//! One execution with its environment: a clock, a registry of functions, timers, children.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_domain::definition::{StepDefinition, WorkflowDefinition};
use greenroom_domain::effort::Budget;
use greenroom_domain::expression::Closures;
use greenroom_domain::fact::{Recorded, Replayed, Reversal, Start, Trace};
use greenroom_domain::failure::{AttemptFailure, ErrorKind};
use greenroom_domain::ids::{ExecutionId, StepPath};
use greenroom_domain::machine::{
    Awaited, Batch, ChildReport, ChildStatus, Command, Decision, Effect, Handled, Machine,
    MachineLimits, Moment, Refusal, ReplayFrom, ReplayRefusal, Resume, Spent, StepResult,
};
use greenroom_domain::plan::{Call, Plan, Step, Work};
use greenroom_domain::state::{Node, Phase};
use greenroom_domain::status::Status;
use greenroom_domain::time::Timestamp;
use greenroom_domain::trace::{EntityType, TraceOrigin};
use serde_json::{Value, json};

use crate::machine::build::{map, run, workflow};
use crate::machine::{invariants, picture};

/// Start of every execution.
pub(crate) const ZERO: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    pub(crate) limits: MachineLimits,
    /// Functions that are not registered.
    pub(crate) missing: BTreeSet<String>,
    /// True once a lookup found something missing.
    pub(crate) has_missed: Cell<bool>,
    /// Every batch recorded so far.
    pub(crate) batches: Vec<Vec<Recorded>>,
    /// Timers set by the batches.
    pub(crate) timers: BTreeMap<StepPath, Timestamp>,
    pub(crate) abandoned: Vec<ExecutionId>,
    /// Children that were recorded and dropped in one batch, and so never started.
    pub(crate) never_begun: Vec<ExecutionId>,
    /// Children whose reported end was recorded.
    pub(crate) ended_children: BTreeSet<ExecutionId>,
    /// Budget of decisions.
    pub(crate) budget: Budget,
    next_child: Cell<u32>,
}

/// State of another execution, for a replay or a reversal of it.
type Copied = (Option<Box<Replayed>>, Option<Box<Reversal>>);

/// Environment of an execution at its start.
pub(crate) struct Setting {
    pub(crate) id: &'static str,
    pub(crate) input: Value,
    pub(crate) context: Value,
    pub(crate) limits: MachineLimits,
    pub(crate) missing: BTreeSet<String>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            id: "e1",
            input: json!(1),
            context: json!({ "user": { "id": "ann" } }),
            limits: MachineLimits::default(),
            missing: BTreeSet::new(),
        }
    }
}

/// Returns a resume of a step, or of the only suspension.
pub(crate) fn resume(step: Option<&str>, data: impl Into<Value>) -> Command {
    let (step_id, data) = (step.map(str::to_owned), Arc::new(data.into()));
    Command::Resume(Resume { step_id, data, ..Resume::default() })
}

impl Setting {
    pub(crate) fn start(self, definition: WorkflowDefinition) -> World {
        let plan = Arc::new(Plan::compile(definition).expect("the definition is sound"));
        self.begin(plan, (None, None))
    }

    pub(crate) fn begin(self, plan: Arc<Plan>, (replayed, reversal): Copied) -> World {
        let start = Box::new(Start {
            workflow_id: Arc::from(plan.definition.id.as_str()),
            definition_hash: Arc::clone(&plan.hash),
            input: Arc::new(self.input),
            user_id: Some(Arc::from("ann")),
            conversation_id: None,
            context: Arc::new(self.context),
            parent: None,
            depth: 0,
            trace: Trace::of("e", EntityType::Workflow, &Arc::from("order"), TraceOrigin::New),
            replayed,
            reversal,
        });
        let next_child = Cell::new(1);
        let new_id = || counted(&next_child);
        let has_missed = Cell::new(false);
        let missing = |step: &Step| missing_of(&self.missing, &has_missed, step);
        let moment = Moment {
            now: ZERO,
            new_id: &new_id,
            missing: &missing,
            limits: &self.limits,
            budget: &Budget::turn(),
            closures: &Closures::default,
        };
        let (machine, batch) = Machine::start(plan, ExecutionId::trusted(self.id), start, &moment);
        let mut world = World {
            machine,
            now: ZERO,
            limits: self.limits,
            missing: self.missing,
            has_missed,
            batches: Vec::new(),
            timers: BTreeMap::new(),
            abandoned: Vec::new(),
            never_begun: Vec::new(),
            ended_children: BTreeSet::new(),
            budget: Budget::turn(),
            next_child,
        };
        world.take(batch);
        world
    }
}

impl World {
    /// Starts a replay of this execution.
    pub(crate) fn replay(&self, step: &str, answer: Option<Value>) -> Result<Self, ReplayRefusal> {
        let (step_id, answer) = (Some(step.to_owned()), answer.map(Arc::new));
        self.replay_from(ReplayFrom { step_id, answer, ..ReplayFrom::default() })
    }

    pub(crate) fn replay_from(&self, from: ReplayFrom) -> Result<Self, ReplayRefusal> {
        self.replay_with(Setting::default().input, from)
    }

    /// Starts a replay with another input.
    pub(crate) fn replay_with(
        &self,
        input: Value,
        from: ReplayFrom,
    ) -> Result<Self, ReplayRefusal> {
        let plan = Arc::clone(from.plan.as_ref().unwrap_or_else(|| self.machine.plan()));
        let replayed = self.machine.replayed_from(from)?;
        let setting = Setting { input, missing: self.missing.clone(), ..Setting::default() };
        Ok(setting.begin(plan, (Some(Box::new(replayed)), None)))
    }

    /// Starts an execution of these steps with input `1`.
    pub(crate) fn of(steps: Vec<StepDefinition>) -> Self {
        Setting::default().start(workflow(steps))
    }

    pub(crate) fn started(&self) -> Vec<String> {
        self.batches.first().map_or_else(Vec::new, |facts| picture::lines(facts, ZERO))
    }

    pub(crate) fn facts(&self) -> Vec<Recorded> {
        self.batches.concat()
    }

    pub(crate) fn all_lines(&self) -> Vec<String> {
        picture::lines(&self.facts(), ZERO)
    }

    /// Returns an execution of each end: completed, failed, cancelled.
    pub(crate) fn ended() -> [Self; 3] {
        let mut cancelled = Self::of(vec![run("a")]);
        cancelled.cancel();
        let ended = [Self::of(vec![map("a", "1")]), Self::of(vec![map("a", "data.no")]), cancelled];
        let statuses = ended.each_ref().map(Self::status);
        assert_eq!(statuses, [Status::Completed, Status::Error, Status::Cancelled]);
        ended
    }

    pub(crate) fn status(&self) -> Status {
        self.machine.state().announced
    }

    /// Returns what it waits for; `is_draining`: the process starts nothing new.
    pub(crate) fn why(&self, is_draining: bool) -> Vec<Awaited> {
        let new_id = || counted(&self.next_child);
        let missing = |step: &Step| missing_of(&self.missing, &Cell::new(false), step);
        let moment = Moment {
            now: self.now,
            new_id: &new_id,
            missing: &missing,
            limits: &self.limits,
            budget: &self.budget,
            closures: &Closures::default,
        };
        self.machine.waits_for(&moment, is_draining)
    }

    pub(crate) fn node(&self, path: &str) -> &Node {
        self.machine.node(path).expect("the node has begun").1
    }

    pub(crate) fn phase(&self, path: &str) -> &Phase {
        &self.node(path).phase
    }

    pub(crate) fn effects(&self) -> Vec<Effect> {
        self.machine.effects(self.machine.state().last_seq())
    }

    /// Returns the paths of all running work, with the attempts.
    pub(crate) fn running(&self) -> Vec<String> {
        let line = |effect: Effect| format!("{} #{}", effect.path, effect.attempt);
        self.effects().into_iter().map(line).collect()
    }

    /// Returns the path of the shown suspension.
    pub(crate) fn shown(&self) -> Option<String> {
        let shown = self.machine.state().shown_suspension(self.machine.plan());
        shown.map(|suspension| suspension.path.to_string())
    }

    /// Sends a command to the machine. A refusal must change nothing.
    pub(crate) fn try_send(&mut self, command: Command) -> Result<Handled, Refusal> {
        let before = self.machine.state().clone();
        let effects = self.effects();
        let new_id = || counted(&self.next_child);
        let missing = |step: &Step| missing_of(&self.missing, &self.has_missed, step);
        let moment = Moment {
            now: self.now,
            new_id: &new_id,
            missing: &missing,
            limits: &self.limits,
            budget: &self.budget,
            closures: &Closures::default,
        };
        match self.machine.handle(command, &moment) {
            Ok(Handled::Decided(Decision::Recorded(batch))) => {
                invariants::other_work_continues(&effects, &batch.facts, &self.machine);
                self.take(batch.clone());
                Ok(Handled::Decided(Decision::Recorded(batch)))
            }
            Ok(
                other @ (Handled::Decided(
                    Decision::Forward { .. } | Decision::Admit { .. } | Decision::Check { .. },
                )
                | Handled::PutOff(_)),
            ) => {
                assert_eq!(*self.machine.state(), before, "the state changed without a decision");
                Ok(other)
            }
            Err(refusal) => {
                assert_eq!(*self.machine.state(), before, "a refused command changed the state");
                assert_eq!(self.effects(), effects, "a refused command changed the running work");
                Err(refusal)
            }
        }
    }

    /// Sends a command that is not refused; returns the recorded facts as text.
    pub(crate) fn send(&mut self, command: Command) -> Vec<String> {
        match self.try_send(command) {
            Ok(Handled::Decided(Decision::Recorded(batch))) => picture::lines(&batch.facts, ZERO),
            other => panic!("the command was not decided here: {other:?}"),
        }
    }

    fn take(&mut self, batch: Batch) {
        for (path, until) in batch.timers {
            match until {
                Some(until) => self.timers.insert(path, until),
                None => self.timers.remove(&path),
            };
        }
        self.abandoned.extend(batch.abandoned);
        if self.machine.has_more() {
            // A later process continues from here.
            self.has_missed.set(true);
        }
        let live = invariants::live_children(&self.machine);
        let begun = invariants::children_of(&batch.facts).into_keys();
        self.never_begun.extend(begun.filter(|child| !live.contains(child)));
        if !batch.facts.is_empty() {
            self.batches.push(batch.facts);
        }
        invariants::check(self);
    }

    pub(crate) fn end_step(&mut self, path: &str, result: StepResult) -> Vec<String> {
        self.end_step_using(path, result, Spent::default())
    }

    /// Ends an attempt, with what it has used.
    pub(crate) fn end_step_using(
        &mut self,
        path: &str,
        result: StepResult,
        spent: Spent,
    ) -> Vec<String> {
        let attempt = self.machine.node(path).expect("the node has begun").1.attempt;
        self.send(Command::StepFinished { path: Arc::from(path), attempt, result, spent })
    }

    pub(crate) fn finish(&mut self, path: &str, output: impl Into<Value>) -> Vec<String> {
        self.end_step(path, StepResult::Completed(Arc::new(output.into())))
    }

    pub(crate) fn fail(&mut self, path: &str, error: &str) -> Vec<String> {
        self.fail_with(path, AttemptFailure::new(ErrorKind::Function, error))
    }

    pub(crate) fn fail_with(&mut self, path: &str, failure: AttemptFailure) -> Vec<String> {
        self.end_step(path, StepResult::Failed(failure))
    }

    /// Ends a body with a request to suspend.
    pub(crate) fn ask(&mut self, path: &str) -> Vec<String> {
        self.end_step(path, StepResult::Suspended { reason: None, payload: None })
    }

    pub(crate) fn hold(&mut self) -> Vec<String> {
        self.send(Command::Suspend { reason: Arc::from("stop"), by: None })
    }

    pub(crate) fn resume(&mut self, data: impl Into<Value>) -> Vec<String> {
        self.send(resume(None, data))
    }

    pub(crate) fn resume_at(&mut self, step: &str, data: impl Into<Value>) -> Vec<String> {
        self.send(resume(Some(step), data))
    }

    /// Sends a resume that is refused.
    pub(crate) fn refused(&mut self, step: Option<&str>, data: impl Into<Value>) -> Refusal {
        self.try_send(resume(step, data)).expect_err("the resume is refused")
    }

    /// Sends a resume that is forwarded; returns the child.
    pub(crate) fn forwarded(&mut self, step: Option<&str>, data: impl Into<Value>) -> ExecutionId {
        match self.try_send(resume(step, data)) {
            Ok(Handled::Decided(Decision::Forward { child, .. })) => child,
            other => panic!("the resume was not forwarded: {other:?}"),
        }
    }

    pub(crate) fn child_took(&mut self, path: &str, child_seq: u64) -> Vec<String> {
        self.send(Command::ChildTookResume { path: Arc::from(path), child_seq, by: None })
    }

    pub(crate) fn cancel(&mut self) -> Vec<String> {
        self.send(Command::Cancel { reason: Arc::from("enough"), by: None, compensate: false })
    }

    /// Moves the clock to the timer of a node, and fires it.
    pub(crate) fn due(&mut self, path: &str) -> Vec<String> {
        let until = *self.timers.get(path).expect("a timer is armed");
        self.now = self.now.max(until);
        self.send(Command::TimerFired { path: Arc::from(path) })
    }

    pub(crate) fn report(&mut self, path: &str, seq: u64, status: ChildStatus) -> Vec<String> {
        let (_, node) = self.machine.node(path).expect("the node has begun");
        let child = node.child.as_ref().expect("there is a child").id.clone();
        self.report_of(path, &child, seq, status)
    }

    pub(crate) fn report_of(
        &mut self,
        path: &str,
        child: &ExecutionId,
        seq: u64,
        status: ChildStatus,
    ) -> Vec<String> {
        let has_ended = match &status {
            ChildStatus::Running | ChildStatus::Suspended { .. } => false,
            ChildStatus::Completed { .. }
            | ChildStatus::Failed { .. }
            | ChildStatus::Cancelled { .. } => true,
        };
        if has_ended {
            self.ended_children.insert(child.clone());
        }
        let (child, parent, abandoned) = (child.clone(), None, Vec::new());
        let report = ChildReport { child, parent, began: ZERO, seq, status, abandoned };
        self.send(Command::ChildReported { path: Arc::from(path), report })
    }

    /// Simulates a crash: rebuilds the machine from the record.
    pub(crate) fn crash(&mut self) {
        self.crash_losing(0);
    }

    /// Simulates a crash before the last batches were durable.
    pub(crate) fn crash_losing(&mut self, batches: usize) {
        let kept = self.batches.len().saturating_sub(batches).max(1);
        self.batches.truncate(kept);
        let plan = Arc::clone(self.machine.plan());
        let id = self.machine.state().id.clone();
        self.machine = Machine::replay(plan, id, &self.facts()).expect("the facts belong together");
        if batches > 0 {
            self.drop_lost();
        }
        invariants::check(self);
    }

    /// Rebuilds the machine from a stored snapshot and the batches after it.
    pub(crate) fn restore_from(&mut self, batches_in_snapshot: usize) {
        let plan = Arc::clone(self.machine.plan());
        let id = self.machine.state().id.clone();
        let at = batches_in_snapshot.clamp(1, self.batches.len());
        let (kept, later) = self.batches.split_at(at);
        let machine = Machine::replay(Arc::clone(&plan), id, &kept.concat()).unwrap();
        let stored = serde_json::to_string(machine.state()).unwrap();
        let state = serde_json::from_str(&stored).unwrap();
        self.machine = Machine::restore(plan, state, &later.concat()).unwrap();
        invariants::check(self);
    }

    pub(crate) fn recover(&mut self) -> Vec<String> {
        self.send(Command::Recover)
    }

    /// Drops timers and children of lost batches, which the store keeps in the same transaction.
    fn drop_lost(&mut self) {
        self.timers = invariants::armed(&self.machine);
        let known = invariants::children_of(&self.facts());
        self.abandoned.retain(|child| known.contains_key(child));
        self.never_begun.retain(|child| known.contains_key(child));
        self.ended_children.retain(|child| known.contains_key(child));
        let live = invariants::live_children(&self.machine);
        self.abandoned.retain(|child| !live.contains(child));
    }
}

fn counted(next: &Cell<u32>) -> ExecutionId {
    let number = next.get();
    next.set(number + 1);
    ExecutionId::trusted(format!("c{number}"))
}

fn missing_of(missing: &BTreeSet<String>, has_missed: &Cell<bool>, step: &Step) -> Option<String> {
    let Work::Call(Call::Function(function)) = &step.work else { return None };
    let is_missing = missing.contains(&**function);
    has_missed.set(has_missed.get() || is_missing);
    is_missing.then(|| format!("function {function} is not registered"))
}
