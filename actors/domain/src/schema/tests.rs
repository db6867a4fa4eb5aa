//! Accepted and rejected schemas and values.

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::SOON;

fn shareable<T: Clone + Send + Sync + 'static>() {}

#[test]
fn schemas_can_be_sent_between_threads() {
    shareable::<Schema>();
}

#[test]
fn all_violations_are_found_up_to_a_maximum() {
    let properties = json!({ "c": { "type": "integer" }, "d": { "maximum": 4 } });
    let source = json!({ "required": ["a", "b"], "properties": properties });
    let schema = Schema::compile(&source).unwrap();
    let value = json!({ "c": "x", "d": 5 });
    let found: Vec<_> = schema.violations(&value, 9).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.contains(&"b: missing".to_owned()), "{found:?}");
    assert_eq!(schema.violations(&value, 2).len(), 2);
    assert_eq!(schema.violations(&json!({ "a": 1, "b": 1 }), 9), []);
}

#[test]
fn a_violation_names_its_place() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "required": ["employee", "amount"],
        "properties": {
            "employee": {"type": "string"},
            "amount": {"type": "number", "minimum": 0},
            "my-key": {"type": "integer"},
            "code": {"type": "string", "pattern": "^[a-z]+$"},
            "items": {"type": "array", "items": {
                "type": "object", "required": ["name"],
                "properties": {"price": {"type": "number"}, "0": {"type": "null"}}}},
        },
    }))
    .unwrap();
    let cases = [
        (json!({"employee": "a", "amount": 1}), ""),
        (json!({"employee": "a"}), "amount: missing"),
        (json!({"employee": 1, "amount": 1}), r#"employee: 1 is not of type "string""#),
        (json!({"employee": "a", "amount": -1}), "amount: -1 is less than the minimum of 0"),
        (
            json!({"employee": "a", "amount": 1, "my-key": "x"}),
            r#"['my-key']: "x" is not of type "integer""#,
        ),
        (
            json!({"employee": "a", "amount": 1, "items": [{"name": 1}, {"name": 1, "price": true}]}),
            r#"items[1].price: true is not of type "number""#,
        ),
        (
            json!({"employee": "a", "amount": 1, "items": [{"name": 1, "0": 1}]}),
            r#"items[0]['0']: 1 is not of type "null""#,
        ),
        (json!({"employee": "a", "amount": 1, "items": [{}]}), "items[0].name: missing"),
        (
            json!({"employee": "a", "amount": 1, "code": "A"}),
            r#"code: "A" does not match "^[a-z]+$""#,
        ),
        (json!([]), r#"[] is not of type "object""#),
    ];
    for (instance, said) in cases {
        let answer = schema.check(&instance).map_or_else(|v| v.to_string(), |()| String::new());
        assert_eq!(answer, said, "for {instance}");
    }
}

#[test]
fn details_are_short_lines() {
    let long = "line\n".repeat(100_000);
    let cases = [
        (json!({"type": "integer"}), json!(long)),
        (json!({"const": long}), json!(1)),
        (json!({"additionalProperties": false}), json!({ long.as_str(): 1 })),
        (json!({"required": [long]}), json!({})),
        (json!({"type": "string"}), json!(vec![1; 100_000])),
    ];
    for (schema, instance) in cases {
        let violation = Schema::compile(&schema).unwrap().check(&instance).unwrap_err();
        assert!(violation.detail.chars().count() <= DETAIL_CHARS_MAX);
        assert!(violation.path.chars().count() <= DETAIL_CHARS_MAX);
        assert!(!violation.to_string().contains('\n'));
    }
    let excluded = Schema::compile(&json!({"not": {"minimum": 0}})).unwrap();
    assert_eq!(excluded.check(&json!(1)).unwrap_err().detail, "1 matches the schema of `not`");
    let text = Schema::compile(&json!({"type": "integer"})).unwrap();
    let detail = text.check(&json!("x".repeat(1000))).unwrap_err().detail;
    assert!(detail.ends_with(r#"is not of type "integer""#), "{detail}");
}

#[test]
fn good_schemas_compile() {
    let cases = [
        json!(true),
        json!({}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$id": "https://example.com/x", "$ref": "#/$defs/a", "$defs": {"a": {}}}),
        json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name", "type": "string"}}}),
        json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}),
        json!({"const": {"$ref": "file:///nowhere"}}),
        json!({"$defs": {"unused": {"pattern": "(?=a)"}}, "properties": {"a": {"pattern": "a"}}}),
        json!({"x-of-others": {"pattern": "("}, "type": "string"}),
        json!({"definitions": {"unused": {"patternProperties": {"(": {}}}}}),
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
            "b": {"type": "object", "additionalProperties": {"$ref": "#/$defs/a"}}}}),
    ];
    for schema in cases {
        assert!(Schema::compile(&schema).is_ok(), "{schema}: {:?}", Schema::compile(&schema));
    }
}

#[test]
fn recursion_is_checked() {
    let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let schema = Schema::compile(&schema).unwrap();
    assert_eq!(schema.check(&json!({"next": {"next": {}}})), Ok(()));
    let violation = schema.check(&json!({"next": {"next": 1}})).unwrap_err();
    assert_eq!(violation.to_string(), r#"next.next: 1 is not of type "object""#);
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "not": inner }))
}

fn doubling(levels: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    definitions.insert("l0".into(), json!({"type": "string"}));
    for level in 1..=levels {
        let below = json!({"$ref": format!("#/$defs/l{}", level - 1)});
        definitions.insert(format!("l{level}"), json!({"allOf": [below, below]}));
    }
    json!({"$ref": format!("#/$defs/l{levels}"), "$defs": definitions})
}

fn chain(length: usize) -> Value {
    let definitions: serde_json::Map<String, Value> = (0..length)
        .map(|at| (format!("l{at}"), json!({"$ref": format!("#/$defs/l{}", at + 1)})))
        .chain([(format!("l{length}"), json!({}))])
        .collect();
    json!({"$ref": "#/$defs/l0", "$defs": definitions})
}

fn unevaluated(levels: usize) -> Value {
    (0..levels).fold(
        json!({"properties": {"a": {}}}),
        |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": {"type": "object"}}),
    )
}

#[test]
fn bad_schemas_are_refused_quickly() {
    let many: Vec<Value> = (0..101).map(|_| json!({"pattern": "a"})).collect();
    let cases = [
        (json!({"type": "strin"}), "schema at /type: "),
        (json!({"properties": {"a": {"minimum": "x"}}}), "schema at /properties/a/minimum: "),
        (json!({"$ref": "https://example.com/x"}), "schema at /$ref: `https://example.com/x`"),
        (json!({"items": {"$ref": "file:///x"}}), "schema at /items/$ref: "),
        (json!({"$ref": "#/$defs/none"}), "schema"),
        (json!({"$schema": "https://example.com/x"}), "schema"),
        (json!({"items": {"$id": "https://example.com/x"}}), "schema at /items/$id: "),
        (json!({"pattern": "("}), "schema at /pattern: "),
        (json!({"pattern": "(?=a)"}), "schema at /pattern: "),
        (json!({"pattern": r"(a)\1"}), "schema at /pattern: "),
        (json!({"pattern": r"\p{L}{1000}{1000}"}), "schema at /pattern: "),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "("}}}), "schema at /"),
        (json!({"patternProperties": {"(": {}}}), "schema at /patternProperties"),
        (json!({"pattern": "a".repeat(513)}), "schema at /pattern: pattern longer"),
        (json!({"patternProperties": {"a".repeat(513): {}}}), "schema at /patternProperties/"),
        (json!({ "allOf": many }), "schema at /allOf/100/pattern: more than 100"),
        (json!({"enum": vec![1; 10_000]}), "schema: more than 10000 values"),
        (nested(100), "schema at /not/"),
        (nested(400), "schema at /not/"),
        (doubling(26), "schema: more than 20000 values with references"),
        (doubling(2_000), "schema: "),
        (chain(2_000), "schema: deeper than 256"),
        (unevaluated(20), "schema: more than 20000 values with references"),
        (json!({"$defs": {"a": {"$anchor": "n"}, "b": {"$anchor": "n"}}}), "schema at /$defs/b"),
        (json!({"not": {"$ref": "#"}}), "schema: refers to itself without"),
    ];
    for (schema, said) in cases {
        let start = Instant::now();
        let error = Schema::compile(&schema).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}, not {said}");
        assert!(error.chars().count() < 450 && !error.contains('\n'), "{error}");
        assert!(start.elapsed() < SOON, "{said} took {:?}", start.elapsed());
    }
}

#[test]
fn small_expansions_pass() {
    assert!(Schema::compile(&doubling(8)).is_ok());
    assert!(Schema::compile(&chain(60)).is_ok());
    assert!(Schema::compile(&nested(60)).is_ok());
    assert!(Schema::compile(&unevaluated(4)).is_ok());
}
