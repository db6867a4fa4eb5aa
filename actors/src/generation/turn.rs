//! The rules of a generation: what to ask the model and what to make of its answer. No actor,
//! no clock, no I/O.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::{AgentDefinition, Choice};
use crate::domain::expression::{Scope, Template};
use crate::domain::message::for_model;
use crate::domain::schema::{Schema, SchemaError};
use crate::ports::model::{
    FinishReason, Message, ModelAnswer, ModelOptions, ModelRequest, Role, Usage,
};

use super::object::read_object;
use super::options::effective_options;
use super::{GenerateError, Generation};

/// What a caller asks of an agent, as far as the model is concerned.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) messages: Vec<Message>,
    pub(super) options: ModelOptions,
    pub(super) schema: Option<Value>,
    pub(super) context: Map<String, Value>,
}

/// A generation between its turns.
#[derive(Debug)]
pub(super) struct Turns {
    generation_id: String,
    prompt: ModelRequest,
    schema: Option<Schema>,
    repairs_left: u32,
    usage: Usage,
}

/// What follows from an answer: the run is over, or the model has to be asked again.
pub(super) type Next = ControlFlow<Result<Generation, GenerateError>>;

impl Turns {
    /// Compiles the schema, renders the instructions and puts the prompt together.
    pub(super) fn prepare(
        generation_id: String,
        agent: &AgentDefinition,
        question: Question,
        object_repairs: u32,
    ) -> Result<Self, GenerateError> {
        let Question { messages, options, schema, context } = question;
        let compiled = schema
            .as_ref()
            .map(Schema::compile)
            .transpose()
            .map_err(|error| GenerateError::InvalidSchema(schema_detail(error)))?;
        let instructions = instructions(agent, context)?;
        let prompt = ModelRequest {
            messages: Arc::new(for_model(instructions.into_iter().chain(messages))),
            tools: Arc::from([]),
            schema: schema.map(Arc::new),
            options: effective_options(options, &agent.options),
        };
        let usage = Usage::default();
        Ok(Self { generation_id, prompt, schema: compiled, repairs_left: object_repairs, usage })
    }

    /// What the model is to be asked now.
    pub(super) fn request(&self) -> ModelRequest {
        self.prompt.clone()
    }

    /// Tokens of all turns so far.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes the model's answer to [`Turns::request`].
    pub(super) fn answered(&mut self, answer: ModelAnswer) -> Next {
        self.usage = self.usage.plus(answer.usage);
        if !answer.tool_calls.is_empty() {
            return Next::Break(self.ended_by_tool_calls(answer));
        }
        let Some(schema) = &self.schema else {
            return Next::Break(Ok(self.completed(answer, None)));
        };
        match read_object(&answer.text, schema) {
            Ok(object) => Next::Break(Ok(self.completed(answer, Some(object)))),
            Err(detail) if self.repairs_left == 0 => {
                Next::Break(Err(GenerateError::Failed(detail)))
            }
            Err(detail) => {
                self.repairs_left -= 1;
                self.ask_for_repair(answer.text, &detail);
                Next::Continue(())
            }
        }
    }

    /// The agent runs no tools: what the model asks for is handed to the caller.
    fn ended_by_tool_calls(&self, answer: ModelAnswer) -> Result<Generation, GenerateError> {
        if self.schema.is_some() {
            let detail = "the model asked for a tool instead of giving an object";
            return Err(GenerateError::Failed(detail.to_owned()));
        }
        let finish_reason = FinishReason::ToolCalls;
        Ok(self.completed(ModelAnswer { finish_reason, ..answer }, None))
    }

    fn ask_for_repair(&mut self, text: String, detail: &str) {
        let complaint = format!(
            "Your answer does not meet the schema: {detail}. \
             Answer again, with nothing but JSON that meets it."
        );
        Arc::make_mut(&mut self.prompt.messages)
            .extend([Message::text(Role::Assistant, text), Message::text(Role::User, complaint)]);
    }

    fn completed(&self, answer: ModelAnswer, object: Option<Value>) -> Generation {
        let ModelAnswer { text, tool_calls, finish_reason, .. } = answer;
        Generation {
            id: self.generation_id.clone(),
            message_id: self.generation_id.clone(),
            text,
            object,
            usage: self.usage,
            finish_reason,
            tool_calls,
            tool_results: Vec::new(),
        }
    }
}

/// The agent's own words, before any other message. A blank text is no message: some providers
/// refuse one.
fn instructions(
    agent: &AgentDefinition,
    context: Map<String, Value>,
) -> Result<Option<Message>, GenerateError> {
    let source = match &agent.instructions {
        None => return Ok(None),
        Some(Choice::Fixed(source) | Choice::Source(source)) => source,
        Some(Choice::Function(_)) => return Ok(None),
    };
    let user = context.get("user").cloned().map(Arc::new);
    let scope =
        Scope::new().with("context", Arc::new(Value::Object(context))).with_optional("user", user);
    let text = Template::compile(source)
        .and_then(|template| template.render(&scope))
        .map_err(|error| GenerateError::Failed(format!("instructions: {error}")))?;
    Ok((!text.trim().is_empty()).then(|| Message::text(Role::System, text)))
}

/// The place only where there is one: the error around it says that it is about a schema.
fn schema_detail(error: SchemaError) -> String {
    let SchemaError { pointer, message } = error;
    if pointer.is_empty() { message } else { format!("{pointer}: {message}") }
}

#[cfg(test)]
mod tests;
