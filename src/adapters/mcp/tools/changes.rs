//! Changes of tools: whether the definition of a tool is the accepted one, and what is said if not.
//! No I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::domain::hash::canonical_hash;
use greenroom_actors::domain::schema::Schema;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::KnownTool;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::adapters::mcp::settings::{McpServer, OnChange};
use crate::adapters::mcp::tools::admission::{Listed, RemoteTool};
use crate::mcp_servers::{ChangedPart, ChangedTool, LeftOut};

/// Maximum number of earlier definitions of a tool that stay accepted.
const EARLIER_MAX: usize = 8;
/// Most bytes of a description that are shown of a change.
const EXCERPT_BYTES_MAX: usize = 200;
/// Most bytes of them in front of the first difference.
const CONTEXT_BYTES_MAX: usize = 40;

/// Hashes of the parts of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DefinitionHashes(BTreeMap<ChangedPart, String>);

/// Stored part of an accepted definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Accepted {
    /// As models see it.
    description: String,
    parameters: Value,
    prints: DefinitionHashes,
    /// Hashes of definitions that were accepted before, the newest first.
    earlier: Vec<String>,
}

/// A definition that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Hash of the definition.
    pub(crate) hash: Arc<str>,
    /// Name of the tool, with that of its server.
    tool: String,
    since: Timestamp,
    first_seen: Timestamp,
    parts: Vec<ChangedPart>,
    /// The description where it differs.
    excerpt: Option<String>,
}

/// A list, compared with what is accepted.
#[derive(Debug, Default)]
pub(crate) struct Review {
    pub(crate) listed: Listed,
    /// Definitions to accept at once, each with the hash of the one that it replaces.
    pub(crate) taken: Vec<(KnownTool, Arc<str>)>,
}

impl DefinitionHashes {
    /// Returns the hashes of a definition, in which the order of keys does not count.
    pub(crate) fn of(tool: &Tool) -> Self {
        // values of JSON can always be written
        let hash = |part: Value| canonical_hash(&part).unwrap_or_default();
        Self(BTreeMap::from([
            (ChangedPart::Description, hash(json!([tool.title, tool.description]))),
            (ChangedPart::Parameters, hash(json!(tool.input_schema))),
            (ChangedPart::Result, hash(json!(tool.output_schema))),
            (ChangedPart::Annotations, hash(json!(tool.annotations))),
        ]))
    }

    /// Returns the hash of the whole definition.
    pub(crate) fn hash(&self) -> Arc<str> {
        canonical_hash(&self.0).unwrap_or_default().into()
    }

    fn differing(&self, accepted: &Self) -> Vec<ChangedPart> {
        let parts = self.0.iter().filter(|(part, hash)| accepted.0.get(part) != Some(hash));
        parts.map(|(part, _)| *part).collect()
    }
}

impl Accepted {
    /// Returns what is stored; nothing of a text that cannot be read, so that the tool has changed.
    fn of(known: &KnownTool) -> Self {
        serde_json::from_str(&known.body).unwrap_or_default()
    }

    fn has(&self, known: &KnownTool, hash: &str) -> bool {
        *known.hash == *hash || self.earlier.iter().any(|earlier| earlier == hash)
    }
}

/// Returns the record of a tool that is seen for the first time.
pub(crate) fn first_look(server: &McpServer, tool: &RemoteTool, now: Timestamp) -> KnownTool {
    record(server, tool, now, Vec::new())
}

/// Returns the record with which the definition of a tool is accepted in place of another one; `None`
/// if it is accepted.
pub(crate) fn acceptance(
    server: &McpServer,
    tool: &RemoteTool,
    known: &KnownTool,
    now: Timestamp,
) -> Option<KnownTool> {
    let accepted = Accepted::of(known);
    let hash = tool.prints.hash();
    if accepted.has(known, &hash) {
        return None;
    }
    let mut earlier = accepted.earlier;
    earlier.insert(0, known.hash.to_string());
    earlier.truncate(EARLIER_MAX);
    Some(record(server, tool, now, earlier))
}

fn record(
    server: &McpServer,
    tool: &RemoteTool,
    now: Timestamp,
    earlier: Vec<String>,
) -> KnownTool {
    let RemoteTool { name, description, parameters, prints, .. } = tool;
    let (description, parameters) = (description.clone(), parameters.clone());
    let accepted = Accepted { description, parameters, prints: prints.clone(), earlier };
    KnownTool {
        server: Arc::clone(&server.name),
        tool: name.as_str().into(),
        first_seen: now,
        hash: prints.hash(),
        accepted_at: now,
        // values of JSON can always be written
        body: serde_json::to_string(&accepted).unwrap_or_default().into(),
    }
}

/// Compares the tools of a list with those that are known. `used`: the list in use, whose compiled
/// schemas stay.
pub(crate) fn review(
    server: &McpServer,
    list: &Listed,
    used: &Listed,
    known: &BTreeMap<Arc<str>, KnownTool>,
    now: Timestamp,
) -> Review {
    let (left_out, unmatched) = (list.left_out.clone(), list.unmatched.clone());
    let is_guarded = list.is_guarded;
    let listed = Listed { left_out, unmatched, is_guarded, ..Listed::default() };
    let mut review = Review { listed, taken: Vec::new() };
    for tool in &list.tools {
        match known.get(tool.name.as_str()) {
            Some(known) => review.compare(server, tool.clone(), used, (known, now)),
            None if server.on_change == OnChange::Use => review.listed.tools.push(tool.clone()),
            None => {
                let max = server.limits.tools_seen_max;
                let why = format!(
                    "changes of it could not be noticed: {max} tools of the server were seen \
                     (tools_seen_max)"
                );
                review.listed.left_out.push(LeftOut { name: tool.name.clone(), why });
            }
        }
    }
    review
}

impl Review {
    fn compare(
        &mut self,
        server: &McpServer,
        mut tool: RemoteTool,
        used: &Listed,
        (known, now): (&KnownTool, Timestamp),
    ) {
        let Self { listed, taken } = self;
        let Some(accepting) = acceptance(server, &tool, known, now) else {
            return listed.tools.push(tool);
        };
        if server.on_change == OnChange::Use {
            taken.push((accepting, Arc::clone(&known.hash)));
            return listed.tools.push(tool);
        }
        let accepted = Accepted::of(known);
        let change = Change::of(server, &tool, known, &accepted);
        listed.changed.push(change.shown(&tool.name));
        if server.on_change == OnChange::Drop {
            let why = change.why_left_out(server, &tool.name);
            return listed.left_out.push(LeftOut { name: tool.name, why });
        }
        // neither models nor calls go by what no person has accepted
        tool.description = accepted.description;
        tool.parameters = match accepted.parameters {
            parameters @ Value::Object(_) => parameters,
            _ => json!({ "type": "object" }),
        };
        let Some(arguments) = schema_of(&tool, used) else {
            let why = "its accepted schema cannot be used".to_owned();
            return listed.left_out.push(LeftOut { name: tool.name, why });
        };
        tool.arguments = arguments;
        if change.parts.contains(&ChangedPart::Annotations) {
            tool.is_repeatable = server.may_repeat(&tool.name);
        }
        tool.change = Some(Arc::new(change));
        listed.tools.push(tool);
    }
}

/// Returns the compiled schema of a tool's arguments: that of the list in use, if it is the same.
fn schema_of(tool: &RemoteTool, used: &Listed) -> Option<Arc<Schema>> {
    let is_same = |it: &&RemoteTool| it.name == tool.name && it.parameters == tool.parameters;
    match used.tools.iter().find(is_same) {
        Some(known) => Some(Arc::clone(&known.arguments)),
        None => Schema::compile(&tool.parameters).ok().map(Arc::new),
    }
}

impl Change {
    fn of(server: &McpServer, tool: &RemoteTool, known: &KnownTool, accepted: &Accepted) -> Self {
        let differs = tool.description != accepted.description;
        Self {
            hash: tool.prints.hash(),
            tool: format!("{}.{}", server.name, tool.name),
            since: known.accepted_at,
            first_seen: known.first_seen,
            parts: tool.prints.differing(&accepted.prints),
            excerpt: differs.then(|| excerpt(&accepted.description, &tool.description)),
        }
    }

    fn shown(&self, name: &str) -> ChangedTool {
        ChangedTool {
            name: name.to_owned(),
            hash: Arc::clone(&self.hash),
            first_seen: self.first_seen,
            accepted_at: self.since,
            parts: self.parts.clone(),
            description: self.excerpt.clone(),
        }
    }

    /// Says since when it has changed, and what: `2026-11-29T08:00:00.000Z (description, parameters)`.
    fn what(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(|part| part.as_str()).collect();
        let since = self.since.to_iso();
        format!("{since} ({})", parts.join(", "))
    }

    /// Returns what people read who are asked to approve a call.
    pub(crate) fn question(&self) -> String {
        let Self { tool, first_seen, .. } = self;
        let first_seen = first_seen.to_iso();
        let now = self.excerpt.as_ref().map(|now| format!(" Its description now: “{now}”"));
        format!(
            "The tool {tool}, first seen {first_seen}, has changed since it was accepted at {}. To \
             approve this call accepts the change for later calls too.{}",
            self.what(),
            now.unwrap_or_default()
        )
    }

    /// Returns why a call cannot be made that cannot wait for a person.
    pub(crate) fn refusal(&self, server: &McpServer, name: &str) -> String {
        let (tool, what, how) = (&self.tool, self.what(), how_to_accept(server, name));
        format!("{tool} has changed since it was accepted at {what}; {how}")
    }

    fn why_left_out(&self, server: &McpServer, name: &str) -> String {
        let (what, how) = (self.what(), how_to_accept(server, name));
        format!("it has changed since it was accepted at {what}; {how}")
    }
}

/// Returns the request that accepts changes of a server.
pub(crate) fn accept_request(McpServer { name, .. }: &McpServer) -> String {
    format!("POST /tools/mcp/{name}/accept")
}

fn how_to_accept(server: &McpServer, tool: &str) -> String {
    let (name, request) = (&server.name, accept_request(server));
    format!("to accept that: greenroom tools accept {name} {tool}, or {request}")
}

/// Returns the part of a text from about its first difference to another on, in one line.
fn excerpt(before: &str, now: &str) -> String {
    let same = now.bytes().zip(before.bytes()).take_while(|(one, other)| one == other).count();
    let begin = now.floor_char_boundary(same.saturating_sub(CONTEXT_BYTES_MAX));
    let rest = now.get(begin..).unwrap_or_default();
    let shown = shortened(rest, EXCERPT_BYTES_MAX);
    let (head, tail) =
        (if begin > 0 { "…" } else { "" }, if shown.len() < rest.len() { "…" } else { "" });
    let line: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{head}{line}{tail}")
}

#[cfg(test)]
mod tests;
