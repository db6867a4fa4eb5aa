//! The command `TimerFired`: the timer of a node is due.

use std::sync::Arc;

use crate::expression::CompiledMapping;
use crate::fact::{Fact, ResumedBy};
use crate::failure::{AttemptFailure, ErrorKind};
use crate::ids::StepPath;
use crate::machine::place::Site;
use crate::machine::scope::Named;
use crate::machine::{Batch, Machine, Moment};
use crate::plan::Step;
use crate::state::Node;

impl Machine {
    /// Records that the timer of a node fired; does nothing before it is due.
    pub(super) fn fire_timer(&mut self, path: StepPath, moment: &Moment<'_>, batch: &mut Batch) {
        let Some((_, node)) = self.node(&path) else { return };
        let is_due = node.armed_timer().is_some_and(|due| due <= moment.now);
        if is_due && self.state.end.is_none() {
            self.record(Fact::TimerFired { path }, moment, batch);
        }
    }

    /// Returns the consequence of a passed deadline: a resume by `on_timeout`, or a failure.
    pub(super) fn timed_out(&self, site: &Site<'_>) -> Fact {
        let Site { step, node, moment, .. } = *site;
        let Some(answer) = answer_at_deadline(step, node) else {
            let failure = AttemptFailure::new(ErrorKind::Deadline, "deadline passed");
            return self.failed_finally(site, &failure);
        };
        let scope = self.scope_at(site, Named::by(|name| answer.uses(name)));
        let passed = AttemptFailure::new(ErrorKind::Deadline, "deadline passed");
        let data = answer.evaluate(&scope).map_err(|error| passed.and_then("on_timeout", &error));
        let checked = data.and_then(|data| {
            let made = self.check_made(&data, moment);
            let valid = made.and_then(|()| match &step.resume_schema {
                Some(schema) => schema.check(&data).map_err(|bad| bad.to_string()),
                None => Ok(()),
            });
            valid.map(|()| data).map_err(|problem| {
                let message = format!("{passed}; on_timeout: {problem}");
                AttemptFailure { message, ..passed.clone() }
            })
        });
        match checked {
            Ok(data) => Self::resumed(site.path(), node, Arc::new(data), ResumedBy::Deadline),
            Err(failure) => self.failed_finally(site, &failure),
        }
    }
}

/// Returns the answer that a waiting step gets at its deadline. Questions of its tool have none.
pub(super) fn answer_at_deadline<'a>(step: &'a Step, node: &Node) -> Option<&'a CompiledMapping> {
    let rule = step.suspend.as_ref().filter(|_| node.question().is_none());
    rule?.on_timeout.as_ref()
}
