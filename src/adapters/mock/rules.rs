//! Compiled rules, and the answer that they give to a request.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::expression::{CompiledMapping, Expression, Scope, Template};
use greenroom_actors::domain::hash::short_hash;
use greenroom_actors::domain::message::{Message, Part, Role, ToolCall};
use greenroom_actors::ports::model::{
    ModelError, ModelErrorKind, ModelRequest, ToolChoice, ToolSpec,
};
use serde_json::Value;

use super::{MockAction, MockRule};
use crate::sample::sample;

/// An answer, and the pause before it.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) delay: Duration,
    pub(super) script: Result<Script, ModelError>,
}

/// An answer before its tokens are counted and it is split into pieces.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) is_json: bool,
    pub(super) tool_calls: Vec<ToolCall>,
}

/// All rules of a model.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// True if a rule reads `messages` or `tools`: they are large, and seldom used.
    reads_messages: bool,
    reads_tools: bool,
}

#[derive(Debug)]
struct Rule {
    when: Option<Expression>,
    delay: Duration,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Reply(Template),
    ToolCalls(Vec<(String, CompiledMapping)>),
    Object(CompiledMapping),
    Error(String),
    Default,
}

impl Rules {
    pub(super) fn compile(rules: Vec<MockRule>) -> Result<Self, Vec<String>> {
        let mut compiled = Vec::with_capacity(rules.len());
        let mut problems = Vec::new();
        for (index, rule) in rules.into_iter().enumerate() {
            match Rule::compile(rule) {
                Ok(rule) => compiled.push(rule),
                Err(found) => {
                    problems
                        .extend(found.iter().map(|problem| format!("rules[{index}].{problem}")));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let reads = |name| compiled.iter().any(|rule: &Rule| rule.uses(name));
        let (reads_messages, reads_tools) = (reads("messages"), reads("tools"));
        Ok(Self { rules: compiled, reads_messages, reads_tools })
    }

    /// Finds the first rule that holds and evaluates its action. The result depends on the request
    /// only. An answer without the calls that the request demands becomes a call with sample arguments.
    pub(super) fn decide(&self, request: &ModelRequest) -> Decision {
        let Decision { delay, script } = self.chosen(request);
        let is_met = |script: &Script| request.tool_choice.is_met_by(&script.tool_calls);
        let script = match script {
            Ok(script) if !is_met(&script) => demanded(request).unwrap_or(Ok(script)),
            script => script,
        };
        Decision { delay, script }
    }

    fn chosen(&self, request: &ModelRequest) -> Decision {
        let at_once = |script| Decision { delay: Duration::ZERO, script };
        if self.rules.is_empty() {
            return at_once(default_answer(request));
        }
        let scope = self.scope_of(request);
        for (index, rule) in self.rules.iter().enumerate() {
            let failed = |detail: String| failure(format!("mock rule {index}: {detail}"));
            match rule.when.as_ref().map_or(Ok(true), |when| when.holds(&scope)) {
                Ok(false) => {}
                Ok(true) => {
                    let script = rule.action.evaluate(request, &scope, failed);
                    return Decision { delay: rule.delay, script };
                }
                Err(error) => return at_once(Err(failed(error.to_string()))),
            }
        }
        at_once(default_answer(request))
    }

    fn scope_of(&self, request: &ModelRequest) -> Scope {
        let mut scope = Scope::new()
            .with("prompt", Arc::new(Value::String(prompt_of(request))))
            .with_optional("schema", request.schema.clone())
            .with_optional("tool_results", tool_results_of(request).map(Arc::new));
        if self.reads_messages {
            let messages = request.messages.iter().map(Message::to_content_json).collect();
            scope = scope.with("messages", Arc::new(messages));
        }
        if self.reads_tools {
            let tools = serde_json::to_value(&request.tools[..]).unwrap_or_default();
            scope = scope.with("tools", Arc::new(tools));
        }
        scope
    }
}

impl Rule {
    fn compile(rule: MockRule) -> Result<Self, Vec<String>> {
        let MockRule { when, delay, action } = rule;
        let when = when.as_deref().map(Expression::compile).transpose();
        let when = when.map_err(|error| format!("when: {error}"));
        match (when, Action::compile(action)) {
            (Ok(when), Ok(action)) => Ok(Self { when, delay, action }),
            (when, action) => Err(when.err().into_iter().chain(action.err()).collect()),
        }
    }

    fn uses(&self, name: &str) -> bool {
        self.when.as_ref().is_some_and(|when| when.uses(name)) || self.action.uses(name)
    }
}

impl Action {
    fn compile(action: MockAction) -> Result<Self, String> {
        match action {
            MockAction::Reply(source) => Template::compile(&source)
                .map(Self::Reply)
                .map_err(|error| format!("reply: {error}")),
            MockAction::ToolCalls(calls) => calls
                .into_iter()
                .map(|(name, arguments)| match CompiledMapping::compile(&arguments) {
                    Ok(compiled) => Ok((name, compiled)),
                    Err(error) => Err(format!("tool_calls.{name}: {error}")),
                })
                .collect::<Result<_, _>>()
                .map(Self::ToolCalls),
            MockAction::Object(object) => CompiledMapping::compile(&object)
                .map(Self::Object)
                .map_err(|error| format!("object: {error}")),
            MockAction::Error(message) => Ok(Self::Error(message)),
            MockAction::Default => Ok(Self::Default),
        }
    }

    fn uses(&self, name: &str) -> bool {
        match self {
            Self::Reply(template) => template.uses(name),
            Self::ToolCalls(calls) => calls.iter().any(|(_, arguments)| arguments.uses(name)),
            Self::Object(object) => object.uses(name),
            Self::Error(_) | Self::Default => false,
        }
    }

    fn evaluate(
        &self,
        request: &ModelRequest,
        scope: &Scope,
        failed: impl Fn(String) -> ModelError,
    ) -> Result<Script, ModelError> {
        let failed = |error: greenroom_actors::domain::expression::ExpressionError| {
            failed(error.to_string())
        };
        match self {
            Self::Reply(template) => {
                let text = template.render(scope).map_err(failed)?;
                Ok(Script { text, is_json: request.schema.is_some(), ..Script::default() })
            }
            Self::ToolCalls(calls) => {
                let inputs = calls.iter().map(|(name, arguments)| {
                    Ok((name.clone(), arguments.evaluate(scope).map_err(failed)?))
                });
                let inputs = inputs.collect::<Result<Vec<_>, ModelError>>()?;
                Ok(Script { tool_calls: numbered(request, inputs), ..Script::default() })
            }
            Self::Object(object) => {
                let text = object.evaluate(scope).map_err(failed)?.to_string();
                Ok(Script { text, is_json: true, ..Script::default() })
            }
            Self::Error(message) => Err(failure(message.clone())),
            Self::Default => default_answer(request),
        }
    }
}

/// Returns the prompt or, given a schema, a sample that meets it.
fn default_answer(request: &ModelRequest) -> Result<Script, ModelError> {
    match &request.schema {
        None => Ok(Script { text: prompt_of(request), ..Script::default() }),
        Some(schema) => {
            let text = sample(schema).map_err(failure)?.to_string();
            Ok(Script { text, is_json: true, ..Script::default() })
        }
    }
}

/// Returns a call of the demanded tool, or of the first one. Without tools there is none.
fn demanded(request: &ModelRequest) -> Option<Result<Script, ModelError>> {
    let is_demanded = |tool: &&ToolSpec| match &request.tool_choice {
        ToolChoice::Tool(name) => tool.name == **name,
        ToolChoice::Auto | ToolChoice::Required => true,
    };
    let tool = request.tools.iter().find(is_demanded)?;
    Some(sample(&tool.parameters).map_err(failure).map(|input| {
        let tool_calls = numbered(request, vec![(tool.name.clone(), input)]);
        Script { tool_calls, ..Script::default() }
    }))
}

/// Gives the calls ids that follow from the whole prompt, so that they differ from turn to turn and
/// are the same if the generation is repeated.
fn numbered(request: &ModelRequest, inputs: Vec<(String, Value)>) -> Vec<ToolCall> {
    let prompt = serde_json::to_string(&*request.messages).unwrap_or_default();
    inputs
        .into_iter()
        .enumerate()
        .map(|(index, (tool_name, input))| {
            let digits = short_hash(&[&prompt, &index.to_string()]);
            ToolCall { tool_call_id: format!("call_{digits}"), tool_name, input }
        })
        .collect()
}

/// Returns the newest text of a user.
fn prompt_of(request: &ModelRequest) -> String {
    let newest = request.messages.iter().rev().find(|message| message.role == Role::User);
    newest.map(Message::plain_text).unwrap_or_default()
}

/// Returns the tool results since the newest message of a user.
fn tool_results_of(request: &ModelRequest) -> Option<Value> {
    let newest = request.messages.iter().rposition(|message| message.role == Role::User);
    let since = &request.messages[newest.map_or(0, |at| at + 1)..];
    let parts = since.iter().flat_map(|message| &message.parts);
    let results: Vec<Value> = parts
        .filter(|part| matches!(part, Part::ToolResult(_)))
        .filter_map(|part| serde_json::to_value(part).ok())
        .collect();
    (!results.is_empty()).then_some(Value::Array(results))
}

fn failure(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Other, message)
}
