//! Rules of a run's turns: what to ask the model, and how to proceed after its answer. No actor, no
//! clock, no I/O.

mod answer;
pub(super) mod choices;
mod client_tools;
pub(super) mod prompt;
mod transcript;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::message::{Message, Part, Role, ToolCall, ToolResult};
use crate::domain::schema::{Schema, SchemaError};
use crate::ports::model::{
    FinishReason, ModelAnswer, ModelOptions, ModelRequest, ProviderState, ToolChoice, ToolSpec,
};
use crate::ports::store::GenerationStep;

use super::GenerateError;
use super::continuation::Continuation;
use super::object::Unfit;

pub(super) use answer::AnswerBuffer;
pub(super) use client_tools::ClientTools;
pub(super) use transcript::Transcript;

/// Default number of turns.
pub(super) const STEPS_DEFAULT: u32 = 10;

/// Maximum number of calls made per turn; further calls are refused.
pub(super) const CALLS_PER_TURN_MAX: usize = 64;

/// Limits of one run's turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bounds {
    /// At least 1. Repairs of an object do not count.
    pub(super) steps: u32,
    pub(super) tokens: Option<u64>,
    pub(super) tool_calls: Option<u32>,
    pub(super) object_repairs: u32,
}

/// First question of a run.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// Result of [`prompt::compose`].
    pub(super) messages: Vec<Message>,
    /// The agent's own.
    pub(super) tools: Arc<[ToolSpec]>,
    /// Tools of the caller, the result of [`ClientTools::checked`].
    pub(super) client_tools: ClientTools,
    /// For the first answer.
    pub(super) tool_choice: ToolChoice,
    pub(super) schema: Option<(Value, Schema)>,
    pub(super) options: ModelOptions,
}

/// State of a run between its turns.
#[derive(Debug)]
pub(super) struct Turns {
    prompt: ModelRequest,
    client_tools: ClientTools,
    schema: Option<Schema>,
    bounds: Bounds,
    repairs: u32,
    calls_made: u32,
    /// Calls before those of the last turn.
    calls_before: u32,
    /// The model's last answer, while its tools run.
    asked_for_tools: Option<ModelAnswer>,
}

/// Next action of a run.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Call the tools, then [`Turns::tools_returned`].
    Call(Vec<Planned>),
    /// Ask the model again, because its answer missed the schema.
    Repair {
        detail: String,
    },
    /// Ask the model again.
    Ask,
    Done(Ended),
}

/// A call of a tool of the agent, requested by the model.
#[derive(Debug, PartialEq)]
pub(super) struct Planned {
    /// Position among the calls of the turn.
    pub(super) number: usize,
    pub(super) call: ToolCall,
    /// If set, the call is not made, and the model gets this text.
    pub(super) refusal: Option<String>,
}

/// Successful end of a run.
#[derive(Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) finish_reason: FinishReason,
    /// The validated object, if one was requested.
    pub(super) object: Option<Value>,
}

impl Turns {
    pub(super) fn new(question: Question, bounds: Bounds) -> Self {
        let Question { messages, tools, client_tools, tool_choice, schema, options } = question;
        let tools = client_tools.beside(tools);
        let (schema, compiled) = schema.unzip();
        let schema = schema.map(Arc::new);
        let messages = Arc::new(messages);
        let prompt = ModelRequest { messages, tools, tool_choice, schema, options, trace: None };
        Self {
            prompt,
            client_tools,
            schema: compiled,
            bounds,
            repairs: 0,
            calls_made: 0,
            calls_before: 0,
            asked_for_tools: None,
        }
    }

    /// Takes up a run in front of the calls of its last turn, or of the repair of its object; returns
    /// what is next, `None` if that is a question.
    pub(super) fn restored(
        continuation: &Continuation,
        schema: Option<Schema>,
        tools: Arc<[ToolSpec]>,
        last: &GenerationStep,
    ) -> (Self, Option<Next>) {
        let provider_state = match &continuation.provider_state {
            Some(Part::ProviderState { provider, state }) => {
                Some(ProviderState { provider: provider.clone(), state: state.clone() })
            }
            _ => None,
        };
        let answer = ModelAnswer {
            text: last.text.clone(),
            reasoning: last.reasoning.clone(),
            tool_calls: last.tool_calls.clone(),
            usage: last.usage,
            finish_reason: last.finish_reason,
            provider_state,
            served: None,
        };
        let client_tools = continuation.client_tools.clone();
        let prompt = ModelRequest {
            messages: Arc::clone(&continuation.messages),
            tools: client_tools.beside(tools),
            tool_choice: ToolChoice::Auto,
            schema: continuation.schema.clone(),
            options: continuation.options.clone(),
            trace: None,
        };
        let mut turns = Self {
            prompt,
            client_tools,
            schema,
            bounds: continuation.bounds.clone(),
            repairs: continuation.repairs,
            calls_made: continuation.calls_made,
            calls_before: continuation.calls_made,
            asked_for_tools: None,
        };
        let next = (!continuation.is_repair).then(|| Next::Call(turns.plan(answer)));
        (turns, next)
    }

    /// Returns the part of the continuation that concerns the turns, in front of the calls of the last
    /// one, or of the repair.
    pub(super) fn continuation(&self) -> Continuation {
        let asked = self.asked_for_tools.as_ref();
        let provider_state = asked.and_then(|answer| answer.provider_state.clone());
        let ModelRequest { messages, schema, options, .. } = self.prompt.clone();
        Continuation {
            messages,
            schema,
            options,
            client_tools: self.client_tools.clone(),
            provider_state: provider_state
                .map(|ProviderState { provider, state }| Part::ProviderState { provider, state }),
            bounds: self.bounds.clone(),
            repairs: self.repairs,
            is_repair: asked.is_none(),
            calls_made: asked.map_or(self.calls_made, |_| self.calls_before),
            ..Continuation::default()
        }
    }

    /// Replaces the arguments of a call of the last turn by those that a person has edited.
    pub(super) fn edit_call(&mut self, number: usize, input: &Value) {
        let asked = self.asked_for_tools.as_mut();
        if let Some(call) = asked.and_then(|answer| answer.tool_calls.get_mut(number)) {
            call.input = input.clone();
        }
    }

    /// Returns the next question.
    pub(super) fn request(&self) -> ModelRequest {
        self.prompt.clone()
    }

    /// Returns the schema for this answer, if it is to be an object.
    pub(super) fn reads(&self, answer: &ModelAnswer) -> Option<&Schema> {
        self.schema.as_ref().filter(|_| answer.tool_calls.is_empty())
    }

    /// Adds the model's answer to [`Turns::request`] to the transcript; `read` is the object read
    /// with [`Turns::reads`].
    pub(super) fn answered(
        &mut self,
        mut answer: ModelAnswer,
        read: Option<Result<Value, Unfit>>,
        transcript: &mut Transcript,
    ) -> Result<Next, GenerateError> {
        self.prompt.tool_choice = ToolChoice::Auto;
        if !answer.tool_calls.is_empty() {
            // some providers say `stop` nevertheless
            answer.finish_reason = FinishReason::ToolCalls;
            transcript.push(&answer);
            return self.plan_calls(answer, transcript);
        }
        transcript.push(&answer);
        let Unfit { detail, is_final } = match read.transpose() {
            Ok(object) => {
                let finish_reason = answer.finish_reason;
                return Ok(Next::Done(Ended { finish_reason, object }));
            }
            Err(unfit) => unfit,
        };
        if is_final || self.repairs == self.bounds.object_repairs || self.is_spent(transcript) {
            return Err(GenerateError::Failed(detail));
        }
        self.repairs += 1;
        transcript.reject_last();
        self.ask_for_repair(answer.text, &detail);
        Ok(Next::Repair { detail })
    }

    /// Decides how to proceed once all calls of the last turn have results.
    pub(super) fn tools_returned(
        &mut self,
        results: Vec<ToolResult>,
        transcript: &Transcript,
    ) -> Result<Next, GenerateError> {
        let asked = self.asked_for_tools.take();
        if asked.as_ref().is_some_and(|answer| self.client_tools.are_called_in(answer)) {
            return Ok(left_to_caller());
        }
        if let Some(answer) = asked {
            let messages = prompt::turn(answer, results);
            Arc::make_mut(&mut self.prompt.messages).extend(messages);
        }
        if self.is_spent(transcript) {
            return self.break_off(FinishReason::Length);
        }
        let turns = transcript.len() - self.repairs as usize;
        if turns >= self.bounds.steps as usize {
            return self.break_off(FinishReason::ToolCalls);
        }
        Ok(Next::Ask)
    }

    fn plan_calls(
        &mut self,
        answer: ModelAnswer,
        transcript: &Transcript,
    ) -> Result<Next, GenerateError> {
        let is_own = |call: &ToolCall| !self.client_tools.have(&call.tool_name);
        if !answer.tool_calls.iter().any(is_own) {
            return Ok(left_to_caller());
        }
        // tools may use more tokens: agents are among them
        if self.is_spent(transcript) {
            return self.break_off(FinishReason::Length);
        }
        Ok(Next::Call(self.plan(answer)))
    }

    fn plan(&mut self, answer: ModelAnswer) -> Vec<Planned> {
        self.calls_before = self.calls_made;
        let mut planned = Vec::with_capacity(answer.tool_calls.len());
        for (number, call) in answer.tool_calls.iter().enumerate() {
            if self.client_tools.have(&call.tool_name) {
                continue;
            }
            let refusal = self.refusal(number);
            if refusal.is_none() {
                self.calls_made += 1;
            }
            planned.push(Planned { number, call: call.clone(), refusal });
        }
        self.asked_for_tools = Some(answer);
        planned
    }

    /// Returns the reason for not making the call with this index, if any.
    fn refusal(&self, number: usize) -> Option<String> {
        if number >= CALLS_PER_TURN_MAX {
            return Some(format!("not called: the turn has more than {CALLS_PER_TURN_MAX} calls"));
        }
        let most = self.bounds.tool_calls?;
        (self.calls_made >= most)
            .then(|| format!("not called: the run reached its limit of {most} tool calls"))
    }

    fn is_spent(&self, transcript: &Transcript) -> bool {
        self.bounds.tokens.is_some_and(|most| transcript.usage().total_tokens > most)
    }

    /// Ends a run at a limit; an error if an object was requested.
    fn break_off(&self, finish_reason: FinishReason) -> Result<Next, GenerateError> {
        if self.schema.is_none() {
            return Ok(Next::Done(Ended { finish_reason, object: None }));
        }
        let why = match finish_reason {
            FinishReason::Length => "the run's token budget is used up".to_owned(),
            _ => format!("the run reached its limit of {} steps", self.bounds.steps),
        };
        Err(GenerateError::Failed(format!("the model gave no object: {why}")))
    }

    fn ask_for_repair(&mut self, text: String, detail: &str) {
        let complaint = format!(
            "Your answer does not match the schema: {detail}. \
             Answer again, with only JSON that matches it."
        );
        Arc::make_mut(&mut self.prompt.messages)
            .extend([Message::text(Role::Assistant, text), Message::text(Role::User, complaint)]);
    }
}

/// Ends a run whose caller has to make calls.
fn left_to_caller() -> Next {
    Next::Done(Ended { finish_reason: FinishReason::ToolCalls, object: None })
}

/// Compiles the schema of an answer.
pub(super) fn compile_schema(schema: Value) -> Result<(Value, Schema), GenerateError> {
    match Schema::compile(&schema) {
        Ok(compiled) => Ok((schema, compiled)),
        Err(error) => Err(GenerateError::InvalidSchema(schema_detail(error))),
    }
}

/// Returns place and message; the enclosing error says that it is about a schema.
fn schema_detail(error: SchemaError) -> String {
    let SchemaError { pointer, message } = error;
    if pointer.is_empty() { message } else { format!("{pointer}: {message}") }
}

#[cfg(test)]
mod tests;
