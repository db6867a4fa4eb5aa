//! The command `StepFinished`: the end of a body.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::Assignee;
use crate::fact::{Fact, McpCall};
use crate::failure::AttemptFailure;
use crate::ids::StepPath;
use crate::machine::command::is_put_off;
use crate::machine::place::Site;
use crate::machine::{Batch, Machine, Moment};
use crate::plan::WorkClass;
use crate::question::Question;
use crate::state::Phase;
use crate::usage::Usage;

/// Outcome of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    Completed(Arc<Value>),
    Failed(AttemptFailure),
    Suspended {
        reason: Option<String>,
        payload: Option<Arc<Value>>,
    },
    /// The tool of the step asks a person.
    Asked(Box<ToolQuestion>),
}

/// Use of a body, known with its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    /// Tokens used by an agent; `None` if unknown.
    pub usage: Option<Usage>,
    /// Newest request to an MCP server.
    pub mcp: Option<Box<McpCall>>,
}

/// A question of the tool of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolQuestion {
    /// Text for people.
    pub reason: String,
    /// Users and roles that may answer.
    pub to: Vec<Assignee>,
    /// Time after which the step fails, in milliseconds.
    pub deadline_ms: Option<u64>,
    pub question: Arc<Question>,
}

impl Machine {
    /// Records the end of an attempt.
    pub(super) fn finish_step(
        &mut self,
        path: &StepPath,
        ended: (u32, &StepResult),
        spent: Spent,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        let fact = self.end_of_body(path, ended, spent, moment);
        if let Some(fact) = fact.filter(|_| !is_put_off(moment)) {
            self.record(fact, moment, batch);
        }
    }

    /// Returns the fact for the end of a body; `None` if it came too late.
    fn end_of_body(
        &self,
        path: &StepPath,
        (attempt, result): (u32, &StepResult),
        Spent { usage, mcp }: Spent,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let (step, node) = self.node(path)?;
        let is_current = node.phase == Phase::Running && node.attempt == attempt;
        let is_outside = match step.work.class() {
            WorkClass::Outside => true,
            // A child reports its end itself; only its timeout is applied here.
            WorkClass::Child => matches!(result, StepResult::Failed(_)),
            WorkClass::Pure | WorkClass::Container(_) | WorkClass::Timer => false,
        };
        if !is_current || !is_outside || self.state.end.is_some() {
            return None;
        }
        let site = Site::at(path, (step, node), moment);
        let mut fact = match result {
            StepResult::Completed(output) => self.completed_within_bounds(&site, output),
            StepResult::Failed(failure) => self.failed(&site, failure),
            StepResult::Suspended { reason, payload } => {
                self.suspended_itself(&site, reason.as_deref(), payload.clone())
            }
            StepResult::Asked(asked) => self.asked_by_tool(&site, asked),
        };
        if let Fact::StepCompleted { usage: used, .. } | Fact::StepFailed { usage: used, .. } =
            &mut fact
        {
            *used = usage.map(Box::new);
        }
        if let Fact::StepCompleted { mcp: made, .. }
        | Fact::StepFailed { mcp: made, .. }
        | Fact::StepSuspended { mcp: made, .. } = &mut fact
        {
            *made = mcp;
        }
        Some(fact)
    }
}
