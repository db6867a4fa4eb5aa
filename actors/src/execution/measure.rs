//! Metrics of an execution, taken when its facts are durable.

use std::time::Duration;

use crate::domain::fact::{Fact, Recorded};
use crate::execution::LiveExecution;
use crate::ports::meter::Meter;

impl LiveExecution {
    /// Reports facts, and suspensions that end with them, to the meter.
    pub(super) fn measure(&mut self, meter: &dyn Meter, facts: &[Recorded]) {
        meter.recorded(&self.header, facts);
        for Recorded { fact, at, .. } in facts {
            if matches!(fact, Fact::WorkflowSuspended { .. }) {
                self.suspended_at = Some(*at);
            } else if (matches!(fact, Fact::WorkflowResumed) || fact.end().is_some())
                && let Some(since) = self.suspended_at.take()
            {
                meter.waited(&self.header, Duration::from_millis(at.ms_since(since)));
            }
        }
    }
}
