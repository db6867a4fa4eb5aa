//! Attributes of spans of generations.
//!
//! Names are those of the GenAI conventions of 2026
//! (<https://github.com/open-telemetry/semantic-conventions-genai>), with those for MCP. These are in
//! development, so all of their names are in this file, including those for spans of workflows.

use serde_json::{Value, json};

use super::{AttributeValue, Attributes, content_text};
use crate::domain::message::{ToolCall, ToolOutcome};
use crate::domain::usage::Usage;
use crate::observe::span::{MemoryOperation, Owner, Span, SpanStatus, SpanWork};
use crate::ports::model::{FinishReason, Served};
use crate::ports::store::{
    AskedWith, GenerationRecord, GenerationStatus, GenerationStep, McpCall, TurnTiming,
};

const JSONRPC_REQUEST_ID: &str = "jsonrpc.request.id";
const MCP_METHOD_NAME: &str = "mcp.method.name";
const MCP_PROTOCOL_VERSION: &str = "mcp.protocol.version";
const MCP_SESSION_ID: &str = "mcp.session.id";
const NETWORK_TRANSPORT: &str = "network.transport";
const RPC_STATUS_CODE: &str = "rpc.response.status_code";
const SERVER_ADDRESS: &str = "server.address";
const SERVER_PORT: &str = "server.port";
const AGENT_NAME: &str = "gen_ai.agent.name";
const CONVERSATION_ID: &str = "gen_ai.conversation.id";
const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
const PROVIDER_NAME: &str = "gen_ai.provider.name";
const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
const REQUEST_MODEL: &str = "gen_ai.request.model";
const REQUEST_STREAM: &str = "gen_ai.request.stream";
const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
const RESPONSE_ID: &str = "gen_ai.response.id";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const RESPONSE_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
const TOOL_NAME: &str = "gen_ai.tool.name";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub(super) const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
/// True if a call was not made because it was refused. Not of the conventions.
const TOOL_CALL_DENIED: &str = "greenroom.tool.call.denied";
pub(super) const WORKFLOW_NAME: &str = "gen_ai.workflow.name";

/// Error type of the conventions for unclassified errors.
pub(super) const OTHER_ERROR: &str = "_OTHER";

pub(super) fn chat_name(turn: &GenerationStep) -> String {
    match &turn.timing.served {
        Some(served) => format!("chat {}", served.model),
        None => "chat".to_owned(),
    }
}

pub(super) fn tool_name(turn: &GenerationStep, call: usize) -> String {
    match turn.tool_calls.get(call) {
        Some(call) => format!("execute_tool {}", call.tool_name),
        None => "execute_tool".to_owned(),
    }
}

pub(super) fn memory_name(operation: MemoryOperation) -> &'static str {
    match operation {
        MemoryOperation::Read => "search_memory",
        MemoryOperation::Write => "update_memory",
    }
}

/// Adds the attributes of a generation's span.
pub(super) fn describe(span: &Span, content: bool, attributes: &mut Attributes) {
    let Owner::Generation(record) = &span.owner else { return };
    if let Some(origin) = &record.origin {
        attributes.push(("workflow.execution.id", origin.execution_id.as_str().into()));
        attributes.push(("workflow.step.path", (&*origin.path).into()));
    }
    attributes.push((AGENT_NAME, record.agent_id.as_str().into()));
    if let Some(conversation) = &record.conversation_id {
        attributes.push((CONVERSATION_ID, conversation.as_str().into()));
    }
    let error = match &span.work {
        SpanWork::Agent { usage } => {
            attributes.push((OPERATION_NAME, "invoke_agent".into()));
            count_tokens(usage.as_ref(), attributes);
            if content {
                add_content(record, attributes);
            }
            kind_of_end(record).into()
        }
        SpanWork::Chat { turn, .. } => {
            describe_chat(turn, content, attributes);
            turn.timing.error.as_ref().map_or(OTHER_ERROR, |error| error.kind.as_str()).into()
        }
        SpanWork::Tool { call, turn } => {
            describe_call(turn, *call, content, attributes);
            let refused = mcp_call(turn, *call).and_then(|request| request.error_code);
            match (turn.result_of(*call), refused) {
                (Some(_), Some(code)) => AttributeValue::Text(code.to_string()),
                (Some(_), None) => "tool_error".into(),
                (None, _) => kind_of_end(record).into(),
            }
        }
        SpanWork::Memory { operation } => {
            attributes.push((OPERATION_NAME, memory_name(*operation).into()));
            OTHER_ERROR.into()
        }
        SpanWork::Workflow { .. } | SpanWork::Step { .. } | SpanWork::Wait { .. } => return,
    };
    if matches!(span.status, SpanStatus::Error(_)) {
        attributes.push(("error.type", error));
    }
}

fn kind_of_end(record: &GenerationRecord) -> &'static str {
    match record.status {
        GenerationStatus::Cancelled => "cancelled",
        GenerationStatus::Working
        | GenerationStatus::Suspended
        | GenerationStatus::Completed
        | GenerationStatus::Error => OTHER_ERROR,
    }
}

fn describe_chat(turn: &GenerationStep, content: bool, attributes: &mut Attributes) {
    let TurnTiming { chat, first_piece, asked_with, served, error, .. } = &turn.timing;
    attributes.push((OPERATION_NAME, "chat".into()));
    if let Some(served) = served {
        describe_server(served, attributes);
    }
    let AskedWith { is_stream, temperature, max_output_tokens, top_p } = asked_with;
    let floats = [(REQUEST_TEMPERATURE, temperature), (REQUEST_TOP_P, top_p)];
    attributes.extend(
        floats.into_iter().filter_map(|(name, it)| Some((name, AttributeValue::Float((*it)?)))),
    );
    attributes.extend(max_output_tokens.map(|most| (REQUEST_MAX_TOKENS, most.into())));
    if *is_stream {
        attributes.push((REQUEST_STREAM, AttributeValue::Bool(true)));
    }
    if let (Some(chat), Some(first)) = (chat, first_piece) {
        let ms = u32::try_from(first.ms_since(chat.start)).unwrap_or(u32::MAX);
        let seconds = AttributeValue::Float(f64::from(ms) / 1000.0);
        attributes.push((RESPONSE_TIME_TO_FIRST_CHUNK, seconds));
    }
    if error.is_none() {
        let reason = finish_reason(turn.finish_reason).to_owned();
        attributes.push((RESPONSE_FINISH_REASONS, AttributeValue::Texts(vec![reason])));
        count_tokens(Some(&turn.usage), attributes);
    }
    if content {
        attributes.push((OUTPUT_MESSAGES, content_text(&answer_of(turn))));
    }
}

fn describe_server(served: &Served, attributes: &mut Attributes) {
    let Served {
        model,
        provider,
        server,
        port,
        response_id,
        response_model,
        failed_attempts,
        instead_of,
    } = served;
    // a model without a provider is its own provider
    let provider = provider.as_ref().unwrap_or(model);
    attributes.push((PROVIDER_NAME, provider_name(provider).into()));
    attributes.push((REQUEST_MODEL, (&**model).into()));
    let texts = [
        (RESPONSE_ID, response_id.as_deref()),
        (RESPONSE_MODEL, response_model.as_deref()),
        (SERVER_ADDRESS, server.as_deref()),
        ("agent.model.instead_of", instead_of.as_deref()),
    ];
    attributes.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text?.into()))));
    if let Some(port) = port {
        attributes.push((SERVER_PORT, u32::from(*port).into()));
    }
    if *failed_attempts > 0 {
        attributes.push(("agent.model.failed_attempts", (*failed_attempts).into()));
    }
}

/// Returns the conventions' name of a provider.
fn provider_name(provider: &str) -> &str {
    match provider {
        "gemini" => "gcp.gemini",
        "xai" => "x_ai",
        other => other,
    }
}

fn describe_call(turn: &GenerationStep, call: usize, content: bool, attributes: &mut Attributes) {
    attributes.push((OPERATION_NAME, "execute_tool".into()));
    let Some(ToolCall { tool_call_id, tool_name, input }) = turn.tool_calls.get(call) else {
        return;
    };
    attributes.push((TOOL_NAME, tool_name.as_str().into()));
    attributes.push((TOOL_CALL_ID, tool_call_id.as_str().into()));
    attributes.push((TOOL_TYPE, "function".into()));
    if let Some(request) = mcp_call(turn, call) {
        describe_mcp(request, attributes);
    }
    let outcome = turn.result_of(call).map(|result| &result.outcome);
    if let Some(ToolOutcome::Denied(_)) = outcome {
        attributes.push((TOOL_CALL_DENIED, AttributeValue::Bool(true)));
    }
    if !content {
        return;
    }
    attributes.push((TOOL_CALL_ARGUMENTS, content_text(input)));
    if let Some(ToolOutcome::Output(output)) = outcome {
        attributes.push((TOOL_CALL_RESULT, content_text(output)));
    }
}

fn mcp_call(turn: &GenerationStep, call: usize) -> Option<&McpCall> {
    turn.timing.mcp.iter().find(|(number, _)| *number == call).map(|(_, request)| request)
}

/// Adds what the conventions of MCP want of the span of a tool whose call is a request to a server.
pub(super) fn describe_mcp(request: &McpCall, attributes: &mut Attributes) {
    let McpCall {
        is_http,
        server,
        port,
        protocol_version,
        session_id,
        request_id,
        tool,
        error_code,
    } = request;
    attributes.push((MCP_METHOD_NAME, "tools/call".into()));
    attributes.push((NETWORK_TRANSPORT, if *is_http { "tcp" } else { "pipe" }.into()));
    let texts = [
        (TOOL_NAME, tool),
        (MCP_PROTOCOL_VERSION, protocol_version),
        (MCP_SESSION_ID, session_id),
        (JSONRPC_REQUEST_ID, request_id),
        (SERVER_ADDRESS, server),
    ];
    attributes.extend(
        texts.into_iter().filter_map(|(name, text)| Some((name, (&**text.as_ref()?).into()))),
    );
    attributes.extend(port.map(|port| (SERVER_PORT, u32::from(port).into())));
    let code = error_code.map(|code| AttributeValue::Text(code.to_string()));
    attributes.extend(code.map(|code| (RPC_STATUS_CODE, code)));
}

fn count_tokens(usage: Option<&Usage>, attributes: &mut Attributes) {
    let Some(usage) = usage else { return };
    attributes.push((USAGE_INPUT, usage.prompt_tokens.into()));
    attributes.push((USAGE_OUTPUT, usage.completion_tokens.into()));
    let rare =
        [(USAGE_REASONING, usage.reasoning_tokens), (USAGE_CACHE_READ, usage.cached_input_tokens)];
    let rare = rare.into_iter().filter(|(_, tokens)| *tokens > 0);
    attributes.extend(rare.map(|(name, tokens)| (name, tokens.into())));
}

fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::ToolCalls => "tool_call",
        FinishReason::Error => "error",
        FinishReason::Other => "other",
    }
}

/// Adds input and output of a run.
fn add_content(record: &GenerationRecord, attributes: &mut Attributes) {
    match &record.input {
        Value::Null => {}
        Value::String(text) => {
            attributes.push((INPUT_MESSAGES, content_text(&message("user", text))));
        }
        // messages of the caller, verbatim
        messages => attributes.push((INPUT_MESSAGES, content_text(messages))),
    }
    match &record.output {
        None => {}
        Some(Value::String(text)) => {
            attributes.push((OUTPUT_MESSAGES, content_text(&message("assistant", text))));
        }
        Some(object) => {
            let text = object.to_string();
            attributes.push((OUTPUT_MESSAGES, content_text(&message("assistant", &text))));
        }
    }
}

fn message(role: &str, text: &str) -> Value {
    json!([{ "role": role, "parts": [{ "type": "text", "content": text }] }])
}

/// Returns the model's answer of a turn in the form of the conventions.
fn answer_of(turn: &GenerationStep) -> Value {
    let GenerationStep { text, reasoning, tool_calls, finish_reason: reason, .. } = turn;
    let texts = [("reasoning", reasoning), ("text", text)];
    let texts = texts.into_iter().filter(|(_, content)| !content.is_empty());
    let texts = texts.map(|(kind, content)| json!({ "type": kind, "content": content }));
    let calls = tool_calls.iter().map(|ToolCall { tool_call_id, tool_name, input }| {
        json!({ "type": "tool_call", "id": tool_call_id, "name": tool_name, "arguments": input })
    });
    let parts: Vec<Value> = texts.chain(calls).collect();
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason(*reason) }])
}
