//! Shapes: knowledge about values before the workflow runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::expression::{Expression, PathKey};

/// Maximum nesting of schemas, references included.
const DEPTH_MAX: usize = 32;

/// Knowledge about a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Unknown.
    #[default]
    Any,
    /// A scalar; the text is its type with an article.
    Plain(&'static str),
    /// One of these strings.
    OneOf(Vec<String>),
    /// An object: its possible keys, those of them that may be missing, and whether others are
    /// forbidden.
    Object { keys: BTreeMap<String, Shape>, optional: BTreeSet<String>, is_closed: bool },
    /// An array of items of one shape.
    List(Box<Shape>),
}

pub(super) const TEXT: &str = "a string";
pub(super) const NUMBER: &str = "a number";
pub(super) const TRUTH: &str = "true or false";

impl Shape {
    /// Returns the shape of an object with exactly these keys.
    pub(super) fn closed<'k>(keys: impl IntoIterator<Item = (&'k str, Self)>) -> Self {
        let keys = keys.into_iter().map(|(key, shape)| (key.to_owned(), shape)).collect();
        Self::Object { keys, optional: BTreeSet::new(), is_closed: true }
    }

    /// Returns the type of a scalar, with an article.
    pub(super) fn plain(&self) -> Option<&'static str> {
        match self {
            Self::Plain(what) => Some(what),
            Self::OneOf(_) => Some(TEXT),
            Self::Any | Self::Object { .. } | Self::List(_) => None,
        }
    }

    /// Returns the shape that a JSON Schema describes.
    pub fn of_schema(schema: &Value) -> Self {
        of_schema(schema, schema, 0)
    }

    /// Returns the shape of a mapping. `known`: shapes of the values that it reads.
    pub(super) fn of_mapping(mapping: &Value, known: &dyn Fn(&str, &[PathKey]) -> Self) -> Self {
        match mapping {
            Value::Object(members) => {
                let keys = members.iter();
                Self::closed(keys.map(|(key, it)| (key.as_str(), Self::of_mapping(it, known))))
            }
            Value::String(source) => {
                let reading = Expression::compile(source).map(|it| it.reading());
                match reading.ok().filter(|it| it.is_path).and_then(|mut it| it.paths.pop()) {
                    Some(path) => known(&path.root, &path.keys),
                    None => Self::Any,
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Self::Any,
        }
    }

    /// Returns the shape of the value at these keys.
    pub(super) fn under(&self, keys: &[PathKey]) -> &Self {
        static ANY: Shape = Shape::Any;
        let Some((key, rest)) = keys.split_first() else { return self };
        match (self, key) {
            (Self::Object { keys, .. }, PathKey::Name(name)) => {
                keys.get(name).map_or(&ANY, |shape| shape.under(rest))
            }
            (Self::List(items), PathKey::Computed) => items.under(rest),
            (Self::Any | Self::Plain(_) | Self::OneOf(_), _)
            | (Self::Object { .. }, PathKey::Computed)
            | (Self::List(_), PathKey::Name(_)) => &ANY,
        }
    }
}

fn of_schema(schema: &Value, root: &Value, depth: usize) -> Shape {
    let Some(keywords) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
        return Shape::Any;
    };
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Shape::Any, |target| of_schema(target, root, depth + 1));
    }
    match kind_of(schema) {
        Some("object") => {
            let listed = keywords.get("properties").and_then(Value::as_object);
            let is_closed = keywords.get("additionalProperties") == Some(&Value::Bool(false))
                && !keywords.contains_key("patternProperties");
            const ELSEWHERE: [&str; 8] = [
                "allOf",
                "anyOf",
                "oneOf",
                "if",
                "dependentRequired",
                "dependentSchemas",
                "$dynamicRef",
                "patternProperties",
            ];
            let is_whole = is_closed || !ELSEWHERE.iter().any(|key| keywords.contains_key(*key));
            // a schema for other keys allows them
            let names_others = keywords.get("additionalProperties").is_some_and(Value::is_object);
            if !is_whole || names_others || (listed.is_none() && !is_closed) {
                return Shape::Any;
            }
            let listed = listed.into_iter().flatten();
            let optional = listed.clone().map(|(key, _)| key).filter(|key| {
                let required = keywords.get("required").and_then(Value::as_array);
                let mut required = required.into_iter().flatten().filter_map(Value::as_str);
                // subschemas may require more keys; they are not examined
                !ELSEWHERE.iter().any(|key| keywords.contains_key(*key))
                    && !required.any(|it| it == key.as_str())
            });
            let optional = optional.cloned().collect();
            let keys = listed.map(|(key, it)| (key.clone(), of_schema(it, root, depth + 1)));
            Shape::Object { keys: keys.collect(), optional, is_closed }
        }
        Some("array") => match (keywords.get("items"), keywords.contains_key("prefixItems")) {
            (Some(items), false) => Shape::List(Box::new(of_schema(items, root, depth + 1))),
            _ => Shape::List(Box::default()),
        },
        Some("string") => texts_of(keywords).map_or(Shape::Plain(TEXT), Shape::OneOf),
        Some("number" | "integer") => Shape::Plain(NUMBER),
        Some("boolean") => Shape::Plain(TRUTH),
        Some(_) => Shape::Any,
        None => texts_of(keywords).map_or(Shape::Any, Shape::OneOf),
    }
}

/// Returns the allowed strings of `enum` or `const`, without null.
fn texts_of(keywords: &Map<String, Value>) -> Option<Vec<String>> {
    let listed = match (keywords.get("enum"), keywords.get("const")) {
        (Some(Value::Array(listed)), None) => listed.as_slice(),
        (None, Some(one)) => std::slice::from_ref(one),
        _ => return None,
    };
    let texts = listed.iter().filter(|it| !it.is_null());
    let texts: Option<Vec<_>> = texts.map(|it| it.as_str().map(str::to_owned)).collect();
    texts.filter(|texts| !texts.is_empty())
}

/// Returns the only type of the value, without null.
fn kind_of(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        Some(_) => None,
        None => schema.get("properties").map(|_| "object"),
    }
}
