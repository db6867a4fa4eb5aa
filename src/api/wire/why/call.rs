//! Calls of tools in explanations.

use greenroom_actors::wait_report::{AwaitedCall, CallStage};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::Iso;
use crate::api::wire::shape::one_of;

/// All values of `stage`.
pub const CALL_STAGES: [&str; 4] = ["works", "queued", "follows", "asks"];

/// Stage of the call of a tool.
fn call_stage() -> Object {
    one_of(CALL_STAGES)
}

/// Calls that the message of a wait names.
const NAMED_MAX: usize = 3;

/// Call of a tool by the agent of a step, which has no result so far.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AwaitedCall)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedCallView<'a> {
    pub tool_call_id: &'a str,
    /// Name of the tool; that of a tool of an MCP server begins with the server's.
    pub tool: &'a str,
    /// `queued`: it waits for a place among the concurrent calls of its tool. `follows`: the tool
    /// follows what it has begun elsewhere, such as a task of an MCP server. `asks`: a person is asked.
    #[schema(schema_with = call_stage)]
    pub stage: &'static str,
    /// Description for people.
    pub message: String,
    /// Time at which it was begun, if that is recorded.
    pub since: Option<Iso>,
}

impl<'a> AwaitedCallView<'a> {
    pub(super) fn of(call: &'a AwaitedCall) -> Self {
        Self {
            tool_call_id: &call.tool_call_id,
            tool: &call.tool,
            stage: match call.stage {
                CallStage::Works => "works",
                CallStage::WaitsForPlace => "queued",
                CallStage::Follows => "follows",
                CallStage::Asks => "asks",
            },
            message: doing(&call.tool, call.stage),
            since: call.since.map(Iso),
        }
    }
}

/// Says what a step or an agent does with a tool.
pub(super) fn doing(tool: &str, stage: CallStage) -> String {
    match stage {
        CallStage::Works => format!("calls the tool {tool}"),
        CallStage::WaitsForPlace => {
            format!("waits for a place among the concurrent calls of the tool {tool}")
        }
        CallStage::Follows => format!("follows what the tool {tool} has begun elsewhere"),
        CallStage::Asks => format!("waits for an answer about its call of the tool {tool}"),
    }
}

/// Says what the agent of an attempt does, which makes these calls; `None` without calls.
pub(super) fn doing_all(calls: &[AwaitedCall]) -> Option<String> {
    let named = calls.iter().take(NAMED_MAX).map(|call| doing(&call.tool, call.stage));
    let named: Vec<_> = named.collect();
    let more = match calls.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}
