//! One call of a tool of a server, from the thread of its caller.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind, shortened};
use rmcp::model::{
    CallToolRequestParams, ElicitRequestParams, ErrorCode, ErrorData, MetaObject, RequestMetaObject,
};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};

use crate::adapters::mcp::calls::callable::CallableConnection;
use crate::adapters::mcp::calls::memo::{Memo, Next, Round};
use crate::adapters::mcp::calls::request::{self, Reply};
use crate::adapters::mcp::calls::result::value_of;
use crate::adapters::mcp::calls::task::Task;
use crate::adapters::mcp::connection::asking::was_unclear;
use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::counts::Count;
use crate::adapters::mcp::failed::failed;
use crate::adapters::mcp::question::{DECLINED, Question, within};
use crate::adapters::mcp::reasons::{status_of, was_not_sent, why_not_sent};
use crate::mcp_servers::CallOutcome;

/// Member of `_meta` with the key that stays the same when a call is repeated.
const IDEMPOTENCY_KEY: &str = "greenroom/idempotencyKey";
/// Longest message of a server about a refused call.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Code of the error of a call before which a person has to open a page (version 2025-11-25).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Maximum number of times that a call is made again because its question could not be matched to it.
const UNCLEAR_MAX: usize = 3;

/// Pauses before a call is made again at a server that wants that without asking a person.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// End of an attempt that has no result.
pub(crate) enum Lost {
    /// The call may have been made. `is_closed`: the connection is lost for all calls.
    Interrupted {
        is_closed: bool,
    },
    Failed(AttemptFailure),
}

/// Returns the function of a tool. It waits for a server that is being connected, and fails at once
/// while one is away.
pub(crate) fn function(link: &Arc<Link>, tool: &str) -> ToolFunction {
    let (link, tool) = (Arc::clone(link), Arc::<str>::from(tool));
    Arc::new(move |arguments, context| {
        let (link, tool) = (Arc::clone(&link), Arc::clone(&tool));
        async move {
            let mut count = Count::begin(&link.counts, &context);
            let mut outcome = None;
            let called = call(&link, &tool, arguments, &context, &mut outcome).await;
            count.end(&called, outcome);
            called
        }
        .boxed()
    })
}

/// Returns the function of a tool that agents and steps name before its server is connected. It waits
/// for the connection, and decides then what the list of the server decides for other tools.
pub(crate) fn placeholder(link: &Arc<Link>, tool: &str) -> ToolFunction {
    let (link, tool) = (Arc::clone(link), Arc::<str>::from(tool));
    let known = function(&link, &tool);
    Arc::new(move |arguments, context| {
        let (link, tool, known) = (Arc::clone(&link), Arc::clone(&tool), Arc::clone(&known));
        async move {
            let is_connected = link.connected(&tool, None).await.is_ok();
            if is_connected && context.agent_id.is_some() && link.guards(&tool) {
                let why = format!("{}.{tool} needs an approval: ask again", link.name());
                return Err(failed(ErrorKind::Tool, why));
            }
            known(arguments, context).await
        }
        .boxed()
    })
}

/// Calls a tool, or asks what its server asks people. If the connection is lost meanwhile, a call that
/// may be repeated is made once more. `outcome` is set where the error alone does not say how it ended.
async fn call(
    link: &Link,
    tool: &str,
    arguments: Value,
    context: &ToolContext,
    outcome: &mut Option<CallOutcome>,
) -> Result<Value, ToolError> {
    let Value::Object(arguments) = arguments else {
        return Err(failed(ErrorKind::Schema, "invalid arguments: not a JSON object"));
    };
    let given = context.answers.given();
    let memo = Memo::of(context)?;
    let known = memo.as_ref().map(|memo| memo.known(given)).unwrap_or_default();
    let mut next = match memo {
        Some(memo) => memo.next(given),
        None => Next::BEGIN,
    };
    let (mut may_repeat, mut lost_session, mut pauses) = (true, None, PAUSES.into_iter());
    let mut unclear = 0..UNCLEAR_MAX;
    loop {
        let (responses, state) = match next {
            Next::Call { responses, state } => (responses, state),
            Next::Ask(question, memo) => return Err(asked(link, &question, &memo)),
            Next::Task(task) => return task.follow(link, tool, context, outcome).await,
        };
        let CallableConnection { peer, session, is_repeatable, change } = match given {
            [] => link.connected(tool, lost_session).await?,
            // the answer of a person is not used up by a server that is away
            _ => link.reached(tool, lost_session).await?,
        };
        if context.is_repetition && !is_repeatable {
            return Err(interrupted(outcome));
        }
        if let Some(change) = change {
            link.settle(tool, &change, context).await?;
        }
        let mut params = params(tool, arguments.clone(), context);
        (params.input_responses, params.request_state) = (responses.clone(), state.clone());
        match attempt(link, &peer, params, context, &known, outcome).await? {
            Ok(Reply::Complete(result)) => match link.cleaned(value_of(result)) {
                Err(failure) if was_unclear(&failure) && unclear.next().is_some() => {}
                settled => return said(settled, outcome),
            },
            Ok(Reply::InputRequired(asked)) => {
                let is_question = asked.input_requests.as_ref().is_some_and(|it| !it.is_empty());
                next = Round::of(&link.server, asked, given)?.next(given);
                if !is_question {
                    let Some(pause) = pauses.next() else { return Err(no_end(link)) };
                    tokio::time::sleep(pause).await;
                }
                continue;
            }
            Ok(Reply::Task(id)) => {
                let task = Task::begun(link, id, context).await?;
                return task.follow(link, tool, context, outcome).await;
            }
            Ok(reply) => return Err(unusable(link, &reply)),
            Err(Lost::Interrupted { is_closed }) if is_repeatable && may_repeat => {
                (may_repeat, lost_session) = (false, is_closed.then_some(session));
            }
            Err(Lost::Interrupted { .. }) => return Err(interrupted(outcome)),
            Err(Lost::Failed(failure)) => {
                let failure = ToolError::Failed(failure);
                if !was_unclear(&failure) || unclear.next().is_none() {
                    return Err(failure);
                }
            }
        }
        next = Next::Call { responses, state };
    }
}

/// Sends a call once. The outer error is that of a call before which a person is asked.
async fn attempt(
    link: &Link,
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
    context: &ToolContext,
    known: &[(Question, Value)],
    outcome: &mut Option<CallOutcome>,
) -> Result<Result<Reply, Lost>, ToolError> {
    let running = link.asking.begin(known.to_vec()).await;
    let reply = tokio::select! {
        biased;
        () = running.asked() => None,
        reply = request::call(link, peer, params, context) => Some(reply),
    };
    // also one that was asked just before the reply, which then has no answer in it
    let reply = match (running.end(), reply) {
        (None, Some(reply)) => reply,
        (Some(question), _) => return Err(again(link, &question?, known)),
        (None, None) => return Err(interrupted(outcome)),
    };
    if let Err(ServiceError::McpError(refusal)) = &reply
        && let Some(page) = page_of(link, refusal)
    {
        return Err(opens(link, &page?, known));
    }
    Ok(reply.map_err(|error| lost(link, &error)))
}

/// Returns the end of a call that waits for an answer.
pub(crate) fn asked(link: &Link, question: &Question, memo: &Memo) -> ToolError {
    match link.cleaned_question(question).ask(&link.server, memo) {
        Ok(ask) => ToolError::Waits(Box::new(ask)),
        Err(refused) => refused,
    }
}

/// Returns the end of a call that is made again once a further question of its server is answered.
fn again(link: &Link, question: &Question, known: &[(Question, Value)]) -> ToolError {
    if let Err(too_many) = within(&link.server, known.len() + 1) {
        return too_many;
    }
    let asked_before = known.iter().map(|(question, _)| question.clone());
    let memo = Memo::Again { asked: asked_before.chain([question.clone()]).collect() };
    asked(link, question, &memo)
}

/// Returns the page that a person has to open before a call is made again: the error
/// `URLElicitationRequired` of version 2025-11-25.
fn page_of(link: &Link, refusal: &ErrorData) -> Option<Result<Question, ToolError>> {
    if refusal.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let asked = refusal.data.as_ref()?.get("elicitations")?.get(0)?;
    let asked = serde_json::from_value::<ElicitRequestParams>(asked.clone()).ok()?;
    Some(Question::of(&link.server, asked))
}

/// Returns the end of a call before which a page has to be opened; a person who has declined that is
/// not asked again.
fn opens(link: &Link, page: &Question, known: &[(Question, Value)]) -> ToolError {
    let was_declined = |(question, answer): &(Question, Value)| {
        matches!(question, Question::Page { .. }) && answer == DECLINED
    };
    if known.last().is_some_and(was_declined) {
        let why = format!("the page that the MCP server {} needs was declined", link.name());
        return failed(ErrorKind::Tool, why);
    }
    again(link, page, known)
}

/// Returns the end of a call whose server asked too often to repeat it.
fn no_end(link: &Link) -> ToolError {
    let why = format!("the MCP server {} asked too often to repeat the call", link.name());
    failed(ErrorKind::Response, why)
}

/// Explains an answer that is no result.
fn unusable(link: &Link, reply: &Reply) -> ToolError {
    let server = link.name();
    match reply {
        Reply::InvalidInputRequired => {
            let why = format!(
                "the MCP server {server} asks with a form that cannot be shown to a person: it is \
                 not a flat object of plain values"
            );
            failed(ErrorKind::Response, why)
        }
        Reply::Complete(_) | Reply::InputRequired(_) | Reply::Task(_) | Reply::Foreign => {
            let why = format!("the MCP server {server} sent an invalid tool result");
            failed(ErrorKind::Response, why)
        }
    }
}

fn params(
    tool: &str,
    arguments: Map<String, Value>,
    context: &ToolContext,
) -> CallToolRequestParams {
    let mut meta = Map::new();
    meta.insert(IDEMPOTENCY_KEY.to_owned(), Value::from(context.idempotency_key.as_str()));
    for (name, value) in context.trace.iter().flat_map(|trace| trace.headers()) {
        meta.insert(name.to_owned(), Value::from(value));
    }
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    params.meta = Some(RequestMetaObject(MetaObject(meta)));
    params
}

/// Explains why a request has no result.
pub(crate) fn lost(link: &Link, error: &ServiceError) -> Lost {
    let server = link.name();
    match error {
        ServiceError::McpError(error) => Lost::Failed(refused(link, &error.message)),
        ServiceError::TransportSend(error) => {
            link.suspect();
            let error = error.error.as_ref();
            let why = link.said(&why_not_sent(error));
            if was_not_sent(error) {
                let why = format!("the MCP server {server}: {why}");
                return Lost::Failed(AttemptFailure::new(ErrorKind::Connection, why));
            }
            if let Some(status) = status_of(error).filter(|status| is_refusal(*status)) {
                let why = format!("the MCP server {server} refused the call: {why}");
                return Lost::Failed(AttemptFailure::http(status, why));
            }
            log::info!("MCP server {server}: a call was interrupted: {why}");
            Lost::Interrupted { is_closed: false }
        }
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            Lost::Interrupted { is_closed: true }
        }
        _ => {
            let why = format!("the MCP server {server} sent an invalid tool result");
            Lost::Failed(AttemptFailure::new(ErrorKind::Response, why))
        }
    }
}

/// Returns true for statuses with which a call was certainly not made.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status) && status != 408
}

/// Returns the failure of a call that its server refuses in these words.
pub(crate) fn refused(link: &Link, message: &str) -> AttemptFailure {
    let message = link.cleaned_error(message.to_owned());
    AttemptFailure::new(ErrorKind::Tool, shortened(&message, MESSAGE_BYTES_MAX))
}

/// Returns the result of a tool, whose failures are those that it says itself.
pub(crate) fn said(
    result: Result<Value, ToolError>,
    outcome: &mut Option<CallOutcome>,
) -> Result<Value, ToolError> {
    *outcome = Some(CallOutcome::ToolError);
    result
}

fn interrupted(outcome: &mut Option<CallOutcome>) -> ToolError {
    *outcome = Some(CallOutcome::Interrupted);
    failed(ErrorKind::Connection, "the call was interrupted; it may have happened")
}
