//! `[models.*]`: language models.

#[cfg(feature = "providers")]
mod provider;

use std::collections::BTreeMap;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::definition::Mapping;
use serde_json::{Map, Value};

use crate::adapters::mock::{MockAction, MockConfig, MockRule};
#[cfg(feature = "providers")]
use crate::adapters::models::{PROVIDERS, Provider};

#[cfg(feature = "providers")]
pub use self::provider::RemoteConfig;
#[cfg(feature = "providers")]
pub(crate) use self::provider::fallback_cycles;

use super::entry::Entry;
#[cfg(not(feature = "providers"))]
use super::features;
use super::names::Reference;
use super::problem::{ConfigProblem, Spot};
use super::section::Section;
use super::texts::TextScope;
use super::tools::DELEGATE_TASK;
use crate::nearest::nearest;

/// Settings of a language model.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelConfig {
    /// The built-in mock model: offline and deterministic.
    Mock(MockConfig),
    /// A model of a provider.
    #[cfg(feature = "providers")]
    Remote(Box<RemoteConfig>),
}

pub(super) const MOCK: &str = "mock";

/// Name of the mock model in earlier versions.
pub(super) const FORMER_MOCK: &str = "rehearsal";

/// A tool that a rule of a mock model calls.
#[derive(Debug, Clone)]
pub(crate) struct RuleCall {
    tool: String,
    spot: Spot,
}

impl RuleCall {
    /// Returns a warning if no agent has the tool. Returns `None` if an agent computes its tools.
    pub(crate) fn check(
        &self,
        agents: &BTreeMap<String, AgentDefinition>,
    ) -> Option<ConfigProblem> {
        let mut known = Vec::new();
        for agent in agents.values() {
            known.extend(agent.tools.fixed()?.iter().map(String::as_str));
            if !agent.sub_agents.is_empty() {
                known.push(DELEGATE_TASK);
            }
        }
        let message = format!("no agent has the tool {}", self.tool);
        let meant = nearest(&self.tool, known.iter().copied());
        (!known.contains(&self.tool.as_str())).then(|| self.spot.warning(message).meant(meant))
    }
}

/// Returns the names that rules of the mock model can read.
fn in_scope() -> TextScope {
    TextScope::of(&["prompt", "messages", "tools", "schema", "tool_results"])
}

const ACTIONS: [&str; 5] = ["reply", "tool_call", "tool_calls", "object", "error"];

impl ModelConfig {
    /// Reads a model; `calls` takes the tools that its rules call.
    pub(crate) fn read(
        section: Section<'_>,
        references: &mut Vec<Reference>,
        calls: &mut Vec<RuleCall>,
    ) -> Option<Self> {
        let entry = section.required("provider")?;
        let name = entry.text()?;
        if name == MOCK || name == FORMER_MOCK {
            return Some(Self::Mock(read_mock(section, calls)));
        }
        read_remote(&name, &entry, section, references)
    }

    /// Returns true for a model of a provider, and false for the mock model.
    #[cfg(feature = "testing")]
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Mock(_) => false,
            #[cfg(feature = "providers")]
            Self::Remote(_) => true,
        }
    }
}

#[cfg(feature = "providers")]
fn read_remote(
    name: &str,
    entry: &Entry<'_>,
    section: Section<'_>,
    references: &mut Vec<Reference>,
) -> Option<ModelConfig> {
    if let Some(provider) = Provider::named(name) {
        let remote = RemoteConfig::read(provider, section, references)?;
        return Some(ModelConfig::Remote(Box::new(remote)));
    }
    let known = PROVIDERS.iter().map(|provider| provider.name).chain([MOCK]);
    entry.refuse_name(name, &known.collect::<Vec<_>>());
    None
}

/// Refuses every provider.
#[cfg(not(feature = "providers"))]
fn read_remote(
    _: &str,
    entry: &Entry<'_>,
    _: Section<'_>,
    _: &mut Vec<Reference>,
) -> Option<ModelConfig> {
    entry.refuse(features::PROVIDERS.lacking("call a provider; use \"mock\", or a model in Rust")?)
}

/// Finds nothing: the mock model has no fallbacks.
#[cfg(not(feature = "providers"))]
pub(crate) fn fallback_cycles(_: &BTreeMap<String, ModelConfig>) -> Vec<ConfigProblem> {
    Vec::new()
}

pub(super) fn read_mock(section: Section<'_>, calls: &mut Vec<RuleCall>) -> MockConfig {
    let pace = section.get("pace").and_then(|entry| entry.pause()).unwrap_or_default();
    let rules = section.sections("rules").into_iter();
    let rules = rules.filter_map(|rule| MockRule::read(rule, calls)).collect();
    section.close();
    MockConfig { pace, rules }
}

impl MockRule {
    fn read(section: Section<'_>, calls: &mut Vec<RuleCall>) -> Option<Self> {
        let when = section.get("when").and_then(|entry| {
            in_scope().expression(&entry);
            entry.expression()
        });
        let delay = section.get("delay").and_then(|entry| entry.pause());
        let action = read_action(&section, calls);
        let given: Vec<_> = ACTIONS.into_iter().filter(|key| section.has(key)).collect();
        let place = section.place.clone();
        section.close();
        let named = ACTIONS.join("`, `");
        match (given.len(), delay) {
            (0, None) => place.refuse(format!("needs one of `{named}`, `delay`")),
            (0, Some(delay)) => {
                return Some(Self { when, delay, action: MockAction::Default });
            }
            (1, delay) => {
                let delay = delay.unwrap_or_default();
                return action.map(|action| Self { when, delay, action });
            }
            _ => place.refuse(format!("must have only one of `{}`", given.join("`, `"))),
        }
        None
    }
}

fn read_action(section: &Section<'_>, called: &mut Vec<RuleCall>) -> Option<MockAction> {
    let reply = section.get("reply").and_then(|entry| {
        in_scope().template(&entry);
        entry.text().map(MockAction::Reply)
    });
    let object = section.get("object").and_then(|entry| mapping(&entry).map(MockAction::Object));
    let error = section.get("error").and_then(|entry| entry.text()).map(MockAction::Error);
    let call = section.section("tool_call").and_then(|it| tool_call(it, called));
    let calls = section.get("tool_calls").map(|entry| {
        let calls = entry.sections().into_iter();
        calls.filter_map(|it| tool_call(it, called)).collect()
    });
    let calls = call.map(|call| vec![call]).or(calls);
    reply.or(object).or(error).or_else(|| calls.map(MockAction::ToolCalls))
}

fn mapping(entry: &Entry<'_>) -> Option<Mapping> {
    in_scope().mapping(entry);
    entry.mapping()
}

fn tool_call(section: Section<'_>, called: &mut Vec<RuleCall>) -> Option<(String, Mapping)> {
    let entry = section.required("name");
    let name = entry.as_ref().and_then(Entry::filled_text);
    if let (Some(entry), Some(name)) = (&entry, &name) {
        called.push(RuleCall { tool: name.clone(), spot: entry.place.spot() });
    }
    let args = section.get("args").map(|entry| mapping(&entry));
    section.close();
    Some((name?, args.unwrap_or_else(|| Some(Mapping(Value::Object(Map::new()))))?))
}
