//! Beginning again in the middle: what another execution takes from this one.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::fact::Replayed;
use crate::domain::ids::StepPath;
use crate::domain::machine::Machine;
use crate::domain::plan::{Call, Step, Work};
use crate::domain::state::Node;

/// Why an execution cannot be replayed from a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRefusal {
    UnknownStep(String),
    /// It is inside a block, or the steps before it have not all let the flow pass.
    NotReplayable(String),
    /// There is an answer, and nothing that asks.
    DoesNotSuspend(String),
    InvalidData(String),
}

impl Machine {
    /// What a new execution of the same definition takes with it to begin with this step: the
    /// nodes before it, and the answer for what the step will ask.
    pub fn replayed_from(
        &self,
        step_id: &str,
        answer: Option<Arc<Value>>,
    ) -> Result<Replayed, ReplayRefusal> {
        let Some(index) = self.plan.steps.iter().position(|step| &*step.id == step_id) else {
            let text = step_id.to_owned();
            let is_inside = self.plan.step(step_id).is_some();
            return Err(if is_inside {
                ReplayRefusal::NotReplayable(text)
            } else {
                ReplayRefusal::UnknownStep(text)
            });
        };
        let not_reached = || ReplayRefusal::NotReplayable(step_id.to_owned());
        let nodes = self.state.root.nodes.get(..index).ok_or_else(not_reached)?;
        if nodes.iter().any(|node| node.output().is_none()) {
            return Err(not_reached());
        }
        let step = self.plan.steps.get(index).ok_or_else(not_reached)?;
        if let Some(data) = &answer {
            check_answer(step, data)?;
        }
        Ok(Replayed {
            execution: self.state.id.clone(),
            step_id: Arc::clone(&step.id),
            nodes: nodes.iter().map(Node::to_be_stored).collect(),
            answer,
        })
    }

    /// What answers the question of the step at this path before it is asked.
    pub(super) fn answer_brought(&self, path: &StepPath) -> Option<Arc<Value>> {
        let replayed = self.state.start.replayed.as_ref();
        replayed.filter(|replayed| replayed.step_id == *path)?.answer.clone()
    }
}

fn check_answer(step: &Step, data: &Value) -> Result<(), ReplayRefusal> {
    // A function may ask from within; a tap may not.
    let may_ask_itself = matches!(step.work, Work::Call(Call::Function(_))) && !step.is_tap;
    if step.suspend.is_none() && !may_ask_itself {
        return Err(ReplayRefusal::DoesNotSuspend(step.id.to_string()));
    }
    let Some(schema) = &step.resume_schema else { return Ok(()) };
    schema.check(data).map_err(|violation| ReplayRefusal::InvalidData(violation.to_string()))
}
