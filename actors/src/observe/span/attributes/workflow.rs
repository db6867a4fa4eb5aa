//! Attributes of spans of executions.

use std::sync::Arc;

use serde_json::Value;

use super::agent::{
    OPERATION_NAME, OTHER_ERROR, USAGE_INPUT, USAGE_OUTPUT, WORKFLOW_NAME, describe_mcp,
};
use super::{AttributeValue, Attributes, content_text};
use crate::domain::ids::{StepPath, step_id_of};
use crate::domain::principal::Principal;
use crate::domain::usage::Usage;
use crate::observe::span::{CANCELLED, INTERRUPTED, Span, SpanStatus, SpanWork};

/// Adds the attributes of an execution's span.
pub(super) fn describe(span: &Span, content: bool, attributes: &mut Attributes) {
    match &span.work {
        SpanWork::Workflow { input, output, replayed_by, cancelled_by } => {
            let (_, workflow) = span.owner.entity();
            attributes.push((OPERATION_NAME, "invoke_workflow".into()));
            attributes.push((WORKFLOW_NAME, workflow.into()));
            add_value("workflow.input", input, content, attributes);
            add_value("workflow.output", output, content, attributes);
            name_principal(REPLAYED_BY, replayed_by.as_ref(), attributes);
            name_principal(CANCELLED_BY, cancelled_by.as_ref(), attributes);
        }
        SpanWork::Step { path, attempt, output, usage, mcp } => {
            name_step(path, attributes);
            attributes.push(("workflow.step.attempt", (*attempt).into()));
            if let Some(usage) = usage {
                count_tokens(usage, attributes);
            }
            if let Some(request) = mcp {
                describe_mcp(request, attributes);
            }
            add_value("workflow.step.output", output, content, attributes);
        }
        SpanWork::Wait { path, reason, id, suspended_by, resumed_by, by_deadline } => {
            if let Some(path) = path {
                name_step(path, attributes);
            }
            attributes.push(("workflow.suspension.reason", (&**reason).into()));
            if let Some(id) = id {
                attributes.push(("workflow.suspension.id", (&**id).into()));
            }
            name_principal(SUSPENDED_BY, suspended_by.as_ref(), attributes);
            name_principal(RESUMED_BY, resumed_by.as_ref(), attributes);
            if *by_deadline {
                attributes.push(("workflow.resumed_by.deadline", "true".into()));
            }
        }
        SpanWork::Agent { .. }
        | SpanWork::Chat { .. }
        | SpanWork::Tool { .. }
        | SpanWork::Memory { .. } => {}
    }
    if let SpanStatus::Error(message) = &span.status {
        let refused = match &span.work {
            SpanWork::Step { mcp: Some(request), .. } => request.error_code,
            _ => None,
        };
        let kind = match refused {
            Some(code) => AttributeValue::Text(code.to_string()),
            None => error_type(message).into(),
        };
        attributes.push(("error.type", kind));
    }
}

/// Keys of an id, and of whether a token proved it.
type PrincipalKeys = (&'static str, &'static str);

const REPLAYED_BY: PrincipalKeys = ("workflow.replayed_by.id", "workflow.replayed_by.verified");
const CANCELLED_BY: PrincipalKeys = ("workflow.cancelled_by.id", "workflow.cancelled_by.verified");
const SUSPENDED_BY: PrincipalKeys = ("workflow.suspended_by.id", "workflow.suspended_by.verified");
const RESUMED_BY: PrincipalKeys = ("workflow.resumed_by.id", "workflow.resumed_by.verified");

fn name_principal(
    (id_key, verified_key): PrincipalKeys,
    by: Option<&Arc<Principal>>,
    attributes: &mut Attributes,
) {
    if let Some(by) = by {
        attributes.push((id_key, (&*by.id).into()));
        let verified = if by.verified { "true" } else { "false" };
        attributes.push((verified_key, verified.into()));
    }
}

fn name_step(path: &StepPath, attributes: &mut Attributes) {
    attributes.push(("workflow.step.id", step_id_of(path).into()));
    attributes.push(("workflow.step.path", (&**path).into()));
}

fn count_tokens(usage: &Usage, attributes: &mut Attributes) {
    attributes.push((USAGE_INPUT, usage.prompt_tokens.into()));
    attributes.push((USAGE_OUTPUT, usage.completion_tokens.into()));
}

fn add_value(
    key: &'static str,
    value: &Option<Arc<Value>>,
    content: bool,
    attributes: &mut Attributes,
) {
    if let Some(value) = value.as_ref().filter(|_| content) {
        attributes.push((key, content_text(value)));
    }
}

/// Returns the class of a failure, of low cardinality.
fn error_type(message: &str) -> &'static str {
    let is_of = |word: &str| {
        message
            .strip_prefix(word)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
    };
    if is_of(CANCELLED) {
        "cancelled"
    } else if is_of(INTERRUPTED) {
        "interrupted"
    } else if is_of("timed out") || is_of("deadline passed") {
        "timeout"
    } else {
        OTHER_ERROR
    }
}
