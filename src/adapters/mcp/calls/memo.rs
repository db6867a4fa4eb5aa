//! Memory of calls that wait for answers of people, and how they continue. No I/O.

use greenroom_actors::agent::tool::{ToolContext, ToolError};
use greenroom_actors::domain::failure::ErrorKind;
use rmcp::model::{InputRequest, InputRequiredResult, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapters::mcp::calls::task::Task;
use crate::adapters::mcp::failed::failed;
use crate::adapters::mcp::question::{Question, allowed, within};
use crate::adapters::mcp::settings::McpServer;

/// State of a call that waits, which is stored with its ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Memo {
    /// The server wants the call again, with answers and its state.
    Round(Round),
    /// The call has become a task.
    Task { id: String },
    /// The server, of an older version, asks again when the call is made again.
    Again { asked: Vec<Question> },
}

/// Questions of one answer of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The server's state, which only it can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// In the order in which they are asked.
    pub(crate) questions: Vec<(String, Question)>,
    /// Number of answers to the questions before these.
    pub(crate) answered: usize,
    /// The task that asks, if the call is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<AskingTask>,
}

/// A task that asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskingTask {
    id: String,
    /// Earlier questions, which are answered.
    answered: Vec<String>,
}

/// Continuation of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Ask(Question, Memo),
    /// The call is made, with these.
    Call {
        responses: Option<InputResponses>,
        state: Option<String>,
    },
    /// The task continues with answers.
    Task(Task),
}

impl Next {
    /// The first making of a call.
    pub(crate) const BEGIN: Self = Self::Call { responses: None, state: None };
}

impl Memo {
    /// Returns the memo of a call; `None` for one that has asked nothing yet.
    pub(crate) fn of(context: &ToolContext) -> Result<Option<Self>, ToolError> {
        let Some(memo) = &context.memo else { return Ok(None) };
        let read = Self::deserialize(&**memo);
        // another tool may have had this name when it asked
        read.map(Some).map_err(|_| {
            let why = "the call cannot be continued: the tool changed after it asked";
            failed(ErrorKind::Tool, why)
        })
    }

    /// Returns the task that asks the question of a stored memo, if one does.
    pub(crate) fn task_of(memo: &Value) -> Option<String> {
        match Self::deserialize(memo).ok()? {
            Self::Round(round) => round.task.map(|task| task.id),
            Self::Task { id } => Some(id),
            Self::Again { .. } => None,
        }
    }

    /// Returns how a call with these answers continues.
    pub(crate) fn next(self, given: &[Value]) -> Next {
        match self {
            Self::Round(round) => round.next(given),
            Self::Task { id } => Next::Task(Task { id, responses: None, answered: Vec::new() }),
            Self::Again { .. } => Next::BEGIN,
        }
    }

    /// Returns the questions that are answered when the server asks them again.
    pub(crate) fn known(&self, given: &[Value]) -> Vec<(Question, Value)> {
        match self {
            Self::Round(_) | Self::Task { .. } => Vec::new(),
            Self::Again { asked } => asked.iter().cloned().zip(given.iter().cloned()).collect(),
        }
    }
}

impl Round {
    /// Reads what a server asks for. The error is for models and callers.
    pub(crate) fn of(
        server: &McpServer,
        asked: InputRequiredResult,
        given: &[Value],
    ) -> Result<Self, ToolError> {
        let (name, on_input) = (&server.name, allowed(server)?);
        let InputRequiredResult { input_requests, request_state: state, .. } = asked;
        let state_bytes_max = on_input.state_bytes_max;
        if state.as_ref().is_some_and(|state| state.len() > state_bytes_max) {
            let why = format!(
                "the MCP server {name} asks with a state of more than {state_bytes_max} bytes \
                 (on_input.state_bytes_max)"
            );
            return Err(failed(ErrorKind::Limit, why));
        }
        let requests = input_requests.unwrap_or_default();
        within(server, given.len() + requests.len())?;
        let mut questions = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let params = match request {
                InputRequest::Elicitation(request) => request.params,
                _ => {
                    let why = format!("the MCP server {name} sent a request that is not supported");
                    return Err(failed(ErrorKind::Tool, why));
                }
            };
            questions.push((key, Question::of(server, params)?));
        }
        Ok(Self { state, questions, answered: given.len(), task: None })
    }

    /// Returns the same as questions of a task.
    pub(crate) fn of_task(self, id: String, answered: Vec<String>) -> Self {
        Self { task: Some(AskingTask { id, answered }), ..self }
    }

    /// Returns the next question, or what is sent once all are answered.
    pub(crate) fn next(self, given: &[Value]) -> Next {
        let given = given.get(self.answered..).unwrap_or_default();
        if let Some((_, question)) = self.questions.get(given.len()) {
            return Next::Ask(question.clone(), Memo::Round(self));
        }
        let Self { state, questions, task, .. } = self;
        let responses: InputResponses = questions
            .into_iter()
            .zip(given)
            .map(|((key, question), answer)| (key, question.response(answer)))
            .collect();
        if let Some(AskingTask { id, answered }) = task {
            return Next::Task(Task { id, responses: Some(responses), answered });
        }
        Next::Call { responses: (!responses.is_empty()).then_some(responses), state }
    }
}

#[cfg(test)]
mod tests;
