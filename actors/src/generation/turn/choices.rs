//! What an agent chooses by the context of a run: its instructions, its model, its tools.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::{AgentDefinition, Choice, ChoiceFunction};
use crate::domain::expression::{Expression, Scope, Template};
use crate::generation::GenerateError;

/// The agent's own words. A blank text is none: some providers refuse an empty message.
pub(in crate::generation) fn instructions(
    agent: &AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Option<String>, GenerateError> {
    let Some(choice) = &agent.instructions else { return Ok(None) };
    let text = chosen_text(choice, context).map_err(|why| failed("instructions", &why))?;
    Ok((!text.trim().is_empty()).then(|| text.into_owned()))
}

/// Name of the model to ask.
pub(in crate::generation) fn model<'a>(
    agent: &'a AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Cow<'a, str>, GenerateError> {
    chosen_text(&agent.model, context).map_err(|why| failed("model", &why))
}

/// Names of the tools that the model may ask for.
pub(in crate::generation) fn tools<'a>(
    agent: &'a AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Cow<'a, [String]>, GenerateError> {
    let chosen = match &agent.tools {
        Choice::Fixed(names) => Ok(Cow::Borrowed(names.as_slice())),
        Choice::Source(source) => names_of(source, context).map(Cow::Owned),
        Choice::Function(function) => call(function, context).map(Cow::Owned),
    };
    chosen.map_err(|why| failed("tools", &why))
}

fn chosen_text<'a>(
    choice: &'a Choice<String>,
    context: &Map<String, Value>,
) -> Result<Cow<'a, str>, String> {
    match choice {
        Choice::Fixed(text) => Ok(Cow::Borrowed(text)),
        Choice::Source(source) => Template::compile(source)
            .and_then(|template| template.render(&scope(context)))
            .map(Cow::Owned)
            .map_err(|error| error.to_string()),
        Choice::Function(function) => call(function, context).map(Cow::Owned),
    }
}

fn names_of(source: &str, context: &Map<String, Value>) -> Result<Vec<String>, String> {
    let names = Expression::compile(source)
        .and_then(|expression| expression.evaluate(&scope(context)))
        .map_err(|error| error.to_string())?;
    serde_json::from_value(names).map_err(|_| "must give an array of names".to_owned())
}

/// A panic in the user's code fails the run; what it said is in the panic's own report.
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
            match (instructions(&agent, &context(anna.clone())), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text.as_deref(), expected, "{name}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().starts_with(part), "{name}: {error}");
                }
                (given, _) => panic!("{name}: {given:?}"),
            }
        }
    }

    #[test]
    fn tools_and_models_are_chosen_by_the_context() {
        let source = "['add'] if context.admin else []";
        let agent = AgentDefinition {
            tools: Choice::Source(source.to_owned()),
            model: Choice::Source("{{ context.size }}-model".to_owned()),
            ..AgentDefinition::default()
        };
        let context = |admin: bool| context(json!({ "admin": admin, "size": "small" }));
        assert_eq!(tools(&agent, &context(true)).unwrap(), ["add".to_owned()].as_slice());
        assert!(tools(&agent, &context(false)).unwrap().is_empty());
        assert_eq!(model(&agent, &context(true)).unwrap(), "small-model");

        let agent =
            AgentDefinition { tools: Choice::Source("7".to_owned()), ..AgentDefinition::default() };
        let error = tools(&agent, &context(true)).unwrap_err();
        assert_eq!(error.to_string(), "tools: must give an array of names");
    }
}
