//! Children of compensations: those of one compensation run one after the other, also if an earlier
//! attempt or another execution has started one.

use std::sync::Arc;

use actix::Context;
use tokio::sync::oneshot;

use crate::commands::ExecutionCommand;
use crate::domain::fact::Parent;
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{ChildCall, ChildReport};
use crate::execution::ExecutionActor;
use crate::requests::{DescribeError, StartError, Unavailable};
use crate::shared::Shared;

impl ExecutionActor {
    /// Starts a child once those of earlier attempts have ended. One of them may still be undoing what
    /// it did, after a timeout.
    pub(super) fn start_after_earlier(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        ctx: &mut Context<Self>,
    ) {
        let (shared, earlier) = (Arc::clone(&self.shared), call.earlier.clone());
        let have_ended = async move { have_ended(&shared, earlier).await };
        let (path, call) = (Arc::clone(path), call.clone());
        self.background_query(have_ended, ctx, move |actor, have_ended, ctx| {
            if !actor.is_current(&path, attempt) {
                return;
            }
            if have_ended {
                actor.start_now(&path, attempt, &call, ctx);
            } else {
                actor.retry_child_later(&path, attempt, ctx);
            }
        });
    }

    /// Takes the report of a child that was started or queried. One that another execution started to
    /// undo the same reports to that one alone, so it is queried until its end.
    pub(super) fn take_report(
        &mut self,
        path: &StepPath,
        attempt: u32,
        report: ChildReport,
        ctx: &mut Context<Self>,
    ) {
        let own = Parent { execution: self.id.clone(), path: Arc::clone(path) };
        let parent = report.parent.as_ref();
        if !own.may_use_child_of(parent) {
            let error = StartError::Exists(report.child).to_string();
            let failure = AttemptFailure::new(ErrorKind::Workflow, error);
            self.fail_attempt(path, attempt, failure, ctx);
        } else if parent == Some(&own) || report.status.is_end() {
            self.began_child(path, attempt, report.began);
            self.on_child_report(Arc::clone(path), report, ctx);
            self.limit_child(path, attempt, ctx);
        } else {
            self.retry_child_later(path, attempt, ctx);
        }
    }
}

/// Returns true if none of these children runs, nor what one of them left behind; the newest is first.
/// Those before one that was started had ended by then.
async fn have_ended(shared: &Shared, children: Vec<ExecutionId>) -> bool {
    for child in children {
        let mut open = vec![child];
        let mut is_known = false;
        while let Some(child) = open.pop() {
            let (answer, reply) = oneshot::channel();
            shared.deliver(child, ExecutionCommand::Report { answer });
            match reply.await {
                Ok(Ok(report)) if report.status.is_end() => open.extend(report.abandoned),
                Ok(Err(
                    DescribeError::NotFound | DescribeError::Unavailable(Unavailable::Corrupt(_)),
                )) => continue,
                Ok(Ok(_) | Err(DescribeError::Unavailable(_))) | Err(_) => return false,
            }
            is_known = true;
        }
        if is_known {
            break;
        }
    }
    true
}
