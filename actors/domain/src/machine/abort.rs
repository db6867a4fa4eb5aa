//! The command `Abort`: fails an execution that cannot make progress.

use std::sync::Arc;

use crate::fact::Fact;
use crate::failure::{ErrorClass, ErrorKind};
use crate::machine::{Batch, Machine, Moment};

impl Machine {
    /// Fails the execution with an error of the runtime, unless it has ended. A compensation that
    /// is under way ends with it.
    pub(super) fn abort(
        &mut self,
        error: Arc<str>,
        kind: ErrorKind,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        if self.state.end.is_none() {
            self.cancel_all_nodes(moment, batch);
            let since = self.state.created_at;
            let (step_id, path) = (None, None);
            let class = Some(ErrorClass::of(kind));
            let failed = Fact::WorkflowFailed { since, error, step_id, path, class };
            self.record(self.concluded(failed), moment, batch);
        }
    }
}
