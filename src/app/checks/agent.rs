//! Checks of agents from Rust code, the same as of configured ones.

use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::expression::{Expression, Template};
use greenroom_actors::domain::ids::is_definition_id;
use greenroom_actors::domain::plan::Form;

use crate::config::{ConfigProblem, Missing, NameKind, Names, Spot, agent_scope};

/// Returns the problems of an agent. Choices of functions are checked when they are made.
pub(super) fn agent(agent: &AgentDefinition, known: [&Names; 2]) -> Vec<String> {
    let id = &agent.id;
    let mut problems = Vec::new();
    if !is_definition_id(id) {
        problems.push(
            "the id must be a letter or digit, then letters, digits, `.`, `_` or `-`".to_owned(),
        );
    }
    if agent.sub_agents.contains(id) {
        problems.push("an agent cannot be its own sub-agent".to_owned());
    }
    let template = |what: &str, source: &str| match Template::compile(source) {
        Ok(_) => None,
        Err(error) => Some(format!("{what}: {error}")),
    };
    problems.extend(match &agent.instructions {
        Some(Choice::Source(source)) => template("instructions", source),
        Some(Choice::Fixed(_) | Choice::Function(_)) | None => None,
    });
    let mut named = Vec::new();
    match &agent.model {
        Choice::Fixed(model) if model.is_empty() => {
            problems.push("has no model: name one with `model`".to_owned());
        }
        Choice::Fixed(model) => named.push((NameKind::Model, model)),
        Choice::Source(source) => problems.extend(template("model", source)),
        Choice::Function(_) => {}
    }
    match &agent.tools {
        Choice::Fixed(tools) => named.extend(tools.iter().map(|tool| (NameKind::Tool, tool))),
        Choice::Source(source) => {
            let refused = Expression::compile(source).err();
            problems.extend(refused.map(|error| format!("tools: {error}")));
        }
        Choice::Function(_) => {}
    }
    named.extend(agent.sub_agents.iter().map(|agent| (NameKind::Agent, agent)));
    let missing = named.into_iter().filter_map(|(kind, name)| Missing::of(kind, name, known));
    problems.extend(missing.map(|missing| match missing.suggestion {
        Some(suggestion) => format!("{}; did you mean {suggestion}?", missing.message),
        None => missing.message,
    }));
    let remarks = remarks(agent).into_iter().filter(ConfigProblem::is_error);
    let lines = problems.into_iter().map(|problem| format!("agent {id}: {problem}"));
    lines.chain(remarks.map(|problem| problem.to_string())).collect()
}

/// Returns problems and warnings of the texts of an agent.
pub(super) fn remarks(agent: &AgentDefinition) -> Vec<ConfigProblem> {
    let source = |choice: &Choice<String>| match choice {
        Choice::Source(source) => Some(source.clone()),
        Choice::Fixed(_) | Choice::Function(_) => None,
    };
    let tools = match &agent.tools {
        Choice::Source(source) => Some(source.clone()),
        Choice::Fixed(_) | Choice::Function(_) => None,
    };
    let instructions = agent.instructions.as_ref().and_then(source);
    let texts = [
        ("instructions", Form::Template, instructions),
        ("model", Form::Template, source(&agent.model)),
        ("tools", Form::Expression, tools),
    ];
    let found = texts.into_iter().filter_map(|(key, form, text)| Some((key, form, text?)));
    let remarks = found.flat_map(|(key, form, text)| {
        let spot = Spot { key: key.to_owned(), ..Spot::nowhere(&format!("agent {}", agent.id)) };
        agent_scope().problems(&text, form, &spot)
    });
    remarks.collect()
}
