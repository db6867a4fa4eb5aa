//! Sections with tables of keys.

use serde_json::{Map, Value, json};

use super::parts::Parts;
use crate::config::keys::{Keys, Takes, rows, rows_with_defaults};
use crate::config::shipped::default_of;

/// Descriptions of the sections.
const SECTIONS: [(&str, &str); 14] = [
    ("server", "The HTTP server."),
    ("store", "The store of executions."),
    ("cluster", "Several servers over one database in PostgreSQL."),
    ("retention", "Storage times, counted from the end of an execution or generation."),
    ("cors", "Access of web pages."),
    ("console", "The console, /console."),
    ("docs", "The pages to browse and try the API, /ui."),
    ("inbox", "The inbox of what waits for people."),
    ("logs", "The log."),
    ("metrics", "Metrics for Prometheus."),
    ("system", "The installation."),
    ("updates", "Updates of the server."),
    ("telemetry", "Traces, metrics and logs, sent to a collector over OTLP."),
    ("limits", "Limits of the server and of executions."),
];

/// Returns the sections by name.
pub(super) fn sections(parts: &Parts) -> Map<String, Value> {
    let mut sections = Map::new();
    for row in rows() {
        let section = sections.entry(row.section).or_insert_with(|| section(row.section));
        let about = row.about();
        let mut key = key(parts, row.takes, &about);
        if let Some(default) = default_of(&row) {
            key["default"] = serde_json::to_value(default).unwrap_or_default();
        }
        if let Some(former) = row.former {
            let mut key = key.clone();
            key["description"] = format!("Former name of `{}`.", row.name).into();
            key["deprecated"] = true.into();
            section["properties"][former] = key;
        }
        section["properties"][row.name] = key;
    }
    sections
}

/// Returns the keys of a table within a section that a file describes.
pub(super) fn group<T: Keys>(parts: &Parts) -> Value {
    let keys = rows_with_defaults::<T>().map(|(row, default)| {
        let mut key = key(parts, row.takes, &row.about());
        if let Some(default) = default {
            key["default"] = default;
        }
        (row.name.to_owned(), key)
    });
    Value::Object(keys.collect())
}

fn section(name: &str) -> Value {
    let about = SECTIONS.iter().find(|(section, _)| *section == name).map(|(_, about)| about);
    json!({
        "description": about, "type": "object", "properties": {}, "additionalProperties": false,
    })
}

fn key(parts: &Parts, takes: &Takes, about: &str) -> Value {
    let mut key = match takes {
        Takes::Integer(bounds) | Takes::Bytes(bounds) => {
            let mut key = json!({ "type": "integer", "minimum": bounds.start() });
            if *bounds.end() < i64::MAX {
                key["maximum"] = (*bounds.end()).into();
            }
            key
        }
        Takes::Duration | Takes::DurationOrZero => parts.value("duration"),
        Takes::DurationOrForever => parts.value("duration_or_forever"),
        Takes::Flag | Takes::FlagOf(..) => json!({ "type": "boolean" }),
        Takes::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Takes::Secret => parts.value("secret"),
        Takes::OneOf(names) => json!({ "enum": names }),
        Takes::Text | Takes::TextWithVariables | Takes::Own(_) => parts.value("text"),
        Takes::Texts(..) | Takes::OwnTexts(_) => parts.value("strings"),
        Takes::TableOfTexts => parts.value("table_of_texts"),
        // tables of keys leave these out
        Takes::Elsewhere(_) => json!({ "not": {} }),
    };
    key["description"] = match takes {
        Takes::Texts(_, words) | Takes::Own(words) | Takes::OwnTexts(words) => {
            format!("{about} Value: {words}.").into()
        }
        _ => about.into(),
    };
    key
}
