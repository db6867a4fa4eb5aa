//! `[agents.*]`: agents.

use greenroom_actors::agent::{AgentDefinition, Choice};

use super::names::{NameKind, Reference};
use super::options::read_model_options;
use super::section::Section;
use super::texts;

/// Reads an agent; what it refers to is looked up later.
pub(crate) fn read(
    id: &str,
    section: Section<'_>,
    references: &mut Vec<Reference>,
) -> Option<AgentDefinition> {
    let model = section.required("model").and_then(|entry| {
        let name = entry.filled_text()?;
        references.push(Reference::new(NameKind::Model, &name, entry.place.spot()));
        Some(name)
    });
    let instructions = section.get("instructions").and_then(|entry| {
        texts::template(&entry);
        entry.text()
    });
    let name = section.text("name").unwrap_or_else(|| id.to_owned());
    let description = section.text("description").unwrap_or_default();
    let memory = section.flag("memory", true);
    let options = section.section("options").map(read_model_options).unwrap_or_default();
    section.later(&["tools", "sub_agents", "chat", "max_steps"]);
    section.close();
    let id = id.to_owned();
    let model = model?;
    Some(AgentDefinition {
        id,
        name,
        description,
        instructions: instructions.map(Choice::Source),
        model: Choice::Fixed(model),
        memory,
        options,
        ..AgentDefinition::default()
    })
}
