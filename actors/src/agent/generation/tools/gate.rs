//! Decides whether a call needs the approval of a person.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::agent::ask::{Approval, CallApproval, OnCrash, OnTimeout, Remember, ToolAsk, When};
use crate::agent::outcome::PendingAsk;
use crate::agent::tool::ToolDefinition;
use crate::domain::assignment::Assignee;
use crate::domain::effort::{Budget, within};
use crate::domain::expression::Scope;
use crate::domain::failure::shortened;
use crate::domain::hash::canonical_hash;
use crate::ports::store::ASK_REASON_BYTES_MAX;

/// The reason why a call waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Waiting {
    Approval(ApprovalAsk),
    /// The tool's own question.
    Input(ToolAsk),
    /// The generation of a sub-agent, which is suspended.
    Child {
        generation_id: Arc<str>,
        asks: Vec<PendingAsk>,
    },
}

impl Waiting {
    /// Returns the number of asks that the call waits for.
    pub(crate) fn asks(&self) -> usize {
        match self {
            Self::Approval(_) | Self::Input(_) => 1,
            Self::Child { asks, .. } => asks.len(),
        }
    }
}

/// A request of an approval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApprovalAsk {
    pub(crate) reason: String,
    pub(crate) to: Vec<Assignee>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) on_timeout: OnTimeout,
    pub(crate) is_editable: bool,
    /// Schema of the tool, as a hash, if the approval of a person counts for the conversation.
    pub(crate) remembered_schema: Option<Arc<str>>,
    /// Subject of the approval, if the tool has asked for it.
    pub(crate) subject: Option<Arc<str>>,
    /// Permission that those who approve need.
    pub(crate) permission: Option<Arc<str>>,
    /// True if an earlier attempt of the call was interrupted.
    pub(crate) is_repetition: bool,
}

/// Returns the approval that a call with these arguments needs, if any.
pub(crate) fn approval_of(
    tool: &ToolDefinition,
    arguments: &Value,
    context: &Arc<Map<String, Value>>,
) -> Option<ApprovalAsk> {
    let approval = tool.approval.as_deref()?;
    let scope = scope(arguments, context);
    is_needed(approval, arguments, context, &scope).then(|| ApprovalAsk {
        reason: reason_of(tool, approval, &scope),
        to: approval.to.clone(),
        deadline: approval.deadline,
        on_timeout: approval.on_timeout.unwrap_or_default(),
        is_editable: approval.is_editable,
        remembered_schema: remembered_schema(tool),
        subject: None,
        permission: None,
        is_repetition: false,
    })
}

/// Returns the hash of the tool's schema if an approval of a call counts for the conversation.
pub(super) fn remembered_schema(tool: &ToolDefinition) -> Option<Arc<str>> {
    let is_remembered = tool.approval.as_ref()?.remember == Remember::Chat;
    // a schema that cannot be written has no hash, and its calls are asked about each time
    let hash = is_remembered.then(|| canonical_hash(&tool.spec.parameters));
    hash?.ok().map(Arc::from)
}

/// Returns the approval that an interrupted call needs to be made again, if its tool asks for one.
pub(super) fn approval_after_crash(tool: &ToolDefinition) -> Option<ApprovalAsk> {
    (tool.on_crash == OnCrash::Ask).then(|| {
        let name = &tool.spec.name;
        let approval = tool.approval.as_deref();
        ApprovalAsk {
            reason: format!(
                "A restart interrupted a call of {name}, which may have had its effect. Call it again?"
            ),
            to: approval.map(|approval| approval.to.clone()).unwrap_or_default(),
            deadline: approval.and_then(|approval| approval.deadline),
            on_timeout: OnTimeout::Refuse,
            is_editable: false,
            // the repetition alone is approved
            remembered_schema: None,
            subject: None,
            permission: None,
            is_repetition: true,
        }
    })
}

/// Returns the approval that a tool asks for when it is called.
pub(super) fn approval_for(needed: CallApproval) -> ApprovalAsk {
    let CallApproval { reason, subject, to, deadline, permission } = needed;
    ApprovalAsk {
        reason: shortened(&reason, ASK_REASON_BYTES_MAX).to_owned(),
        to,
        deadline,
        on_timeout: OnTimeout::Refuse,
        is_editable: false,
        remembered_schema: None,
        subject: Some(subject),
        permission,
        is_repetition: false,
    }
}

fn scope(arguments: &Value, context: &Arc<Map<String, Value>>) -> Scope {
    let user = context.get("user").cloned().map(Arc::new);
    Scope::new()
        .with("args", Arc::new(arguments.clone()))
        .with("context", Arc::new(Value::Object(Map::clone(context))))
        .with_optional("user", user)
}

/// Evaluates the condition. Where that fails or costs too much, a person decides.
fn is_needed(
    approval: &Approval,
    arguments: &Value,
    context: &Map<String, Value>,
    scope: &Scope,
) -> bool {
    match &approval.when {
        When::Always => true,
        When::Expression(expression) => {
            let (holds, effort) = within(&Budget::turn(), || expression.holds(scope));
            effort.is_exceeded || holds.unwrap_or(true)
        }
        When::Function(function) => {
            catch_unwind(AssertUnwindSafe(|| function(arguments, context))).unwrap_or(true)
        }
    }
}

fn reason_of(tool: &ToolDefinition, approval: &Approval, scope: &Scope) -> String {
    let rendered = approval.reason.as_ref().and_then(|template| {
        let (rendered, effort) = within(&Budget::turn(), || template.render(scope));
        rendered.ok().filter(|text| !effort.is_exceeded && !text.trim().is_empty())
    });
    let reason = rendered.unwrap_or_else(|| format!("Call of the tool {}", tool.spec.name));
    shortened(&reason, ASK_REASON_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::tool::ToolBody;
    use crate::ports::model::ToolSpec;

    fn tool(approval: Approval) -> ToolDefinition {
        let spec = ToolSpec {
            name: "refund".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        };
        let made = ToolDefinition::new(spec, ToolBody::AskUser).unwrap();
        ToolDefinition { approval: Some(Arc::new(approval)), ..made }
    }

    #[test]
    fn calls_are_asked_about_when_their_condition_holds_or_cannot_be_evaluated() {
        let over = || Approval::when("args.amount > 100").unwrap();
        let rows = [
            (Approval::always(), json!({}), true),
            (over(), json!({ "amount": 101 }), true),
            (over(), json!({ "amount": 100 }), false),
            (over(), json!({ "amount": "much" }), true),
            (over(), json!({}), true),
            (Approval::when_fn(|args, _| args["amount"] == 7), json!({ "amount": 7 }), true),
            (Approval::when_fn(|args, _| args["amount"] == 7), json!({ "amount": 8 }), false),
            (Approval::when_fn(|_, _| panic!("no")), json!({}), true),
        ];
        for (approval, arguments, expected) in rows {
            let tool = tool(approval);
            let asked = approval_of(&tool, &arguments, &Arc::default());
            assert_eq!(asked.is_some(), expected, "{arguments}");
        }
    }

    #[test]
    fn a_reason_is_rendered_or_names_the_tool() {
        let rows = [
            ("Refund {{ args.amount }} for {{ user.name }}", "Refund 5 for Ann"),
            ("{{ args.missing.deeper }}", "Call of the tool refund"),
            ("  ", "Call of the tool refund"),
        ];
        let context = json!({ "user": { "name": "Ann" } });
        let context = Arc::new(context.as_object().cloned().unwrap());
        for (template, expected) in rows {
            let tool = tool(Approval::always().reason(template).unwrap());
            let asked = approval_of(&tool, &json!({ "amount": 5 }), &context).unwrap();
            assert_eq!(asked.reason, expected);
        }
    }
}
