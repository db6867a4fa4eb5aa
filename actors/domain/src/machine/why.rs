//! Causes of waiting: since when, until when, and what would end it.
//!
//! Derived from the state and from what this process has registered, without changing either. The
//! machine does not know the outside: whether a child exists, or whether a timer is stored.

use std::cell::RefCell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effort::within;
use crate::failure::AttemptError;
use crate::ids::{ExecutionId, StepPath, step_generation_id};
use crate::machine::timer::answer_at_deadline;
use crate::machine::{Machine, Moment};
use crate::note::CallStage;
use crate::plan::{Step, WorkClass};
use crate::principal::Principal;
use crate::state::{Node, Phase, Wait};
use crate::time::Timestamp;

/// Something that an execution waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Awaited {
    /// `None` if it concerns the whole execution.
    pub step_id: Option<Arc<str>>,
    /// `None` for a step of a block that has not begun, and so has no path yet.
    pub path: Option<StepPath>,
    pub since: Timestamp,
    /// Time at which the wait ends without a command.
    pub until: Option<Timestamp>,
    pub cause: Cause,
}

/// Cause of a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Cause {
    /// A caller paused the execution: a resume without a step ends the pause.
    Hold { suspension_id: Arc<str>, reason: Arc<str>, by: Option<Arc<Principal>> },
    /// A step is suspended.
    Resume {
        suspension_id: Arc<str>,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        /// Schema of the resume data.
        schema: Option<Value>,
        /// Effect of the deadline, if there is one.
        deadline: Option<AtDeadline>,
        /// The replay that began the execution brought resume data of one who is not asked.
        #[serde(default)]
        has_unused_answer: bool,
    },
    /// Answers to what the generation of an agent step asks.
    Asks { suspension_id: Arc<str>, reason: Arc<str>, payload: Option<Arc<Value>> },
    /// A child execution, which runs or is suspended.
    Child { child: ExecutionId, workflow: Arc<str>, asks: Option<ChildQuestion> },
    /// An andSleep or andSleepUntil step.
    Sleep,
    /// The delay before the next attempt.
    Retry { failures: u32, attempts_max: u32, errors: Vec<AttemptError> },
    /// A running body.
    Body {
        attempt: u32,
        timeout_ms: Option<u64>,
        /// Name of the tool that it calls, for a step that calls one.
        #[serde(default)]
        tool: Option<Arc<str>>,
        /// Progress of the call of the tool.
        #[serde(default)]
        stage: CallStage,
        /// Generation of the agent, for a step that runs one.
        #[serde(default)]
        generation: Option<Arc<str>>,
    },
    /// Something that this process does not have registered.
    Missing { what: String },
    /// An attempt that was interrupted, and has not started again.
    Interrupted { attempt: u32 },
    /// This process, which has not resumed the execution since its start.
    Turn,
    /// This process, which is deciding or recording the next facts.
    Deciding,
    /// The shutdown of this process: nothing new starts before the restart.
    Draining,
    /// The process that serves the execution, which cannot be asked; `None`: the next one, which takes
    /// it over.
    Elsewhere { server: Option<Arc<str>> },
}

impl Cause {
    /// Returns true for a wait that is recorded, so that any process can tell it.
    pub fn is_recorded(&self) -> bool {
        match self {
            Self::Hold { .. }
            | Self::Resume { .. }
            | Self::Asks { .. }
            | Self::Child { .. }
            | Self::Sleep
            | Self::Retry { .. } => true,
            Self::Body { .. }
            | Self::Missing { .. }
            | Self::Interrupted { .. }
            | Self::Turn
            | Self::Deciding
            | Self::Draining
            | Self::Elsewhere { .. } => false,
        }
    }
}

/// Effect of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AtDeadline {
    /// The step fails.
    Fails,
    /// The step is resumed with the value of `on_timeout`.
    Resumes,
}

/// The suspension that a child shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildQuestion {
    pub suspension_id: Arc<str>,
    pub reason: Arc<str>,
    pub payload: Option<Arc<Value>>,
}

impl Machine {
    /// Returns everything that the execution waits for; empty if it has ended. `is_draining`: the
    /// process starts nothing new.
    pub fn waits_for(&self, moment: &Moment<'_>, is_draining: bool) -> Vec<Awaited> {
        let mut found = Vec::new();
        if self.state.end.is_some() {
            return found;
        }
        if let Some(hold) = &self.state.hold {
            let step = self.plan.steps.get(hold.step_index).map(|step| Arc::clone(&step.id));
            let cause = Cause::Hold {
                suspension_id: Arc::clone(&hold.id),
                reason: Arc::clone(&hold.reason),
                by: hold.by.clone(),
            };
            let path = step.clone();
            found.push(Awaited { step_id: step, path, since: hold.since, until: None, cause });
        }
        self.state.each_node(&self.plan, &mut |_, path, step, node| {
            if let Some((cause, until)) = self.cause_of((path, step), node, moment, is_draining) {
                found.push(Awaited {
                    step_id: Some(Arc::clone(&step.id)),
                    path: Some(Arc::from(path)),
                    since: node.phase_since.max(node.attempt_started_at),
                    until,
                    cause,
                });
            }
        });
        if self.state.hold.is_none() {
            self.add_blocked_steps(&mut found, moment, is_draining);
        }
        found
    }

    /// Returns what a node waits for; `None` for a container, whose inner nodes wait.
    fn cause_of(
        &self,
        (path, step): (&str, &Step),
        node: &Node,
        moment: &Moment<'_>,
        is_draining: bool,
    ) -> Option<(Cause, Option<Timestamp>)> {
        match &node.phase {
            Phase::Waiting(wait) => {
                let has_unused_answer = self.has_unused_answer(path, wait.ask.as_deref());
                Some(cause_of_wait(step, node, wait, has_unused_answer))
            }
            Phase::Sleeping { fired: true, .. } | Phase::Ready => {
                self.blocked(step, moment, is_draining).map(|cause| (cause, None))
            }
            Phase::Sleeping { until, retry: false, .. } => Some((Cause::Sleep, Some(*until))),
            Phase::Sleeping { until, retry: true, .. } => {
                let cause = Cause::Retry {
                    failures: node.failures,
                    attempts_max: step.retry.as_ref().map_or(1, |retry| retry.policy.attempts),
                    errors: node.errors.clone(),
                };
                Some((cause, Some(*until)))
            }
            Phase::Running => self.cause_of_work((path, step), node, moment, is_draining),
            Phase::Completed { .. } | Phase::Failed { .. } | Phase::Skipped | Phase::Cancelled => {
                None
            }
        }
    }

    fn cause_of_work(
        &self,
        (path, step): (&str, &Step),
        node: &Node,
        moment: &Moment<'_>,
        is_draining: bool,
    ) -> Option<(Cause, Option<Timestamp>)> {
        let attempt = node.attempt;
        if step.work.class() == WorkClass::Child {
            let child = node.child.as_ref()?;
            let (child, workflow) = (child.id.clone(), Arc::clone(&child.workflow));
            let until = step.timeout_ms.map(|ms| node.phase_since.plus_ms(ms));
            return Some((Cause::Child { child, workflow, asks: None }, until));
        }
        if step.work.class() != WorkClass::Outside {
            return None;
        }
        let interrupted =
            if is_draining { Cause::Draining } else { Cause::Interrupted { attempt } };
        let absent = (moment.missing)(step).filter(|_| !is_draining);
        let cause = match absent {
            Some(what) => Cause::Missing { what },
            None if self.unrecovered => interrupted,
            None => {
                let timeout_ms = step.timeout_ms;
                let until = timeout_ms.map(|ms| node.attempt_started_at.plus_ms(ms));
                let tool = step.work.tool().map(Arc::clone);
                let stage = CallStage::of(node.noted.as_deref());
                let is_agent = step.work.agent().is_some();
                let generation = is_agent
                    .then(|| step_generation_id(&self.state.id, path, node.failures).into());
                let cause = Cause::Body { attempt, timeout_ms, tool, stage, generation };
                return Some((cause, until));
            }
        };
        Some((cause, None))
    }

    fn blocked(&self, step: &Step, moment: &Moment<'_>, is_draining: bool) -> Option<Cause> {
        let what = (moment.missing)(step)?;
        Some(if is_draining { Cause::Draining } else { Cause::Missing { what } })
    }

    /// Adds the steps that would begin now if nothing were missing, and a [`Cause::Turn`] if a
    /// [`Command::Recover`](crate::machine::Command::Recover) would record anything.
    fn add_blocked_steps(&self, found: &mut Vec<Awaited>, moment: &Moment<'_>, is_draining: bool) {
        // The machine calls `missing` wherever it would begin a step.
        let asked = RefCell::new(Vec::new());
        let missing = |step: &Step| {
            let what = (moment.missing)(step)?;
            asked.borrow_mut().push((Arc::clone(&step.id), what.clone()));
            Some(what)
        };
        let moment = Moment { missing: &missing, ..*moment };
        let (next, effort) = within(moment.budget, || self.next_fact(&moment));
        let has_next = next.is_some() || effort.is_exceeded;
        for (step_id, what) in asked.into_inner() {
            if found.iter().any(|known| known.step_id.as_ref() == Some(&step_id)) {
                continue;
            }
            let is_top = self.plan.steps.iter().any(|step| step.id == step_id);
            let cause = if is_draining { Cause::Draining } else { Cause::Missing { what } };
            found.push(Awaited {
                path: is_top.then(|| Arc::clone(&step_id)),
                step_id: Some(step_id),
                since: self.state.updated_at,
                until: None,
                cause,
            });
        }
        if has_next {
            let (since, cause) = (self.state.updated_at, Cause::Turn);
            found.push(Awaited { step_id: None, path: None, since, until: None, cause });
        }
    }
}

fn cause_of_wait(
    step: &Step,
    node: &Node,
    wait: &Wait,
    has_unused_answer: bool,
) -> (Cause, Option<Timestamp>) {
    let suspension_id = Arc::clone(&wait.id);
    if let Some(child) = &node.child {
        let (reason, payload) = (Arc::clone(&wait.reason), wait.payload.clone());
        let cause = Cause::Child {
            child: child.id.clone(),
            workflow: Arc::clone(&child.workflow),
            asks: Some(ChildQuestion { suspension_id, reason, payload }),
        };
        return (cause, wait.deadline);
    }
    if step.waits_for_generation(node.attempt) {
        let (reason, payload) = (Arc::clone(&wait.reason), wait.payload.clone());
        return (Cause::Asks { suspension_id, reason, payload }, wait.deadline);
    }
    let at_deadline = match answer_at_deadline(step, node) {
        Some(_) => AtDeadline::Resumes,
        None => AtDeadline::Fails,
    };
    let schema = match node.question() {
        Some(question) => question.schema.clone(),
        None => step.resume_schema.as_ref().map(|schema| schema.source().clone()),
    };
    let cause = Cause::Resume {
        suspension_id,
        reason: Arc::clone(&wait.reason),
        payload: wait.payload.clone(),
        schema,
        deadline: wait.deadline.map(|_| at_deadline),
        has_unused_answer,
    };
    (cause, wait.deadline)
}
