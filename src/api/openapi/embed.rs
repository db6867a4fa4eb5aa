//! Embeds schemas of the configuration into the document and rewrites their references.

use serde_json::{Map, Value};

/// Prepares a schema for `place` (`#/components/schemas/Name`): references within it are rewritten
/// to their new targets.
pub(super) fn embedded(schema: &Value, place: &str) -> Value {
    let own_id = schema.get("$id").and_then(Value::as_str).unwrap_or_default();
    let mut anchors = Vec::new();
    find_anchors(schema, &mut String::new(), &mut anchors);
    let mut embedded = schema.clone();
    Moving { own_id, anchors: &anchors, place }.rewrite(&mut embedded);
    if let Value::Object(object) = &mut embedded {
        // Its id changes with its place; the default dialect need not be named.
        object.remove("$id");
        let is_usual = |dialect: &Value| dialect.as_str().is_some_and(|it| it.contains("2020-12"));
        if object.get("$schema").is_some_and(is_usual) {
            object.remove("$schema");
        }
    }
    embedded
}

/// Keywords whose values are not schemas.
const LITERAL: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Collects the names of anchors with their pointers.
fn find_anchors(value: &Value, pointer: &mut String, found: &mut Vec<(String, String)>) {
    let length = pointer.len();
    match value {
        Value::Object(object) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = object.get(keyword).and_then(Value::as_str) {
                    found.push((name.to_owned(), pointer.clone()));
                }
            }
            for (key, inner) in object {
                pointer.push('/');
                pointer.push_str(&escaped(key));
                find_anchors(inner, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                find_anchors(inner, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Escapes a key for a JSON pointer in a URI fragment.
fn escaped(key: &str) -> String {
    let pointer = key.replace('~', "~0").replace('/', "~1");
    percent_encoding::utf8_percent_encode(&pointer, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%24", "$")
        .replace("%7E", "~")
        .replace("%2D", "-")
        .replace("%5F", "_")
}

struct Moving<'a> {
    own_id: &'a str,
    anchors: &'a [(String, String)],
    place: &'a str,
}

impl Moving<'_> {
    fn rewrite(&self, schema: &mut Value) {
        match schema {
            Value::Object(object) => self.rewrite_object(object),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn rewrite_object(&self, object: &mut Map<String, Value>) {
        for (key, value) in object {
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef", Value::String(target)) => {
                    if let Some(moved) = self.moved(target) {
                        *target = moved;
                    }
                }
                (key, _) if LITERAL.contains(&key) => {}
                // Keys below these are names, which may look like keywords.
                (
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas",
                    Value::Object(named),
                ) => named.values_mut().for_each(|schema| self.rewrite(schema)),
                (_, value) => self.rewrite(value),
            }
        }
    }

    /// Returns the new target of a reference; `None` if it leaves the schema.
    fn moved(&self, target: &str) -> Option<String> {
        let own = target.strip_prefix(self.own_id).filter(|_| !self.own_id.is_empty());
        let fragment = match own.unwrap_or(target) {
            "" => "",
            rest => rest.strip_prefix('#')?,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some(format!("{}{fragment}", self.place));
        }
        let (_, pointer) = self.anchors.iter().find(|(name, _)| name == fragment)?;
        Some(format!("{}{pointer}", self.place))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_move_with_their_schema() {
        let schema = json!({
            "$id": "https://a.example/order",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {
                "item": { "$ref": "#/$defs/item" },
                "same": { "$ref": "https://a.example/order#/$defs/item" },
                "whole": { "$ref": "#" },
                "named": { "$ref": "#thing" },
                "$ref": { "const": { "$ref": "#/literal" } },
            },
            "$defs": { "item": { "$anchor": "thing", "type": "string" } },
        });
        let expected = json!({
            "properties": {
                "item": { "$ref": "#/c/Order/$defs/item" },
                "same": { "$ref": "#/c/Order/$defs/item" },
                "whole": { "$ref": "#/c/Order" },
                "named": { "$ref": "#/c/Order/$defs/item" },
                "$ref": { "const": { "$ref": "#/literal" } },
            },
            "$defs": { "item": { "$anchor": "thing", "type": "string" } },
        });
        assert_eq!(embedded(&schema, "#/c/Order"), expected);
        assert_eq!(embedded(&json!(true), "#/c/Any"), json!(true));
        let older = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
        assert_eq!(embedded(&older, "#/c/Older"), older);
    }
}
