//! JSON Schemas of inputs, outputs, payloads and resume data.
//!
//! Draft 2020-12 unless the schema names another. Nothing is fetched or read from files, patterns
//! run in linear time, and a schema that could make checks expensive is rejected when compiled.
//! `format` is asserted if its name is known ([`unknown_formats`] lists the others). Checks are
//! charged (see [`super::effort`]). The place of a mismatch is omitted if a recursive schema makes
//! it expensive to find.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

pub use self::format::{UnknownFormat, unknown_formats};
pub use self::keyword::{MisspeltKey, UnknownKeyword, misspelt_keys, unknown_keywords};
pub use self::required::{ForbiddenKey, forbidden_keys};

use self::price::Price;
use self::recursion::Recursion;
use crate::effort;

/// Maximum length of [`SchemaViolation::detail`], in characters.
pub const DETAIL_CHARS_MAX: usize = 200;

/// Maximum length of a value in a detail, in characters.
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

/// Reason why a schema was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer into the schema; empty for the root.
    pub pointer: String,
    /// Problem, on one line.
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

/// First mismatch of a value with its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// Place in the value, `items[2].price`; empty for the whole.
    pub path: String,
    /// Problem, on one line of at most [`DETAIL_CHARS_MAX`] characters.
    pub detail: String,
    /// True if the check exceeded its budget; it is not retried.
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
    /// Creates the violation of a value that was not checked because of a shutdown.
    pub fn unchecked() -> Self {
        Self::of_whole("not checked: the server is shutting down")
    }

    fn of_whole(detail: &str) -> Self {
        Self { path: String::new(), detail: detail.to_owned(), is_too_costly: false }
    }
}

impl Schema {
    /// Compiles a schema. Rejects one that is invalid, refers outside itself or could cost too
    /// much.
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

    /// Returns the source.
    pub fn source(&self) -> &Value {
        &self.inner.source
    }

    /// Checks a value; returns the first violation.
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

    /// Returns up to `max` violations, for a person who mends all of them at once. Only the first one
    /// if others would cost too much to find.
    pub fn violations(&self, instance: &Value, max: usize) -> Vec<SchemaViolation> {
        let Err(first) = self.check(instance) else { return Vec::new() };
        if first.is_too_costly || !self.inner.recursion.affords(instance) {
            return vec![first];
        }
        effort::bounded(|| {
            let errors = self.inner.validator.iter_errors(instance).take(max);
            let found: Vec<_> = errors.map(|error| violation(instance, &error)).collect();
            if effort::excess().is_some() { vec![first] } else { found }
        })
    }

    fn check_paid(&self, instance: &Value) -> Result<(), SchemaViolation> {
        if self.inner.validator.is_valid(instance) {
            return Ok(());
        }
        if !self.inner.recursion.affords(instance) {
            let detail = "does not match its recursive schema; the value is too large or too deep \
                          to find the place";
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
        // the crate's text shows the compiled schema, which has prices in it
        ValidationErrorKind::Not { .. } => {
            format!("{} matches the schema of `not`", beginning(error.instance()))
        }
        _ => described(error),
    };
    SchemaViolation { path, detail, is_too_costly: false }
}

/// Returns the problem of an invalid schema, with the valid types for a misspelt one.
fn refusal(error: &ValidationError<'_>) -> String {
    let is_type = error.instance_path().as_str().rsplit('/').next() == Some("type");
    match (error.kind(), error.instance()) {
        (ValidationErrorKind::AnyOf { .. }, value) if is_type => format!(
            "{} is not a type; expected array, boolean, integer, null, number, object or string",
            beginning(value)
        ),
        _ => described(error),
    }
}

/// Returns the text of the crate, in which only a long value is truncated.
fn described(error: &ValidationError<'_>) -> String {
    let value = beginning(error.instance());
    shortened(&error.masked_with(value).to_string(), DETAIL_CHARS_MAX)
}

/// Returns the first characters of a value's JSON, without writing all of it.
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

/// Converts a JSON pointer to a path. The value distinguishes an index from a key of digits.
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

/// Truncates a text to `characters_max` characters on one line.
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
mod keyword;
mod price;
mod recursion;
mod required;

#[cfg(test)]
mod tests;
