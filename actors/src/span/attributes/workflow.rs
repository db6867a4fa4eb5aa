//! What spans of executions say of themselves.

use crate::domain::ids::step_id_of;
use crate::span::{Span, SpanWork};

use super::Attributes;

/// Adds what is known of a span of an execution.
pub(super) fn describe(span: &Span, _content: bool, attributes: &mut Attributes) {
    match &span.work {
        SpanWork::Step { path, attempt, .. } => {
            attributes.push(("workflow.step.id", step_id_of(path).into()));
            attributes.push(("workflow.step.path", (&**path).into()));
            attributes.push(("workflow.step.attempt", (*attempt).into()));
        }
        SpanWork::Wait { path, reason } => {
            if let Some(path) = path {
                attributes.push(("workflow.step.id", step_id_of(path).into()));
                attributes.push(("workflow.step.path", (&**path).into()));
            }
            attributes.push(("workflow.suspension.reason", (&**reason).into()));
        }
        SpanWork::Workflow { .. }
        | SpanWork::Agent { .. }
        | SpanWork::Chat { .. }
        | SpanWork::Tool { .. }
        | SpanWork::Memory { .. } => {}
    }
}
