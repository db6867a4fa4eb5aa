//! Keywords that no version of JSON Schema knows, which check nothing, and required keys that are
//! probably misspelt.

use serde_json::Value;

use super::guard::{Reading, each_schema, is_bundled};

/// Keywords of JSON Schema, from draft 4 to 2020-12.
const KEYWORDS: [&str; 68] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    // of none of them, but so common that models and forms read them
    "enumDescriptions",
    "enumNames",
    "errorMessage",
    "optionTitles",
    "propertyOrdering",
];

/// Keywords of OpenAPI. Their contents are no schemas.
const OF_OPENAPI: [&str; 5] = ["discriminator", "example", "externalDocs", "nullable", "xml"];

/// Beginning of keywords that tools define for themselves.
const OWN_PREFIX: &str = "x-";

/// Subschemas that may describe properties, too.
const ELSEWHERE: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "patternProperties",
];

/// A keyword that is not known, and checks nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKeyword {
    /// Keys from the schema down to the keyword.
    pub place: Vec<String>,
    pub name: String,
    /// True if it has the value of a property: a schema, or the name of a type.
    pub is_like_property: bool,
}

impl UnknownKeyword {
    /// Returns the known keywords.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KEYWORDS.into_iter().chain(OF_OPENAPI)
    }
}

/// A required key that the schema does not describe, beside a similar one that it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisspeltKey {
    /// Keys from the schema down to the item of its `required`.
    pub place: Vec<String>,
    pub name: String,
    pub similar: String,
}

/// Returns every keyword of a schema that is not known. A schema with another vocabulary has none.
pub fn unknown_keywords(schema: &Value) -> Vec<UnknownKeyword> {
    let mut found = Vec::new();
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_none_or(is_bundled) {
        collect(schema, Reading::Schema, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(
    value: &Value,
    reading: Reading,
    place: &mut Vec<String>,
    found: &mut Vec<UnknownKeyword>,
) {
    let mut inside = |key: String, value: &Value, reading: Reading| {
        place.push(key);
        collect(value, reading, place, found);
        place.pop();
    };
    match (value, reading) {
        (_, Reading::Data) => {}
        (Value::Array(items), _) => {
            for (index, item) in items.iter().enumerate() {
                inside(index.to_string(), item, reading);
            }
        }
        (Value::Object(members), Reading::Names) => {
            for (key, member) in members {
                inside(key.clone(), member, Reading::Schema);
            }
        }
        (Value::Object(members), Reading::Schema) => {
            for (key, member) in members {
                let name = key.as_str();
                if KEYWORDS.contains(&name) {
                    inside(key.clone(), member, reading.below(name));
                }
            }
            let is_known = |name: &str| {
                KEYWORDS.contains(&name)
                    || OF_OPENAPI.contains(&name)
                    || name.starts_with(OWN_PREFIX)
            };
            for (key, member) in members.iter().filter(|(key, _)| !is_known(key)) {
                let place = place.iter().chain([key]).cloned().collect();
                let is_misspelt = UnknownKeyword::known().any(|known| is_similar(key, known));
                let is_like_property = is_like_property(member) && !is_misspelt;
                found.push(UnknownKeyword { place, name: key.clone(), is_like_property });
            }
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
    }
}

fn is_like_property(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    value.is_object() || value.as_str().is_some_and(|name| TYPES.contains(&name))
}

/// Returns every required key that is probably misspelt. Where keys are closed, every unknown one is
/// forbidden, and [`forbidden_keys`](super::forbidden_keys) has it.
pub fn misspelt_keys(schema: &Value) -> Vec<MisspeltKey> {
    let mut found = Vec::new();
    each_schema(schema, &mut |schema, place| found.extend(of_object(schema, place)));
    found
}

fn of_object(schema: &Value, place: &[String]) -> Vec<MisspeltKey> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let (Some(required), Some(properties), false) = (required, properties, is_closed) else {
        return Vec::new();
    };
    if ELSEWHERE.iter().any(|key| schema.get(key).is_some()) {
        return Vec::new();
    }
    let named = required.iter().enumerate().filter_map(|(index, it)| Some((index, it.as_str()?)));
    let missing = named.filter(|(_, name)| !properties.contains_key(*name));
    let misspelt = missing.filter_map(|(index, name)| {
        let is_free = |key: &&String| !required.iter().any(|it| it == key.as_str());
        let similar = properties.keys().filter(is_free).find(|key| is_similar(name, key))?;
        let place = place.iter().cloned().chain(["required".to_owned(), index.to_string()]);
        Some(MisspeltKey {
            place: place.collect(),
            name: name.to_owned(),
            similar: similar.clone(),
        })
    });
    misspelt.collect()
}

/// Returns true if two names differ in one letter, in two that are exchanged, or in nothing but case,
/// hyphens and underscores.
fn is_similar(one: &str, other: &str) -> bool {
    const CHARS_MIN: usize = 3;
    let plain = |name: &str| -> Vec<char> {
        let kept = name.chars().filter(|c| !matches!(c, '_' | '-'));
        kept.flat_map(char::to_lowercase).collect()
    };
    let (one, other) = (plain(one), plain(other));
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.len() < CHARS_MIN || long.len() - short.len() > 1 {
        return false;
    }
    let begins = short.iter().zip(&long).take_while(|(one, other)| one == other).count();
    let (short, long) = (&short[begins..], &long[begins..]);
    match (short, long) {
        (short, [_, rest @ ..]) if short.len() < long.len() => short == rest,
        ([a, b, short @ ..], [c, d, long @ ..]) if a == d && b == c => short == long,
        ([_, short @ ..], [_, long @ ..]) => short == long,
        (short, long) => short == long,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_keyword_is_listed_once() {
        let known: std::collections::BTreeSet<_> = UnknownKeyword::known().collect();
        assert_eq!(known.len(), KEYWORDS.len() + OF_OPENAPI.len());
    }

    #[test]
    fn unknown_keywords_are_found_where_keywords_are() {
        for (schema, expected) in [
            (json!({ "type": "object", "properties": { "minimun": { "type": "integer" } } }), ""),
            (json!({ "minimun": 1 }), "minimun"),
            (json!({ "approved": "boolean" }), "approved*"),
            (json!({ "approved": { "type": "boolean", "minimun": 1 } }), "approved*"),
            (
                json!({ "properties": { "a": { "items": [{ "maxLenght": 1 }] } } }),
                "properties.a.items.0.maxLenght",
            ),
            (json!({ "$defs": { "a": { "requierd": ["b"] } } }), "$defs.a.requierd"),
            (json!({ "anyOf": [{ "typ": "string" }, true] }), "anyOf.0.typ"),
            (json!({ "const": { "a": 1 }, "enum": [{ "b": 2 }], "default": { "c": 3 } }), ""),
            (json!({ "examples": [{ "a": 1 }], "example": { "a": 1 }, "xml": { "b": 1 } }), ""),
            (json!({ "nullable": true, "discriminator": { "propertyName": "a" } }), ""),
            (json!({ "x-order": 3, "x-group": { "a": 1 }, "optionTitles": ["A"] }), ""),
            (json!({ "id": "a", "definitions": {}, "dependencies": { "a": ["b"] } }), ""),
            (json!({ "$schema": "https://a.example/own", "minimun": 1 }), ""),
            (
                json!({ "$schema": "http://json-schema.org/draft-07/schema#", "minimun": 1 }),
                "minimun",
            ),
            (json!(true), ""),
        ] {
            let shown = |it: UnknownKeyword| {
                format!("{}{}", it.place.join("."), if it.is_like_property { "*" } else { "" })
            };
            let found: Vec<_> = unknown_keywords(&schema).into_iter().map(shown).collect();
            assert_eq!(found.join(" "), expected, "{schema}");
        }
    }

    #[test]
    fn required_keys_beside_similar_properties_are_found() {
        let schema = |required: Value, more: Value| {
            let mut schema = json!({
                "required": required, "properties": { "order": {}, "userId": {}, "at": {} },
            });
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        for (schema, expected) in [
            (schema(json!(["order", "userId"]), json!({})), ""),
            (schema(json!(["ordr"]), json!({})), "required.0 ordr order"),
            (schema(json!(["order", "orders"]), json!({})), ""),
            (schema(json!(["user_id"]), json!({})), "required.0 user_id userId"),
            (schema(json!(["oredr"]), json!({})), "required.0 oredr order"),
            (schema(json!(["ordes"]), json!({})), "required.0 ordes order"),
            (schema(json!(["colour"]), json!({})), ""),
            (schema(json!(["it"]), json!({})), ""),
            (schema(json!(["ordr"]), json!({ "additionalProperties": false })), ""),
            (schema(json!(["ordr"]), json!({ "allOf": [] })), ""),
            (json!({ "items": schema(json!(["ordr"]), json!({})) }), "items.required.0 ordr order"),
            (json!({ "required": ["ordr"] }), ""),
        ] {
            let shown =
                |it: MisspeltKey| format!("{} {} {}", it.place.join("."), it.name, it.similar);
            let found: Vec<_> = misspelt_keys(&schema).into_iter().map(shown).collect();
            assert_eq!(found.join(", "), expected, "{schema}");
        }
    }
}
