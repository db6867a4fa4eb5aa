//! The rules of a run's turns: what to ask the model and what to make of its answer. No actor,
//! no clock, no I/O.

pub(super) mod choices;
mod heard;
pub(super) mod prompt;
mod transcript;

use std::sync::Arc;

use serde_json::Value;

use crate::domain::message::{Message, Role, ToolCall, ToolResult};
use crate::domain::schema::{Schema, SchemaError};
use crate::ports::model::{FinishReason, ModelAnswer, ModelOptions, ModelRequest, ToolSpec};

use super::GenerateError;
use super::object::Unfit;

pub(super) use heard::Heard;
pub(super) use transcript::Transcript;

/// Turns of a run when neither the caller nor the agent says.
pub(super) const STEPS_DEFAULT: u32 = 10;

/// Calls of one turn that are made; a model that asks for more is told so.
pub(super) const CALLS_PER_TURN_MAX: usize = 64;

/// Bounds of one run's turns.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// At least 1. Repairs of an object do not count.
    pub(super) steps: u32,
    pub(super) tokens: Option<u64>,
    pub(super) tool_calls: Option<u32>,
    pub(super) object_repairs: u32,
}

/// What a run asks its model.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// As [`prompt::compose`] makes them.
    pub(super) messages: Vec<Message>,
    pub(super) tools: Arc<[ToolSpec]>,
    pub(super) schema: Option<(Value, Schema)>,
    pub(super) options: ModelOptions,
}

/// A run between its turns.
#[derive(Debug)]
pub(super) struct Turns {
    prompt: ModelRequest,
    schema: Option<Schema>,
    bounds: Bounds,
    repairs: u32,
    calls_made: u32,
    /// The model's last answer, while its tools work.
    asked_for_tools: Option<ModelAnswer>,
}

/// What follows from a turn.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// The tools are called, then [`Turns::tools_returned`] is asked.
    Call(Vec<Planned>),
    /// The answer missed its schema: the model is asked again, with what is wrong.
    Repair {
        detail: String,
    },
    /// The model is asked again.
    Ask,
    Done(Ended),
}

/// A call of the model's, in its order.
#[derive(Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) call: ToolCall,
    /// It is not made, and the model is told why.
    pub(super) refusal: Option<String>,
}

/// How a run ended well.
#[derive(Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) finish_reason: FinishReason,
    /// The validated object, where one was asked for.
    pub(super) object: Option<Value>,
}

impl Turns {
    pub(super) fn new(question: Question, bounds: Bounds) -> Self {
        let Question { messages, tools, schema, options } = question;
        let (schema, compiled) = schema.unzip();
        let schema = schema.map(Arc::new);
        let messages = Arc::new(messages);
        let prompt = ModelRequest { messages, tools, schema, options, trace: None };
        Self { prompt, schema: compiled, bounds, repairs: 0, calls_made: 0, asked_for_tools: None }
    }

    /// What the model is to be asked now.
    pub(super) fn request(&self) -> ModelRequest {
        self.prompt.clone()
    }

    /// The schema that this answer is to be read by, if it is to be an object.
    pub(super) fn reads(&self, answer: &ModelAnswer) -> Option<&Schema> {
        self.schema.as_ref().filter(|_| answer.tool_calls.is_empty())
    }

    /// Takes the model's answer to [`Turns::request`] into the transcript, with what was read of
    /// it by [`Turns::reads`].
    pub(super) fn answered(
        &mut self,
        mut answer: ModelAnswer,
        read: Option<Result<Value, Unfit>>,
        transcript: &mut Transcript,
    ) -> Result<Next, GenerateError> {
        if !answer.tool_calls.is_empty() {
            // some providers say `stop` all the same
            answer.finish_reason = FinishReason::ToolCalls;
            transcript.push(&answer);
            return self.wants_tools(answer, transcript);
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

    /// What follows when all calls of the last turn have their results.
    pub(super) fn tools_returned(
        &mut self,
        results: Vec<ToolResult>,
        transcript: &Transcript,
    ) -> Result<Next, GenerateError> {
        if let Some(answer) = self.asked_for_tools.take() {
            let said = prompt::turn(answer, results);
            Arc::make_mut(&mut self.prompt.messages).extend(said);
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

    fn wants_tools(
        &mut self,
        answer: ModelAnswer,
        transcript: &Transcript,
    ) -> Result<Next, GenerateError> {
        // tools may spend more: agents are among them
        if self.is_spent(transcript) {
            return self.break_off(FinishReason::Length);
        }
        let mut planned = Vec::with_capacity(answer.tool_calls.len());
        for (number, call) in answer.tool_calls.iter().cloned().enumerate() {
            let refusal = self.refusal(number);
            if refusal.is_none() {
                self.calls_made += 1;
            }
            planned.push(Planned { call, refusal });
        }
        self.asked_for_tools = Some(answer);
        Ok(Next::Call(planned))
    }

    /// Why the call of this number in its turn is not made.
    fn refusal(&self, number: usize) -> Option<String> {
        if number >= CALLS_PER_TURN_MAX {
            return Some(format!("not called: more than {CALLS_PER_TURN_MAX} calls at once"));
        }
        let most = self.bounds.tool_calls?;
        (self.calls_made >= most)
            .then(|| format!("not called: the run's {most} tool calls are used up"))
    }

    fn is_spent(&self, transcript: &Transcript) -> bool {
        self.bounds.tokens.is_some_and(|most| transcript.usage().total_tokens > most)
    }

    /// Ends before the model has said all that it wants.
    fn break_off(&self, finish_reason: FinishReason) -> Result<Next, GenerateError> {
        if self.schema.is_none() {
            return Ok(Next::Done(Ended { finish_reason, object: None }));
        }
        let why = match finish_reason {
            FinishReason::Length => "the run's tokens are used up".to_owned(),
            _ => format!("the run has taken its {} steps", self.bounds.steps),
        };
        Err(GenerateError::Failed(format!("the model gave no object: {why}")))
    }

    fn ask_for_repair(&mut self, text: String, detail: &str) {
        let complaint = format!(
            "Your answer does not meet the schema: {detail}. \
             Answer again, with nothing but JSON that meets it."
        );
        Arc::make_mut(&mut self.prompt.messages)
            .extend([Message::text(Role::Assistant, text), Message::text(Role::User, complaint)]);
    }
}

/// Compiles the schema of an answer.
pub(super) fn compile_schema(schema: Value) -> Result<(Value, Schema), GenerateError> {
    match Schema::compile(&schema) {
        Ok(compiled) => Ok((schema, compiled)),
        Err(error) => Err(GenerateError::InvalidSchema(schema_detail(error))),
    }
}

/// The place only where there is one: the error around it says that it is about a schema.
fn schema_detail(error: SchemaError) -> String {
    let SchemaError { pointer, message } = error;
    if pointer.is_empty() { message } else { format!("{pointer}: {message}") }
}

#[cfg(test)]
mod tests;
