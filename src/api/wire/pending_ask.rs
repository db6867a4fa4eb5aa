//! Open asks of a suspended generation, and answers to them.

use greenroom_actors::agent::{AgentDefinition, PendingAsk};
use greenroom_actors::ports::store::AskKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object as Schema;

use crate::api::json::{Closed, Object, present};
use crate::api::wire::Iso;
use crate::api::wire::inbox::AskOptions;
use crate::api::wire::shape::{one_of, optional_object};

/// An open ask of a call of a tool.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PendingAsk)]
#[serde(rename_all = "camelCase")]
pub struct PendingAskView<'a> {
    ask_id: &'a str,
    #[schema(schema_with = kind_of_call)]
    kind: &'static str,
    /// The call that waits; if a sub-agent asks, the one that asks the sub-agent.
    tool_call_id: &'a str,
    tool_name: &'a str,
    /// Arguments of the call.
    input: &'a Value,
    /// Text for people: the request, or the question.
    reason: &'a str,
    /// JSON Schema of the answer; not for approvals.
    schema: Option<&'a Value>,
    deadline: Option<Iso>,
}

impl<'a> PendingAskView<'a> {
    /// Shows an open ask.
    pub fn of(ask: &'a PendingAsk) -> Self {
        Self {
            ask_id: &ask.ask_id,
            kind: ask.kind.as_str(),
            tool_call_id: ask.waiting_call(),
            tool_name: &ask.tool_name,
            input: &ask.input,
            reason: &ask.reason,
            schema: ask.schema.as_ref(),
            deadline: ask.deadline.map(Iso),
        }
    }

    /// Shows the open asks of a generation.
    pub fn all(asks: &'a [PendingAsk]) -> Vec<Self> {
        asks.iter().map(Self::of).collect()
    }
}

fn kind_of_call() -> Schema {
    one_of([AskKind::Approval, AskKind::Input].map(AskKind::as_str))
}

/// Body of an answer about a call.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CallApproval)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveBody {
    /// The call that waits, as in `asks` of the generation.
    pub tool_call_id: String,
    pub approved: bool,
    /// Reason of the decision, for the model and people.
    #[serde(default)]
    pub reason: Option<String>,
    /// Other arguments for the call, if the tool lets people edit them.
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = optional_object)]
    pub input: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<AskOptions>)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for ApproveBody {
    const KEYS: &'static [&'static str] =
        &["toolCallId", "approved", "reason", "input", "options", "options.userId"];
}

/// Form of requests of approvals in chats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalForm {
    /// States of tools, which clients know since version 6 of the AI SDK.
    #[default]
    States,
    /// Data parts, which all clients pass on.
    Data,
}

impl ApprovalForm {
    /// Returns the form for the chats of an agent.
    pub fn of(agent: &AgentDefinition) -> Self {
        if agent.has_data_approvals { Self::Data } else { Self::States }
    }
}

/// A data part of a chat about an ask. A part with the same id replaces it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatDataPart)]
pub struct DataPart<'a, T> {
    /// Id of the ask.
    id: &'a str,
    data: T,
}

/// Type of a data part with a question.
const ASK_PART: &str = "data-ask";

/// Type of a data part with a request of an approval.
const APPROVAL_PART: &str = "data-approval";

/// An open question of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiAskPart)]
pub struct UiAsk<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = ask_part_kind)]
    kind: &'static str,
    #[serde(flatten)]
    part: DataPart<'a, AskData<'a>>,
}

/// An open request of an approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiApprovalPart)]
pub struct UiApprovalRequest<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = approval_part_kind)]
    kind: &'static str,
    #[serde(flatten)]
    part: DataPart<'a, ApprovalData<'a>>,
}

impl<'a> UiAsk<'a> {
    /// Shows a question.
    pub fn of(ask: &'a PendingAsk) -> Self {
        Self { kind: ASK_PART, part: DataPart::asking(ask) }
    }
}

impl<'a> UiApprovalRequest<'a> {
    /// Shows a request.
    pub fn of(ask: &'a PendingAsk) -> Self {
        Self { kind: APPROVAL_PART, part: DataPart::approving(ask) }
    }
}

fn ask_part_kind() -> Schema {
    one_of([ASK_PART])
}

fn approval_part_kind() -> Schema {
    one_of([APPROVAL_PART])
}

/// A question of a tool to the user of a chat.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatAsk)]
#[serde(rename_all = "camelCase")]
pub struct AskData<'a> {
    ask_id: &'a str,
    tool_call_id: &'a str,
    question: &'a str,
    /// JSON Schema of the answer.
    schema: Option<&'a Value>,
}

/// A request of an approval to the user of a chat.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatApproval)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalData<'a> {
    ask_id: &'a str,
    tool_call_id: &'a str,
    tool_name: &'a str,
    input: &'a Value,
    reason: &'a str,
}

/// A refusal of an answer in a message of a chat; what it was to is asked again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatAnswerRefused)]
#[serde(rename_all = "camelCase")]
pub struct RefusalData<'a> {
    ask_id: &'a str,
    tool_call_id: &'a str,
    message: &'a str,
}

/// A data part that clients pass on and do not keep.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatTransientPart)]
pub struct TransientPart<T> {
    data: T,
    transient: bool,
}

impl<'a> TransientPart<RefusalData<'a>> {
    /// Shows why the answer to an ask was refused, if it was.
    pub fn refusal(ask: &'a PendingAsk) -> Option<Self> {
        let message = ask.refused.as_deref()?;
        let data = RefusalData { ask_id: &ask.ask_id, tool_call_id: ask.waiting_call(), message };
        Some(Self { data, transient: true })
    }
}

impl<'a> DataPart<'a, AskData<'a>> {
    /// Shows a question.
    pub fn asking(ask: &'a PendingAsk) -> Self {
        let data = AskData {
            ask_id: &ask.ask_id,
            tool_call_id: ask.waiting_call(),
            question: &ask.reason,
            schema: ask.schema.as_ref(),
        };
        Self { id: &ask.ask_id, data }
    }
}

impl<'a> DataPart<'a, ApprovalData<'a>> {
    /// Shows a request of an approval.
    pub fn approving(ask: &'a PendingAsk) -> Self {
        let data = ApprovalData {
            ask_id: &ask.ask_id,
            tool_call_id: ask.waiting_call(),
            tool_name: &ask.tool_name,
            input: &ask.input,
            reason: &ask.reason,
        };
        Self { id: &ask.ask_id, data }
    }
}
