//! What is logged of an execution, and the ids that everything carries that is logged for it.

use std::sync::Arc;

use crate::domain::fact::{Fact, Recorded};
use crate::domain::failure::ErrorClass;
use crate::domain::ids::ExecutionId;
use crate::observe::log_record::LogScope;
use crate::observe::trace::execution::attempt_span;
use crate::ports::store::Header;

/// The same for an attempt of a step.
pub(super) fn scope_of_attempt(
    scope: &LogScope,
    header: &Header,
    path: &str,
    attempt: u32,
) -> Arc<LogScope> {
    let span = attempt_span(&header.trace, &header.id, path, attempt);
    scope.at(span)
}

/// Tells of facts that are durable: failures always, the rest to whoever looks closely.
pub(super) fn log_facts(id: &ExecutionId, facts: &[Recorded]) {
    let is_looked_at = log::log_enabled!(log::Level::Debug);
    for Recorded { fact, .. } in facts {
        match fact {
            // Whatever writes records escapes what could begin another line.
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
                    "execution {id}: step {path} is cut off in attempt {attempt}; it runs again \
                     after the restart"
                );
            }
            _ if is_looked_at => log_course(id, fact),
            _ => {}
        }
    }
}

fn kind_of(class: Option<ErrorClass>) -> &'static str {
    class.map_or("unknown", |class| class.kind.as_str())
}

/// The turns that an execution takes; what its steps do is in its events.
fn log_course(id: &ExecutionId, fact: &Fact) {
    match fact {
        Fact::WorkflowStarted(_) => log::debug!("execution {id} started"),
        Fact::WorkflowSuspended { suspension, .. } => {
            log::debug!(reason:% = suspension.reason; "execution {id} suspended");
        }
        Fact::WorkflowResumed => log::debug!("execution {id} resumed"),
        Fact::WorkflowCompleted { .. } => log::debug!("execution {id} completed"),
        Fact::WorkflowCancelled { reason, .. } => {
            log::debug!(reason:%; "execution {id} cancelled");
        }
        _ => {}
    }
}
