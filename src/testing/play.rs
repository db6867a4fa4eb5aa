//! One run of a case: started, answered, killed and started again, until nothing more happens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::domain::ids::{ExecutionId, compensated_path, container_of, step_name_of};
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::status::Status;
use greenroom_actors::domain::step_state::{StepState, StepStatus};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskSubject, Executions as _, Journal as _};
use greenroom_actors::requests::{ExecutionState, StartError, StartExecution, Target};
use greenroom_actors::visibility::Visibility;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::answer::AnswerError;
use super::case::{Case, EXECUTION, Outcome};
use super::expectation::shown_time;
use super::mock::MockCall;
use super::planned::{Pending, PlannedAnswer};
use super::world::{World, is_about, name_of};
use crate::greenroom::error::Problems;

/// Virtual time after which an execution that still runs is given up.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Events and end of one run.
#[derive(Debug, Clone)]
pub(super) struct Played {
    pub(super) state: ExecutionState,
    /// Steps that wait for answers that nothing gives.
    pub(super) waiting: Vec<String>,
    /// Waits that ended at their deadline, in words.
    pub(super) unanswered: Vec<String>,
    /// Differences between the planned answers and those that were given.
    pub(super) misgiven: Vec<String>,
    /// Answers that were refused, with the reasons.
    pub(super) refusals: Vec<String>,
    /// Calls that would have left the process.
    pub(super) refused: Vec<String>,
    pub(super) took: Duration,
    /// Calls of mocks, and whether each may be repeated.
    pub(super) calls: Vec<(MockCall, bool)>,
    /// Changes of the store after the launch.
    pub(super) changes: u64,
}

impl Played {
    pub(super) fn outcome(&self) -> Outcome {
        let state = &self.state;
        Outcome {
            status: state.status,
            result: state.result.as_deref().cloned().unwrap_or_default(),
            error: state.error.as_ref().map(|failure| failure.message.to_string()),
            ran: self.ran(),
            refusals: self.refusals.clone(),
            took: self.took,
            kills: 0,
        }
    }

    /// Returns what is wrong with the case itself: what would have left the process, and answers
    /// that were not given as planned.
    pub(super) fn mistakes(&self) -> Vec<String> {
        self.refused.iter().chain(&self.misgiven).cloned().collect()
    }

    /// Returns the ids of the steps that began, and names of compensations, without repetition.
    fn ran(&self) -> Vec<String> {
        let mut ran = Vec::<String>::new();
        // a compensation that a person skipped has been attempted before
        let began = |step: &&StepState| step.status != StepStatus::Skipped || step.attempts > 0;
        for step in self.state.steps.iter().filter(began) {
            let name = step_name_of(&step.path);
            if step.started_at.is_some() && !ran.iter().any(|known| known == name) {
                ran.push(name.to_owned());
            }
        }
        ran
    }

    /// Returns why the execution fails, and the compensations whose last attempt failed, each with its
    /// error. It fails because of a step, where containers fail with the error of a step inside, which
    /// stands for them, or as a whole, such as by its result.
    pub(super) fn failures(&self) -> Vec<String> {
        let cause = match (self.cause(), &self.state.compensation) {
            (Some(step), _) => step.error.as_ref().map(|error| failed(&step.path, error)),
            (None, Some(compensation)) => Some(compensation.reason.to_string()),
            (None, None) => None,
        };
        let waits = |step: &&StepState| {
            step.status == StepStatus::Suspended && compensated_path(&step.path).is_some()
        };
        let compensations = self.state.steps.iter().filter(waits);
        let compensations =
            compensations.filter_map(|step| Some((&step.path, &step.errors.last()?.message)));
        let compensations = compensations.map(|(path, error)| failed(path, error));
        cause.into_iter().filter(|cause| !cause.is_empty()).chain(compensations).collect()
    }

    /// Returns the innermost step whose failure fails the execution: not one that `on_error` handled,
    /// or in a container that passed, or failed because of another one.
    fn cause(&self) -> Option<&StepState> {
        // `on_error` gives a step that failed an output
        let fails = |step: &&StepState| {
            step.status == StepStatus::Failed
                && step.output.is_none()
                && compensated_path(&step.path).is_none()
        };
        let failed: Vec<&StepState> = self.state.steps.iter().filter(fails).collect();
        let first_in = |container: Option<&StepState>| {
            let path = container.map(|step| &*step.path);
            let inside = failed.iter().filter(|step| container_of(&step.path) == path);
            // a container fails with the error of the step that failed first
            let cause = inside.filter(|step| container.is_none_or(|it| it.error == step.error));
            cause.min_by_key(|step| step.ended_at).copied()
        };
        let mut cause = first_in(None)?;
        while let Some(inner) = first_in(Some(cause)) {
            cause = inner;
        }
        Some(cause)
    }

    /// Returns the outputs of steps by id; of one that repeats, the last one.
    pub(super) fn outputs(&self) -> Value {
        let steps = self.state.steps.iter().filter(|it| compensated_path(&it.path).is_none());
        let outputs = steps.filter_map(|step| {
            let output = step.output.as_deref()?;
            Some((step.step_id.to_string(), output.clone()))
        });
        outputs.collect::<BTreeMap<_, _>>().into_iter().collect::<serde_json::Map<_, _>>().into()
    }
}

fn failed(path: &str, error: &str) -> String {
    format!("{path} failed: {error}")
}

/// A run that has not ended.
pub(super) struct Play<'c> {
    case: &'c Case,
    world: World,
    /// Changes of the store of this process.
    changes: watch::Receiver<u64>,
    /// Count of changes at the launch.
    before: u64,
    is_started: bool,
    answers: Vec<Pending<'c>>,
}

/// End of a run.
enum Rest {
    Ended(Box<ExecutionState>),
    /// These wait, and nothing answers.
    Waits(Box<ExecutionState>, Vec<String>),
}

impl<'c> Play<'c> {
    /// Prepares a run, in which the process dies instead of making the change after so many.
    pub(super) fn new(case: &'c Case, world: World, kill_after: Option<u64>) -> Self {
        let changes = world.store().changes();
        let before = *changes.borrow();
        if let Some(admitted) = kill_after {
            world.store().admit_changes(before.saturating_add(admitted));
        }
        let answers = case.answers.iter().map(Pending::new).collect();
        Self { case, world, changes, before, is_started: false, answers }
    }

    /// Plays until the execution ends or waits for ever, over the death of its process.
    pub(super) async fn finish(mut self) -> Result<Played, Problems> {
        loop {
            let (store, mut refusals) = (Arc::clone(self.world.store()), self.changes.clone());
            let is_dead = move |_: &u64| !store.is_writable();
            let played = tokio::select! {
                biased;
                _ = refusals.wait_for(is_dead) => None,
                rest = self.play() => Some(rest),
            };
            match played {
                Some(rest) => {
                    let played = match rest {
                        Ok(rest) => self.played(rest).await,
                        Err(why) => Err(why),
                    };
                    // it would take part in the time of those that follow
                    self.world.end().await;
                    return played.map_err(|why| Problems(vec![why]));
                }
                None => {
                    self.world = self.world.restart().await?;
                    self.changes = self.world.store().changes();
                }
            }
        }
    }

    /// Plays until there is nothing more to do.
    async fn play(&mut self) -> Result<Rest, String> {
        let began = Instant::now();
        self.start().await?;
        loop {
            self.changes.borrow_and_update();
            let state = self.state().await?;
            let open = self.open_asks().await?;
            if state.status.is_terminal() {
                return Ok(Rest::Ended(Box::new(state)));
            }
            let pause = match self.next_due() {
                Some((at, Duration::ZERO)) => {
                    self.give(at).await?;
                    continue;
                }
                Some((_, pause)) => pause,
                None if self.waits_for_ever(&state, &open).await? => {
                    let waiting = open.iter().map(name_of).collect();
                    return Ok(Rest::Waits(Box::new(state), waiting));
                }
                None => LONGEST,
            };
            tokio::select! {
                changed = self.changes.changed() => changed.map_err(|error| error.to_string())?,
                () = sleep(pause) => {}
            }
            if began.elapsed() >= LONGEST {
                return Err(self.unfinished(&state));
            }
        }
    }

    /// Starts the execution; one that was started before a crash is the same.
    async fn start(&mut self) -> Result<(), String> {
        if self.is_started {
            return Ok(());
        }
        let Case { workflow, input, user, context, .. } = self.case;
        let request = StartExecution {
            execution_id: Some(ExecutionId::trusted(EXECUTION)),
            user_id: user.clone(),
            context: context.clone(),
            ..StartExecution::new(workflow, input.clone())
        };
        match self.world.runtime().begin(request).await {
            Ok(_) | Err(StartError::Exists(_)) => self.is_started = true,
            Err(refusal) => return Err(format!("is not started: {refusal}")),
        }
        Ok(())
    }

    async fn state(&self) -> Result<ExecutionState, String> {
        let target = Target {
            workflow_id: self.case.workflow.clone(),
            execution_id: ExecutionId::trusted(EXECUTION),
            visibility: Visibility::Everything,
        };
        let state = self.world.runtime().describe(&target).boxed_local().await;
        state.map_err(|error| error.to_string())
    }

    /// Returns the open asks, and assigns the planned answers to them in their order. An answer has
    /// its ask as it is now: an escalation may have asked others since.
    async fn open_asks(&mut self) -> Result<Vec<Ask>, String> {
        let open = self.world.open_asks().await.map_err(|error| error.to_string())?;
        for answer in &mut self.answers {
            if let Some(ask) = answer.ask().filter(|ask| !open.iter().any(|it| it.id == ask.id)) {
                let state = self.world.state_of(&ask.id).await;
                answer.closed(state);
            }
        }
        for ask in &open {
            if let Some(answer) = self.answers.iter_mut().find(|it| it.is_for(&ask.id)) {
                answer.assign(ask.clone());
                continue;
            }
            let mut free = self.answers.iter_mut().filter(|it| it.is_free());
            if let Some(answer) = free.find(|it| is_about(ask, &it.planned.about)) {
                answer.assign(ask.clone());
            }
        }
        Ok(open)
    }

    /// Returns the next answer, and the time until then.
    fn next_due(&self) -> Option<(usize, Duration)> {
        let dues = self.answers.iter().enumerate();
        let dues = dues.filter_map(|(at, answer)| Some((answer.due()?, at)));
        let (due, at) = dues.min()?;
        Some((at, Duration::from_millis(due.ms_since(self.world.now()))))
    }

    async fn give(&mut self, at: usize) -> Result<(), String> {
        let Some(answer) = self.answers.get_mut(at) else { return Ok(()) };
        let Some(ask) = answer.ask().cloned() else { return Ok(()) };
        let PlannedAnswer { about, data, by, .. } = answer.planned;
        match self.world.answer_ask(ask, data.clone(), by.as_ref()).await {
            Err(AnswerError::Failed(why)) => {
                return Err(format!("answer {} ({about}) is not given: {why}", at + 1));
            }
            answered => answer.given(answered),
        }
        Ok(())
    }

    /// Returns true if only an answer can continue it: no deadline ends the wait, nothing in it sleeps,
    /// and nothing has happened since it was looked at. Without an ask, the runtime is about to
    /// continue it.
    async fn waits_for_ever(&self, state: &ExecutionState, open: &[Ask]) -> Result<bool, String> {
        if state.status != Status::Suspended
            || open.is_empty()
            || open.iter().any(|ask| ask.deadline.is_some())
        {
            return Ok(false);
        }
        let (all, end) = (SlotSet::all(), Timestamp(i64::MAX));
        let timers = self.world.store().timers_due(&all, end, 1).await;
        let is_armed = !timers.map_err(|error| error.to_string())?.is_empty();
        Ok(!is_armed && !self.changes.has_changed().unwrap_or(true))
    }

    fn unfinished(&self, state: &ExecutionState) -> String {
        let running = state.steps.iter().filter(|step| step.status == StepStatus::Running);
        let running: Vec<_> = running.map(|step| &*step.path).collect();
        format!("still runs after ten years, at {}", running.join(", "))
    }

    async fn played(&self, rest: Rest) -> Result<Played, String> {
        let (state, waiting) = match rest {
            Rest::Ended(state) => (*state, Vec::new()),
            Rest::Waits(state, waiting) => (*state, waiting),
        };
        let expired = self.world.expired_asks().await.map_err(|error| error.to_string())?;
        let unanswered = expired.iter().filter(|ask| !is_survived(ask, &state));
        let end = state.ended_at.unwrap_or_else(|| self.world.now());
        let took = Duration::from_millis(end.ms_since(state.header.created_at));
        let answers = || self.answers.iter().zip(1..);
        let mocks = self.case.mocks.all();
        Ok(Played {
            took,
            waiting,
            unanswered: unanswered.map(in_vain).collect(),
            misgiven: answers().filter_map(|(answer, number)| answer.problem(number)).collect(),
            refusals: answers().filter_map(|(answer, _)| answer.refusal()).collect(),
            refused: self.world.refused(),
            calls: mocks
                .flat_map(|(_, mock)| {
                    mock.calls().into_iter().map(|call| (call, mock.is_repeatable()))
                })
                .collect(),
            changes: self.changes.borrow().saturating_sub(self.before),
            state,
        })
    }
}

/// Returns true if an ask is that of a step which did not fail at the deadline.
fn is_survived(ask: &Ask, state: &ExecutionState) -> bool {
    let AskSubject::Step(asked) = &ask.subject else { return false };
    asked.execution_id.as_str() == EXECUTION
        && !state.steps.iter().any(|step| step.path == asked.path && step.error.is_some())
}

/// Returns what a step or a call waited for in vain, and how long.
fn in_vain(ask: &Ask) -> String {
    let end = ask.closed_at.unwrap_or(ask.opened_at);
    let waited = shown_time(Duration::from_millis(end.ms_since(ask.opened_at)));
    format!("{} waited {waited} for an answer and got none", name_of(ask))
}
