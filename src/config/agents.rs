//! `[agents.*]`: agents.

use std::time::Duration;

use greenroom_actors::agent::{AgentDefinition, Budget, Choice};
use toml::de::DeValue;

use super::entry::Entry;
use super::names::{NameKind, Reference};
use super::options::read_model_options;
use super::section::Section;
use super::texts::TextScope;

/// Returns the names that templates and expressions of an agent can read.
pub(crate) fn in_scope() -> TextScope {
    TextScope::of(&SCOPE)
}

const SCOPE: [&str; 2] = ["context", "user"];

/// Upper bound of `max_steps`; larger values are rejected.
const STEPS_MAX: i64 = 1000;

/// Reads an agent; names that it refers to are looked up later.
pub(crate) fn read(
    id: &str,
    section: Section<'_>,
    references: &mut Vec<Reference>,
) -> Option<AgentDefinition> {
    let model = section.required("model").and_then(|entry| model(&entry, references));
    let instructions = section.get("instructions").and_then(|entry| template(&entry));
    let name = section.text("name").unwrap_or_else(|| id.to_owned());
    let description = section.text("description").unwrap_or_default();
    let tools = section.get("tools").and_then(|entry| tools(&entry, references));
    let sub_agents = section.get("sub_agents").map(|entry| sub_agents(id, &entry, references));
    let memory = section.flag("memory", true);
    let max_steps = section.get("max_steps").and_then(|entry| count(&entry, STEPS_MAX));
    let budget = section.section("budget").map(budget).unwrap_or_default();
    let options = section.section("options").map(read_model_options).unwrap_or_default();
    let ChatConfig { is_resumable, has_data_approvals } =
        section.section("chat").map(chat).unwrap_or_default();
    let is_volatile = !section.flag("durable", true);
    section.close();
    let id = id.to_owned();
    let model = model?;
    Some(AgentDefinition {
        id,
        name,
        description,
        instructions: instructions.map(Choice::Source),
        model,
        tools: tools.unwrap_or_default(),
        sub_agents: sub_agents.unwrap_or_default(),
        memory,
        max_steps,
        budget,
        options,
        is_resumable,
        has_data_approvals,
        is_volatile,
        hooks: None,
    })
}

fn template(entry: &Entry<'_>) -> Option<String> {
    in_scope().template(entry);
    entry.text()
}

/// Reads a name, or a template that returns one.
fn model(entry: &Entry<'_>, references: &mut Vec<Reference>) -> Option<Choice<String>> {
    let is_template = matches!(entry.value, DeValue::String(text) if text.contains("{{"));
    if is_template {
        return template(entry).map(Choice::Source);
    }
    entry.reference(NameKind::Model, references).map(Choice::Fixed)
}

/// Reads an array of names, or an expression that returns one.
fn tools(entry: &Entry<'_>, references: &mut Vec<Reference>) -> Option<Choice<Vec<String>>> {
    match entry.value {
        DeValue::String(text) => {
            if let Some(name) = lone_name(text) {
                return entry.refuse(format!("is one name; write the array tools = [\"{name}\"]"));
            }
            in_scope().expression(entry);
            entry.text().map(Choice::Source)
        }
        DeValue::Array(_) => Some(Choice::Fixed(names(entry, NameKind::Tool, references))),
        _ => entry.refuse(
            "must be an array of names of tools, or an expression in a string that returns one",
        ),
    }
}

/// Returns the name of a tool that was written without an array, also as a string in an expression.
fn lone_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let literal = ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    });
    // a path such as `context.tools` is an expression
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_bare = !text.is_empty() && !SCOPE.contains(&text) && text.chars().all(is_name);
    let has_letters = text.contains(|c: char| c.is_ascii_alphabetic());
    literal.or_else(|| (is_bare && has_letters).then_some(text))
}

fn sub_agents(id: &str, entry: &Entry<'_>, references: &mut Vec<Reference>) -> Vec<String> {
    let names = names(entry, NameKind::Agent, references);
    if let Some(at) = names.iter().position(|name| name == id) {
        let items = entry.items().unwrap_or_default();
        let own = items.get(at).map_or(&entry.place, |item| &item.place);
        own.refuse("an agent cannot be its own sub-agent");
    }
    names
}

/// Reads an array of distinct names.
fn names(entry: &Entry<'_>, kind: NameKind, references: &mut Vec<Reference>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in entry.items().unwrap_or_default() {
        let Some(name) = item.filled_text() else { continue };
        if names.contains(&name) {
            item.place.refuse(format!("{kind} {name} is named twice"));
            continue;
        }
        references.push(Reference::new(kind, &name, item.place.spot()));
        names.push(name);
    }
    names
}

fn budget(section: Section<'_>) -> Budget {
    let tokens = section.get("tokens").and_then(|entry| entry.integer(1..=i64::MAX));
    let time: Option<Duration> = section.get("time").and_then(|entry| entry.duration());
    let tool_calls = section.get("tool_calls").and_then(|entry| count(&entry, i64::from(u32::MAX)));
    section.close();
    Budget { tokens: tokens.and_then(|tokens| u64::try_from(tokens).ok()), time, tool_calls }
}

/// `chat` of an agent.
#[derive(Default)]
struct ChatConfig {
    is_resumable: bool,
    has_data_approvals: bool,
}

fn chat(section: Section<'_>) -> ChatConfig {
    let is_resumable = section.flag("resumable", false);
    let approvals = section
        .get("approvals")
        .and_then(|entry| entry.one_of(&[("parts", false), ("data", true)]));
    section.close();
    ChatConfig { is_resumable, has_data_approvals: approvals.unwrap_or_default() }
}

fn count(entry: &Entry<'_>, max: i64) -> Option<u32> {
    entry.integer(1..=max).and_then(|count| u32::try_from(count).ok())
}
