//! The JSON Schema of the configuration, for editors.
//!
//! Draft 7, the newest that editors of TOML understand. Sections with tables of keys are made from
//! these. The others are described by the files beside this one, in which `"..."` lists groups of
//! keys to insert, and `kinds` the keys of each kind; those of steps are in the table of kinds.

mod kinds;
mod parts;
mod rows;

use serde_json::{Map, Value, json};

use self::parts::Parts;

/// The schema that the output conforms to.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The begin of the title, by which a file is recognized as this schema.
pub(crate) const TITLE: &str = "Configuration of greenroom";

const INCLUDE: &str = "Further files with [workflows.*] only, relative to this one. The last part may \
                       contain `*`.";

/// Ids of agents, models and workflows.
const ID: &str = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$";
/// Names of tools.
const TOOL_NAME: &str = "^[A-Za-z0-9_.-]{1,64}$";
/// Names of MCP servers.
const SERVER_NAME: &str = "^[A-Za-z0-9_-]{1,32}$";

/// Returns the schema.
pub(crate) fn schema() -> Value {
    let parts = Parts::new();
    let mut include = parts.value("texts");
    include["description"] = INCLUDE.into();
    let mut sections = Map::from_iter([("include".to_owned(), include)]);
    sections.extend(rows::sections(&parts));
    sections.insert("auth".to_owned(), parts.whole("auth"));
    sections.insert("faces".to_owned(), parts.whole("faces"));
    let named = [
        ("models", ID, "Language models, by id."),
        ("agents", ID, "Agents, by id."),
        ("tools", TOOL_NAME, "Tools of agents, by name."),
        ("mcp", SERVER_NAME, "MCP servers, by name; their tools are NAME.tool."),
        ("workflows", ID, "Workflows, by id."),
    ];
    for (name, ids, about) in named {
        sections.insert(
            name.to_owned(),
            json!({
                "description": about,
                "type": "object",
                "propertyNames": { "pattern": ids },
                "additionalProperties": parts.whole(name),
            }),
        );
    }
    let routes = json!({
        "description": "Further paths to workflows, agents or files.",
        "type": "array",
        "items": parts.whole("routes"),
    });
    sections.insert("routes".to_owned(), routes);
    json!({
        "$schema": DRAFT,
        "title": format!("{TITLE} {}", env!("CARGO_PKG_VERSION")),
        "description": "Written by `greenroom schema`.",
        "type": "object",
        "properties": sections,
        "additionalProperties": false,
        "definitions": { "step": parts.whole("steps") },
    })
}

/// Returns the schema as text.
pub(crate) fn text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
    text.push('\n');
    text
}
