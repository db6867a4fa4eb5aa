//! Charges of checks.
//!
//! Before a schema is compiled, every subschema gets a keyword of our own that charges for its
//! visit, and every pattern becomes a keyword that charges before it is matched, with the maximum
//! cost of a pattern of that size. Once the budget is spent, every value is invalid, so that the
//! check ends at once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::{Keyword, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::guard::{Reading, is_bundled};
use crate::effort;

/// Maximum size of a compiled pattern in bytes; `\p{L}{1000}{1000}` is larger.
pub(super) const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Size classes of compiled patterns.
const SIZES: [usize; 5] = [2 << 10, 8 << 10, 32 << 10, 128 << 10, PATTERN_SIZE_MAX];

/// Bytes of a compiled pattern times bytes of a text, per step. A state of a pattern takes about
/// 32 bytes, and every state may be visited for each byte of a text.
const PATTERN_WORK: usize = 512;

/// Parts of a schema per step.
const PARTS: usize = 8;

/// Steps for each value that is checked by a schema of the drafts.
const BUNDLED_WORK: u64 = 32;

/// Steps for each byte of a pattern, with `format: regex`.
const READING_WORK: usize = 1;

const VISIT: &str = "\u{0}greenroom visit";
const PATTERN: &str = "\u{0}greenroom pattern";

/// Patterns by their text.
pub(super) type Patterns = HashMap<String, Pattern>;

/// A compiled pattern and its size class.
#[derive(Clone)]
pub(super) struct Pattern {
    validator: Arc<Validator>,
    size: usize,
}

impl Pattern {
    /// Compiles a pattern; `None` if it is invalid or too large.
    pub(super) fn compile(pattern: &str) -> Option<Self> {
        let schema = json!({ "pattern": pattern });
        SIZES.into_iter().find_map(|size| {
            let options = jsonschema::options()
                .offline()
                .with_pattern_options(PatternOptions::regex().size_limit(size));
            let validator = options.build(&schema).ok()?;
            Some(Self { validator: Arc::new(validator), size })
        })
    }

    fn steps_for(&self, bytes: usize) -> u64 {
        let work = bytes.saturating_mul(self.size) / PATTERN_WORK;
        u64::try_from(work).unwrap_or(u64::MAX)
    }
}

/// Costs to charge before a check, because they cannot be charged during it.
#[derive(Debug, Default)]
pub(super) struct Price {
    /// Total size of the patterns of keys.
    keys: usize,
    /// True if it refers to a schema of the drafts.
    has_bundled: bool,
}

impl Price {
    /// Charges for a check of this value; returns false if the budget is exceeded.
    pub(super) fn pay(&self, instance: &Value) -> bool {
        if self.keys == 0 && !self.has_bundled {
            return true;
        }
        let each = if self.has_bundled { BUNDLED_WORK } else { 0 };
        let below = match instance {
            Value::Array(items) => items.iter().all(|item| self.pay(item)),
            Value::Object(members) => members.iter().all(|(key, member)| {
                effort::charge_all(key.len().saturating_mul(self.keys) / PATTERN_WORK, 1)
                    && self.pay(member)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        below && effort::charge(1 + each)
    }
}

/// Returns a schema with our keywords added, and the costs to charge before a check.
pub(super) fn of(schema: &Value, patterns: &Patterns) -> (Value, Price) {
    let mut price = Price::default();
    let priced = priced(schema, Reading::Schema, patterns, &mut price);
    (priced, price)
}

fn priced(value: &Value, reading: Reading, patterns: &Patterns, price: &mut Price) -> Value {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| priced(item, reading, patterns, price)).collect()
        }
        Value::Object(members) => {
            let mut copy = Map::with_capacity(members.len() + 1);
            for (key, member) in members {
                let is_keyword = reading == Reading::Schema;
                let is_known = |pattern| patterns.contains_key(pattern);
                let own = match key.as_str() {
                    "pattern" if is_keyword && member.as_str().is_some_and(is_known) => PATTERN,
                    key => key,
                };
                if is_keyword && key == "patternProperties" {
                    let keys = member.as_object().into_iter().flat_map(Map::keys);
                    let sizes = keys.filter_map(|key| patterns.get(key)).map(|it| it.size);
                    price.keys = price.keys.saturating_add(sizes.sum());
                }
                price.has_bundled |=
                    is_keyword && key == "$ref" && member.as_str().is_some_and(is_bundled);
                copy.insert(own.to_owned(), priced(member, reading.below(key), patterns, price));
            }
            if reading == Reading::Schema {
                copy.insert(VISIT.to_owned(), Value::from(parts_of(members)));
            }
            Value::Object(copy)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the cost of visiting a schema, without its subschemas.
fn parts_of(schema: &Map<String, Value>) -> usize {
    let sizes = schema.values().map(|member| match member {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    });
    sizes.sum::<usize>() / PARTS
}

/// Adds our keywords, and our check of patterns, to the options.
pub(super) fn charging<'o>(
    options: ValidationOptions<'o>,
    patterns: Patterns,
) -> ValidationOptions<'o> {
    options
        .with_format("regex", is_pattern)
        .with_keyword(VISIT, |_, parts, _| {
            let parts = parts.as_u64().unwrap_or_default();
            Ok(Box::new(Visit { parts }) as Box<dyn for<'i> Keyword<'i>>)
        })
        .with_keyword(PATTERN, move |_, pattern, _| {
            match pattern.as_str().and_then(|pattern| patterns.get(pattern)) {
                Some(pattern) => Ok(Box::new(pattern.clone()) as Box<dyn for<'i> Keyword<'i>>),
                None => Err(ValidationError::custom("an unknown pattern")),
            }
        })
}

/// Charges for the visit of a value by a subschema.
struct Visit {
    parts: u64,
}

impl<'i> Keyword<'i> for Visit {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(too_costly()) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let length = match instance {
            Value::String(text) => text.len() / 64,
            Value::Array(items) => items.len() / PARTS,
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        effort::charge(self.parts + 1) && effort::charge_all(length, 1)
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_paid(instance) { self.validator.validate(instance) } else { Err(too_costly()) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.is_paid(instance) && self.validator.is_valid(instance)
    }
}

impl Pattern {
    fn is_paid(&self, instance: &Value) -> bool {
        let bytes = instance.as_str().map_or(0, str::len);
        effort::charge(1 + self.steps_for(bytes))
    }
}

/// Returns true if a text is a pattern. The names of its groups are compared with one another, so
/// the charge for them is quadratic.
fn is_pattern(text: &str) -> bool {
    static FORMAT: LazyLock<Option<Validator>> = LazyLock::new(|| {
        let options = jsonschema::options().offline().should_validate_formats(true);
        options.build(&json!({ "format": "regex" })).ok()
    });
    let names = text.matches("(?<").count() + text.matches("\\k").count();
    let compared = (names + text.len() / 64).saturating_mul(names);
    let is_paid = effort::charge_all(text.len(), READING_WORK) && effort::charge_all(compared, 1);
    let is_valid = |format: &Validator| format.is_valid(&Value::from(text));
    is_paid && FORMAT.as_ref().is_some_and(is_valid)
}

fn too_costly<'i>() -> ValidationError<'i> {
    ValidationError::custom("too costly")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::effort::{Budget, within};
    use crate::schema::Schema;

    /// Expensive checks exceed the budget, and the error names it.
    #[test]
    fn expensive_checks_exceed_the_budget() {
        let counted = "^(([a-z]{1,10} ?){1,20}){1,20}$";
        let numbers = |count: usize| json!((0..count).collect::<Vec<_>>());
        let mut branches = vec![json!({ "type": "null" }); 2_600];
        branches.push(json!({ "type": "integer" }));
        let cases = [
            ("a counted pattern", json!({ "pattern": counted }), json!("ab ".repeat(300_000))),
            (
                "a pattern of keys",
                json!({ "patternProperties": { counted: {} } }),
                json!({ "ab ".repeat(300_000): 1 }),
            ),
            ("many branches", json!({ "items": { "anyOf": branches } }), numbers(100_000)),
            (
                "a long list",
                json!({ "items": { "enum": numbers(9_000) } }),
                json!(vec![8_999; 100_000]),
            ),
            (
                "names of groups",
                json!({ "format": "regex" }),
                json!((0..40_000).map(|it| format!("(?<n{it}>)")).collect::<String>()),
            ),
            (
                "references to groups",
                json!({ "format": "regex" }),
                json!(format!("(?<{}>){}", "n".repeat(300_000), "\\k<m>".repeat(100_000))),
            ),
            (
                "a schema of the drafts",
                json!({ "items": { "$ref": "https://json-schema.org/draft/2020-12/schema" } }),
                json!(vec![json!({ "properties": { "a": {} } }); 1_000_000]),
            ),
        ];
        for (name, schema, instance) in cases {
            let schema = Schema::compile(&schema).unwrap();
            let (checked, effort) = within(&Budget::whole(), || schema.check(&instance));
            let violation = checked.expect_err(name);
            assert!(violation.is_too_costly && effort.is_exceeded, "{name}: {violation}");
            assert_eq!(violation.to_string(), "the check takes more than 30000000 steps");
        }
    }

    #[test]
    fn common_checks_are_cheap() {
        let schema = json!({
            "type": "object", "required": ["name", "items"], "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "pattern": "^[a-z -]{1,64}$" },
                "items": { "type": "array", "items": {
                    "type": "object", "properties": {
                        "id": { "type": "integer" }, "kind": { "enum": ["a", "b"] } } } },
            },
        });
        let schema = Schema::compile(&schema).unwrap();
        let items = vec![json!({ "id": 1, "kind": "a" }); 1000];
        let (checked, effort) =
            within(&Budget::turn(), || schema.check(&json!({ "name": "a-b", "items": items })));
        assert_eq!(checked, Ok(()));
        assert!((3_000..10_000).contains(&effort.steps), "{effort:?}");
    }
}
