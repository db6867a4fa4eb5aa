//! Whom a resume is for.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::fact::{Fact, ResumedBy};
use crate::domain::ids::{StepPath, step_id_of};
use crate::domain::machine::command::{Decision, Refusal};
use crate::domain::machine::{Batch, Machine, Moment};
use crate::domain::state::Phase;
use crate::domain::status::Status;

/// The one thing that a resume answers.
enum Addressee {
    Hold,
    Node(StepPath),
}

impl Machine {
    /// Checks in the order: suspended, step, data.
    pub(super) fn resume(
        &mut self,
        step_id: Option<&str>,
        data: &Arc<Value>,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<Option<Decision>, Refusal> {
        let path = match self.addressee(step_id)? {
            Addressee::Hold => {
                self.lift_hold(Arc::clone(data), moment, batch);
                return Ok(None);
            }
            Addressee::Node(path) => path,
        };
        let Some((step, node)) = self.node(&path) else { return Err(Refusal::NotSuspended) };
        if let Some(child) = &node.child {
            let child = child.id.clone();
            return Ok(Some(Decision::Forward { path, child, data: Arc::clone(data) }));
        }
        if let Some(schema) = &step.resume_schema {
            schema.check(data).map_err(|violation| Refusal::InvalidData(violation.to_string()))?;
        }
        if self.state.hold.is_some() {
            self.lift_hold(Arc::new(Value::Null), moment, batch);
        } else if self.state.announced == Status::Suspended {
            self.record(Fact::WorkflowResumed, moment, batch);
        }
        self.record(Self::resumed(path, Arc::clone(data), ResumedBy::Caller), moment, batch);
        Ok(None)
    }

    pub(super) fn lift_hold(&mut self, data: Arc<Value>, moment: &Moment<'_>, batch: &mut Batch) {
        self.record(Fact::HoldLifted { data }, moment, batch);
        self.record(Fact::WorkflowResumed, moment, batch);
    }

    fn addressee(&self, step_id: Option<&str>) -> Result<Addressee, Refusal> {
        let Some(asked) = step_id else { return self.shown_addressee() };
        let waiting = self.answerable();
        if let Some(exact) = waiting.iter().find(|path| &***path == asked) {
            return Ok(Addressee::Node(Arc::clone(exact)));
        }
        let named: Vec<&StepPath> =
            waiting.iter().filter(|path| step_id_of(path) == asked).collect();
        match named.as_slice() {
            [only] => return Ok(Addressee::Node(Arc::clone(only))),
            [] => {}
            [..] => {
                let paths = named.iter().map(|path| &***path).collect::<Vec<_>>().join(", ");
                return Err(Refusal::Ambiguous { step: asked.to_owned(), paths });
            }
        }
        if self.state.announced != Status::Suspended {
            return Err(Refusal::NotSuspended);
        }
        let held_at =
            self.state.hold.as_ref().and_then(|hold| self.plan.steps.get(hold.step_index));
        if held_at.is_some_and(|step| &*step.id == asked) {
            return Ok(Addressee::Hold);
        }
        if self.plan.step(step_id_of(asked)).is_none() {
            return Err(Refusal::UnknownStep(asked.to_owned()));
        }
        Err(Refusal::StepNotSuspended(asked.to_owned()))
    }

    fn shown_addressee(&self) -> Result<Addressee, Refusal> {
        if self.state.announced != Status::Suspended {
            return Err(Refusal::NotSuspended);
        }
        if self.state.hold.is_some() {
            return Ok(Addressee::Hold);
        }
        let shown = self.state.shown_suspension(&self.plan);
        shown.map(|shown| Addressee::Node(shown.path)).ok_or(Refusal::NotSuspended)
    }

    /// Nodes that a caller may still answer: their deadline has not been recorded as passed.
    fn answerable(&self) -> Vec<StepPath> {
        let mut paths = Vec::new();
        if self.state.end.is_some() {
            return paths;
        }
        self.state.each_live_node(&self.plan, &mut |_, path, _, node| {
            if matches!(&node.phase, Phase::Waiting(wait) if !wait.fired) {
                paths.push(Arc::from(path));
            }
        });
        paths
    }
}
