//! Names, kinds and attributes of spans, after OpenTelemetry's conventions.
//!
//! Names of agents', models' and tools' spans follow the GenAI conventions
//! (<https://github.com/open-telemetry/semantic-conventions-genai>), which are in development.

mod agent;
mod workflow;

use serde_json::Value;

use crate::domain::ids::{compensated_path, step_id_of};

use super::{Owner, Span, SpanKind, SpanWork};

/// Maximum bytes of content in an attribute.
pub(crate) const CONTENT_BYTES_MAX: usize = 8 * 1024;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Texts(Vec<String>),
}

/// Door through which the root of a trace was started. Not of the conventions.
const VIA: &str = "greenroom.via";

type Attributes = Vec<(&'static str, AttributeValue)>;

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Span {
    /// Returns the name, of low cardinality.
    pub fn name(&self) -> String {
        let (_, entity) = self.owner.entity();
        match &self.work {
            SpanWork::Workflow { .. } => format!("invoke_workflow {entity}"),
            SpanWork::Step { path, .. } if compensated_path(path).is_some() => {
                format!("compensate {}", step_id_of(path))
            }
            SpanWork::Step { path, .. } => format!("step {}", step_id_of(path)),
            SpanWork::Wait { path: Some(path), .. } => format!("wait {}", step_id_of(path)),
            SpanWork::Wait { path: None, .. } => "wait".to_owned(),
            SpanWork::Agent { .. } => format!("invoke_agent {entity}"),
            SpanWork::Chat { turn, .. } => agent::chat_name(turn),
            SpanWork::Tool { call, turn } => agent::tool_name(turn, *call),
            SpanWork::Memory { operation } => agent::memory_name(*operation).to_owned(),
        }
    }

    pub fn kind(&self) -> SpanKind {
        match self.work {
            SpanWork::Chat { .. } => SpanKind::Client,
            SpanWork::Workflow { .. }
            | SpanWork::Step { .. }
            | SpanWork::Wait { .. }
            | SpanWork::Agent { .. }
            | SpanWork::Tool { .. }
            | SpanWork::Memory { .. } => SpanKind::Internal,
        }
    }

    /// Returns the attributes. `content` adds prompts, answers, arguments, results, inputs and
    /// outputs.
    pub fn attributes(&self, content: bool) -> Attributes {
        let mut attributes = self.owner.attributes();
        if let SpanWork::Workflow { .. } | SpanWork::Agent { .. } = &self.work
            && let Some(via) = self.trace().via.as_ref().filter(|_| self.trace().is_root())
        {
            attributes.push((VIA, (&**via).into()));
        }
        match &self.work {
            SpanWork::Workflow { .. } | SpanWork::Step { .. } | SpanWork::Wait { .. } => {
                workflow::describe(self, content, &mut attributes);
            }
            SpanWork::Agent { .. }
            | SpanWork::Chat { .. }
            | SpanWork::Tool { .. }
            | SpanWork::Memory { .. } => agent::describe(self, content, &mut attributes),
        }
        attributes
    }
}

impl Owner {
    fn attributes(&self) -> Attributes {
        let (kind, entity) = self.entity();
        let mut attributes =
            vec![("entity.type", kind.as_str().into()), ("entity.id", entity.into())];
        // the display name may change and need not be unique, so the id is used
        attributes.push(("entity.name", entity.into()));
        match self {
            Self::Execution(header) => {
                attributes.push(("workflow.execution.id", header.id.as_str().into()));
                if let Some(parent) = &header.parent {
                    let above = parent.execution.as_str().into();
                    attributes.push(("workflow.parent.execution.id", above));
                }
            }
            Self::Generation(record) => {
                attributes.push(("agent.generation.id", record.id.as_str().into()));
            }
        }
        if let Some(user) = self.user_id() {
            attributes.push(("user.id", user.into()));
        }
        if let Some(conversation) = self.conversation_id() {
            attributes.push(("conversation.id", conversation.into()));
        }
        attributes
    }
}

/// Returns a value as JSON text, truncated to the limit.
fn content_text(value: &Value) -> AttributeValue {
    let mut text = Bounded::default();
    let is_whole = serde_json::to_writer(&mut text, value).is_ok();
    let mut text = String::from_utf8_lossy(&text.0).into_owned();
    if !is_whole {
        // removes half a character at the cut
        text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        text.push('…');
    }
    AttributeValue::Text(text)
}

/// Accepts bytes up to the limit.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = CONTENT_BYTES_MAX - self.0.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
