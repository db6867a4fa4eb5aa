//! A request prepared for a wire format: complete, without options that the provider must not get.

use greenroom_actors::domain::message::{Message, Role, keep_whole_calls};
use greenroom_actors::ports::model::{ModelOptions, ModelRequest, ToolChoice, ToolSpec};
use serde_json::Value;

use super::format::Format;
use super::names::ToolNames;
use super::provider::Objects;
use super::result_files::within_limits;
use super::schema::{instruction, is_of_object};
use super::{Omitted, ProviderConfig};

/// Input of a wire format.
#[derive(Debug)]
pub(super) struct Prompt<'a> {
    pub(super) provider: &'static str,
    pub(super) model: &'a str,
    pub(super) messages: Vec<Message>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) tool_choice: &'a ToolChoice,
    pub(super) names: &'a ToolNames,
    pub(super) object: Object<'a>,
    pub(super) options: ModelOptions,
    pub(super) streams: bool,
    /// True if the server is OpenAI itself.
    pub(super) is_openai: bool,
}

/// Request for an object, in addition to the messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Object<'a> {
    /// None, or only in the messages.
    No,
    /// JSON of any shape.
    AnyJson,
    /// JSON that meets a schema.
    Schema(&'a Value),
}

impl Prompt<'_> {
    /// Returns true if the model may call one tool per answer at most.
    pub(super) fn calls_one_by_one(&self) -> bool {
        !self.tools.is_empty() && self.options.parallel_tool_calls == Some(false)
    }
}

impl<'a> Prompt<'a> {
    pub(super) fn new(
        config: &'a ProviderConfig,
        is_openai: bool,
        request: &'a ModelRequest,
        names: &'a ToolNames,
    ) -> Self {
        let ModelRequest { messages, tools, tool_choice, schema, options, trace: _ } = request;
        let mut messages = settled(messages);
        if config.provider.format != Format::OpenAi {
            within_limits(&mut messages);
            begin_with_user(&mut messages);
        }
        let options = without(options, &config.omit);
        let mut object = Object::No;
        if let Some(schema) = schema.as_deref() {
            object = object_for(config, is_openai, schema, !tools.is_empty(), &options);
            if !matches!(object, Object::Schema(_)) {
                let system = messages.iter().take_while(|message| message.role == Role::System);
                let after_system = system.count();
                messages.insert(after_system, Message::text(Role::System, instruction(schema)));
            }
        }
        Self {
            provider: config.provider.name,
            model: &config.model,
            messages,
            tools,
            tool_choice,
            names,
            object,
            options,
            streams: config.stream,
            is_openai,
        }
    }
}

fn object_for<'a>(
    config: &ProviderConfig,
    is_openai: bool,
    schema: &'a Value,
    has_tools: bool,
    options: &ModelOptions,
) -> Object<'a> {
    let native = match config.provider.format {
        // OpenAI itself refuses arrays at the top; other servers of its format accept them
        Format::OpenAi => !is_openai || is_of_object(schema),
        // uses a forced tool call: refused with thinking, and other tools could not be called
        Format::Anthropic => is_of_object(schema) && !has_tools && !thinks(options),
        // refused together with tools
        Format::Gemini => !has_tools,
    };
    let any_json = is_of_object(schema) && !(has_tools && config.provider.is_json_without_tools());
    match config.objects {
        Objects::Native if native => Object::Schema(schema),
        Objects::Json if any_json => Object::AnyJson,
        Objects::Native | Objects::Json | Objects::Instruction => Object::No,
    }
}

fn thinks(options: &ModelOptions) -> bool {
    let given = options.provider_options.as_ref();
    let thinking =
        given.and_then(|it| it.get("thinking").or_else(|| it.get("anthropic")?.get("thinking")));
    thinking.is_some_and(|thinking| thinking["type"] != "disabled")
}

fn without(options: &ModelOptions, omit: &[Omitted]) -> ModelOptions {
    let mut options = options.clone();
    for omitted in omit {
        match omitted {
            Omitted::Temperature => options.temperature = None,
            Omitted::MaxOutputTokens => options.max_output_tokens = None,
            Omitted::TopP => options.top_p = None,
            Omitted::FrequencyPenalty => options.frequency_penalty = None,
            Omitted::PresencePenalty => options.presence_penalty = None,
            Omitted::Seed => options.seed = None,
            Omitted::StopSequences => options.stop_sequences = None,
            Omitted::ParallelToolCalls => options.parallel_tool_calls = None,
            Omitted::ProviderOptions => options.provider_options = None,
        }
    }
    options
}

/// Inserts a message of the user if the conversation begins with the model, as a shortened one may:
/// some formats refuse that.
fn begin_with_user(messages: &mut Vec<Message>) {
    let first = messages.iter().position(|message| message.role != Role::System);
    if let Some(first) = first.filter(|first| messages[*first].role != Role::User) {
        messages.insert(first, Message::text(Role::User, "(Earlier messages are omitted.)"));
    }
}

/// Removes incomplete calls and empty messages: providers refuse them, and the conversation could
/// never continue.
fn settled(messages: &[Message]) -> Vec<Message> {
    let mut complete = messages.to_vec();
    keep_whole_calls(&mut complete);
    complete.retain(|message| !message.parts.is_empty());
    complete
}
