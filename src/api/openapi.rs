//! The API document (OpenAPI 3.1), generated from the catalogue, the wire types, the refusals, and
//! the configured workflows, agents and tools.

mod agents;
mod bodies;
mod bulk;
mod components;
mod configured;
mod described;
mod embed;
mod frames;
mod inbox;
mod mcp_face;
mod memory;
mod observability;
mod openai;
mod operation;
mod outcomes;
mod parts;
mod routes;
mod system;
mod tools;
mod workflows;

use greenroom_actors::registry::Registry;
use serde_json::{Map, Value, json};

use self::components::Components;
use self::operation::{Access, Answers, operation};
use crate::api::access::AccessPolicy;
use crate::api::catalogue::{Catalogue, Route, Tag};

const DESCRIPTION: &str = "AI agents and durable workflows over HTTP.\n\n\
    JSON responses are `{\"success\": true, \"data\": ...}` or `{\"success\": false, \"error\": \
    \"...\"}`; the header `x-error-code` of a refusal is a code for programs. With `Accept: \
    application/problem+json`, refusals are problem details (RFC 9457). Unknown keys are \
    ignored in bodies for agents. They are refused in bodies of suspend, resume, cancel and \
    replay, in `options` of execute and stream, and in query parameters of lists.\n\n\
    Every request may have these headers:\n\n\
    - `x-request-id`: returned unchanged if it has 1 to 128 visible ASCII characters; otherwise \
    the server generates one.\n\
    - `traceparent`, `tracestate`: the trace of the caller (W3C Trace Context), which executions \
    and generations continue. If it is malformed, a new trace begins.";

/// Source of the document.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub catalogue: &'a Catalogue,
    /// Access rules; `None` without authentication.
    pub policy: Option<&'a AccessPolicy>,
    /// True if API keys are accepted in place of tokens.
    pub takes_api_keys: bool,
    pub registry: &'a Registry,
}

/// Generates the document; deterministic for the same source.
pub fn document(source: Source<'_>) -> Value {
    let mut components = Components::default();
    let mut paths = Map::new();
    for row in source.catalogue.rows() {
        let described = routes::describe(row, source.registry, &mut components);
        let path = templated(&row.path);
        let mut answers = Answers::default();
        let variants =
            configured::variants(row, &source, &described, &mut answers, &mut components);
        for (concrete, narrowed) in variants {
            add(&mut paths, concrete, row, narrowed);
        }
        let access = Access::of(row, &row.path, &source);
        let operation = operation(row, &described, &access, &mut answers, &mut components);
        add(&mut paths, path, row, operation);
    }
    components.schema_of_frames();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "greenroom",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        // operations that need a token declare it themselves
        "security": [],
        "tags": tags(source.catalogue),
        "paths": paths,
        "components": components.into_value(source.takes_api_keys),
    })
}

fn add(paths: &mut Map<String, Value>, path: String, row: &Route, operation: Value) {
    let item = paths.entry(path).or_insert_with(|| json!({}));
    item[row.method.as_str().to_ascii_lowercase()] = operation;
}

/// `:name` becomes `{name}`; a `*` at the end becomes a parameter as well.
fn templated(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None if segment == "*" => format!("{{{}}}", parts::TAIL),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Returns the groups that have a route.
fn tags(catalogue: &Catalogue) -> Value {
    let about = |tag: Tag| match tag {
        Tag::Agents => "Generate texts and objects, at once or as streams.",
        Tag::Workflows => "Run, follow, suspend and resume workflows.",
        Tag::Inbox => "What waits for people, and their answers.",
        Tag::OpenAi => "Agents and workflows for clients of OpenAI's API.",
        Tag::Tools => "Tools of agents, and calls of tools without an agent.",
        Tag::Mcp => "Workflows and agents as tools of MCP.",
        Tag::Memory => "Conversations and working memory of agents.",
        Tag::Observability => "Traces and logs, live and stored.",
        Tag::System => "The server itself.",
        Tag::Documentation => "This document and pages about it.",
        Tag::Custom => "Routes that were added to this server.",
    };
    let all = [
        Tag::Agents,
        Tag::Workflows,
        Tag::Inbox,
        Tag::Tools,
        Tag::OpenAi,
        Tag::Mcp,
        Tag::Memory,
        Tag::Observability,
        Tag::System,
        Tag::Documentation,
        Tag::Custom,
    ];
    let used = all.into_iter().filter(|tag| catalogue.rows().iter().any(|row| row.tag == *tag));
    used.map(|tag| json!({ "name": tag.as_str(), "description": about(tag) })).collect()
}

#[cfg(test)]
mod tests;
