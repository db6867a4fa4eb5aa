//! Analysis of expressions and templates.

use super::*;

fn shown(path: &Path) -> String {
    let keys = path.keys.iter().map(|key| match key {
        PathKey::Name(name) => format!(".{name}"),
        PathKey::Computed => "[]".to_owned(),
    });
    let question = if path.is_optional { "?" } else { "" };
    format!("{}{}{question}", path.root, keys.collect::<String>())
}

fn paths(reading: &Reading) -> String {
    reading.paths.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn used(reading: &Reading) -> String {
    let shown = |used: &Used| format!("{:?} {} {}", used.kind, used.name, used.at);
    reading.used.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn of_expression(source: &str) -> Reading {
    Expression::compile(source).unwrap().reading()
}

#[test]
fn an_expression_reads_names_and_keys() {
    for (source, expected) in [
        ("1 + 2", ""),
        ("data.steps.a", "data.steps.a"),
        ("steps.a.b + steps['b-c'].d + steps[ \"e\" ]", "steps.a.b steps.b-c.d steps.e"),
        ("steps[data.x] and steps['a' ~ data.x]", "steps[] data.x steps[] data.x"),
        ("'steps[\"a\"]' in data['steps.b']", "data.steps.b.steps[\"a\"]? data.steps.b"),
        ("input.items[0].name", "input.items[].name"),
        ("steps | length > range(3) | length", "steps"),
        ("input.a | default(input.b)", "input.a? input.b"),
        ("input.a | upper | default('x')", "input.a"),
        ("input.a.b if input.a is defined else data", "input.a? input.a.b? data"),
        ("'a' in input and input.a.b > 1", "input.a? input input.a.b?"),
        ("{'a': item.x, 'b': [user.id, (index, 1)]}", "item.x user.id index"),
        ("input.items[input.from:]", "input.items input.from"),
        ("(data | first).name", "data"),
        ("not input.done", "input.done"),
    ] {
        assert_eq!(paths(&of_expression(source)), expected, "{source}");
    }
}

#[test]
fn a_template_does_not_read_names_that_it_sets() {
    for (source, expected) in [
        ("see steps['a'] and {data}", ""),
        ("{{ steps['a'] }}, don't {{ steps.b }}{# {{ steps['c'] }} #}", "steps.a steps.b"),
        ("{% for x in data %}{{ x.y }}{{ loop.index }}{% endfor %}{{ loop }}", "data loop"),
        ("{% for x in data if x.ok %}{{ input }}{% else %}{{ x }}{% endfor %}", "data input x"),
        ("{% if data %}{%- set x, y = data %}{% endif %}{{ x }}{{ y }}", "data data"),
        ("{% set x %}{{ input }}{% endset %}{{ x }}{{ settle }}", "input settle"),
        ("{% with x = data %}{{ x }}{% endwith %}{{ x }}", "data x"),
        ("{% raw %}{{ steps['a'] {% {% endraw %}{{ steps['b'] }}", "steps.b"),
        ("{{ '}}' ~ steps['a'] }}", "steps.a"),
        ("{% filter upper %}{{ data }}{% endfilter %}", "data"),
    ] {
        let reading = Template::compile(source).unwrap().reading();
        assert_eq!(paths(&reading), expected, "{source}");
    }
}

#[test]
fn uses_of_filters_tests_and_functions_have_a_place() {
    for (source, expected) in [
        ("data | total('x')", "Filter total 7"),
        (
            "data|map('uper')|select('od')",
            "Filter map 5, Filter uper 9, Filter select 17, Test od 24",
        ),
        ("data | selectattr('a', 'eq', 1)", "Filter selectattr 7, Test eq 23"),
        ("data | map(attribute='x')", "Filter map 7"),
        ("data is emty or data is not odd", "Test emty 8, Test odd 28"),
        ("rnge(3) + data.upper()", "Function rnge 0, Method upper 15"),
    ] {
        assert_eq!(used(&of_expression(source)), expected, "{source}");
    }
    let template =
        Template::compile("{% filter uper %}a{% endfilter %}{{ loop.cycle() }}").unwrap();
    assert_eq!(used(&template.reading()), "Filter uper 0, Method cycle 41");
    let own = Template::compile("{% for x in data %}{{ loop.cycle(1, 2) }}{% endfor %}").unwrap();
    assert_eq!(used(&own.reading()), "");
}

#[test]
fn literal_text_is_separate_from_code() {
    let template = Template::compile("Dear ${user}, {{ 'a{{b' }}").unwrap();
    let reading = template.reading();
    let part = |text: &str, at| vec![Part { text: text.to_owned(), at }];
    assert_eq!(reading.plain, part("Dear ${user}, ", 0));
    assert_eq!(reading.constants, part("a{{b", 17));
    assert!(of_expression("steps.a['b']").is_path);
    assert!(!of_expression("steps.a or 1").is_path);
}
