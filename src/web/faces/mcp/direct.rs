//! Calls of registered tools. What a workflow or an agent does is done as by their own tools;
//! anything else is called directly, and again with the answers to what it asks.

use greenroom_actors::agent::ToolAsk;
use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::question::accepted;
use greenroom_actors::runtime::{AskedBefore, CallTool, CallToolError};
use serde_json::{Value, json};

use super::Outcome;
use super::feed::Feed;
use super::session::Session;
use crate::api::ApiError;
use crate::api::faces::mcp::{Asking, CallParams, Question, Refusal, Response, completed, failed};
use crate::api::tools::{self, refusal_of};

/// Key of a question that has none, before its number.
const KEY: &str = "question-";

/// Answer to a call whose question was declined.
const DECLINED: &str = "The person was asked and did not answer; the call was not completed.";

impl Session {
    /// Calls a registered tool, or takes the answer to its question.
    pub(super) async fn call_registered(
        &self,
        tool: &ToolDefinition,
        params: CallParams,
        feed: Option<&Feed>,
    ) -> Outcome {
        let registry = self.call.runtime.registry();
        match &tool.body {
            ToolBody::Workflow(id) => {
                let Some(plan) = registry.workflows.get(id) else { return self.without(id) };
                match self.checked(tool, params).await {
                    Ok(params) => self.call_workflow(plan, params, feed).await,
                    Err(refusal) => self.refuse(&refusal),
                }
            }
            ToolBody::Agent(id) => {
                let Some(agent) = registry.agents.get(id) else { return self.without(id) };
                match self.checked(tool, params).await {
                    Ok(params) => self.call_agent(agent, params).await,
                    Err(refusal) => self.refuse(&refusal),
                }
            }
            ToolBody::Function(_) | ToolBody::Delegate(_) | ToolBody::AskUser => {
                self.call_directly(tool, params).await
            }
        }
    }

    fn without(&self, id: &str) -> Outcome {
        Ok(failed(&format!("{id} is not available"), None))
    }

    /// Checks the arguments of a call, and that its caller may make it. An answer to a question is
    /// bound to arguments that were checked.
    async fn checked(
        &self,
        tool: &ToolDefinition,
        params: CallParams,
    ) -> Result<CallParams, ApiError> {
        if params.state.is_some() {
            return Ok(params);
        }
        let input = Value::Object(params.arguments);
        let call = tools::call_of(tool, input, &self.call.caller);
        match tools::check(&self.call.runtime, call).await? {
            Value::Object(arguments) => Ok(CallParams { arguments, ..params }),
            _ => Err(ApiError::Internal),
        }
    }

    async fn call_directly(&self, tool: &ToolDefinition, params: CallParams) -> Outcome {
        let after = match &params.state {
            Some(state) => match self.answered(state, &params)? {
                Some(after) => Some(after),
                None => return Ok(failed(DECLINED, None)),
            },
            None => None,
        };
        let input = Value::Object(params.arguments);
        let answers = after.as_ref().map(|after| after.answers.clone());
        let call = tools::call_of(tool, input, &self.call.caller);
        let call = CallTool { trace: self.trace(), after, ..call };
        let calling = self.call.runtime.call_tool(call.clone());
        let Some(called) = self.while_connected(calling).await else { return self.disconnected() };
        match called {
            Ok(result) => Ok(completed(&result, None, &self.request)),
            Err(CallToolError::Waits { id, ask }) => {
                self.ask_for_tool(id, answers.unwrap_or_default(), *ask, None)
            }
            Err(CallToolError::InvalidAnswer(problem)) => self.ask_again(call, problem).await,
            Err(error) => self.refuse(&refusal_of(error)),
        }
    }

    /// Calls the tool with the answers before, so that it asks the last question again.
    async fn ask_again(&self, mut call: CallTool, problem: String) -> Outcome {
        let Some(after) = &mut call.after else {
            return self.refuse(&ApiError::ToolFailed(problem));
        };
        (after.schema, _) = (None, after.answers.pop());
        let answers = after.answers.clone();
        let calling = self.call.runtime.call_tool(call);
        match self.while_connected(calling).await {
            Some(Err(CallToolError::Waits { id, ask })) => {
                self.ask_for_tool(id, answers, *ask, Some(&problem))
            }
            Some(Ok(result)) => Ok(completed(&result, None, &self.request)),
            Some(Err(error)) => self.refuse(&refusal_of(error)),
            None => self.disconnected(),
        }
    }

    /// Returns the call before with the answer to its question; without an answer it asks again.
    /// `None`: the person has declined.
    fn answered(&self, state: &str, params: &CallParams) -> Result<Option<AskedBefore>, Refusal> {
        let Asking::Tool { mut before, key } = self.asked_before(state)? else {
            return Err(self.invalid_state());
        };
        match self.response(&params.responses, &key)? {
            Some(Response::Accepted(content)) => {
                let answer = Question::answer_to_tool(before.schema.as_ref(), content);
                before.answers.push(if before.is_declinable { accepted(&answer) } else { answer });
                Ok(Some(before))
            }
            Some(Response::Declined) if before.is_declinable => {
                before.answers.push(json!({ "action": "decline" }));
                Ok(Some(before))
            }
            Some(Response::Declined) => Ok(None),
            None => Ok(Some(AskedBefore { schema: None, ..before })),
        }
    }

    /// Asks for a tool. Nothing is stored of its question, so that only the caller can answer.
    fn ask_for_tool(
        &self,
        id: String,
        answers: Vec<Value>,
        ask: ToolAsk,
        refusal: Option<&str>,
    ) -> Outcome {
        let waits = ApiError::ToolFailed(format!("the tool asks a person: {}", ask.question));
        let rules = AskRules { to: ask.to.clone(), ..AskRules::default() };
        let answerer = self.call.caller.answerer(None);
        let user = answerer.user.as_deref();
        let is_asked = rules.admits(user, &answerer.roles, user);
        let question =
            Question::of_tool(&ask).filter(|_| is_asked && self.request.abilities().shows_forms);
        let Some(question) = question else { return self.refuse(&waits) };
        let question = match refusal {
            Some(refusal) => question.again(refusal),
            None => question,
        };
        let key = ask.key.unwrap_or_else(|| format!("{KEY}{}", answers.len() + 1));
        let ToolAsk { schema, is_declinable, memo, .. } = ask;
        let before = AskedBefore { id, answers, schema, is_declinable, memo };
        self.question(Asking::Tool { before, key: key.clone() }, &key, &question)
    }
}
