//! Expressions and templates outside of workflows, checked as they are read. Those of workflows
//! are checked when the plan is compiled.

use greenroom_actors::domain::expression::{Expression, Template, is_function};
use toml::de::DeValue;

use super::entry::Entry;
use super::section::{Place, in_order};

/// Refuses the first name, by the alphabet, that is neither in scope nor a function.
pub(crate) fn scope<'n>(
    place: &Place<'_>,
    in_scope: &[&str],
    names: impl IntoIterator<Item = &'n str>,
) {
    let is_unknown = |name: &&str| !in_scope.contains(name) && !is_function(name);
    if let Some(name) = names.into_iter().filter(is_unknown).min() {
        place.refuse(format!("`{name}` is not in scope; {} are", in_scope.join(", ")));
    }
}

/// Checks an expression.
pub(crate) fn expression(entry: &Entry<'_>) {
    check(entry, expression_problem);
}

/// Checks a template.
pub(crate) fn template(entry: &Entry<'_>) {
    check(entry, template_problem);
}

/// Checks every string of a value as an expression.
pub(crate) fn projection(entry: &Entry<'_>) {
    match entry.value {
        DeValue::String(_) => expression(entry),
        DeValue::Table(table) => {
            for (key, _, value) in in_order(table) {
                let place = entry.place.inner(key, value.span());
                projection(&Entry::new(place, value.get_ref()));
            }
        }
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let place = entry.place.item(index, item.span());
                projection(&Entry::new(place, item.get_ref()));
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

fn check(entry: &Entry<'_>, problem_of: fn(&str) -> Option<String>) {
    let DeValue::String(text) = entry.value else { return };
    if let Some(message) = problem_of(text) {
        entry.place.refuse(message);
    }
}

fn expression_problem(source: &str) -> Option<String> {
    Expression::compile(source).err().map(|error| error.to_string())
}

fn template_problem(source: &str) -> Option<String> {
    Template::compile(source).err().map(|error| error.to_string())
}
