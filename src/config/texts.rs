//! Checks of expressions and templates outside of workflows. Those of workflows are checked when the
//! plan is compiled.

use std::collections::BTreeMap;

use greenroom_actors::domain::expression::{Expression, Template};
use greenroom_actors::domain::plan::{Form, Remark, Shape, remarks};
use serde_json::Value;
use toml::de::DeValue;

use super::entry::Entry;
use super::problem::{ConfigProblem, Spot};
use super::section::{Place, in_order};
use crate::nearest::nearest;

/// Names that expressions and templates can read.
#[derive(Debug, Clone)]
pub(crate) struct TextScope {
    names: &'static [&'static str],
    /// Known shapes of their values.
    shapes: BTreeMap<&'static str, Shape>,
}

impl TextScope {
    pub(crate) fn of(names: &'static [&'static str]) -> Self {
        Self { names, shapes: BTreeMap::new() }
    }

    /// Adds a name whose value matches a JSON Schema.
    pub(crate) fn with(mut self, name: &'static str, schema: Option<&Value>) -> Self {
        self.shapes.extend(schema.map(|schema| (name, Shape::of_schema(schema))));
        self
    }

    /// Returns the remarks on a text without a place in a file.
    pub(crate) fn problems(&self, source: &str, form: Form, spot: &Spot) -> Vec<ConfigProblem> {
        let remarks = remarks(source, form, self.names, &self.shapes);
        remarks.into_iter().map(|remark| remark_at(remark, spot)).collect()
    }

    /// Reports remarks on a text that compiles.
    pub(crate) fn check(&self, source: &str, form: Form, place: &Place<'_>) {
        for problem in self.problems(source, form, &place.spot()) {
            place.findings.report(problem);
        }
    }

    /// Checks an expression.
    pub(crate) fn expression(&self, entry: &Entry<'_>) {
        self.written(entry, Form::Expression);
    }

    /// Checks a template.
    pub(crate) fn template(&self, entry: &Entry<'_>) {
        self.written(entry, Form::Template);
    }

    /// Checks every string of a value as an expression.
    pub(crate) fn mapping(&self, entry: &Entry<'_>) {
        match entry.value {
            DeValue::String(_) => self.expression(entry),
            DeValue::Table(table) => {
                for (key, _, value) in in_order(table) {
                    let place = entry.place.inner(key, value.span());
                    self.mapping(&Entry::new(place, value.get_ref()));
                }
            }
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let place = entry.place.item(index, item.span());
                    self.mapping(&Entry::new(place, item.get_ref()));
                }
            }
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }

    fn written(&self, entry: &Entry<'_>, form: Form) {
        let DeValue::String(text) = entry.value else { return };
        let refused = match form {
            Form::Expression => Expression::compile(text).err(),
            Form::Template => Template::compile(text).err(),
        };
        match refused {
            Some(error) => entry.place.refuse(error.to_string()),
            None => self.check(text, form, &entry.place),
        }
    }
}

/// Returns a remark as a problem at its place.
pub(crate) fn remark_at(remark: Remark, spot: &Spot) -> ConfigProblem {
    let Remark { message, is_error, misspelt } = remark;
    let problem = if is_error { spot.error(message) } else { spot.warning(message) };
    let meant = misspelt.and_then(|it| nearest(&it.written, it.known.iter().map(String::as_str)));
    problem.meant(meant)
}
