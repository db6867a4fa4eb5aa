//! Cost of explaining a mismatch under a schema that refers to itself.
//!
//! The validator decides only once for each definition and place whether a value is valid, no
//! matter how many branches refer to it. But it collects the reasons of a mismatch for every
//! branch again: with `anyOf` of two branches that both continue with the same definition under
//! the same key, each level of the value doubles the work, and 130 bytes take minutes. So the
//! branches are counted when the schema is compiled, and a reason is collected only if that is
//! cheap.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use super::guard::{self, References};

/// Maximum cost: visits of places in the value, times the size of the schema.
const COST_MAX: u64 = 200_000;

/// Upper bound of the visits of each place in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recursion {
    /// Maximum number of recursive subschemas that one visit applies to a child; 0 without
    /// recursion.
    branching: u64,
    /// Number of values in the schema with references expanded.
    size: u64,
}

impl Recursion {
    /// Counts the branches of a schema that passed [`guard::check`].
    pub(super) fn of(
        schema: &Value,
        references: &References<'_>,
        size: usize,
    ) -> Result<Self, SchemaError> {
        let mut reach = Reach { references, known: HashMap::new(), recursive: Vec::new() };
        reach.visit(schema, 0)?;
        let mut walk = Walk { references, reach: &reach.known, known: HashMap::new() };
        let mut branching = 0;
        for part in &reach.recursive {
            branching = branching.max(walk.visit(part, 0)?.most());
        }
        Ok(Self { branching, size: u64::try_from(size).unwrap_or(u64::MAX) })
    }

    /// Returns true if the reason of a mismatch can be collected for this value.
    pub(super) fn affords(&self, instance: &Value) -> bool {
        if self.branching < 2 {
            return true;
        }
        let mut cost_left = COST_MAX;
        let mut ahead = vec![(instance, self.size)];
        while let Some((value, cost)) = ahead.pop() {
            let Some(left) = cost_left.checked_sub(cost) else { return false };
            cost_left = left;
            let below = cost.saturating_mul(self.branching);
            match value {
                Value::Array(items) => ahead.extend(items.iter().map(|item| (item, below))),
                Value::Object(members) => ahead.extend(members.values().map(|item| (item, below))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        true
    }
}

/// Part of a value that a subschema applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applies<'a> {
    /// The value itself.
    Here,
    /// The member with this name.
    Member(&'a str),
    /// Any member.
    Members,
    /// The item at one index.
    Item,
    /// Any item.
    Items,
}

/// Returns the subschemas of a schema and the targets of its references; `None` for a target
/// outside.
fn subschemas<'a>(
    schema: &'a Value,
    references: &References<'a>,
) -> Vec<(Applies<'a>, Option<&'a Value>)> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                found.push((Applies::Here, references.target(reference)));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                found.extend(branches.iter().map(|branch| (Applies::Here, Some(branch))));
            }
            ("if" | "then" | "else" | "not", branch) => found.push((Applies::Here, Some(branch))),
            ("dependentSchemas" | "dependencies", Value::Object(branches)) => {
                found.extend(branches.values().map(|branch| (Applies::Here, Some(branch))));
            }
            ("properties", Value::Object(members)) => found
                .extend(members.iter().map(|(name, member)| (Applies::Member(name), Some(member)))),
            ("patternProperties", Value::Object(members)) => {
                found.extend(members.values().map(|member| (Applies::Members, Some(member))));
            }
            ("additionalProperties" | "unevaluatedProperties" | "propertyNames", member) => {
                found.push((Applies::Members, Some(member)));
            }
            ("prefixItems" | "items", Value::Array(items)) => {
                found.extend(items.iter().map(|item| (Applies::Item, Some(item))));
            }
            ("items" | "additionalItems" | "contains" | "unevaluatedItems", item) => {
                found.push((Applies::Items, Some(item)));
            }
            _ => {}
        }
    }
    found
}

/// Finds the subschemas that lead into a circle of subschemas and references.
struct Reach<'a, 'r> {
    references: &'r References<'a>,
    /// By address; `None` while being visited.
    known: HashMap<*const Value, Option<bool>>,
    recursive: Vec<&'a Value>,
}

impl<'a> Reach<'a, '_> {
    fn visit(&mut self, schema: &'a Value, depth: usize) -> Result<bool, SchemaError> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(known.unwrap_or(true));
        }
        guard::expanded_depth(depth)?;
        self.known.insert(schema, None);
        let mut recursive = false;
        for (_, below) in subschemas(schema, self.references) {
            recursive |= match below {
                Some(below) => self.visit(below, depth + 1)?,
                // Only the schemas of the drafts are outside, and they are recursive.
                None => true,
            };
        }
        self.known.insert(schema, Some(recursive));
        if recursive {
            self.recursive.push(schema);
        }
        Ok(recursive)
    }
}

/// Number of recursive subschemas that one visit applies to each child.
#[derive(Debug, Clone, Default)]
struct Steps<'a> {
    named: HashMap<&'a str, u64>,
    members: u64,
    items: u64,
}

impl<'a> Steps<'a> {
    /// Returns the steps of the schemas of the drafts.
    fn outside() -> Self {
        Self { named: HashMap::new(), members: 1, items: 1 }
    }

    fn add(&mut self, other: &Self) {
        for (name, steps) in &other.named {
            let sum = self.named.entry(*name).or_default();
            *sum = sum.saturating_add(*steps);
        }
        self.members = self.members.saturating_add(other.members);
        self.items = self.items.saturating_add(other.items);
    }

    fn most(&self) -> u64 {
        let named = self.named.values().copied().max().unwrap_or(0);
        named.saturating_add(self.members).max(self.items)
    }
}

/// Counts the subschemas that apply to one place: branches and references, without children.
struct Walk<'a, 'r> {
    references: &'r References<'a>,
    reach: &'r HashMap<*const Value, Option<bool>>,
    /// By address; `None` while being visited.
    known: HashMap<*const Value, Option<Steps<'a>>>,
}

impl<'a> Walk<'a, '_> {
    fn visit(&mut self, schema: &'a Value, depth: usize) -> Result<Steps<'a>, SchemaError> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            // The depth of the value does not bound how often such a circle can be followed.
            return known.clone().ok_or_else(|| {
                let message = "refers to itself without going into a property or an item";
                SchemaError::at("", message)
            });
        }
        guard::expanded_depth(depth)?;
        self.known.insert(schema, None);
        let mut steps = Steps::default();
        let mut item = false;
        for (applies, below) in subschemas(schema, self.references) {
            let recursive = below.is_none_or(|below| self.is_recursive(below));
            match (applies, below) {
                _ if !recursive => {}
                (Applies::Here, None) => steps.add(&Steps::outside()),
                (Applies::Here, Some(below)) => steps.add(&self.visit(below, depth + 1)?),
                (Applies::Member(name), _) => *steps.named.entry(name).or_default() += 1,
                (Applies::Members, _) => steps.members += 1,
                (Applies::Item, _) => item = true,
                (Applies::Items, _) => steps.items += 1,
            }
        }
        steps.items += u64::from(item);
        self.known.insert(schema, Some(steps.clone()));
        Ok(steps)
    }

    fn is_recursive(&self, schema: &Value) -> bool {
        self.reach.get(&std::ptr::from_ref(schema)).copied().flatten().unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::super::Schema;
    use super::*;
    use crate::SOON;

    const WITHOUT_PLACE: &str = "does not match its recursive schema";

    fn through_x() -> Value {
        json!({"properties": {"x": {"$ref": "#/$defs/n"}}})
    }

    fn defining(n: &Value) -> Value {
        json!({"$ref": "#/$defs/n", "$defs": {"n": n}})
    }

    fn bomb() -> Value {
        defining(&json!({"type": "object", "anyOf": [through_x(), through_x()]}))
    }

    fn nested(levels: usize, innermost: &Value) -> Value {
        (0..levels).fold(innermost.clone(), |inner, _| json!({ "x": inner }))
    }

    #[test]
    fn branches_are_counted() {
        let n = json!({"$ref": "#/$defs/n"});
        let cases = [
            (json!({"anyOf": [{"properties": {"x": {}}}, {"properties": {"x": {}}}]}), 0),
            (json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}), 0),
            (json!({"type": "object", "properties": {"next": {"$ref": "#"}}}), 1),
            (json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}), 1),
            (json!({"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}), 1),
            (json!({"prefixItems": [{"$ref": "#"}, {"$ref": "#"}]}), 1),
            (json!({"prefixItems": [{"$ref": "#"}], "items": {"$ref": "#"}}), 2),
            (json!({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}), 2),
            (bomb(), 2),
            (defining(&json!({"anyOf": [through_x(), {"properties": {"y": n}}]})), 1),
            (defining(&json!({"anyOf": [through_x(), {"additionalProperties": n}]})), 2),
            (defining(&json!({"oneOf": [through_x(), through_x(), {"not": through_x()}]})), 3),
            (defining(&json!({"if": through_x(), "then": through_x(), "else": through_x()})), 3),
            (defining(&json!({"dependentSchemas": {"x": through_x()}, "properties": {"x": n}})), 2),
            (defining(&json!({"patternProperties": {"x": n, "^x": n}})), 2),
            (defining(&json!({"allOf": [through_x()], "unevaluatedProperties": n})), 2),
            (
                json!({"$ref": "#/$defs/n", "$defs": {
                    "n": {"$ref": "#/$defs/m", "properties": {"x": n}}, "m": through_x()}}),
                2,
            ),
            // Two alternating definitions double the work on each level.
            (
                json!({"$ref": "#/$defs/a", "$defs": {
                    "a": {"anyOf": [{"items": {"$ref": "#/$defs/b"}}, {"items": {"$ref": "#/$defs/b"}}]},
                    "b": {"anyOf": [{"items": {"$ref": "#/$defs/a"}}, {"items": {"$ref": "#/$defs/a"}}]}}}),
                2,
            ),
            (
                json!({"$dynamicAnchor": "n", "anyOf": [
                    {"items": {"$dynamicRef": "#n"}}, {"items": {"$dynamicRef": "#n"}}]}),
                2,
            ),
            (
                json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "allOf": [
                    {"items": {"$recursiveRef": "#"}}, {"items": [{"$recursiveRef": "#"}]}]}),
                2,
            ),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {
                    "x": {"properties": {"x": {"$ref": "#"}}}, "y": ["x"]},
                    "properties": {"x": {"$ref": "#"}}}),
                2,
            ),
            (json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}), 1),
        ];
        for (schema, expected) in cases {
            let found = Schema::compile(&schema).unwrap().inner.recursion;
            assert_eq!(found.branching, expected, "{schema}");
        }
    }

    /// Returns schemas with which the work doubles or triples on each level of `{"x":…}`.
    fn explosive() -> Vec<Value> {
        let with = |key: &str| {
            let mut branch = through_x();
            branch["required"] = json!([key]);
            branch
        };
        let n = json!({"$ref": "#/$defs/n"});
        let parts = [
            json!({"anyOf": [through_x(), through_x()]}),
            json!({"anyOf": [through_x(), through_x(), through_x()]}),
            json!({"anyOf": [with("a"), with("b")]}),
            json!({"oneOf": [through_x(), through_x()]}),
            json!({"allOf": [through_x(), through_x()]}),
            json!({"not": {"allOf": [through_x(), through_x()]}}),
            json!({"if": through_x(), "then": through_x(), "else": through_x()}),
            json!({"dependentSchemas": {"x": through_x()}, "anyOf": [through_x(), with("a")]}),
            json!({"patternProperties": {"x": n, "^x": n}, "anyOf": [through_x(), with("a")]}),
            json!({"anyOf": [{"anyOf": [{"unevaluatedProperties": n}, through_x()]}, through_x()],
                "unevaluatedProperties": false}),
            json!({"allOf": [{"unevaluatedProperties": n}, {"unevaluatedProperties": n}],
                "unevaluatedProperties": n}),
        ];
        let mut schemas: Vec<Value> = parts
            .into_iter()
            .map(|mut part| {
                part["type"] = json!("object");
                defining(&part)
            })
            .collect();
        let dynamic = json!({"properties": {"x": {"$dynamicRef": "#n"}}});
        schemas.push(json!({"$dynamicAnchor": "n", "type": "object", "anyOf": [dynamic, dynamic]}));
        schemas
    }

    #[test]
    fn explosive_checks_end_at_once() {
        for schema in explosive() {
            let compiled = Schema::compile(&schema).unwrap();
            for innermost in [json!({}), json!(1)] {
                let value = nested(100, &innermost);
                // without a bound, it would not end
                let answer = compiled.check(&value);
                let said = answer.map_or_else(|bad| bad.to_string(), |()| WITHOUT_PLACE.to_owned());
                assert!(said.starts_with(WITHOUT_PLACE), "{schema}: {said}");
            }
        }
    }

    #[test]
    fn the_most_expensive_reasons_are_found_soon() {
        for schema in explosive() {
            let compiled = Schema::compile(&schema).unwrap();
            let affords = |value: &Value| compiled.inner.recursion.affords(value);
            for innermost in [json!({}), json!(1)] {
                let deepest = (0..100).map(|levels| nested(levels, &innermost));
                let deepest = deepest.take_while(affords).last().unwrap();
                let start = Instant::now();
                let _ = compiled.inner.validator.validate(&deepest);
                assert!(start.elapsed() < SOON, "{schema}");
            }
        }
    }

    #[test]
    fn deep_values_are_valid_and_mismatches_are_explained() {
        let list = json!({"type": "object", "properties": {"x": {"$ref": "#"}}});
        let tree = json!({"type": "object", "properties": {
            "x": {"$ref": "#"}, "y": {"$ref": "#"}}});
        let expression = json!({"oneOf": [
            {"type": "boolean"},
            {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#"}}},
            {"type": "object", "required": ["and"], "properties": {"and": {"items": {"$ref": "#"}}}}]});
        let alternating = json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"type": "object", "properties": {"x": {"$ref": "#/$defs/b"}}},
            "b": {"type": "object", "additionalProperties": {"$ref": "#/$defs/a"}}}});
        let of_schemas = json!({"properties": {
            "x": {"$ref": "#"}, "not": {"$ref": "#"}, "minimum": {"type": "number"},
            "allOf": {"type": "array", "items": {"$ref": "#"}}}, "type": ["object", "boolean"]});
        for schema in [list, tree, expression, alternating, of_schemas] {
            let compiled = Schema::compile(&schema).unwrap();
            let innermost = if schema["oneOf"].is_array() { json!(true) } else { json!({}) };
            assert_eq!(compiled.check(&nested(100, &innermost)), Ok(()), "{schema}");
            let said = compiled.check(&nested(100, &json!("no"))).unwrap_err().to_string();
            assert!(!said.starts_with(WITHOUT_PLACE), "{schema}: {said}");
        }
        let bomb = Schema::compile(&bomb()).unwrap();
        assert_eq!(bomb.check(&nested(100, &json!({}))), Ok(()));
        let said = bomb.check(&nested(3, &json!(1))).unwrap_err().to_string();
        assert!(
            said.ends_with(r#"under any of the schemas listed in the 'anyOf' keyword"#),
            "{said}"
        );
    }

    #[test]
    fn wide_values_are_too_expensive_if_work_multiplies() {
        let wide = json!({ "x": vec![json!({"x": 1}); 100_000] });
        let bomb = Schema::compile(&bomb()).unwrap();
        assert!(!bomb.inner.recursion.affords(&wide));
        let flat = Schema::compile(&json!({"items": {"type": "object"}})).unwrap();
        assert!(flat.inner.recursion.affords(&wide));
    }

    #[test]
    fn circles_in_one_place_are_refused() {
        let cases = [
            json!({"$ref": "#"}),
            json!({"anyOf": [{"type": "string"}, {"$ref": "#"}]}),
            json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {
                "a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}),
        ];
        for schema in cases {
            let error = Schema::compile(&schema).unwrap_err();
            assert!(error.message.starts_with("refers to itself"), "{schema}: {error}");
        }
    }
}
