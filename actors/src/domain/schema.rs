//! JSON Schemas of inputs, outputs, suspensions and resumptions.
//!
//! Draft 2020-12 unless the schema names another. Nothing is fetched or read from files, patterns
//! run in linear time, and a schema that could make a check expensive is refused when compiled.
//! `format` is asserted where its name is known ([`unknown_formats`] has those that are not).
//! What a check walks is paid for (see [`super::effort`]). A value that a recursive schema
//! refuses is told why unless that is expensive.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

pub use self::format::{UnknownFormat, unknown_formats};
pub use self::required::{ForbiddenKey, forbidden_keys};

use self::price::Price;
use self::recursion::Recursion;
use crate::domain::effort;

/// Longest [`SchemaViolation::detail`], in characters.
pub const DETAIL_CHARS_MAX: usize = 200;

/// Longest part of the checked value that a detail repeats, in characters.
const VALUE_CHARS_SHOWN: usize = 60;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Compiled>,
}

struct Compiled {
    source: Value,
    validator: Validator,
    recursion: Recursion,
    price: Price,
}

/// Why a schema was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer into the schema; empty for the root.
    pub pointer: String,
    /// What is wrong there, on one line.
    pub message: String,
}

impl SchemaError {
    fn at(pointer: &str, message: impl AsRef<str>) -> Self {
        Self {
            pointer: shortened(pointer, DETAIL_CHARS_MAX),
            message: shortened(message.as_ref(), DETAIL_CHARS_MAX),
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "schema: {}", self.message),
            pointer => write!(f, "schema at {pointer}: {}", self.message),
        }
    }
}

impl std::error::Error for SchemaError {}

/// The first thing about a value that its schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// Place in the value, `items[2].price`; empty for the whole.
    pub path: String,
    /// What is wrong, on one line of at most [`DETAIL_CHARS_MAX`] characters.
    pub detail: String,
    /// The check cost too much to come to an end: it is not to be tried again.
    pub is_too_costly: bool,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.detail),
            path => write!(f, "{path}: {}", self.detail),
        }
    }
}

impl std::error::Error for SchemaViolation {}

impl SchemaViolation {
    /// Of a value that there was no time to check.
    pub(crate) fn unchecked() -> Self {
        Self::of_whole("not checked: the server is shutting down")
    }

    fn of_whole(detail: &str) -> Self {
        Self { path: String::new(), detail: detail.to_owned(), is_too_costly: false }
    }
}

impl Schema {
    /// Compiles a schema, unless it is invalid, refers outside itself or could cost too much.
    pub fn compile(source: &Value) -> Result<Self, SchemaError> {
        let (references, size, patterns) = guard::check(source)?;
        let recursion = Recursion::of(source, &references, size)?;
        let mut options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(price::PATTERN_SIZE_MAX));
        if source.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft202012);
        }
        let (priced, price) = price::of(source, &patterns);
        let validator = price::charging(options, patterns)
            .build(&priced)
            .map_err(|error| SchemaError::at(error.instance_path().as_str(), refusal(&error)))?;
        let source = source.clone();
        Ok(Self { inner: Arc::new(Compiled { source, validator, recursion, price }) })
    }

    /// Returns the schema as it was given.
    pub fn source(&self) -> &Value {
        &self.inner.source
    }

    /// Checks a value and tells the first violation.
    pub fn check(&self, instance: &Value) -> Result<(), SchemaViolation> {
        effort::bounded(|| {
            let checked = match self.inner.price.pay(instance) {
                true => self.check_paid(instance),
                false => Ok(()),
            };
            match effort::excess() {
                Some(excess) => Err(SchemaViolation {
                    is_too_costly: true,
                    ..SchemaViolation::of_whole(&format!("the check {excess}"))
                }),
                None => checked,
            }
        })
    }

    fn check_paid(&self, instance: &Value) -> Result<(), SchemaViolation> {
        if self.inner.validator.is_valid(instance) {
            return Ok(());
        }
        if !self.inner.recursion.affords(instance) {
            let detail = "does not match, and has too many levels for its recursive schema to say \
                          where";
            return Err(SchemaViolation::of_whole(detail));
        }
        self.inner.validator.validate(instance).map_err(|error| violation(instance, &error))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.inner.source).finish()
    }
}

fn violation(instance: &Value, error: &ValidationError<'_>) -> SchemaViolation {
    let mut path = dotted(instance, error.instance_path().as_str());
    let detail = match error.kind() {
        ValidationErrorKind::Required { property: Value::String(property) } => {
            push_key(&mut path, property);
            "missing".to_owned()
        }
        _ => described(error),
    };
    SchemaViolation { path, detail, is_too_costly: false }
}

/// Why a schema is none; the types there are where one is misspelt.
fn refusal(error: &ValidationError<'_>) -> String {
    let is_type = error.instance_path().as_str().rsplit('/').next() == Some("type");
    match (error.kind(), error.instance()) {
        (ValidationErrorKind::AnyOf { .. }, value) if is_type => format!(
            "{} is no type; array, boolean, integer, null, number, object and string are",
            beginning(value)
        ),
        _ => described(error),
    }
}

/// The crate's text, with a long value cut short inside it rather than at its end.
fn described(error: &ValidationError<'_>) -> String {
    let value = beginning(error.instance());
    shortened(&error.masked_with(value).to_string(), DETAIL_CHARS_MAX)
}

/// The first characters of a value's JSON, without writing all of it.
fn beginning(value: &Value) -> String {
    let mut start = Start { text: String::new(), characters_left: VALUE_CHARS_SHOWN };
    let complete = fmt::write(&mut start, format_args!("{value}")).is_ok();
    if !complete {
        start.text.push('…');
    }
    start.text
}

struct Start {
    text: String,
    characters_left: usize,
}

impl fmt::Write for Start {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            self.characters_left = self.characters_left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

/// A JSON pointer as a path; the value tells an index from a key of digits.
fn dotted(instance: &Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut here = Some(instance);
    for step in pointer.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        here = match here {
            Some(Value::Array(items)) => {
                path.push_str(&format!("[{key}]"));
                key.parse().ok().and_then(|index: usize| items.get(index))
            }
            value => {
                push_key(&mut path, &key);
                value.and_then(|value| value.get(&key))
            }
        };
    }
    path
}

fn push_key(path: &mut String, key: &str) {
    let mut characters = key.chars();
    let plain = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || next == '_');
    match (plain, path.is_empty()) {
        (true, true) => path.push_str(key),
        (true, false) => path.push_str(&format!(".{key}")),
        (false, _) => path.push_str(&format!("['{}']", shortened(key, VALUE_CHARS_SHOWN))),
    }
}

/// At most `characters_max` characters on one line.
fn shortened(text: &str, characters_max: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(characters_max)
        .collect();
    if text.chars().nth(characters_max).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

mod format;
mod guard;
mod price;
mod recursion;
mod required;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn shareable<T: Clone + Send + Sync + 'static>() {}

    #[test]
    fn schemas_travel_between_threads() {
        shareable::<Schema>();
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
            (
                json!({"$defs": {"a": {"$anchor": "n"}, "b": {"$anchor": "n"}}}),
                "schema at /$defs/b",
            ),
            (json!({"not": {"$ref": "#"}}), "schema: refers to itself without"),
        ];
        for (schema, said) in cases {
            let start = Instant::now();
            let error = Schema::compile(&schema).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}, not {said}");
            assert!(error.chars().count() < 450 && !error.contains('\n'), "{error}");
            assert!(start.elapsed() < Duration::from_secs(2), "{said} took {:?}", start.elapsed());
        }
    }

    #[test]
    fn small_expansions_pass() {
        assert!(Schema::compile(&doubling(8)).is_ok());
        assert!(Schema::compile(&chain(60)).is_ok());
        assert!(Schema::compile(&nested(60)).is_ok());
        assert!(Schema::compile(&unevaluated(4)).is_ok());
    }
}
