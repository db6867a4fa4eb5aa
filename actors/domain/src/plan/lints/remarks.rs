//! Lints of expressions and templates, independent of their place.

use std::collections::BTreeMap;

use crate::expression::{
    Expression, ExpressionError, FILTERS, FUNCTIONS, Reading, TESTS, Template, UsedKind,
};

use super::absent::{self, Allowed};
use super::{Finding, Misspelt, Shape, comparisons, fields, lookalikes};

/// Maximum number of names that a message lists.
const LISTED_MAX: usize = 8;

/// Joins the first names for a message.
pub(super) fn listed<'k>(names: impl Iterator<Item = &'k str>) -> String {
    let mut shown: Vec<_> = names.take(LISTED_MAX + 1).collect();
    if let Some(last) = shown.get_mut(LISTED_MAX) {
        *last = "…";
    }
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
}

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Expression,
    Template,
}

/// A lint without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub message: String,
    /// True if it must be corrected.
    pub is_error: bool,
    pub misspelt: Option<Misspelt>,
}

impl Remark {
    pub(super) fn error(message: String) -> Self {
        Self { message, is_error: true, misspelt: None }
    }

    pub(super) fn warning(message: String) -> Self {
        Self { message, is_error: false, misspelt: None }
    }

    /// Adds the place.
    pub(super) fn at(self, place: Vec<String>) -> Finding {
        let Self { message, is_error, misspelt } = self;
        Finding { place, message, is_error, misspelt }
    }

    pub(super) fn meant<'k>(
        mut self,
        written: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        let known = known.into_iter().map(str::to_owned).collect();
        self.misspelt = Some(Misspelt { written: written.to_owned(), known });
        self
    }
}

/// Returns the lints of a text. `names`: names in scope; `shapes`: shapes of some of them. Empty if
/// the text does not compile.
pub fn remarks(
    source: &str,
    form: Form,
    names: &[&str],
    shapes: &BTreeMap<&str, Shape>,
) -> Vec<Remark> {
    let Ok(reading) = reading(source, form) else { return Vec::new() };
    let read = reading.names();
    let unknown = read.into_iter().filter(|name| !names.contains(name));
    let mut found: Vec<_> = unknown.map(|name| not_in_scope(name, source, names)).collect();
    found.extend(of_reading(&reading, source, form, names));
    let asked = Allowed { reading: &reading, around: &[] };
    let shape_of = |root: &str| shapes.get(root);
    for path in &reading.paths {
        let Some(shape) = shape_of(&path.root) else { continue };
        if !path.is_optional {
            found.extend(fields::remark(&path.root, &path.keys, shape));
        }
        found.extend(absent::optional(path, &path.root, &path.keys, shape, &asked));
    }
    for compared in &reading.compared {
        if let Some(shape) = shape_of(&compared.path.root) {
            let shape = shape.under(&compared.path.keys);
            found.extend(comparisons::remark(compared, shape));
        }
    }
    found
}

/// Returns what a text reads and uses.
pub(super) fn reading(source: &str, form: Form) -> Result<Reading, ExpressionError> {
    match form {
        Form::Expression => Ok(Expression::compile(source)?.reading()),
        Form::Template => Ok(Template::compile(source)?.reading()),
    }
}

/// Returns the lints that do not depend on values.
pub(super) fn of_reading(
    reading: &Reading,
    source: &str,
    form: Form,
    names: &[&str],
) -> Vec<Remark> {
    let mut found = of_words(reading);
    found.extend(lookalikes::of(reading, source, form, names));
    found
}

/// Reports a name that is not in scope.
pub(super) fn not_in_scope(name: &str, source: &str, names: &[&str]) -> Remark {
    if ["null", "nil", "undefined"].contains(&name) {
        return Remark::error(format!("`{name}` is written `none`"));
    }
    let known = names.join(", ");
    let quoted = match source.trim() == name {
        true => format!("; a string is written \"'{name}'\""),
        false => String::new(),
    };
    let message = format!("`{name}` is not in scope; in scope: {known}{quoted}");
    Remark::error(message).meant(name, names.iter().copied())
}

/// Returns the message about a function that the engine does not have.
pub fn no_function(name: &str) -> String {
    format!("there is no function `{name}`")
}

/// Reports filters, tests, functions and methods that the engine does not have.
fn of_words(reading: &Reading) -> Vec<Remark> {
    let missing = reading.used.iter().filter_map(|used| {
        let name = used.name.as_str();
        let (what, known): (_, &[&str]) = match used.kind {
            UsedKind::Filter => ("filter", &FILTERS),
            UsedKind::Test => ("test", &TESTS),
            UsedKind::Function => ("function", &FUNCTIONS),
            UsedKind::Method => return Some(of_method(name)),
        };
        if known.contains(&name) {
            return None;
        }
        if let Some(instead) = instead_of(used.kind, name) {
            return Some(Remark::error(format!("there is no {what} `{name}`; {instead}")));
        }
        let message = match FILTERS.contains(&name) {
            true => format!("there is no {what} `{name}`; a filter is written `value | {name}`"),
            false if what == "function" => no_function(name),
            false => format!("there is no {what} `{name}`"),
        };
        Some(Remark::error(message).meant(name, known.iter().copied()))
    });
    missing.collect()
}

/// Returns what replaces a word of other languages.
fn instead_of(kind: UsedKind, name: &str) -> Option<&'static str> {
    let is_test = kind == UsedKind::Test;
    Some(match name {
        "null" | "nil" | "None" if is_test => "write `is none`",
        "empty" if is_test => "write `not value`",
        "array" | "list" if is_test => "write `is sequence`",
        "object" | "dict" if is_test => "write `is mapping`",
        _ if is_test => return None,
        "len" | "size" => "write `value | length`",
        "str" => "write `value | string`",
        "json" | "to_json" | "dumps" | "stringify" => "write `value | tojson`",
        "from_json" | "parse_json" | "json_parse" | "loads" => "write `text | fromjson`",
        "timestamp" | "to_timestamp" | "to_epoch" => "write `time | epoch_ms`",
        "now" | "utcnow" | "today" => {
            "an evaluation gives the same value each time; `execution.startedAt` is a time"
        }
        "raise" | "throw" | "error" | "abort" => "write `fail('why')`",
        _ => return None,
    })
}

fn of_method(name: &str) -> Remark {
    let instead = match FILTERS.contains(&name) {
        true => format!(": write `value | {name}`"),
        false => "; filters are written `value | filter`".to_owned(),
    };
    Remark::error(format!("values have no methods such as `{name}()`{instead}"))
}
