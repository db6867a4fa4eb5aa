//! Approvals of calls in UI messages.

use greenroom_actors::domain::message::{ToolApproval, ToolOutcome};
use serde_json::{Map, Value};

/// Reason for the refusal of a call that was passed over.
const PASSED_OVER: &str = "not approved: the user went on";

/// Reads the approval of a tool part; `None` if it has none.
pub(super) fn read(part: &Map<String, Value>, tool_call_id: &str) -> Option<ToolApproval> {
    let approval = part.get("approval")?;
    let text = |key: &str| approval.get(key).and_then(Value::as_str).map(str::to_owned);
    let approved = approval.get("approved").and_then(Value::as_bool);
    let reason = text("reason").or_else(|| approved.is_none().then(|| PASSED_OVER.to_owned()));
    Some(ToolApproval {
        approval_id: text("id").filter(|id| !id.is_empty())?,
        tool_call_id: tool_call_id.to_owned(),
        approved: Some(approved.unwrap_or(false)),
        reason,
    })
}

/// Returns the outcome of a call that was refused.
pub(super) fn denial(approval: &ToolApproval) -> Option<ToolOutcome> {
    let reason = match (approval.approved, &approval.reason) {
        (Some(true), _) => return None,
        (_, Some(reason)) if reason == PASSED_OVER => reason.clone(),
        (_, Some(reason)) => format!("refused: {reason}"),
        (_, None) => "refused".to_owned(),
    };
    Some(ToolOutcome::Denied(reason))
}
