//! Rewritten operators: same results as the engine, with charges.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::effort::{self, Budget};
use crate::expression::{Expression, Scope, Template};

fn scope() -> Scope {
    let input = json!({
        "n": 50_000_000, "two": 2, "half": 0.5, "list": [1, 2], "text": "ab", "no": null,
        "big": u64::MAX, "rows": [{ "price": 3, "count": 4 }],
    });
    Scope::new().with("input", Arc::new(input))
}

#[test]
fn operators_that_may_grow_a_value_are_rewritten() {
    let cases = [
        ("input.a", None),
        ("60 * 60 * -24", None),
        ("(input.a - 1) * (input.b / 2)", None),
        ("'a * b ~ c'", None),
        ("a + 1 + b", None),
        ("1 + (a + 1) * 2", None),
        ("(a + b) * 2 ~ c", Some("((a )|engine.plus( b)) |engine.times( 2) |engine.concat( c)")),
        ("a ~ b + c", Some("(a )|engine.concat( b) |engine.plus( c)")),
        ("a | f('+') + b", Some("(a | f('+') )|engine.plus( b)")),
        ("dict(**input.a)", None),
        ("a * b", Some("(a )|engine.times( b)")),
        ("2 * (a - b)", None),
        ("2 * (a and b)", Some("(2 )|engine.times( (a and b))")),
        ("(a or (b)) * 2", Some("((a or (b)) )|engine.times( 2)")),
        ("a*b*c", Some("(a)|engine.times(b)|engine.times(c)")),
        ("(a*b)*c", Some("((a)|engine.times(b))|engine.times(c)")),
        ("a * (b * c)", Some("(a )|engine.times( ((b )|engine.times( c)))")),
        ("a * b / c * d", Some("((a )|engine.times( b) / c )|engine.times( d)")),
        (
            "x[a * 2:] ~ 'é' * n",
            Some("(x[(a )|engine.times( 2):] )|engine.concat( ('é' )|engine.times( n))"),
        ),
        ("a * b | abs + 1", Some("(a )|engine.times( b | abs) + 1")),
        ("2 if -a ** 2 * b else c", Some("2 if (-a ** 2 )|engine.times( b) else c")),
    ];
    for (source, written) in cases {
        assert_eq!(of_expression(source).as_deref(), written, "{source}");
    }
    let template = "a * b {# c * d #}{% for x in y * 2 %}{{- x * x -}}{% endfor %}\r\n";
    let (rewriting, has_loops) = syntax::rewriting_and_loops(template);
    let written = rewritten(template, rewriting).unwrap();
    let expected = "a * b {# c * d #}{% for x in (y )|engine.times( 2) %}\
                    {{- (x )|engine.times( x) -}}{% endfor %}\r\n";
    assert!(has_loops);
    assert_eq!(written, expected);
}

/// Evaluates each source, and compares the result or the beginning of the error.
#[track_caller]
fn assert_results(cases: &[(&str, Result<serde_json::Value, &str>)]) {
    for (source, expected) in cases {
        let given = Expression::compile(source).unwrap().evaluate(&scope());
        match (given, expected) {
            (Ok(given), Ok(expected)) => assert_eq!(given, *expected, "{source}"),
            (Err(error), Err(beginning)) => {
                assert!(error.to_string().starts_with(beginning), "{source}: {error}");
                assert!(!error.is_undefined || beginning.starts_with('`'), "{source}");
            }
            (given, _) => panic!("{source}: {given:?}"),
        }
    }
}

#[test]
fn products_equal_those_of_the_engine() {
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
    assert_results(&cases);
    let many = vec!["input.two"; 499].join(" * ");
    let template = Template::compile(&format!("{{{{ 0 * {many} }}}}")).unwrap();
    assert_eq!(template.render(&scope()), Ok("0".to_owned()), "a long chain");
}

#[test]
fn repetition_is_charged() {
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

fn large() -> Scope {
    Scope::new().with("input", Arc::new(json!({ "half": "x".repeat(500_000), "n": 1 })))
}

#[test]
fn concatenation_is_charged() {
    let most = "text larger than 1048576 bytes in";
    let spent = |source: &str| {
        let expression = Expression::compile(source).unwrap();
        let (given, effort) = effort::within(&Budget::whole(), || expression.evaluate(&large()));
        (given.map(|length| length.as_u64().unwrap()).map_err(|it| it.to_string()), effort.steps)
    };
    let (_, once) = spent("input.half | length");
    for operator in ["~", "+"] {
        let (given, steps) = spent(&format!("('a' {operator} input.half {operator} 'b') | length"));
        assert_eq!(given, Ok(500_002));
        assert!(steps > once + 2 * 500_000 / 64, "{operator}: {steps}, and {once} without");
        let (refused, _) =
            spent(&format!("(input.half {operator} input.half {operator} input.half) | length"));
        assert!(refused.as_ref().is_err_and(|it| it.starts_with(most)), "{refused:?}");
    }
    let filters = [
        "[input.half, input.half] | join",
        "input.half | string",
        "'%s' | format(input.half)",
        "input.half | replace('x', 'y')",
        "input.half | list",
    ];
    for filter in filters {
        let (_, steps) = spent(&format!("({filter}) | length"));
        assert!(steps > once + 500_000 / 64, "{filter}: {steps}, and {once} without");
    }
    let (refused, _) = spent("('%s%s%s' | format(input.half, input.half, input.half)) | length");
    assert!(refused.as_ref().is_err_and(|it| it.starts_with(most)), "{refused:?}");
}

#[test]
fn doubling_large_texts_is_too_costly_on_shared_threads() {
    let doubled = |how: &str| {
        let sets: String = ('b'..='h')
            .zip('a'..)
            .map(|(to, from)| how.replace("TO", &to.to_string()).replace("FROM", &from.to_string()))
            .collect();
        format!("{{% set a = input.half[:1000] %}}{sets}{{{{ h | length }}}}")
    };
    let small = doubled("{% set TO = FROM ~ FROM %}");
    assert_eq!(Template::compile(&small).unwrap().render(&large()).unwrap(), "128000");
    let kept = doubled("{% set TO %}{{ FROM }}{{ FROM }}{% endset %}");
    for template in [kept.replace("1000", "90000"), "{% set a = input.half %}{% set b = a ~ 1 %}{% set c = b ~ 1 %}{% set d = c ~ 1 %}{% set e = d ~ 1 %}{% set f = e ~ 1 %}{% set g = f ~ 1 %}".to_owned()] {
        let error = Template::compile(&template).unwrap().render(&large()).unwrap_err();
        assert!(error.is_too_costly, "{template}: {error}");
    }
}

#[test]
fn concatenation_equals_that_of_the_engine() {
    let cases = [
        ("input.text ~ 1 ~ none ~ true ~ 1.5", Ok(json!("ab1NoneTrue1.5"))),
        ("input.list ~ '' ~ input.rows", Ok(json!("[1,2][{\"price\":3,\"count\":4}]"))),
        ("input.text + input.text", Ok(json!("abab"))),
        ("input.list + input.list", Ok(json!([1, 2, 1, 2]))),
        ("input.two + input.two + input.half", Ok(json!(4.5))),
        ("input.big + 1", Err("integer beyond 64 bits in")),
        ("input.big + input.two", Err("integer beyond 64 bits in")),
        ("input.text + input.two", Err("tried to use + operator on unsupported types string and")),
        ("input.a + input.text", Err("tried to use + operator on unsupported types undefined")),
        ("input.a ~ 'b'", Err("`input.a` is undefined in `input.a ~ 'b'`")),
        ("'b' ~ input.a", Err("`input.a` is undefined in `'b' ~ input.a`")),
        ("('x' if false) ~ 'a'", Ok(json!("a"))),
    ];
    assert_results(&cases);
}
