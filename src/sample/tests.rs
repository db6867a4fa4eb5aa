//! Samples, checked by the validator that agents use.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use greenroom_actors::domain::schema::UnknownFormat;

/// Makes a sample and validates it again.
fn checked(name: &str, schema: &Value) -> Value {
    let made = sample(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    let checker = Schema::compile(schema).unwrap();
    assert_eq!(checker.check(&made), Ok(()), "{name}: {made}");
    assert_eq!(sample(schema).as_ref(), Ok(&made), "{name} differs from run to run");
    made
}

#[test]
fn simple_schemas_give_the_expected_sample() {
    let cases = [
        (json!(true), json!("sample")),
        (json!({}), json!("sample")),
        (json!({ "const": { "a": 1 } }), json!({ "a": 1 })),
        (json!({ "enum": ["red", "green"] }), json!("red")),
        (json!({ "type": "string", "default": "x" }), json!("x")),
        (json!({ "type": "string", "examples": ["y"] }), json!("y")),
        (json!({ "type": "string", "default": 7 }), json!("sample")),
        (json!({ "type": "boolean" }), json!(true)),
        (json!({ "type": "null" }), Value::Null),
        (json!({ "type": "integer" }), json!(1)),
        (json!({ "type": "number", "minimum": 2.5 }), json!(3)),
        (json!({ "type": "array", "items": { "type": "integer" } }), json!([1])),
        (json!({ "type": "array", "maxItems": 0 }), json!([])),
        (
            json!({ "type": "object", "required": ["n"], "properties": {
                "n": { "type": "integer" }, "tags": { "type": "array", "items": { "type": "string" } }
            } }),
            json!({ "n": 1, "tags": ["sample"] }),
        ),
        (json!({ "required": ["a"] }), json!({ "a": "sample" })),
        (json!({ "type": "string", "minLength": 8, "maxLength": 8 }), json!("samplesa")),
        (json!({ "type": "string", "maxLength": 2 }), json!("sa")),
        (json!({ "type": ["null", "string"] }), Value::Null),
    ];
    for (schema, expected) in cases {
        assert_eq!(checked(&schema.to_string(), &schema), expected, "{schema}");
    }
}

#[test]
fn numbers_are_within_their_bounds() {
    let schemas = [
        json!({ "type": "integer", "minimum": 10, "maximum": 10 }),
        json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3 }),
        json!({ "type": "integer", "maximum": -5 }),
        json!({ "type": "integer", "minimum": 3, "multipleOf": 7 }),
        json!({ "type": "integer", "minimum": 0.5, "maximum": 1.5 }),
        json!({ "type": "integer", "multipleOf": 2.5 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
        json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 1.25 }),
        json!({ "type": "number", "minimum": 0.25, "multipleOf": 0.1 }),
        json!({ "type": "number", "exclusiveMaximum": -1.5 }),
        json!({ "type": "number", "minimum": 1e15 }),
        json!({ "minimum": 5, "exclusiveMinimum": 5 }),
        json!({ "allOf": [{ "type": "number" }, { "type": "integer", "minimum": 4 }] }),
        json!({ "type": "array", "uniqueItems": true, "minItems": 3, "items": { "type": "integer", "minimum": 0, "maximum": 2 } }),
    ];
    for schema in schemas {
        checked(&schema.to_string(), &schema);
    }
}

#[test]
fn texts_match_format_and_pattern() {
    for format in UnknownFormat::known().iter().chain(&["unknown"]) {
        checked(format, &json!({ "type": "string", "format": format }));
        let several = json!({ "type": "array", "uniqueItems": true, "minItems": 3, "items": { "type": "string", "format": format } });
        checked(format, &several);
    }
    let patterns = [
        "^[A-Z]{3}-\\d{4}$",
        "^(foo|bar)+$",
        "^[^a-z]+$",
        "^\\w+@\\w+\\.com$",
        "abc",
        "^$",
        "^(?:a|b){2,3}c?$",
        "^\\S+ \\S+$",
        "^[a-z0-9]+(?:-[a-z0-9]+)*$",
        "^#[0-9a-fA-F]{6}$",
        "^\\+?[1-9]\\d{1,14}$",
        "^[\\w.-]+$",
        "^\\p{Lu}\\p{L}*$",
        "^\\x41$",
        "^(?<year>\\d{4})$",
    ];
    for pattern in patterns {
        checked(pattern, &json!({ "type": "string", "pattern": pattern }));
    }
    let bounded = [
        json!({ "pattern": "^[a-z]*$", "minLength": 5, "maxLength": 5 }),
        json!({ "pattern": "^[a-z]+-[a-z]+$", "minLength": 200 }),
        json!({ "type": "string", "minLength": 3000 }),
        json!({ "type": "array", "uniqueItems": true, "minItems": 5, "items": { "type": "string", "pattern": "^[a-e]$" } }),
        json!({ "type": "array", "uniqueItems": true, "minItems": 9, "items": { "type": "string", "maxLength": 1 } }),
    ];
    for schema in bounded {
        checked(&schema.to_string(), &schema);
    }
}

#[test]
fn objects_and_arrays_meet_their_bounds() {
    let schemas = [
        json!({ "type": "object", "minProperties": 2 }),
        json!({ "type": "object", "minProperties": 3, "additionalProperties": { "type": "integer" } }),
        json!({ "type": "object", "maxProperties": 1, "required": ["b"],
            "properties": { "a": {}, "b": {}, "c": {} } }),
        json!({ "properties": { "never": false, "a": { "type": "null" } } }),
        json!({ "required": ["k"], "additionalProperties": { "type": "boolean" } }),
        json!({ "properties": { "card": {}, "address": {} }, "dependentRequired": { "card": ["zip"] } }),
        json!({ "type": "array", "minItems": 3, "items": { "enum": ["a", "b", "c"] }, "uniqueItems": true }),
        json!({ "type": "array", "items": { "type": "integer" }, "contains": { "minimum": 7 }, "minContains": 2 }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false }),
        json!({ "type": "array", "prefixItems": [{ "const": 1 }], "minItems": 3, "items": { "type": "null" } }),
        json!({ "type": "array", "items": false }),
    ];
    for schema in schemas {
        checked(&schema.to_string(), &schema);
    }
}

#[test]
fn compositions_are_resolved() {
    let schemas = [
        json!({ "allOf": [{ "required": ["a"] }, { "properties": { "a": { "type": "integer" } } }] }),
        json!({ "anyOf": [false, { "type": "integer" }] }),
        json!({ "oneOf": [{ "type": "number" }, { "type": "integer" }, { "type": "string" }] }),
        json!({ "type": "object", "required": ["kind"], "oneOf": [
            { "properties": { "kind": { "const": "a" } } },
            { "properties": { "kind": { "const": "b" }, "size": { "type": "integer" } }, "required": ["size"] }
        ] }),
        json!({ "enum": [1, "a", null], "type": "string" }),
        json!({ "type": "string", "enum": ["a", "b"], "not": { "const": "a" } }),
        json!({ "properties": { "a": { "const": 1 } }, "if": { "required": ["a"] }, "then": { "required": ["b"] } }),
        json!({ "allOf": [{ "anyOf": [{ "minimum": 5 }, { "maximum": 1 }] }, { "anyOf": [{ "multipleOf": 4 }] }], "type": "integer" }),
        json!({ "type": "string", "not": { "const": "sample" } }),
        json!({ "type": "integer", "not": { "const": 1 } }),
        json!({ "type": "boolean", "not": { "const": true } }),
        json!({ "allOf": [{ "enum": [1, 2, 3] }, { "enum": [3, 4] }] }),
    ];
    for schema in schemas {
        checked(&schema.to_string(), &schema);
    }
}

#[test]
fn references_are_followed_and_recursion_ends() {
    let schemas = [
        json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "integer" } } }),
        json!({ "$ref": "#/$defs/a~1b%20c", "$defs": { "a/b c": { "const": 4 } } }),
        json!({ "properties": { "n": { "$ref": "#/$defs/n", "minimum": 50 } }, "$defs": { "n": { "type": "integer" } } }),
        json!({ "type": "object", "required": ["value"], "properties": {
            "value": { "type": "string" }, "next": { "$ref": "#" }
        } }),
        json!({ "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#" } } } }),
        json!({ "type": "object", "required": ["next"], "properties": {
            "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] }
        } }),
        json!({ "$ref": "#/$defs/tree", "$defs": { "tree": { "type": "object", "required": ["left", "right"],
            "properties": { "left": { "oneOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] },
                "right": { "oneOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] } } } } }),
        json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }],
            "$defs": { "a": { "required": ["x"] }, "b": { "required": ["y"] } } }),
    ];
    for schema in schemas {
        checked(&schema.to_string(), &schema);
    }
}

#[test]
fn a_schema_without_a_sample_is_rejected_with_a_reason() {
    let schemas = [
        json!(false),
        json!({ "type": "integer", "minimum": 2, "maximum": 1 }),
        json!({ "allOf": [{ "type": "string" }, { "type": "null" }] }),
        json!({ "required": ["next"], "properties": { "next": { "$ref": "#" } } }),
        json!({ "type": "string", "minLength": 100_000_000 }),
        json!({ "type": "array", "minItems": 100_000_000 }),
        json!({ "type": "array", "prefixItems": [{}], "contains": {}, "minContains": u64::MAX }),
        json!({ "type": "object", "minProperties": 100_000_000 }),
        json!({ "type": "string", "pattern": "^(?:){1000}b$", "maxLength": 0 }),
        json!({ "type": "not a type" }),
    ];
    for schema in schemas {
        let refused = sample(&schema).unwrap_err();
        assert!(!refused.is_empty(), "{schema}");
    }
}

/// Schemas of keywords with right and absurd values, in any combination.
fn any_schema() -> impl Strategy<Value = Value> {
    let numbers = prop_oneof![
        Just(json!(0)),
        Just(json!(3)),
        Just(json!(2.5)),
        Just(json!(-7)),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
        Just(json!(5e-324)),
    ];
    let keyword = |names: &'static [&'static str]| prop::sample::select(names);
    let counted = (
        keyword(&[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minContains",
            "minProperties",
            "maxProperties",
            "const",
            "default",
        ]),
        numbers,
    );
    let worded = prop_oneof![
        keyword(&["string", "integer", "number", "object", "array", "null", "boolean"])
            .prop_map(|name| ("type", json!(name))),
        keyword(&["^[a-z]{2,}$", "(a|b)*", "[^x]{9999}", "(?=a)", "\\p{L}", "(", "(){999}"])
            .prop_map(|pattern| ("pattern", json!(pattern))),
        keyword(&["#", "#/properties/a", "#/nowhere", "#anchor", "#%zz"])
            .prop_map(|reference| ("$ref", json!(reference))),
        Just(("required", json!(["a", "z"]))),
        Just(("uniqueItems", json!(true))),
        Just(("enum", json!([1, "a", {}]))),
    ];
    let leaf = prop::collection::vec(prop_oneof![counted, worded], 0..4)
        .prop_map(|keywords| keywords.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    leaf.prop_map(Value::Object).prop_recursive(3, 24, 4, move |inner| {
        let one = (
            keyword(&[
                "items",
                "contains",
                "additionalProperties",
                "not",
                "if",
                "then",
                "else",
                "propertyNames",
            ]),
            inner.clone(),
        );
        let many = (
            keyword(&["allOf", "anyOf", "oneOf", "prefixItems"]),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::Array),
        );
        let named = inner.clone().prop_map(|schema| ("properties", json!({ "a": schema })));
        let parts = prop::collection::vec(prop_oneof![one, many, named], 1..4);
        (inner, parts).prop_map(|(mut schema, parts)| {
            for (name, part) in parts {
                schema[name] = part;
            }
            schema
        })
    })
}

proptest! {
    /// A sample has passed the validator: this tests that no schema makes the sampler panic or
    /// run without end.
    #[test]
    fn the_sampler_ends_for_any_schema_and_is_deterministic(schema in any_schema()) {
        let first = sample(&schema);
        prop_assert_eq!(first, sample(&schema));
    }
}
