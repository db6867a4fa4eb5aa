//! Members that may be missing: `a.b.c | default(0)` and `a.b.c is defined` are about a whole chain.
//!
//! The engine fails on a lookup in an undefined value. In a chain that `default` or a test of
//! presence follows directly, such lookups are rewritten as a filter of our own before the engine
//! compiles the source. Other sources stay as they are, and cost the same.

use std::borrow::Cow;

use minijinja::machinery::ast;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error};

use super::operators::Insertion;

/// Name of the filter. Lints accept no filter with a dot in its name.
pub(super) const FILTER: &str = "engine.member";

/// Adds the filter that replaces lookups.
pub(super) fn add_filter(environment: &mut Environment<'static>) {
    environment.add_filter(FILTER, member);
}

/// A lookup to rewrite.
pub(super) struct Member {
    /// Position of its dot or its opening bracket.
    at: usize,
    end: usize,
}

/// Returns the lookups of a chain to rewrite. The first one is not, if it is in a name: names are
/// in scope or mistakes.
pub(super) fn of_chain(source: &str, chain: &ast::Expr<'_>) -> Vec<Member> {
    let mut members = Vec::new();
    let mut rest = chain;
    while let Some(inner) = looked_up_in(rest) {
        if matches!(inner, ast::Expr::Var(_)) {
            break;
        }
        // only closing brackets and white space can be between the two
        let from = inner.span().end_offset as usize;
        let end = rest.span().end_offset as usize;
        let lookup = source.get(from..end).and_then(|lookup| lookup.find(['.', '[']));
        members.extend(lookup.map(|at| Member { at: from + at, end }));
        rest = inner;
    }
    members
}

fn looked_up_in<'e, 'x>(lookup: &'e ast::Expr<'x>) -> Option<&'e ast::Expr<'x>> {
    match lookup {
        ast::Expr::GetAttr(got) => Some(&got.expr),
        ast::Expr::GetItem(got) => Some(&got.expr),
        _ => None,
    }
}

impl Member {
    /// Returns the changes that rewrite `.name` as `|engine.member("name")` and `[key]` as
    /// `|engine.member(key)`.
    pub(super) fn insertions(&self, source: &str) -> Vec<Insertion> {
        let Self { at, end } = *self;
        let Some(name) = source.get(at..end).and_then(|lookup| lookup.strip_prefix('.')) else {
            let opening = Cow::Borrowed("|engine.member(");
            return vec![(at, opening, 1), (end - 1, Cow::Borrowed(")"), 1)];
        };
        let name = name.trim();
        let quote = if name.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "\"" };
        vec![(at, Cow::Owned(format!("|{FILTER}({quote}{name}{quote})")), end - at)]
    }
}

/// Looks a key up; undefined in an undefined value.
fn member(value: &Value, key: &Value) -> Result<Value, Error> {
    match (value.kind(), key.as_str()) {
        (ValueKind::Undefined, _) => Ok(Value::UNDEFINED),
        (ValueKind::Invalid, _) => Ok(value.clone()),
        (_, Some(name)) => value.get_attr(name),
        (_, None) => value.get_item(key),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::expression::operators::of_expression;
    use crate::expression::{Expression, Scope, Template};

    #[test]
    fn only_chains_before_a_default_or_a_test_of_presence_are_rewritten() {
        for (source, written) in [
            ("input.a | default(7)", None),
            ("input.a.b + 1", None),
            ("input.a.b | upper | default('')", None),
            ("input.a.b is none", None),
            ("'input.a.b | default(7)' ~ 1", Some("('input.a.b | default(7)' )|engine.concat( 1)")),
            ("input.a.b | default(7)", Some("input.a|engine.member(\"b\") | default(7)")),
            ("input.a.b is not defined", Some("input.a|engine.member(\"b\") is not defined")),
            (
                "(input . a) . b . c | d",
                Some("(input . a) |engine.member(\"b\") |engine.member(\"c\") | d"),
            ),
            (
                "data[0]['x'][n + m] is undefined",
                Some("data[0]|engine.member('x')|engine.member((n )|engine.plus( m)) is undefined"),
            ),
            (
                "a.b[c.d.e | default(0)].f | default(1) * 2",
                Some(
                    "(a.b|engine.member(c.d|engine.member(\"e\") | default(0))\
                     |engine.member(\"f\") | default(1) )|engine.times( 2)",
                ),
            ),
            (
                "(rows | first).n | default(0)",
                Some("(rows | first)|engine.member(\"n\") | default(0)"),
            ),
        ] {
            assert_eq!(of_expression(source).as_deref(), written, "{source}");
        }
    }

    fn scope() -> Scope {
        let input = json!({
            "a": { "b": 1, "no": null }, "text": "x", "list": [{ "n": 2 }], "none": [],
        });
        Scope::new().with("input", Arc::new(input)).with_optional("user", None)
    }

    #[test]
    fn a_default_covers_every_missing_part() {
        for (source, expected) in [
            ("input.a.b | default(7)", json!(1)),
            ("input.x.b | default(7)", json!(7)),
            ("input.x.y.z[0]['k'] | default(7)", json!(7)),
            ("input.a.no.more.still | default(7)", json!(7)),
            ("input.text.more.still | default(7)", json!(7)),
            ("input.list[0].n | default(7)", json!(2)),
            ("input.list[-1].n | default(7)", json!(2)),
            ("input.list[3].n.m | d(7)", json!(7)),
            ("(input.none | first).n | default(7)", json!(7)),
            ("user.address.city | default('-')", json!("-")),
            ("input.x.y is defined", json!(false)),
            ("input.x.y is undefined and input.a.b is defined", json!(true)),
            ("[1, input.x.y | default(2)] | sum + 1", json!(4)),
            ("input['x']['y'] | default(input.q.r | default('r'))", json!("r")),
        ] {
            let value = Expression::compile(source).unwrap().evaluate(&scope());
            assert_eq!(value.map_err(|error| error.message), Ok(expected), "{source}");
        }
        let text = "{% for row in input.list %}{{ row.x.y | default('-') }}{% endfor %} \
                    {{ input.x.y | default('none') }}";
        assert_eq!(Template::compile(text).unwrap().render(&scope()).unwrap(), "- none");
    }

    #[test]
    fn everything_else_stays_strict() {
        for (source, said) in [
            ("input.x.y + 1", "`input.x` is undefined in"),
            ("input.x.y", "`input.x` is undefined in"),
            ("input.x.y is none", "`input.x` is undefined in"),
            ("input.x.y | upper | default('')", "`input.x` is undefined in"),
            ("absent.x.y | default(1)", "`absent` is undefined in"),
            ("input.a[input.x.y].z | default(1)", "`input.x` is undefined in"),
        ] {
            let error = Expression::compile(source).unwrap().evaluate(&scope()).unwrap_err();
            assert!(error.message.starts_with(said), "{source}: {error}");
        }
        let value: Result<Value, _> =
            Expression::compile("input.x.y | default").unwrap().evaluate(&scope());
        assert_eq!(value, Ok(json!("")));
    }
}
