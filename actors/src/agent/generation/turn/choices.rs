//! Evaluates an agent's instructions, model and tools for the context of a run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::generation::tools::Toolset;
use crate::agent::generation::{CompiledAgents, GenerateError};
use crate::agent::{AgentDefinition, Choice, ChoiceFunction};
use crate::domain::expression::{Expression, Scope, Template};
use crate::registry::Registry;

/// Returns the agent's instructions. A blank text counts as none: some providers reject an empty
/// message.
pub(in crate::agent::generation) fn instructions(
    compiled: &CompiledAgents,
    agent: &AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Option<String>, GenerateError> {
    let Some(choice) = &agent.instructions else { return Ok(None) };
    let text =
        chosen_text(compiled, choice, context).map_err(|why| failed("instructions", &why))?;
    Ok((!text.trim().is_empty()).then(|| text.into_owned()))
}

/// Returns the name of the model.
pub(in crate::agent::generation) fn model<'a>(
    compiled: &CompiledAgents,
    agent: &'a AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Cow<'a, str>, GenerateError> {
    chosen_text(compiled, &agent.model, context).map_err(|why| failed("model", &why))
}

/// Returns the tools that the model may call.
pub(in crate::agent::generation) fn tools(
    compiled: &CompiledAgents,
    registry: &Registry,
    agent: &AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Toolset, GenerateError> {
    let toolset = |names: &[String]| Toolset::of(registry, names, &agent.sub_agents);
    let names = match &agent.tools {
        Choice::Fixed(names) => {
            let made = compiled.toolsets.get_or_make(&agent.id, || toolset(names));
            return made.map_err(GenerateError::Failed);
        }
        Choice::Source(source) => names_of(compiled, source, context),
        Choice::Function(function) => call(function, context),
    };
    let names = names.map_err(|why| failed("tools", &why))?;
    toolset(&names).map_err(GenerateError::Failed)
}

fn chosen_text<'a>(
    compiled: &CompiledAgents,
    choice: &'a Choice<String>,
    context: &Map<String, Value>,
) -> Result<Cow<'a, str>, String> {
    match choice {
        Choice::Fixed(text) => Ok(Cow::Borrowed(text)),
        Choice::Source(source) => compiled
            .templates
            .get_or_make(source, || Template::compile(source))
            .and_then(|template| template.render(&scope(context)))
            .map(Cow::Owned)
            .map_err(|error| error.to_string()),
        Choice::Function(function) => call(function, context).map(Cow::Owned),
    }
}

fn names_of(
    compiled: &CompiledAgents,
    source: &str,
    context: &Map<String, Value>,
) -> Result<Vec<String>, String> {
    let expressions = &compiled.expressions;
    let names = expressions
        .get_or_make(source, || Expression::compile(source))
        .and_then(|expression| expression.evaluate(&scope(context)))
        .map_err(|error| error.to_string())?;
    serde_json::from_value(names).map_err(|_| "must be an array of names".to_owned())
}

/// Calls the user's function; a panic becomes an error. The panic message is in the panic hook's
/// log only.
fn call<T>(function: &ChoiceFunction<T>, context: &Map<String, Value>) -> Result<T, String> {
    let called = catch_unwind(AssertUnwindSafe(|| function(context)));
    called.unwrap_or_else(|_| Err("the function panicked".to_owned()))
}

fn scope(context: &Map<String, Value>) -> Scope {
    let user = context.get("user").cloned().map(Arc::new);
    let context = Arc::new(Value::Object(context.clone()));
    Scope::new().with("context", context).with_optional("user", user)
}

fn failed(what: &str, why: &str) -> GenerateError {
    GenerateError::Failed(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::tool::{ToolBody, ToolDefinition};
    use crate::ports::model::ToolSpec;

    fn context(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn function<T>(
        chosen: impl Fn(&Map<String, Value>) -> Result<T, String> + Send + Sync + 'static,
    ) -> Choice<T> {
        Choice::Function(Arc::new(chosen))
    }

    #[test]
    fn texts_are_chosen_by_the_context() {
        let anna = json!({ "tone": "dry", "user": { "name": "Anna" } });
        let source = |text: &str| Choice::Source(text.to_owned());
        let rows = [
            ("fixed", Choice::from("Be {{ kind }}"), Ok(Some("Be {{ kind }}"))),
            (
                "a template",
                source("{{ context.tone }} to {{ user.name }}"),
                Ok(Some("dry to Anna")),
            ),
            ("blank", source("{{ '' }} "), Ok(None)),
            (
                "a function",
                function(|context| Ok(format!("{}!", context["tone"]))),
                Ok(Some("\"dry\"!")),
            ),
            ("a function's error", function(|_| Err("no".to_owned())), Err("instructions: no")),
            (
                "a panic",
                // unwinds like a panic, without the hook that would print into the test's output
                function(|_| std::panic::resume_unwind(Box::new("defect"))),
                Err("instructions: the function panicked"),
            ),
            ("an undefined name", source("{{ context.missing }}"), Err("instructions: ")),
        ];
        for (name, choice, expected) in rows {
            let agent =
                AgentDefinition { instructions: Some(choice), ..AgentDefinition::default() };
            match (
                instructions(&CompiledAgents::default(), &agent, &context(anna.clone())),
                expected,
            ) {
                (Ok(text), Ok(expected)) => assert_eq!(text.as_deref(), expected, "{name}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().starts_with(part), "{name}: {error}");
                }
                (given, _) => panic!("{name}: {given:?}"),
            }
        }
    }

    /// Returns a registry with a tool `add`.
    fn registry() -> Registry {
        let spec = ToolSpec {
            name: "add".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        };
        let add = ToolDefinition::new(spec, ToolBody::Workflow("add".to_owned())).unwrap();
        let mut registry = Registry::default();
        registry.tools.insert("add".to_owned(), Arc::new(add));
        registry
    }

    #[test]
    fn tools_and_models_are_chosen_by_the_context() {
        let (compiled, registry) = (CompiledAgents::default(), registry());
        let agent = |tools: Choice<Vec<String>>| AgentDefinition {
            tools,
            model: Choice::Source("{{ context.size }}-model".to_owned()),
            ..AgentDefinition::default()
        };
        let source = |text: &str| Choice::Source(text.to_owned());
        let rows = [
            ("fixed", Choice::Fixed(vec!["add".to_owned()]), false, Ok(1)),
            ("by the context", source("['add'] if context.admin else []"), true, Ok(1)),
            ("by another context", source("['add'] if context.admin else []"), false, Ok(0)),
            ("a function", function(|_| Ok(Vec::new())), true, Ok(0)),
            ("no names", source("7"), true, Err("tools: must be an array of names")),
            ("unknown", source("['gone']"), true, Err("tool gone is not registered")),
        ];
        for (name, choice, is_admin, expected) in rows {
            let agent = agent(choice);
            let context = context(json!({ "admin": is_admin, "size": "small" }));
            let chosen = tools(&compiled, &registry, &agent, &context);
            let count = chosen.map(|tools| tools.specs().len()).map_err(|error| error.to_string());
            assert_eq!(count, expected.map_err(str::to_owned), "{name}");
            assert_eq!(model(&compiled, &agent, &context).unwrap(), "small-model");
        }
    }
}
