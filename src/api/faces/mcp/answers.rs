//! Answers to clients of MCP.

use std::borrow::Cow;
use std::collections::BTreeMap;

use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::event::{EventKind, events_of};
use greenroom_actors::domain::fact::{Fact, Recorded, Suspension};
use greenroom_actors::domain::failure::ErrorKind;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::requests::{AskDetail, ExecutionState};
use serde_json::{Map, Value, json};

use super::ServedFace;
use super::message::{LEGACY, MODERN, Request, TASKS, code};
use super::question::Question;
use super::run_state::RunState;
use super::tokens::Run;
use super::tools::Tool;
use crate::api::wire::Iso;

/// Time for which clients may keep a list, in milliseconds: tools change when the configuration is
/// edited.
const LIST_TTL_MS: u64 = 60_000;

/// Interval at which clients should look after a task, in milliseconds.
const POLL_MS: u64 = 1_000;

/// Message of a task that failed through the server.
const BROKEN: &str = "the server failed or was interrupted; its log has the reason";

/// Members of a result.
pub type Members = Map<String, Value>;

/// Returns the message with a result.
pub fn answered(request: &Request, mut result: Members) -> Value {
    if !request.is_legacy() {
        if !result.contains_key("resultType") {
            result.insert("resultType".to_owned(), json!("complete"));
        }
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/serverInfo"] = identity();
    }
    json!({ "jsonrpc": "2.0", "id": request.id, "result": result })
}

fn identity() -> Value {
    json!({ "name": "greenroom", "version": env!("CARGO_PKG_VERSION") })
}

pub(super) fn members(value: Value) -> Members {
    match value {
        Value::Object(members) => members,
        _ => Members::new(),
    }
}

/// Answers `server/discover`.
pub fn discovered(request: &Request, server: &ServedFace) -> Members {
    // older clients get nothing later
    let mut capabilities = capabilities(server);
    capabilities["tools"] = json!({ "listChanged": true });
    if server.has_resources {
        capabilities["resources"] = json!({ "subscribe": true });
    }
    capabilities["extensions"] = json!({ TASKS: {} });
    let found = json!({ "supportedVersions": [MODERN], "capabilities": capabilities });
    cached(request, members(found), "public")
}

fn capabilities(server: &ServedFace) -> Value {
    if server.has_resources {
        json!({ "tools": {}, "resources": {} })
    } else {
        json!({ "tools": {} })
    }
}

/// Answers `initialize` with the version that the client asks for, or the next older one, which it
/// knows rather than a newer one; else with the newest with a handshake.
pub fn initialized(request: &Request, server: &ServedFace) -> Members {
    let asked = request.params.get("protocolVersion").and_then(Value::as_str);
    let is_known = |known: &&str| asked.is_some_and(|asked| *known <= asked);
    let version = LEGACY.into_iter().find(is_known).unwrap_or(LEGACY[0]);
    members(json!({
        "protocolVersion": version,
        "capabilities": capabilities(server),
        "serverInfo": identity(),
    }))
}

/// Answers `tools/list`. `is_private`: the list depends on the caller.
pub fn listed(request: &Request, tools: &BTreeMap<String, Tool>, is_private: bool) -> Members {
    let tools: Vec<_> = tools.iter().map(|(name, tool)| tool.describe(name)).collect();
    let scope = if is_private { "private" } else { "public" };
    cached(request, members(json!({ "tools": tools })), scope)
}

/// Adds how long an answer may be kept, and by which clients. Older versions do not say that.
pub(super) fn cached(request: &Request, mut answer: Members, scope: &str) -> Members {
    if !request.is_legacy() {
        answer.extend(members(json!({ "ttlMs": LIST_TTL_MS, "cacheScope": scope })));
    }
    answer
}

/// Answers a call with a value: parts as they are, anything else structured as far as the client
/// takes it, and as text. `id`: the kind and the id of what the call was recorded as, if it was.
pub fn completed(value: &Value, id: Option<(&str, &str)>, request: &Request) -> Members {
    if let Some(blocks) = Content::blocks(value) {
        return with_id(members(json!({ "content": blocks })), id);
    }
    let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
    let mut result = called(&text, id);
    // older clients take only objects
    if value.is_object() || !request.is_legacy() {
        result.insert("structuredContent".to_owned(), value.clone());
    }
    result
}

/// Answers a call that failed, with a text for the model.
pub fn failed(text: &str, id: Option<(&str, &str)>) -> Members {
    let mut result = called(text, id);
    result.insert("isError".to_owned(), json!(true));
    result
}

fn called(text: &str, id: Option<(&str, &str)>) -> Members {
    with_id(members(json!({ "content": [{ "type": "text", "text": text }] })), id)
}

fn with_id(mut result: Members, id: Option<(&str, &str)>) -> Members {
    if let Some((kind, id)) = id {
        result.insert("_meta".to_owned(), json!({ format!("greenroom/{kind}Id"): id }));
    }
    result
}

/// An ask of an execution, and whether the caller may answer it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub detail: AskDetail,
    pub may_answer: bool,
}

/// Advice to a client that shows no question, about an execution that waits.
#[derive(Debug, Clone, Copy)]
pub enum Advice<'a> {
    /// Its model asks the person, and answers with this tool.
    Ask(&'a str),
    /// The person has been asked and has not answered. There is this tool for later.
    Declined(Option<&'a str>),
    /// It is answered in the inbox.
    Inbox,
}

/// Answers a call whose execution waits.
pub fn suspended(
    run: &Run,
    waiting: &[Suspension],
    asked: Option<&Asked>,
    advice: Advice<'_>,
) -> Members {
    let Run { workflow, execution } = run;
    let reason = match (asked, waiting.first()) {
        (Some(asked), _) => &*asked.detail.ask.reason,
        (None, Some(suspension)) => &*suspension.reason,
        (None, None) => "",
    };
    let mut content = json!({
        "executionId": execution, "workflowId": workflow, "status": "suspended", "reason": reason,
    });
    let mut text = format!("Execution {execution} of the workflow {workflow} waits: {reason}");
    if let Some(Asked { detail, may_answer }) = asked {
        content["ask"] = json!({
            "askId": detail.ask.id,
            "reason": detail.ask.reason,
            "payload": detail.payload,
            "schema": detail.schema,
            "deadline": detail.ask.deadline.map(Iso),
            "mayAnswer": may_answer,
        });
        let advice = if *may_answer {
            advised(advice, detail, execution.as_str())
        } else {
            "Others have to answer.".to_owned()
        };
        text.push_str(&format!("\n{advice}"));
    }
    let mut result = called(&text, Some(("execution", execution.as_str())));
    result.insert("structuredContent".to_owned(), content);
    result
}

fn advised(advice: Advice<'_>, detail: &AskDetail, execution: &str) -> String {
    let with_tool = |tool: &str| {
        let schema = detail.schema.as_ref();
        let schema = schema.map(|schema| format!(" The answer has to match {schema}."));
        let schema = schema.unwrap_or_default();
        format!("call {tool} with executionId \"{execution}\" and the answer as data.{schema}")
    };
    match advice {
        Advice::Ask(tool) => format!("Ask the person, then {}", with_tool(tool)),
        Advice::Declined(Some(tool)) => format!(
            "The person was asked and did not answer. Do not ask again now. When they want to \
             answer, {}",
            with_tool(tool)
        ),
        Advice::Declined(None) => {
            "The person was asked and did not answer. It can still be answered in the inbox."
                .to_owned()
        }
        Advice::Inbox => "It is answered in the inbox.".to_owned(),
    }
}

/// Answers a call with a question. `state` comes back with the answer.
pub fn input_required(ask: &str, question: &Question, state: &str) -> Members {
    members(json!({
        "resultType": "input_required",
        "inputRequests": { ask: question.request() },
        "requestState": state,
    }))
}

/// A task, and what it says beside its status.
#[derive(Debug)]
pub struct Task<'a> {
    pub id: &'a str,
    pub state: &'a ExecutionState,
    /// The questions that the client may answer, with their keys.
    pub questions: &'a [(String, Question)],
}

/// Answers a call that continues as a task.
pub fn task(task: &Task<'_>) -> Members {
    let mut result = members(json!({ "resultType": "task" }));
    result.extend(described(task, task_status(task)));
    result
}

/// Answers `tasks/get`. `result` answers the call, once it has ended.
pub fn task_now(task: &Task<'_>, result: Option<Members>) -> Members {
    let status = task_status(task);
    let mut now = described(task, status);
    match (status, result) {
        ("input_required", _) => {
            let questions = task.questions.iter();
            let requests: Members =
                questions.map(|(key, question)| (key.clone(), question.request())).collect();
            now.insert("inputRequests".to_owned(), Value::Object(requests));
        }
        ("failed", _) => {
            let error = json!({ "code": code::INTERNAL, "message": BROKEN });
            now.insert("error".to_owned(), error);
        }
        ("completed", Some(result)) => {
            now.insert("result".to_owned(), Value::Object(result));
        }
        _ => {}
    }
    now
}

/// A call that failed is completed: its result says so; unless it failed through the server. What
/// waits for others is still running.
fn task_status(task: &Task<'_>) -> &'static str {
    match RunState::of_state(task.state) {
        RunState::Suspended(_) if !task.questions.is_empty() => "input_required",
        RunState::Failed(_) if is_broken(task.state) => "failed",
        RunState::Running | RunState::Suspended(_) => "working",
        RunState::Completed(_) | RunState::Failed(_) => "completed",
        RunState::Cancelled(_) => "cancelled",
    }
}

/// Returns true if the server failed, not the workflow.
fn is_broken(state: &ExecutionState) -> bool {
    let class = state.error.as_ref().and_then(|failure| failure.class.as_ref());
    class.is_some_and(|class| matches!(class.kind, ErrorKind::Interrupted | ErrorKind::Internal))
}

fn described(task: &Task<'_>, status: &str) -> Members {
    let iso = |at: Timestamp| Iso(at);
    let ExecutionState { header, updated_at, suspension, .. } = task.state;
    let mut described = members(json!({
        "taskId": task.id,
        "status": status,
        "createdAt": iso(header.created_at),
        "lastUpdatedAt": iso(*updated_at),
        "ttlMs": null,
        "pollIntervalMs": POLL_MS,
    }));
    if let Some(suspension) = suspension {
        described.insert("statusMessage".to_owned(), json!(suspension.reason));
    }
    described
}

fn is_skip(fact: &Fact) -> bool {
    matches!(fact, Fact::StepCompleted { skipped: true, .. })
}

/// Returns the notification about a fact of an execution; `None` if it is none about a step.
pub fn progress(token: &Value, number: u64, fact: &Recorded) -> Option<Value> {
    let path = fact.fact.step_path()?;
    let what = match events_of(&fact.fact).first()? {
        EventKind::StepStart => "started",
        EventKind::StepComplete => "completed",
        EventKind::StepError => "failed",
        EventKind::StepSkipped => "skipped",
        EventKind::StepCancelled => "cancelled",
        EventKind::StepSuspended => "waits",
        EventKind::StepResumed => "continues",
        EventKind::CompensationStart => "is being undone",
        EventKind::CompensationComplete if is_skip(&fact.fact) => "was not undone: skipped",
        EventKind::CompensationComplete => "undone",
        EventKind::CompensationError | EventKind::CompensationCancelled => "was not undone",
        EventKind::WorkflowStart
        | EventKind::WorkflowSuspended
        | EventKind::WorkflowResumed
        | EventKind::WorkflowCompensating
        | EventKind::WorkflowComplete
        | EventKind::WorkflowError
        | EventKind::WorkflowCancelled
        | EventKind::WorkflowResult => return None,
    };
    Some(json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {
            "progressToken": token, "progress": number, "message": format!("{path} {what}"),
        },
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Offer;
    use super::super::message::{Abilities, Era, Headers, Message};
    use super::*;
    use crate::api::faces::Offered;
    use crate::auth::SealKey;

    fn legacy(params: &Value) -> Request {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        match Message::read(Headers::default(), body.to_string().as_bytes()) {
            Ok(Message::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_handshake_agrees_on_a_version() {
        let server = ServedFace {
            name: None,
            offer: Offer { workflows: Offered::All, agents: Offered::All, tools: Vec::new() },
            has_resources: true,
            task_after: Duration::ZERO,
            subscriptions_max: 1,
            protection: None,
            key: SealKey::random().unwrap(),
        };
        for (asked, agreed) in [
            (json!("2025-06-18"), "2025-06-18"),
            (json!("2025-03-26"), "2024-11-05"),
            (json!("2024-11-05"), "2024-11-05"),
            (json!("2024-10-07"), "2025-11-25"),
            (json!("2025-11-25"), "2025-11-25"),
            (json!("2099-01-01"), "2025-11-25"),
            (json!(5), "2025-11-25"),
            (Value::Null, "2025-11-25"),
        ] {
            let request = legacy(&json!({ "protocolVersion": asked }));
            let answer = initialized(&request, &server);
            assert_eq!(answer["protocolVersion"], agreed, "{asked}");
            assert_eq!(answer["capabilities"], json!({ "tools": {}, "resources": {} }));
        }
    }

    #[test]
    fn values_are_structured_as_far_as_the_client_takes_them() {
        let old = legacy(&json!({}));
        let new = Request { era: Era::Modern(Abilities::default()), ..legacy(&json!({})) };
        let rows = [
            (json!({ "n": 1 }), &old, Some(json!({ "n": 1 })), "{\"n\":1}"),
            (json!(5), &old, None, "5"),
            (json!("hi"), &old, None, "hi"),
            (json!("hi"), &new, Some(json!("hi")), "hi"),
            (Value::Null, &new, Some(Value::Null), "null"),
        ];
        for (value, request, structured, text) in rows {
            let result = completed(&value, Some(("execution", "x")), request);
            assert_eq!(result.get("structuredContent"), structured.as_ref(), "{value}");
            assert_eq!(result["content"], json!([{ "type": "text", "text": text }]));
            assert_eq!(result["_meta"], json!({ "greenroom/executionId": "x" }));
        }
    }

    #[test]
    fn newer_results_say_their_type_and_server() {
        let old = legacy(&json!({}));
        let new = Request { era: Era::Modern(Abilities::default()), ..legacy(&json!({})) };
        assert_eq!(answered(&old, Members::new())["result"], json!({}));
        let whole = answered(&new, failed("no", Some(("execution", "x"))));
        assert_eq!(whole["result"]["resultType"], "complete");
        let meta = &whole["result"]["_meta"];
        assert_eq!(meta["greenroom/executionId"], "x");
        assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "greenroom");
    }
}
