//! The command `Resume`: finds the suspension that it ends, checks the data, records the end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assignment::{Answerer, AskRules};
use crate::fact::{Fact, ResumedBy};
use crate::ids::{StepPath, step_id_of};
use crate::machine::command::{Decision, Refusal};
use crate::machine::{Batch, Machine, Moment};
use crate::principal::Principal;
use crate::state::{Node, hashed_suspension_id};
use crate::status::Status;

/// Maximum number of suspensions that a refusal lists.
const NAMED_MAX: usize = 10;

/// A resume by a caller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// Id or path of the step to resume.
    pub step_id: Option<String>,
    /// Id of the suspension to end; the resume is refused if that has ended.
    pub suspension_id: Option<String>,
    pub data: Arc<Value>,
    pub by: Option<Arc<Principal>>,
    /// Caller that has to be among those who are asked. `None` resumes in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerer: Option<Arc<Answerer>>,
    /// Rules of the ask as they are now, once they are known.
    #[serde(skip)]
    pub rules: Option<Arc<AskRules>>,
    /// True if the asks of the step's generation are answered. Only this ends a wait for them, and it
    /// leaves a pause as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_generation: bool,
    #[serde(skip)]
    pub own_check: OwnCheck,
}

/// The program's own check of an answer. Set by the process that decides the resume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnCheck {
    #[default]
    NotNeeded,
    /// The resume is handed back with [`Decision::Check`] once everything else allows it.
    Needed,
    Passed,
}

/// The suspension that a resume ends.
enum Addressee {
    Hold,
    Node(StepPath),
}

impl Machine {
    /// Resumes a step or a paused execution. Checks, in this order: suspended, step, suspension,
    /// assignment, data, the program's own check.
    pub(super) fn resume(
        &mut self,
        resume: Resume,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<Option<Decision>, Refusal> {
        let path = match self.addressee(&resume)? {
            Addressee::Hold => {
                if let Some(hold) = self.state.hold.as_ref()
                    && resume.own_check == OwnCheck::Needed
                {
                    return Ok(Some(own_check(None, &hold.id, resume)));
                }
                batch.by = resume.by;
                self.lift_hold(resume.data, moment, batch);
                return Ok(None);
            }
            Addressee::Node(path) => path,
        };
        let Some((step, node)) = self.node(&path) else { return Err(Refusal::NotSuspended) };
        let waits_for_generation = step.waits_for_generation(node.attempt);
        if waits_for_generation && !resume.is_of_generation {
            return Err(Refusal::AsksOpen(path));
        }
        if let Some(answerer) = &resume.answerer {
            match &resume.rules {
                Some(rules) => self.check_asked(rules, answerer)?,
                None => return Ok(admission(node, resume)),
            }
        }
        if let Some(child) = &node.child {
            let child = child.id.clone();
            let suspension_id = self.suspension_of_child(&path, node);
            let resume = Resume { step_id: None, suspension_id, rules: None, ..resume };
            return Ok(Some(Decision::Forward { path, child, resume }));
        }
        let question = node.question().cloned();
        let has_own_check = waits_for_generation || question.is_some();
        let schema = step.resume_schema.as_ref().filter(|_| !has_own_check);
        if let Some(schema) = schema {
            let checked = schema.check(&resume.data);
            checked.map_err(|violation| Refusal::InvalidData(violation.to_string()))?;
        }
        if let Some(question) = question {
            question.check(&resume.data).map_err(Refusal::InvalidData)?;
        }
        if let Some(wait) = node.wait()
            && resume.own_check == OwnCheck::Needed
        {
            return Ok(Some(own_check(Some(path), &wait.id, resume)));
        }
        let Resume { data, by, is_of_generation, .. } = resume;
        let resumed = Self::resumed(Arc::clone(&path), node, data, ResumedBy::Caller);
        batch.by = by;
        if self.state.hold.is_some() {
            // its asks may have ended by their deadline, or long ago: no caller ends the pause
            if !is_of_generation {
                self.lift_hold(Arc::new(Value::Null), moment, batch);
            }
        } else if self.state.announced == Status::Suspended {
            self.record(Fact::WorkflowResumed, moment, batch);
        }
        self.record(resumed, moment, batch);
        Ok(None)
    }

    fn check_asked(&self, rules: &AskRules, answerer: &Answerer) -> Result<(), Refusal> {
        let Answerer { user, roles } = answerer;
        let owner = self.state.start.user_id.as_deref();
        let is_asked = rules.admits(user.as_deref(), roles, owner);
        if is_asked { Ok(()) } else { Err(Refusal::NotAssigned) }
    }

    /// Creates the fact that ends the suspension of a node.
    pub(super) fn resumed(path: StepPath, node: &Node, data: Arc<Value>, by: ResumedBy) -> Fact {
        Fact::StepResumed { path, data, by, id: node.wait_id() }
    }

    pub(super) fn lift_hold(&mut self, data: Arc<Value>, moment: &Moment<'_>, batch: &mut Batch) {
        self.record(Fact::HoldLifted { data }, moment, batch);
        self.record(Fact::WorkflowResumed, moment, batch);
    }

    fn addressee(&self, resume: &Resume) -> Result<Addressee, Refusal> {
        let Resume { step_id, suspension_id, .. } = resume;
        match (step_id.as_deref(), suspension_id.as_deref()) {
            (None, None) => self.only_waiting(),
            (Some(step), None) => {
                let named = self.named(step)?;
                one_of(step, named)
            }
            (None, Some(id)) if self.is_of_hold(id) => Ok(Addressee::Hold),
            (None, Some(id)) => self.of_suspension(id, self.answerable()),
            (Some(step), Some(id)) => match self.named(step)? {
                Suspensions::Hold if self.is_of_hold(id) => Ok(Addressee::Hold),
                Suspensions::Hold => Err(self.passed(id)),
                Suspensions::Nodes(paths) => self.of_suspension(id, paths),
            },
        }
    }

    /// Returns the suspension for a resume that names none: the pause if there is one, otherwise
    /// the only step that waits.
    fn only_waiting(&self) -> Result<Addressee, Refusal> {
        if self.state.announced != Status::Suspended {
            return Err(Refusal::NotSuspended);
        }
        if self.state.hold.is_some() {
            return Ok(Addressee::Hold);
        }
        match self.answerable().as_slice() {
            [] => Err(Refusal::NotSuspended),
            [only] => Ok(Addressee::Node(Arc::clone(only))),
            several => Err(Refusal::SeveralWait { paths: enumerated(several) }),
        }
    }

    fn is_of_hold(&self, id: &str) -> bool {
        self.state.hold.as_ref().is_some_and(|hold| *hold.id == *id)
    }

    /// Returns the node among these whose suspension has this id.
    fn of_suspension(&self, id: &str, among: Vec<StepPath>) -> Result<Addressee, Refusal> {
        let is_it = |path: &StepPath| {
            let wait = self.node(path).and_then(|(_, node)| node.wait());
            wait.is_some_and(|wait| *wait.id == *id)
        };
        among.into_iter().find(is_it).map(Addressee::Node).ok_or_else(|| self.passed(id))
    }

    fn passed(&self, id: &str) -> Refusal {
        if self.state.announced != Status::Suspended {
            return Refusal::NotSuspended;
        }
        let mut waiting = self.state.suspensions(&self.plan);
        waiting.truncate(NAMED_MAX);
        Refusal::SuspensionPassed { id: id.to_owned(), waiting }
    }

    /// Returns the child's id of the suspension that this node shows. A suspension recorded without
    /// an id got one here, which the child does not know.
    fn suspension_of_child(&self, path: &str, node: &Node) -> Option<String> {
        let wait = node.wait()?;
        let named_here = hashed_suspension_id(&self.state.id, path, node.asked);
        (wait.id != named_here).then(|| wait.id.to_string())
    }

    /// Returns the suspensions that an id or path of a step refers to.
    fn named(&self, asked: &str) -> Result<Suspensions, Refusal> {
        let waiting = self.answerable();
        if let Some(exact) = waiting.iter().find(|path| &***path == asked) {
            return Ok(Suspensions::Nodes(vec![Arc::clone(exact)]));
        }
        let named: Vec<StepPath> =
            waiting.into_iter().filter(|path| step_id_of(path) == asked).collect();
        if !named.is_empty() {
            return Ok(Suspensions::Nodes(named));
        }
        if self.state.announced != Status::Suspended {
            return Err(Refusal::NotSuspended);
        }
        let held_at =
            self.state.hold.as_ref().and_then(|hold| self.plan.steps.get(hold.step_index));
        if held_at.is_some_and(|step| &*step.id == asked) {
            return Ok(Suspensions::Hold);
        }
        if self.plan.step(step_id_of(asked)).is_none() {
            return Err(Refusal::UnknownStep(asked.to_owned()));
        }
        Err(Refusal::StepNotSuspended(asked.to_owned()))
    }

    /// Returns the nodes that a caller can still resume: their deadline is not recorded as passed.
    fn answerable(&self) -> Vec<StepPath> {
        let mut paths = Vec::new();
        if self.state.end.is_some() {
            return paths;
        }
        self.state.each_live_node(&self.plan, &mut |_, path, _, node| {
            if node.wait().is_some_and(|wait| !wait.fired) {
                paths.push(Arc::from(path));
            }
        });
        paths
    }
}

/// Returns the question who is asked now, about the suspension that the resume ends.
fn admission(node: &Node, resume: Resume) -> Option<Decision> {
    let wait = node.wait()?;
    let (suspension_id, opened_with) = (Arc::clone(&wait.id), wait.ask.clone());
    let named = Some(suspension_id.to_string());
    let resume = Resume { step_id: None, suspension_id: named, ..resume };
    Some(Decision::Admit { suspension_id, opened_with, resume })
}

/// Returns the question whether the program lets the answer to this suspension pass.
fn own_check(path: Option<StepPath>, suspension: &Arc<str>, resume: Resume) -> Decision {
    // the rules are looked at again, since the check may take its time
    let resume = Resume {
        step_id: None,
        suspension_id: Some(suspension.to_string()),
        rules: None,
        own_check: OwnCheck::Passed,
        ..resume
    };
    Decision::Check { path, suspension_id: Arc::clone(suspension), resume }
}

/// Suspensions that a step refers to: at least one node, or the pause at that step.
enum Suspensions {
    Hold,
    Nodes(Vec<StepPath>),
}

fn one_of(step: &str, named: Suspensions) -> Result<Addressee, Refusal> {
    match named {
        Suspensions::Hold => Ok(Addressee::Hold),
        Suspensions::Nodes(paths) => match paths.as_slice() {
            [only] => Ok(Addressee::Node(Arc::clone(only))),
            several => {
                let paths = enumerated(several);
                Err(Refusal::Ambiguous { step: step.to_owned(), paths })
            }
        },
    }
}

fn enumerated(paths: &[StepPath]) -> String {
    let named: Vec<&str> = paths.iter().take(NAMED_MAX).map(|path| &**path).collect();
    let more = paths.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", named.join(", "))
}
