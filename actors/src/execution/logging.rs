//! Log records of an execution, and the ids attached to them.

use std::sync::Arc;

use log::Level;

use crate::domain::assignment::Assignee;
use crate::domain::fact::{Fact, Recorded};
use crate::domain::failure::ErrorClass;
use crate::domain::ids::{ExecutionId, compensated_path};
use crate::domain::principal::Principal;
use crate::observe::log_record::LogScope;
use crate::observe::trace::execution::attempt_span;
use crate::ports::store::Header;

/// Returns the ids attached to log records of an attempt.
pub(super) fn scope_of_attempt(
    scope: &LogScope,
    header: &Header,
    path: &str,
    attempt: u32,
) -> Arc<LogScope> {
    let span = attempt_span(&header.trace, &header.id, path, attempt);
    scope.at(span)
}

/// Logs durable facts: failures, interruptions and cancellations always, other changes of status at
/// debug level. Steps are in the execution's events.
pub(super) fn log_facts(header: &Header, facts: &[Recorded]) {
    for Recorded { fact, by, .. } in facts {
        match (fact, &header.trace.via) {
            (Fact::WorkflowStarted(_), Some(via)) if header.trace.is_root() => {
                log::debug!(via:%; "execution {} started", header.id);
            }
            (Fact::WorkflowCancelled { reason, .. }, _) => {
                log_cancelled(header, reason, by.as_deref());
            }
            _ => log_fact(&header.id, fact),
        }
        warn_of_no_user(header, fact);
    }
}

/// Logs who cancelled an execution; of a child that its parent no longer needs, at debug level. The
/// record is deleted with the user who did it.
fn log_cancelled(header: &Header, reason: &str, by: Option<&Principal>) {
    let id = &header.id;
    let Some(by) = by else {
        let level = if header.parent.is_some() { Level::Debug } else { Level::Info };
        log::log!(level, reason:%; "execution {id} cancelled");
        return;
    };
    let scope = LogScope::current().unwrap_or_else(|| LogScope::of_execution(id));
    let user_id = Some(Arc::clone(&by.id));
    let scope = Arc::new(LogScope { user_id, ..LogScope::clone(&scope) });
    scope.within(|| log::info!(reason:%; "execution {id} cancelled by {}", by.id));
}

/// Warns of an ask that cannot exclude who started its execution.
fn warn_of_no_user(header: &Header, fact: &Fact) {
    if let Fact::StepSuspended { path, ask: Some(rules), .. } = fact
        && header.user_id.is_none()
        && rules.to.contains(&Assignee::NotSelf)
    {
        log::warn!(
            step:% = path;
            "execution {}: step {path} asks with !self, but the execution has no user: the one who started \
             it may answer",
            header.id
        );
    }
}

fn log_fact(id: &ExecutionId, fact: &Fact) {
    match fact {
        // The logger escapes control characters that could begin another line.
        Fact::WorkflowFailed { error, step_id: Some(step), path, class, .. } => {
            let (place, kind) = (path.as_ref().unwrap_or(step), kind_of(*class));
            log::warn!(
                step:% = place, kind;
                "execution {id} failed at step {step}: {error}"
            );
        }
        Fact::WorkflowFailed { error, step_id: None, class, .. } => {
            log::warn!(kind = kind_of(*class); "execution {id} failed: {error}");
        }
        Fact::StepFailed { path, attempt, error, class, .. } => {
            log::info!(
                step:% = path, attempt, kind = kind_of(*class);
                "execution {id}: step {path} failed in attempt {attempt}: {error}"
            );
        }
        Fact::StepReleased { path, attempt, .. } => {
            log::info!(
                step:% = path, attempt;
                "execution {id}: attempt {attempt} of step {path} was interrupted; it runs again"
            );
        }
        Fact::WorkflowStarted(_) => log::debug!("execution {id} started"),
        Fact::WorkflowSuspended { suspension, .. } => {
            log::debug!(reason:% = suspension.reason; "execution {id} suspended");
        }
        Fact::WorkflowResumed => log::debug!("execution {id} resumed"),
        Fact::CompensationStarted { outcome } => match (outcome.why(), outcome.cancel_reason()) {
            (Some(why), None) => {
                log::warn!("execution {id} compensates its completed steps: {why}");
            }
            (Some(why), Some(_)) => {
                log::info!("execution {id} compensates its completed steps: {why}");
            }
            (None, _) => log::debug!("execution {id} compensates the steps of an earlier one"),
        },
        Fact::StepSuspended { path, reason, .. } if compensated_path(path).is_some() => {
            log::warn!(
                step:% = path;
                "execution {id}: {reason}; it waits for an answer, retry or skip: greenroom inbox \
                 list --kind compensation"
            );
        }
        Fact::StepCompleted { path, skipped: true, .. } => {
            log::info!(step:% = path; "execution {id}: {path} was skipped; not all is undone");
        }
        Fact::WorkflowCompleted { .. } => log::debug!("execution {id} completed"),
        // in the events only, or logged with who did it
        Fact::WorkflowCancelled { .. }
        | Fact::StepStarted { .. }
        | Fact::StepCompleted { .. }
        | Fact::StepNoted { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepSuspended { .. }
        | Fact::StepResumed { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::ChildSuspended { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. } => {}
    }
}

fn kind_of(class: Option<ErrorClass>) -> &'static str {
    class.map_or("unknown", |class| class.kind.as_str())
}
