//! Laws of answers about an execution: they show nothing that was outdated when it was asked for.

use std::sync::Arc;

use greenroom_actors::domain::fact::Fact;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{ControlError, ResumeError};
use tokio::time::Instant;

use crate::simulator::callers::Caller;
use crate::simulator::stage::Stage;

/// A request about an execution, in a world of several processes.
pub(crate) struct Asked(Option<Question>);

struct Question {
    stage: Arc<Stage>,
    id: ExecutionId,
    at: Instant,
    /// Last event that some process knew to be durable.
    known: Option<u64>,
}

impl Asked {
    pub(crate) fn now(caller: &Caller, id: &ExecutionId) -> Self {
        let stage = Arc::clone(&caller.stage);
        Self(caller.is_of_cluster.then(|| {
            let known = stage.book.known(id);
            Question { stage, id: id.clone(), at: Instant::now(), known }
        }))
    }

    /// Checks that a state has everything that was known when it was asked for.
    pub(crate) fn shows(&self, last_seq: u64) {
        let Some(Question { stage, id, known, .. }) = &self.0 else { return };
        stage.require(known.is_none_or(|known| known <= last_seq), || {
            format!("{id} is shown at {last_seq}, and {known:?} was known before")
        });
    }

    /// Checks that an execution that is not found was not known.
    pub(crate) fn finds_nothing(&self) {
        let Some(Question { stage, id, known, .. }) = &self.0 else { return };
        stage.require(known.is_none(), || format!("{id} is not found, and was known before"));
    }

    pub(crate) fn refuses_control(&self, error: &ControlError) {
        match error {
            ControlError::NotFound => self.finds_nothing(),
            ControlError::Already(status) => self.was(|it| it == *status, error),
            ControlError::Compensating | ControlError::Unavailable(_) => {}
        }
    }

    pub(crate) fn refuses_resume(&self, error: &ResumeError) {
        // a child may have been resumed already
        if *error == ResumeError::NotSuspended && !self.has_children() {
            self.was(|it| it != Status::Suspended, error);
        } else if *error == ResumeError::NotFound {
            self.finds_nothing();
        }
    }

    /// Checks that the execution had such a status at any time since it was asked.
    fn was(&self, is_it: impl Fn(Status) -> bool, error: &dyn std::fmt::Debug) {
        let Some(Question { stage, id, at, .. }) = &self.0 else { return };
        stage.require(stage.book.was(id, *at, is_it), || {
            format!("{error:?} is what {id} was not, from {at:?} on")
        });
    }

    fn has_children(&self) -> bool {
        let Some(Question { stage, id, .. }) = &self.0 else { return false };
        stage.facts(id).iter().any(|it| matches!(it.fact, Fact::ChildStarted { .. }))
    }
}
