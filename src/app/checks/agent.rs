//! Agents from Rust, checked as the configured ones are.

use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::expression::{Expression, Template};
use greenroom_actors::domain::ids::is_definition_id;

use crate::config::{Missing, NameKind, Names};

/// Everything that is wrong with an agent. What functions choose is seen when they do.
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
    problems.into_iter().map(|problem| format!("agent {id}: {problem}")).collect()
}
