//! Names of tools as providers accept them, and back.
//!
//! Providers differ in the names that they accept; all get names for the strictest.

use std::collections::HashMap;

use greenroom_actors::domain::hash::short_hash;
use greenroom_actors::ports::model::{Message, Part, ToolSpec};

/// Longest name that every provider accepts.
const NAME_CHARS_MAX: usize = 64;

/// Characters before the hash in a name that is too long or not unique.
const HEAD_CHARS: usize = 47;

/// The names of a request, in both directions.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    wire: HashMap<String, String>,
    own: HashMap<String, String>,
}

impl ToolNames {
    /// Maps the names of all offered tools and of all calls in the messages.
    pub(super) fn new(tools: &[ToolSpec], messages: &[Message]) -> Self {
        let mut names = Self::default();
        for tool in tools {
            names.add(&tool.name);
        }
        for part in messages.iter().flat_map(|message| &message.parts) {
            match part {
                Part::ToolCall(call) => names.add(&call.tool_name),
                Part::ToolResult(result) => names.add(&result.tool_name),
                Part::Text { .. }
                | Part::Reasoning { .. }
                | Part::File { .. }
                | Part::ToolApproval(_)
                | Part::ProviderState { .. } => {}
            }
        }
        names
    }

    /// Returns the provider's form of our name.
    pub(super) fn wire<'a>(&'a self, own: &'a str) -> &'a str {
        self.wire.get(own).map_or(own, String::as_str)
    }

    /// Returns our form of a name from the model; a name that it made up is unchanged.
    pub(super) fn own(&self, wire: &str) -> String {
        self.own.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }

    fn add(&mut self, own: &str) {
        if self.wire.contains_key(own) {
            return;
        }
        let mut wire = fitting(own);
        if self.own.contains_key(&wire) || wire.len() > NAME_CHARS_MAX {
            wire.truncate(HEAD_CHARS);
            wire = format!("{wire}_{}", short_hash(&[own]));
        }
        self.wire.insert(own.to_owned(), wire.clone());
        self.own.insert(wire, own.to_owned());
    }
}

/// Replaces everything but ASCII letters, digits, `_` and `-`; begins with a letter or `_`.
fn fitting(own: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut wire: String = own.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if !wire.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        wire.insert(0, '_');
    }
    wire
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_mapped_for_providers_and_back() {
        let long = "x".repeat(80);
        let names = ["add", "files.read", "files_read", "7up", "größe", long.as_str(), ""];
        let tools = names.map(|name| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
        });
        let mapped = ToolNames::new(&tools, &[]);
        let wire: Vec<_> = names.iter().map(|name| mapped.wire(name)).collect();
        assert_eq!(wire[..2], ["add", "files_read"]);
        assert!(wire[2].starts_with("files_read_"), "{wire:?}");
        assert_eq!(wire[3..5], ["_7up", "gr__e"]);
        for (own, wire) in names.iter().zip(&wire) {
            assert!(!wire.is_empty() && wire.len() <= NAME_CHARS_MAX, "{wire}");
            assert_eq!(mapped.own(wire), *own);
        }
        assert_eq!(mapped.own("made_up"), "made_up");
    }
}
