//! Limits of schemas, checked before one is compiled.
//!
//! A running check cannot be cancelled, so the schema is limited here: its depth, number of values
//! and patterns, and its size with references expanded. Subschemas that `unevaluatedProperties` and
//! `unevaluatedItems` check again count again: nested, they multiply.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use super::price::{Pattern, Patterns};

pub(super) const DEPTH_MAX: usize = 64;
pub(super) const NODES_MAX: usize = 10_000;
pub(super) const PATTERNS_MAX: usize = 100;
pub(super) const PATTERN_BYTES_MAX: usize = 512;
pub(super) const EXPANSION_MAX: usize = 20_000;
/// Maximum depth with references expanded; the compiler and the check recurse.
const EXPANDED_DEPTH_MAX: usize = 256;

/// Placeholder for list items and named schemas, which have no keyword.
const NO_KEYWORD: &str = "";

/// Meaning of the keys of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Reading {
    /// Keys are keywords.
    Schema,
    /// Keys are names chosen by the author, values are schemas.
    Names,
    /// The contents are not schemas.
    Data,
}

impl Reading {
    pub(super) fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Data, _) => Self::Data,
            (Self::Names, _) => Self::Schema,
            (
                Self::Schema,
                "const" | "enum" | "default" | "examples" | "dependentRequired" | "$vocabulary",
            ) => Self::Data,
            (
                Self::Schema,
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                | "definitions",
            ) => Self::Names,
            (Self::Schema, _) => Self::Schema,
        }
    }
}

/// Visits every object of a schema whose keys are keywords, with its place.
pub(super) fn each_schema(schema: &Value, visit: &mut dyn FnMut(&Value, &[String])) {
    each_below(schema, Reading::Schema, &mut Vec::new(), visit);
}

fn each_below(
    value: &Value,
    reading: Reading,
    place: &mut Vec<String>,
    visit: &mut dyn FnMut(&Value, &[String]),
) {
    if reading == Reading::Schema && value.is_object() {
        visit(value, place);
    }
    let mut inside = |key: String, value: &Value, reading: Reading| {
        place.push(key);
        each_below(value, reading, place, visit);
        place.pop();
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                inside(index.to_string(), item, reading);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                inside(key.clone(), member, reading.below(key));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Rejects a schema that could cost too much or refers outside itself. Returns its references, its
/// size with references expanded, and its patterns.
pub(super) fn check(schema: &Value) -> Result<(References<'_>, usize, Patterns), SchemaError> {
    let mut survey = Survey::default();
    survey.visit(schema, Reading::Schema, "", 0)?;
    let patterns = survey.compiled;
    let references = References { root: schema, anchors: survey.anchors };
    let mut expansion = Expansion { references: &references, known: HashMap::new() };
    let size = expansion.measure(schema, Reading::Schema, 0)?;
    Ok((references, size.nodes, patterns))
}

/// Targets of references.
pub(super) struct References<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> References<'a> {
    /// Returns the target; `None` for a reference outside the schema.
    pub(super) fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decoded(reference.strip_prefix('#')?);
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        self.anchors.get(fragment.as_str()).copied()
    }
}

#[derive(Default)]
struct Survey<'a> {
    nodes: usize,
    patterns: usize,
    compiled: Patterns,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> Survey<'a> {
    fn visit(
        &mut self,
        value: &'a Value,
        reading: Reading,
        pointer: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        self.nodes += 1;
        if depth > DEPTH_MAX {
            return Err(SchemaError::at(pointer, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        if self.nodes > NODES_MAX {
            return Err(SchemaError::at("", format!("more than {NODES_MAX} values")));
        }
        match value {
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.visit(item, reading, &format!("{pointer}/{index}"), depth + 1)
            }),
            Value::Object(members) => members.iter().try_for_each(|(key, member)| {
                let here = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                match reading {
                    Reading::Schema => self.keyword(value, key, member, &here, pointer)?,
                    Reading::Names if pointer.ends_with("/patternProperties") => {
                        self.pattern(key, &here)?;
                    }
                    Reading::Names | Reading::Data => {}
                }
                self.visit(member, reading.below(key), &here, depth + 1)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        schema: &'a Value,
        key: &str,
        member: &'a Value,
        here: &str,
        pointer: &str,
    ) -> Result<(), SchemaError> {
        let Value::String(text) = member else { return Ok(()) };
        match key {
            "pattern" => self.pattern(text, here),
            "$ref" | "$dynamicRef" | "$recursiveRef" if !is_known_reference(text) => Err(
                SchemaError::at(here, format!("`{text}` refers outside the schema; only `#...`")),
            ),
            // It would change the meaning of `#` below it.
            "$id" if !pointer.is_empty() => {
                Err(SchemaError::at(here, "only the root may have an `$id`"))
            }
            "$anchor" | "$dynamicAnchor" => {
                // With two of the same name, the validator may use the other.
                match self.anchors.insert(text, schema) {
                    Some(other) if !std::ptr::eq(other, schema) => {
                        Err(SchemaError::at(here, format!("a second anchor `{text}`")))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str, here: &str) -> Result<(), SchemaError> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(SchemaError::at(here, format!("more than {PATTERNS_MAX} patterns")));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            let message = format!("pattern longer than {PATTERN_BYTES_MAX} bytes");
            return Err(SchemaError::at(here, message));
        }
        // An invalid pattern is allowed where it is never used: in an unreferenced definition, or
        // under an unknown keyword. The validator rejects the others.
        if !self.compiled.contains_key(pattern)
            && let Some(compiled) = Pattern::compile(pattern)
        {
            self.compiled.insert(pattern.to_owned(), compiled);
        }
        Ok(())
    }
}

pub(super) fn is_bundled(reference: &str) -> bool {
    const BUNDLED: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];
    BUNDLED.iter().any(|prefix| reference.starts_with(prefix))
}

fn is_known_reference(reference: &str) -> bool {
    reference.starts_with('#') || is_bundled(reference)
}

#[derive(Debug, Clone, Copy)]
struct Size {
    nodes: usize,
    /// Number of these that are checked again to determine what the branches evaluated.
    again: usize,
    height: usize,
}

const LEAF: Size = Size { nodes: 1, again: 1, height: 1 };

/// Measures a schema with references expanded, each target once. A reference to a schema that is
/// being measured is recursion and counts as one.
struct Expansion<'a, 'r> {
    references: &'r References<'a>,
    /// By address in the borrowed schema; `None` while being measured.
    known: HashMap<(*const Value, Reading), Option<Size>>,
}

impl<'a> Expansion<'a, '_> {
    fn measure(
        &mut self,
        value: &'a Value,
        reading: Reading,
        depth: usize,
    ) -> Result<Size, SchemaError> {
        let address = (std::ptr::from_ref(value), reading);
        if let Some(known) = self.known.get(&address) {
            return Ok(known.unwrap_or(LEAF));
        }
        if depth > EXPANDED_DEPTH_MAX {
            return Err(too_deep());
        }
        self.known.insert(address, None);
        let size = self.measure_members(value, reading, depth)?;
        if size.nodes > EXPANSION_MAX {
            let message = format!("more than {EXPANSION_MAX} values with references expanded");
            return Err(SchemaError::at("", message));
        }
        if size.height > EXPANDED_DEPTH_MAX {
            return Err(too_deep());
        }
        self.known.insert(address, Some(size));
        Ok(size)
    }

    fn measure_members(
        &mut self,
        value: &'a Value,
        reading: Reading,
        depth: usize,
    ) -> Result<Size, SchemaError> {
        let mut below = Size { nodes: 0, again: 0, height: 0 };
        let mut add = |size: Size, keyword: &str| {
            below.nodes = below.nodes.saturating_add(size.nodes);
            below.again = below.again.saturating_add(checked_again(size, keyword));
            below.height = below.height.max(size.height);
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    add(self.measure(item, reading, depth + 1)?, NO_KEYWORD);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let keyword = match reading {
                        Reading::Schema => key.as_str(),
                        Reading::Names | Reading::Data => NO_KEYWORD,
                    };
                    match (keyword, member.as_str()) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Some(reference)) => {
                            if let Some(target) = self.references.target(reference) {
                                add(self.measure(target, Reading::Schema, depth + 1)?, keyword);
                            }
                        }
                        // Costs nothing unless referenced.
                        ("$defs" | "definitions", _) => {
                            self.measure_unreferenced(member, depth + 1)?;
                        }
                        _ => add(self.measure(member, reading.below(key), depth + 1)?, keyword),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        let unevaluated = reading == Reading::Schema
            && (value.get("unevaluatedProperties").is_some()
                || value.get("unevaluatedItems").is_some());
        if unevaluated {
            below.nodes = below.nodes.saturating_add(below.again);
        }
        Ok(Size { nodes: below.nodes.saturating_add(1), height: below.height + 1, ..below })
    }

    /// Checks the limits of each definition, which is compiled even if unreferenced.
    fn measure_unreferenced(&mut self, names: &'a Value, depth: usize) -> Result<(), SchemaError> {
        let definitions = names.as_object().into_iter().flat_map(|members| members.values());
        for definition in definitions {
            self.measure(definition, Reading::Schema, depth + 1)?;
        }
        Ok(())
    }
}

/// Returns the size that is checked again when an outer schema needs to know which branches
/// matched.
fn checked_again(size: Size, keyword: &str) -> usize {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "if" => size.nodes.saturating_add(size.again),
        "$ref" | "$dynamicRef" | "$recursiveRef" | "then" | "else" | "dependentSchemas"
        | NO_KEYWORD => size.again,
        "unevaluatedProperties" | "unevaluatedItems" | "contains" => size.nodes,
        _ => 0,
    }
}

/// Refuses to follow a branch further.
pub(super) fn expanded_depth(depth: usize) -> Result<(), SchemaError> {
    if depth > EXPANDED_DEPTH_MAX { Err(too_deep()) } else { Ok(()) }
}

fn too_deep() -> SchemaError {
    let message = format!("deeper than {EXPANDED_DEPTH_MAX} levels with references expanded");
    SchemaError::at("", message)
}

fn percent_decoded(fragment: &str) -> String {
    let bytes = fragment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| fragment.get(at + 1..at + 3)).flatten();
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
