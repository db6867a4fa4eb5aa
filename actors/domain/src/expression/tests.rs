//! Results and errors of expressions and templates.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::SOON;
use crate::definition::Mapping;

fn scope() -> Scope {
    let steps: BTreeMap<Arc<str>, Arc<Value>> = [
        (Arc::from("manager"), Arc::new(json!({"approved": true, "by": "ann"}))),
        (Arc::from("my-step"), Arc::new(json!({"ok": 1}))),
    ]
    .into();
    Scope::new()
        .with(
            "input",
            Arc::new(json!({
                "employee": "Ann <a@b>", "amount": 700, "price": 2.5, "items": [1, 2, 3],
                "length": "named", "my-key": "hyphen", "big": u64::MAX, "small": i64::MIN,
                "none": null, "yes": true, "empty": {}, "nested": {"b": {"c": [{"x": 1}]}, "a": 2},
                "rows": [{"n": 2, "s": "b"}, {"n": 1, "s": "a"}], "huge": 1e300, "one": 1.0,
            })),
        )
        .with("data", Arc::new(json!(4)))
        .with_optional("resume", None)
        .with_optional("user", Some(Arc::new(json!({"id": "u1"}))))
        .with_map("steps", Arc::new(steps))
}

fn evaluated(source: &str) -> Result<Value, String> {
    let expression = Expression::compile(source).map_err(|error| error.to_string())?;
    expression.evaluate(&scope()).map_err(|error| error.to_string())
}

fn shareable<T: Clone + Send + Sync + 'static>() {}

#[test]
fn compiled_forms_can_be_sent_between_threads() {
    shareable::<Scope>();
    shareable::<Expression>();
    shareable::<Template>();
    shareable::<CompiledMapping>();
}

#[test]
fn expressions_give_json() {
    let cases = [
        ("data + 3", json!(7)),
        ("data / 2", json!(2.0)),
        ("input.amount > 500", json!(true)),
        ("input.price * 2", json!(5.0)),
        ("input.big", json!(u64::MAX)),
        ("input.small", json!(i64::MIN)),
        ("input.huge", json!(1e300)),
        ("input.one", json!(1.0)),
        ("input.big - 1", json!(u64::MAX - 1)),
        ("input.items", json!([1, 2, 3])),
        ("input['items']", json!([1, 2, 3])),
        ("input.length", json!("named")),
        ("input.items | length", json!(3)),
        ("input.empty | length", json!(0)),
        ("input['my-key']", json!("hyphen")),
        ("input.items[0]", json!(1)),
        ("input.items[-1]", json!(3)),
        ("input.items[1:]", json!([2, 3])),
        ("2 in input.items", json!(true)),
        ("'amount' in input", json!(true)),
        ("'nope' in input", json!(false)),
        ("input.items == [1, 2, 3]", json!(true)),
        ("input.nested == {'b': {'c': [{'x': 1}]}, 'a': 2}", json!(true)),
        ("input.nested.b.c[0].x", json!(1)),
        ("input.nested.b", json!({"c": [{"x": 1}]})),
        ("input.nope | default('x')", json!("x")),
        ("input.nope is defined", json!(false)),
        ("resume is not none", json!(false)),
        ("resume", json!(null)),
        ("user.id", json!("u1")),
        ("steps.manager.by", json!("ann")),
        ("steps['my-step'].ok", json!(1)),
        ("steps.other is defined", json!(false)),
        ("'paid' if steps.manager.approved else 'refused'", json!("paid")),
        ("input.rows | map(attribute='n') | sum", json!(3)),
        ("input.rows | sort(attribute='n') | map(attribute='s') | join('-')", json!("a-b")),
        ("input.rows | selectattr('n', 'eq', 1) | list", json!([{"n": 1, "s": "a"}])),
        ("input.items | map('string') | list", json!(["1", "2", "3"])),
        ("input.items | max", json!(3)),
        ("input.items | reverse | list", json!([3, 2, 1])),
        ("input.rows | join(', ', attribute='s')", json!("b, a")),
        ("input.nested | tojson", json!(r#"{"b":{"c":[{"x":1}]},"a":2}"#)),
        ("input.nested | string", json!(r#"{"b":{"c":[{"x":1}]},"a":2}"#)),
        ("'n: ' ~ input.nested", json!(r#"n: {"b":{"c":[{"x":1}]},"a":2}"#)),
        (
            "{'z': 1, 'a': input.items, 'm': [none, true]}",
            json!({"z": 1, "a": [1, 2, 3], "m": [null, true]}),
        ),
        ("range(3) | list", json!([0, 1, 2])),
        ("'%.2f' | format(input.price)", json!("2.50")),
        ("input.employee | upper | replace('ANN', 'Bo')", json!("Bo <A@B>")),
        ("input.nested | items | list", json!([["b", {"c": [{"x": 1}]}], ["a", 2]])),
        ("'a\nb' | indent(2)", json!("a\n  b")),
        ("(1, 2)", json!([1, 2])),
    ];
    for (source, result) in cases {
        assert_eq!(evaluated(source), Ok(result), "for {source}");
    }
    let text = evaluated("{'z': 1, 'a': input.nested}").unwrap().to_string();
    assert_eq!(text, r#"{"z":1,"a":{"b":{"c":[{"x":1}]},"a":2}}"#);
}

#[test]
fn errors_have_a_place_and_a_reason() {
    let cases = [
        ("input.nope", "undefined value in `input.nope`"),
        ("absent", "undefined value in `absent`"),
        ("input.nope.deeper", "`input.nope` is undefined in `input.nope.deeper`"),
        ("[1, input.nope]", "[1]: undefined value in"),
        ("{'a': {'b': [input.nope]}}", "a.b[0]: undefined value in"),
        ("{'my-key': input.nope}", "['my-key']: undefined value in"),
        ("1 if input.amount < 0", "undefined value in"),
        ("input.huge * input.huge", "not a finite number in"),
        ("1 / 0", "unable to calculate 1 / 0"),
        ("input.big + 1", "integer beyond 64 bits in"),
        ("range", "plain object is not a value of JSON"),
        ("input.amount +", "syntax error: unexpected end of input"),
        ("", "empty expression"),
        ("1 | nope", "unknown filter"),
        ("input.nope | join(',')", "undefined value"),
        ("input.nope | list", ""),
        (
            "steps.my-step.ok",
            "`step` is undefined in `steps.my-step.ok`; did you mean steps['my-step']?",
        ),
    ];
    for (source, said) in cases {
        let error = evaluated(source).unwrap_err();
        assert!(error.starts_with(said), "{source}: {error}");
        assert!(!error.contains('\n') && error.chars().count() < 450, "{error}");
    }
}

#[test]
fn undefined_values_are_distinguished_from_other_errors() {
    let undefined = [
        "input.nope",
        "absent",
        "input.nope.deeper",
        "input['nope'].deeper.still",
        "[1, input.nope]",
        "{'a': input.nope}",
        "input.nope | lower",
        "input.nope | join(',')",
        "input.nope | list",
        "input.nope ~ '!'",
        "not input.nope",
    ];
    let wrong = [
        "input.nope + 1",
        "1 / 0",
        "input.big + 1",
        "range",
        "input.items | lower('x')",
        "input.items + 1",
    ];
    let rows = undefined.map(|source| (source, true)).into_iter();
    for (source, is_undefined) in rows.chain(wrong.map(|source| (source, false))) {
        let error = Expression::compile(source).unwrap().evaluate(&scope()).unwrap_err();
        assert_eq!(error.is_undefined, is_undefined, "{source}: {error}");
    }
}

#[test]
fn truth_of_conditions() {
    let cases = [
        ("input.amount > 500", Ok(true)),
        ("input.empty", Ok(false)),
        ("input.items", Ok(true)),
        ("input.none", Ok(false)),
        ("resume", Ok(false)),
        ("data - 4", Ok(false)),
        ("not steps", Ok(false)),
        ("input.nope", Err("undefined value in `input.nope`")),
        ("not input.nope", Err("`input.nope` is undefined in `not input.nope`")),
    ];
    for (source, holds) in cases {
        let answer = Expression::compile(source).unwrap().holds(&scope());
        let answer = answer.map_err(|error| error.to_string());
        assert_eq!(answer, holds.map_err(str::to_owned), "for {source}");
    }
}

#[test]
fn templates_print_text() {
    let cases = [
        ("plain", "plain"),
        ("", ""),
        ("{{ input.employee }}!", "Ann <a@b>!"),
        ("{{ input.amount }} {{ input.price }} {{ input.yes }} {{ resume }}", "700 2.5 true null"),
        ("{{ input.items }} {{ input.nested }}", r#"[1,2,3] {"b":{"c":[{"x":1}]},"a":2}"#),
        ("{% for row in input.rows %}{{ loop.index }}{{ row.s }};{% endfor %}", "1b;2a;"),
        ("{% for key, value in input.nested | items %}{{ key }}{% endfor %}", "ba"),
        ("{% for key in steps %}{{ key }} {% endfor %}", "manager my-step "),
        ("{{ 'x' if false }}", ""),
        ("{% set total = data + 1 %}{{ total }}", "5"),
        ("{{ input.nope | default('-') }}", "-"),
        ("a\n", "a"),
    ];
    for (source, text) in cases {
        let template = Template::compile(source).unwrap();
        assert_eq!(template.render(&scope()).map_err(|e| e.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn templates_refuse() {
    let cases = [
        ("{{ input.nope }}", "`input.nope` is undefined in"),
        ("line\n{{ input.nope }}", "`input.nope` is undefined (line 2) in `line {{ input.nope }}`"),
        ("{{ [input.nope] }}", "[0]: undefined value in"),
        ("{% include 'x' %}", "syntax error"),
        ("{% import 'x' as x %}", "syntax error"),
        ("{% macro f() %}{% endmacro %}", "syntax error"),
        ("{{ open", "syntax error"),
        (
            "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
            "takes more",
        ),
        ("{% for a in range(300) %}{{ 'x' * 4000 }}{% endfor %}", "text larger than 1048576 bytes"),
        ("{{ [0] * 100000000 }}", "takes more than 50000 steps"),
    ];
    for (source, said) in cases {
        let start = Instant::now();
        let error = Template::compile(source).and_then(|t| t.render(&scope())).unwrap_err();
        assert!(error.to_string().starts_with(said), "{source}: {error}");
        assert!(start.elapsed() < SOON, "{source} took {:?}", start.elapsed());
    }
}

#[test]
fn running_out_of_fuel_exceeds_the_budget() {
    let endless = "{% for a in range(99999) %}{% for b in range(9) %}{% endfor %}{% endfor %}";
    let template = Template::compile(endless).unwrap();
    let (rendered, effort) = effort::within(&effort::Budget::whole(), || template.render(&scope()));
    let error = rendered.unwrap_err();
    assert!(error.is_too_costly && effort.is_exceeded, "{error}");
    assert!(error.to_string().starts_with("takes more than 100000 steps in"), "{error}");
}

#[test]
fn only_templates_with_loops_cost_as_loops() {
    let scope = Scope::new().with("text", Arc::new(json!("x".repeat(100_000))));
    let rows = [
        ("{% if text %}before {{ text }}, for you{% endif %}", true),
        ("{# {% for a in b %} #}{{ text }}", true),
        ("{% for a in range(2) %}{{ text }}{% endfor %}", false),
        ("{%- for a in [text] -%}{% endfor %}", false),
    ];
    for (source, is_cheap) in rows {
        let rendered = Template::compile(source).unwrap().render(&scope);
        assert_eq!(rendered.is_ok(), is_cheap, "{source}: {:?}", rendered.err());
    }
}

#[test]
fn bombs_are_refused_quickly() {
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    let nested_calls = "(".repeat(4000);
    let long = "1+".repeat(5000);
    let cases = [
        "range(1000000000)",
        "'x' * 1000000000",
        "'x' * 50000000",
        "[0] * 1000000000",
        "[0] * 100000000",
        "[0] * 100000000 | list",
        "[0] * 100000000 | sum",
        "[0] * 100000000 | sort",
        "[0] * 100000000 | map('string')",
        "[0] * 100000000 | join(',')",
        "1 in [0] * 100000000",
        "[0] * 100000000 == [0] * 100000000",
        "(0,) * 100000000",
        "[[0] * 1000000] * 1000000 | tojson",
        "[[0] * 1000000] * 1000000 | string",
        "range(100000) | map('string') | join('xxxxxxxxxxxxxxxx')",
        "('a' * 1000000) | replace('a', 'b' * 1000000)",
        "('a' * 1000000) | replace('', 'b' * 1000000)",
        "'%1000000000d' | format(1)",
        "'%*d' | format(1000000000, 1)",
        "'a' | indent(1000000000, true)",
        deep.as_str(),
        nested_calls.as_str(),
        long.as_str(),
    ];
    for source in cases {
        let start = Instant::now();
        let answer = evaluated(source);
        let shown: String = source.chars().take(60).collect();
        assert!(answer.is_err(), "{shown} passed");
        assert!(start.elapsed() < SOON, "{shown} took {:?}", start.elapsed());
    }
}

#[test]
fn results_are_limited_in_size() {
    let cases = [
        ("'abc'", json!("abc"), 5),
        ("'a\\nb'", json!("a\nb"), 6),
        ("[1, 22, none]", json!([1, 22, null]), 11),
        ("{'a': true}", json!({"a": true}), 10),
        ("input.items", json!([1, 2, 3]), 7),
        ("-17", json!(-17), 3),
    ];
    for (source, result, bytes) in cases {
        let expression = Expression::compile(source).unwrap();
        assert_eq!(result.to_string().len(), bytes, "{source}");
        assert_eq!(expression.evaluate(&scope().value_bytes_max(bytes)), Ok(result));
        let error = expression.evaluate(&scope().value_bytes_max(bytes - 1)).unwrap_err();
        assert!(error.to_string().starts_with("value larger than"), "{error}");
    }
    let template = Template::compile("{{ 'abc' }}d").unwrap();
    assert_eq!(template.render(&scope().value_bytes_max(4)).unwrap(), "abcd");
    assert!(template.render(&scope().value_bytes_max(3)).is_err());
}

#[test]
fn mappings_evaluate_nested_expressions() {
    let mapping = Mapping(json!({
        "large": "input.amount > 500", "z": 1, "list": ["data", null, {"x": "user.id"}],
    }));
    let compiled = CompiledMapping::compile(&mapping).unwrap();
    let value = compiled.evaluate(&scope()).unwrap();
    assert_eq!(value.to_string(), r#"{"large":true,"z":1,"list":[4,null,{"x":"u1"}]}"#);
    assert!(compiled.uses("user") && compiled.uses("data") && !compiled.uses("steps"));
    let bytes = value.to_string().len();
    assert!(compiled.evaluate(&scope().value_bytes_max(bytes)).is_ok());
    assert!(compiled.evaluate(&scope().value_bytes_max(bytes - 1)).is_err());
}

#[test]
fn errors_of_mappings_have_a_place() {
    let cases = [
        (json!("input.nope"), "undefined value in `input.nope`"),
        (json!({"amount": "input."}), "amount: syntax error"),
        (json!({"items": [1, 2, {"x": "input.nope"}]}), "items[2].x: undefined value in"),
        (json!({"my-key": ["[1, input.nope]"]}), "['my-key'][0][1]: undefined value in"),
        ((0..100).fold(json!(1), |inner, _| json!([inner])), "[0][0]"),
    ];
    for (mapping, said) in cases {
        let mapping = Mapping(mapping);
        let answer = CompiledMapping::compile(&mapping).and_then(|p| p.evaluate(&scope()));
        let error = answer.unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn names_are_known_when_compiled() {
    let expression = Expression::compile("steps.a.b + input['x'] | default(item)").unwrap();
    let template =
        Template::compile("{% for x in input %}{{ x }}{{ user.id }}{% endfor %}").unwrap();
    assert!(["steps", "input", "item"].iter().all(|name| expression.uses(name)));
    assert!(!expression.uses("a") && !expression.uses("data"));
    assert!(template.uses("input") && template.uses("user") && !template.uses("x"));
    assert_eq!(expression.source(), "steps.a.b + input['x'] | default(item)");
}

#[test]
fn hyphens_in_step_references_are_found() {
    let cases = [
        ("steps.my-step", Some("steps['my-step']")),
        ("1 + steps.my-long-step.approved", Some("steps['my-long-step']")),
        ("{{ steps.a-b }}", Some("steps['a-b']")),
        ("steps.step-1.ok", Some("steps['step-1']")),
        ("steps.ok.x and steps.my-step.ok", Some("steps['my-step']")),
        ("'é' ~ steps.my-step", Some("steps['my-step']")),
        ("steps['my-step'].ok", None),
        ("steps.a.b - steps.c", None),
        ("steps.a-steps.b", None),
        ("'steps.my-step'", None),
        ("input.steps.my-step", None),
        ("steps.plain", None),
        ("steps.", None),
    ];
    for (source, suggestion) in cases {
        assert_eq!(hyphenated_step_reference(source).as_deref(), suggestion, "for {source}");
    }
}

#[test]
fn a_name_is_replaced_in_one_clone_only() {
    let first = Scope::new().with("data", Arc::new(json!(1)));
    let second = first.clone().with("data", Arc::new(json!(2)));
    let data = Expression::compile("data").unwrap();
    assert_eq!((data.evaluate(&first), data.evaluate(&second)), (Ok(json!(1)), Ok(json!(2))));
}

#[test]
fn a_lookup_in_none_names_what_is_none() {
    let scope = Scope::new()
        .with_optional("user", None)
        .with_optional("resumed_by", None)
        .with("input", Arc::new(json!({})));
    let hint = "; `resumed_by` is none: add a `default()`";
    for (source, expected) in [
        ("resumed_by.id", format!("undefined value in `resumed_by.id`{hint}")),
        ("[user, resumed_by.id]", format!("undefined value in `[user, resumed_by.id]`{hint}")),
        (
            "resumed_by.id == 'x'",
            format!("`resumed_by.id` is undefined in `resumed_by.id == 'x'`{hint}"),
        ),
        ("input.id", "undefined value in `input.id`".to_owned()),
    ] {
        let refused = Expression::compile(source).unwrap().evaluate(&scope).unwrap_err();
        assert_eq!(refused.message, expected);
    }
    let template = Template::compile("by {{ resumed_by.id }}").unwrap();
    assert!(template.render(&scope).unwrap_err().message.ends_with(hint));
}
