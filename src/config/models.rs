//! `[models.*]`: language models.

mod provider;

use greenroom_actors::domain::definition::Projection;
use serde_json::{Map, Value};

use crate::adapters::models::{PROVIDERS, Provider};
use crate::adapters::rehearsal::{RehearsalAction, RehearsalConfig, RehearsalRule};

pub use self::provider::RemoteConfig;
pub(crate) use self::provider::circles;

use super::entry::Entry;
use super::names::Reference;
use super::section::Section;
use super::texts::TextScope;
use crate::nearest::nearest;

/// A language model as configured.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelConfig {
    /// Built in, offline and deterministic.
    Rehearsal(RehearsalConfig),
    /// Served by somebody else.
    Remote(Box<RemoteConfig>),
}

const REHEARSAL: &str = "rehearsal";

/// What the rules of the rehearsal model can read.
fn in_scope() -> TextScope {
    TextScope::of(&["prompt", "messages", "tools", "schema", "tool_results"])
}

const ACTIONS: [&str; 5] = ["reply", "tool_call", "tool_calls", "object", "error"];

impl ModelConfig {
    pub(crate) fn read(section: Section<'_>, references: &mut Vec<Reference>) -> Option<Self> {
        let entry = section.required("provider")?;
        let name = entry.text()?;
        if name == REHEARSAL {
            return Some(Self::Rehearsal(read_rehearsal(section)));
        }
        if let Some(provider) = Provider::named(&name) {
            let remote = RemoteConfig::read(provider, section, references)?;
            return Some(Self::Remote(Box::new(remote)));
        }
        let known = PROVIDERS.iter().map(|provider| provider.name).chain([REHEARSAL]);
        let meant = nearest(&name, known.clone());
        let known = known.collect::<Vec<_>>().join(", ");
        let message = format!("must be one of {known}");
        entry.place.findings.report(entry.place.spot().error(message).meant(meant));
        None
    }
}

fn read_rehearsal(section: Section<'_>) -> RehearsalConfig {
    let pace = section.get("pace").and_then(|entry| entry.pause()).unwrap_or_default();
    let rules = section.sections("rules").into_iter();
    let rules = rules.filter_map(RehearsalRule::read).collect();
    section.close();
    RehearsalConfig { pace, rules }
}

impl RehearsalRule {
    fn read(section: Section<'_>) -> Option<Self> {
        let when = section.get("when").and_then(|entry| {
            in_scope().expression(&entry);
            entry.expression()
        });
        let delay = section.get("delay").and_then(|entry| entry.pause());
        let action = read_action(&section);
        let given: Vec<_> = ACTIONS.into_iter().filter(|key| section.has(key)).collect();
        let place = section.place.clone();
        section.close();
        let named = ACTIONS.join("`, `");
        match (given.len(), delay) {
            (0, None) => place.refuse(format!("needs one of `{named}`, `delay`")),
            (0, Some(delay)) => {
                return Some(Self { when, delay, action: RehearsalAction::Default });
            }
            (1, delay) => {
                let delay = delay.unwrap_or_default();
                return action.map(|action| Self { when, delay, action });
            }
            _ => place.refuse(format!("has `{}`; one of them is enough", given.join("`, `"))),
        }
        None
    }
}

fn read_action(section: &Section<'_>) -> Option<RehearsalAction> {
    let reply = section.get("reply").and_then(|entry| {
        in_scope().template(&entry);
        entry.text().map(RehearsalAction::Reply)
    });
    let object =
        section.get("object").and_then(|entry| projection(&entry).map(RehearsalAction::Object));
    let error = section.get("error").and_then(|entry| entry.text()).map(RehearsalAction::Error);
    let call = section.section("tool_call").and_then(tool_call);
    let calls = section.get("tool_calls").map(|entry| {
        let calls = entry.sections().into_iter();
        calls.filter_map(tool_call).collect()
    });
    let calls = call.map(|call| vec![call]).or(calls);
    reply.or(object).or(error).or_else(|| calls.map(RehearsalAction::ToolCalls))
}

fn projection(entry: &Entry<'_>) -> Option<Projection> {
    in_scope().projection(entry);
    entry.projection()
}

fn tool_call(section: Section<'_>) -> Option<(String, Projection)> {
    let name = section.required("name").and_then(|entry| entry.filled_text());
    let args = section.get("args").map(|entry| projection(&entry));
    section.close();
    Some((name?, args.unwrap_or_else(|| Some(Projection(Value::Object(Map::new()))))?))
}
