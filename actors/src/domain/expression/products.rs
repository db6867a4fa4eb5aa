//! Products, paid for.
//!
//! `*` repeats a text or a list as often as data say, and the engine walks what comes of it for
//! nothing. So every product that may be more than one of numbers is written anew, as a filter of
//! ours, before the engine compiles it.

use std::sync::LazyLock;

use minijinja::machinery::{Span, ast};
use minijinja::value::Value;
use minijinja::{Error, State, context};

use super::charged::charged;
use super::engine;
use super::syntax;
use crate::domain::effort;

/// The filter that multiplies. The check of definitions knows no filter with a dot in its name.
pub(super) const FILTER: &str = "engine.times";

/// What stands for the operator.
const APPLIED: &str = "|engine.times(";

/// Longest tuple that is made by repeating one: nothing pays when a tuple is walked.
const TUPLE_ITEMS_MAX: usize = 1_000;

/// A product in a text.
pub(super) struct Product {
    start: usize,
    /// Where its operator is.
    operator: usize,
    end: usize,
    /// Its left side is a product that is written anew as well.
    is_chained: bool,
}

impl Product {
    /// A product in `source`, unless it can only be one of numbers.
    pub(super) fn of(source: &str, product: &ast::BinOp<'_>, span: Span) -> Option<Self> {
        if !is_to_be_paid(product) {
            return None;
        }
        // brackets that close and white space are all that can stand between the two
        let left_end = product.left.span().end_offset as usize;
        let operator = left_end + source.get(left_end..)?.find('*')?;
        let is_chained = match &product.left {
            ast::Expr::BinOp(left) => matches!(left.op, ast::BinOpKind::Mul) && is_to_be_paid(left),
            _ => false,
        };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        Some(Self { start, operator, end, is_chained })
    }
}

fn is_to_be_paid(product: &ast::BinOp<'_>) -> bool {
    !(is_number(&product.left) && is_number(&product.right))
}

/// Whether an expression gives a number or fails.
fn is_number(expression: &ast::Expr<'_>) -> bool {
    match expression {
        ast::Expr::Const(constant) => constant.value.is_number(),
        ast::Expr::UnaryOp(operation) => matches!(operation.op, ast::UnaryOpKind::Neg),
        ast::Expr::BinOp(operation) => match operation.op {
            ast::BinOpKind::Sub
            | ast::BinOpKind::Div
            | ast::BinOpKind::FloorDiv
            | ast::BinOpKind::Rem
            | ast::BinOpKind::Pow => true,
            ast::BinOpKind::Add | ast::BinOpKind::Mul => {
                is_number(&operation.left) && is_number(&operation.right)
            }
            ast::BinOpKind::Eq
            | ast::BinOpKind::Ne
            | ast::BinOpKind::Lt
            | ast::BinOpKind::Lte
            | ast::BinOpKind::Gt
            | ast::BinOpKind::Gte
            | ast::BinOpKind::ScAnd
            | ast::BinOpKind::ScOr
            | ast::BinOpKind::Concat
            | ast::BinOpKind::In => false,
        },
        _ => false,
    }
}

/// The source of an expression as the engine is to compile it.
pub(super) fn of_expression(source: &str) -> Option<String> {
    source.contains('*').then(|| written_anew(source, syntax::products_of_expression(source)))?
}

/// `a * b` becomes `(a )|engine.times( b)`, and another factor another filter behind it. None
/// without products: the source stays as it is.
pub(super) fn written_anew(source: &str, products: Vec<Product>) -> Option<String> {
    if products.is_empty() {
        return None;
    }
    // where, what, and how many bytes it replaces
    let mut insertions: Vec<(usize, &str, usize)> = Vec::new();
    for Product { start, operator, end, is_chained } in products {
        if !is_chained {
            insertions.extend([(start, "(", 0), (operator, ")", 0)]);
        }
        insertions.extend([(operator, APPLIED, 1), (end, ")", 0)]);
    }
    // what ends where an operator begins stands before it
    insertions.sort_by_key(|(at, _, replaced)| (*at, *replaced));
    let mut written = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for (at, inserted, replaced) in insertions {
        written.push_str(source.get(done..at)?);
        written.push_str(inserted);
        done = at + replaced;
    }
    written.push_str(source.get(done..)?);
    Some(written)
}

/// `*` of the engine, for what is not known to be two numbers before it is evaluated.
static PRODUCT: LazyLock<minijinja::Expression<'static, 'static>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that a test evaluates")]
    engine::shared().compile_expression("left * right").expect("a product of two names")
});

/// Multiplies. What it repeats is paid for here, and a list wherever it is walked too: what spins
/// through the copies of one that has become empty, the budget being spent, cannot be stopped.
pub(super) fn times(
    state: &mut State<'_, '_>,
    left: &Value,
    right: &Value,
) -> Result<Value, Error> {
    if let Some(product) = whole_product(left, right) {
        return Ok(product);
    }
    pay_for_copies(state, left, right)?;
    pay_for_copies(state, right, left)?;
    let product = PRODUCT.eval(context! { left, right });
    // it was made at a place of its own
    let elsewhere = |error: Error| match error.detail() {
        Some(detail) => Error::new(error.kind(), detail.to_owned()),
        None => Error::from(error.kind()),
    };
    product.map(charged).map_err(elsewhere)
}

fn whole_product(left: &Value, right: &Value) -> Option<Value> {
    if !left.is_integer() || !right.is_integer() {
        return None;
    }
    let factor = |value: &Value| i64::try_from(value.clone()).ok();
    factor(left)?.checked_mul(factor(right)?).map(Value::from)
}

fn pay_for_copies(state: &State<'_, '_>, value: &Value, count: &Value) -> Result<(), Error> {
    let Some(count) = count.as_usize() else { return Ok(()) };
    if let Some(text) = value.as_str() {
        let bytes = text.len().checked_mul(count);
        engine::bounded_text(state, bytes)?;
        return engine::paid(effort::charge_text(bytes.unwrap_or(usize::MAX)));
    }
    let items = value.len().unwrap_or_default().saturating_mul(count);
    if value.is_tuple() && items > TUPLE_ITEMS_MAX {
        let message = format!("a tuple of more than {TUPLE_ITEMS_MAX} items; repeat a list");
        return Err(engine::refused(message));
    }
    engine::paid(effort::charge_all(items, 1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::domain::expression::{Expression, Scope, Template};

    fn scope() -> Scope {
        let input = json!({
            "n": 50_000_000, "two": 2, "half": 0.5, "list": [1, 2], "text": "ab", "no": null,
            "big": u64::MAX, "rows": [{ "price": 3, "count": 4 }],
        });
        Scope::new().with("input", Arc::new(input))
    }

    #[test]
    fn sources_are_written_anew_where_something_may_be_repeated() {
        let cases = [
            ("input.a", None),
            ("60 * 60 * -24", None),
            ("(input.a - 1) * (input.b / 2)", None),
            ("'a * b'", None),
            ("dict(**input.a)", None),
            ("a * b", Some("(a )|engine.times( b)")),
            ("2 * (a + b)", Some("(2 )|engine.times( (a + b))")),
            ("(a + (b)) * 2", Some("((a + (b)) )|engine.times( 2)")),
            ("a*b*c", Some("(a)|engine.times(b)|engine.times(c)")),
            ("(a*b)*c", Some("((a)|engine.times(b))|engine.times(c)")),
            ("a * (b * c)", Some("(a )|engine.times( ((b )|engine.times( c)))")),
            ("a * b / c * d", Some("((a )|engine.times( b) / c )|engine.times( d)")),
            ("x[a * 2:] ~ 'é' * n", Some("x[(a )|engine.times( 2):] ~ ('é' )|engine.times( n)")),
            ("a * b | abs + 1", Some("(a )|engine.times( b | abs) + 1")),
            ("2 if -a ** 2 * b else c", Some("2 if (-a ** 2 )|engine.times( b) else c")),
        ];
        for (source, written) in cases {
            assert_eq!(of_expression(source).as_deref(), written, "{source}");
        }
        let template = "a * b {# c * d #}{% for x in y * 2 %}{{- x * x -}}{% endfor %}\r\n";
        let (products, has_loops) = syntax::products_and_loops(template);
        let written = written_anew(template, products).unwrap();
        let expected = "a * b {# c * d #}{% for x in (y )|engine.times( 2) %}\
                        {{- (x )|engine.times( x) -}}{% endfor %}\r\n";
        assert!(has_loops);
        assert_eq!(written, expected);
    }

    #[test]
    fn products_are_those_of_the_engine() {
        let cases = [
            ("input.two * 3", Ok(json!(6))),
            ("input.two * 3.0", Ok(json!(6.0))),
            ("input.half * input.half", Ok(json!(0.25))),
            ("-input.two * 2 ** 3 * (1 + 1) - 1", Ok(json!(-33))),
            ("input.two * input.two / 8 * input.two", Ok(json!(1.0))),
            ("'ab' * input.two ~ 'c'", Ok(json!("ababc"))),
            ("input.two * input.text", Ok(json!("abab"))),
            ("input.list * input.two", Ok(json!([1, 2, 1, 2]))),
            ("input.two * [[0] * input.two]", Ok(json!([[0, 0], [0, 0]]))),
            ("(1, 2) * input.two == (1, 2, 1, 2)", Ok(json!(true))),
            ("2 in [0, 2] * input.two", Ok(json!(true))),
            ("[0] * 0", Ok(json!([]))),
            ("input.rows[0].price * input.rows[0].count", Ok(json!(12))),
            ("input.big * 1", Ok(json!(u64::MAX))),
            ("(input.list * 2) | map('string') | join", Ok(json!("1212"))),
            ("input.big * 2", Err("integer beyond 64 bits in")),
            ("input.text * -1", Err("strings can only be multiplied with integers in")),
            ("input.list * 0.5", Err("sequences and iterables can only be multiplied")),
            ("input.no * 2", Err("tried to use * operator on unsupported types none and number")),
            ("input.a * 2", Err("tried to use * operator on unsupported types undefined and")),
            ("input.a.b * 2", Err("`input.a` is undefined in `input.a.b * 2`")),
        ];
        for (source, expected) in cases {
            let given = Expression::compile(source).unwrap().evaluate(&scope());
            match (given, expected) {
                (Ok(given), Ok(expected)) => assert_eq!(given, expected, "{source}"),
                (Err(error), Err(said)) => {
                    assert!(error.to_string().starts_with(said), "{source}: {error}");
                    assert!(!error.is_undefined || said.starts_with('`'), "{source}");
                }
                (given, _) => panic!("{source}: {given:?}"),
            }
        }
        let many = vec!["input.two"; 1_000].join(" * ");
        let template = Template::compile(&format!("{{{{ 0 * {many} }}}}")).unwrap();
        assert_eq!(template.render(&scope()), Ok("0".to_owned()), "a long chain");
    }

    #[test]
    fn what_is_repeated_is_paid_for() {
        let costly = [
            "1 in [0] * input.n",
            "[0] * input.n == [0] * input.n",
            "[[0] * input.n] * input.n == [[0] * input.n] * input.n",
            "input.list * input.n == input.list * input.n",
            "0 * ([0] * input.n == [0] * input.n)",
            "([0] * input.n)[1:] == ([0] * input.n)[1:]",
            "[0] * input.n < [0] * input.n + [1]",
            "{'a': [0] * input.n} == {'a': [0] * input.n}",
        ];
        for source in costly {
            let error = Expression::compile(source).unwrap().holds(&scope()).unwrap_err();
            assert!(error.is_too_costly, "{source}: {error}");
            let template = format!("{{% set a = {source} %}}{{{{ a }}}}");
            let error = Template::compile(&template).unwrap().render(&scope()).unwrap_err();
            assert!(error.is_too_costly, "{template}: {error}");
        }
        let refused = [
            ("'x' * input.n == ''", "text larger than 1048576 bytes in"),
            ("(0,) * input.n == ()", "a tuple of more than 1000 items; repeat a list in"),
            ("(0, 0) * 501 == ()", "a tuple of more than 1000 items; repeat a list in"),
        ];
        for (source, said) in refused {
            let error = Expression::compile(source).unwrap().holds(&scope()).unwrap_err();
            assert!(error.to_string().starts_with(said), "{source}: {error}");
        }
        for source in ["'x' * 1048576 != ''", "(0, 0) * 500 != ()"] {
            assert_eq!(Expression::compile(source).unwrap().holds(&scope()), Ok(true), "{source}");
        }
    }
}
