//! Lints of definitions that compile.

mod absent;
mod never;

use serde_json::{Value, json};

use super::*;
use crate::plan::Plan;
use crate::schema::Schema;

fn step(id: &str, kind: Value) -> Value {
    let mut step = json!({ "id": id, "name": id, "purpose": "", "on_error": "fail" });
    step["kind"] = kind;
    step
}

fn map(id: &str, map: &str) -> Value {
    step(id, json!({ "map": { "map": map } }))
}

fn block(name: &str, steps: &[Value]) -> Value {
    json!({ "name": name, "steps": steps })
}

fn when(id: &str, when: &str, steps: &[Value]) -> Value {
    step(id, json!({ "when": { "when": when, "block": block("yes", steps) } }))
}

fn both(id: &str, one: &[Value], other: &[Value]) -> Value {
    step(id, json!({ "all": { "blocks": [block("one", one), block("other", other)] } }))
}

fn each(id: &str, items: &str, steps: &[Value]) -> Value {
    let kind = json!({ "items": items, "block": block("item", steps), "concurrency": 1 });
    step(id, json!({ "for_each": kind }))
}

fn until(id: &str, when: &str, steps: &[Value]) -> Value {
    let kind = json!({ "when": when, "block": block("round", steps), "max_iterations": 3 });
    step(id, json!({ "do_until": kind }))
}

fn cases(id: &str, cases: &[(&str, &[Value])], default: &[Value]) -> Value {
    let case = |(index, (when, steps)): (usize, &(&str, &[Value]))| json!({ "when": when, "block": block(&format!("case{index}"), steps) });
    let cases: Vec<_> = cases.iter().enumerate().map(case).collect();
    let default = (!default.is_empty()).then(|| block("default", default));
    step(id, json!({ "branch": { "cases": cases, "default": default } }))
}

fn definition(steps: &[Value]) -> WorkflowDefinition {
    let definition = json!({ "id": "w", "name": "w", "purpose": "", "steps": steps });
    serde_json::from_value(definition).unwrap()
}

/// Returns the lints of a definition that compiles, one line each.
fn found(definition: &WorkflowDefinition) -> Vec<String> {
    Plan::compile(definition.clone()).unwrap();
    let shown = |it: Finding| {
        let severity = if it.is_error { "" } else { "warning: " };
        format!("{}: {severity}{}", it.place.join("."), it.message)
    };
    lints(definition, Callers::Any).into_iter().map(shown).collect()
}

#[track_caller]
fn table(rows: &[(&[Value], &[&str])]) {
    for (steps, expected) in rows {
        assert_eq!(found(&definition(steps)), *expected, "{steps:?}");
    }
}

#[test]
fn a_step_reads_only_what_may_have_run() {
    let later = "steps.a.map: step b has not run yet: it comes later";
    table(&[
        (&[map("a", "1"), map("b", "steps.a"), map("c", "steps.a + steps['b']")], &[]),
        (&[map("a", "steps.b"), map("b", "1")], &[later]),
        (&[map("a", "steps['b']"), map("b", "1")], &[later]),
        (
            &[map("a", "steps.a | default(1)")],
            &["steps.a.map: step a is this step, which has no output yet"],
        ),
        (&[map("a", "steps.x")], &["steps.a.map: there is no step x"]),
        // steps inside an earlier step may have run
        (
            &[
                when("w", "data", &[map("a", "1")]),
                both("p", &[map("b", "1")], &[map("c", "steps.a")]),
                cases("k", &[("data", &[map("d", "1")])], &[map("e", "steps.b + steps.c")]),
                each("f", "data", &[map("g", "steps.d + steps.e"), map("h", "steps.g")]),
                until("u", "steps.i", &[map("i", "steps.h")]),
                map("end", "steps.b + steps.c + steps.i + steps.p + steps.k + steps.f + steps.u"),
            ],
            &[
                "steps.c.map: warning: step a does not run if the condition of w is false; add a \
                 `default()`",
                "steps.g.map: warning: step d does not run if k takes another case; add a `default()`",
                "steps.g.map: warning: step e does not run if k takes another case; add a `default()`",
                "steps.i.map: warning: step h does not run if f has no items; add a `default()`",
            ],
        ),
        (
            &[both("p", &[map("a", "1")], &[map("b", "steps.a")])],
            &["steps.b.map: step a is in another block of p, which runs at the same time"],
        ),
        (
            &[both(
                "p",
                &[when("w", "data", &[map("a", "1")])],
                &[when("v", "steps.a", &[map("b", "1")])],
            )],
            &["steps.v.when: step a is in another block of p, which runs at the same time"],
        ),
        (
            &[cases("k", &[("data", &[map("a", "1")])], &[map("b", "steps.a")])],
            &["steps.b.map: step a is in another case of k, and only one case runs"],
        ),
        (
            &[when("w", "steps.a", &[map("a", "steps.w")])],
            &[
                "steps.w.when: step a has not run yet: it is inside this step",
                "steps.a.map: step w has no output yet: this is inside it",
            ],
        ),
        (
            &[each("f", "data", &[map("a", "steps.b"), map("b", "1")])],
            &["steps.a.map: step b has not run yet: it comes later"],
        ),
    ]);
}

#[test]
fn reads_of_steps_that_may_not_have_run_are_reported() {
    let inner: &[Value] = &[map("a", "1")];
    let race = |id: &str, one: &[Value], other: &[Value]| {
        step(id, json!({ "race": { "blocks": [block("one", one), block("other", other)] } }))
    };
    let warning = |why: &str| format!("steps.end.map: warning: step {why}; add a `default()`");
    let optional = map("end", "steps.a | default(1)");
    let tested = map("end", "steps.a.x if steps.a is defined else 1");
    table(&[
        (&[when("w", "data", inner), optional], &[]),
        (&[when("w", "data", inner), tested], &[]),
        (
            &[when("w", "data", inner), when("v", "steps.a is defined", &[map("end", "steps.a")])],
            &[],
        ),
        (
            &[
                when("w", "data", inner),
                cases("k", &[("steps.a | default(false)", &[map("end", "steps.a")])], &[]),
            ],
            &[],
        ),
        (&[when("w", "data", &[map("a", "1"), map("end", "steps.a")])], &[]),
        (
            &[when("w", "data", inner), map("end", "steps.w")],
            &[&warning("w has no output if its condition is false")],
        ),
        (
            &[cases("k", &[("data", inner)], &[]), map("end", "steps.k")],
            &[&warning("k has no output if none of its cases is true")],
        ),
        (
            &[race("r", inner, &[map("b", "1")]), map("end", "steps.a")],
            &[&warning("a is cancelled if another block of r is faster")],
        ),
        (
            &[until("u", "data", &[map("end", "steps.b"), map("b", "1")])],
            &[&warning("b has not run in the first iteration")],
        ),
    ]);
}

#[test]
fn a_loop_can_read_its_earlier_iterations() {
    table(&[
        (&[until("u", "steps.b", &[map("a", "steps.b | default(0)"), map("b", "steps.a")])], &[]),
        (
            &[until(
                "u",
                "data",
                &[both("p", &[map("a", "steps.b is defined")], &[map("b", "steps.a is defined")])],
            )],
            &[],
        ),
        (
            &[until("u", "steps.u", &[map("a", "steps.u")])],
            &[
                "steps.u.when: step u is this step, which has no output yet",
                "steps.a.map: step u has no output yet: this is inside it",
            ],
        ),
    ]);
}

#[test]
fn names_depend_on_the_place() {
    let no_item = "`item` is none here: this is not inside an andForEach";
    let no_index = "`index` is none here: this is not inside an andForEach or a loop";
    let known = "data, input, steps, resume, resumed_by, context, user, execution";
    table(&[
        (&[map("a", "[data, input, context, user, execution, range(3)]")], &[]),
        (
            &[map("a", "dta.x")],
            &[&format!("steps.a.map: `dta` is not in scope; in scope: {known}")],
        ),
        (
            &[map("a", "[item, index]")],
            &[&format!("steps.a.map: {no_index}"), &format!("steps.a.map: {no_item}")],
        ),
        (
            &[each("f", "item", &[map("a", "[item, index]")])],
            &[&format!("steps.f.items: {no_item}")],
        ),
        (
            &[until("u", "index > 1", &[map("a", "[index, item]")])],
            &[&format!("steps.a.map: {no_item}")],
        ),
        (&[each("f", "data", &[until("u", "item", &[map("a", "item")])])], &[]),
        (&[until("u", "index", &[when("w", "index", &[map("a", "index")])])], &[]),
    ]);
}

/// Returns a definition with a closed schema of its input, and an open one of its resume data.
fn with_schemas(steps: &[Value]) -> WorkflowDefinition {
    let mut definition = definition(steps);
    definition.input_schema = Some(json!({
        "type": "object",
        "properties": {
            "customer": { "type": "string" },
            "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } },
            "more": { "type": "object" },
        },
        "required": ["customer", "lines", "more"],
        "additionalProperties": false,
        "$defs": { "line": {
            "required": ["name", "n"],
            "properties": { "name": { "type": ["string", "null"] }, "n": { "type": "integer" } },
            "additionalProperties": false,
        } },
    }));
    definition.resume_schema = Some(
        json!({ "type": "object", "required": ["approved"], "properties": { "approved": { "type": "boolean" } } }),
    );
    definition
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn keys_that_a_schema_does_not_have_are_reported() {
    let mut asks = map("a", "resume.aproved");
    asks["suspend"] = json!({ "on_timeout": "fail" });
    let mut agent = step(
        "a",
        json!({ "agent": { "agent": "x", "schema": {
        "type": "object", "required": ["score"], "properties": { "score": { "type": "number" } }, "additionalProperties": false,
    } } }),
    );
    let asked = agent.clone();
    agent["on_error"] = json!("ignore");
    let table_of = |value: Value| step("t", json!({ "map": { "map": value } }));
    let has = "customer, lines, more";
    for (steps, expected) in [
        (vec![map("a", "[input.customer, input.more.anything, input.lines[0].n]")], String::new()),
        (vec![map("a", "input.custmer")], format!("`input` has no `custmer`; it has {has}")),
        (vec![map("a", "input['custmer']")], format!("`input` has no `custmer`; it has {has}")),
        (vec![map("a", "data.custmer")], format!("`data` has no `custmer`; it has {has}")),
        (vec![map("a", "input.custmer | default('x')")], String::new()),
        (vec![map("a", "input.custmer is defined and input.custmer > 1")], String::new()),
        (vec![map("a", "input.customer.name")], "`input.customer` is a string and has no `name`".into()),
        (
            vec![map("a", "input.lines.length")],
            "`input.lines` is a list and has no `length`; `| length` counts its items".into(),
        ),
        (
            vec![map("a", "input.lines[0].nmae")],
            "`input.lines[…]` has no `nmae`; it has n, name".into(),
        ),
        (
            vec![each("f", "input.lines", &[map("a", "item.nmae"), map("b", "[item.n, index]")])],
            "`item` has no `nmae`; it has n, name".into(),
        ),
        (
            vec![each("f", "input.lines", &[map("a", "data.nmae")])],
            "`data` has no `nmae`; it has n, name".into(),
        ),
        (
            vec![asks],
            "warning: `resume` may have no `aproved`; its schema lists approved".into(),
        ),
        (vec![asked, map("b", "steps.a.scroe")], "`steps.a` has no `scroe`; it has score".into()),
        (vec![agent, map("b", "steps.a.scroe")], String::new()),
        (
            vec![table_of(json!({ "first": "input.lines[0]", "n": 1 })), map("b", "steps.t.frist")],
            "`steps.t` has no `frist`; it has first, n".into(),
        ),
        (
            vec![table_of(json!({ "first": "input.lines[0]" })), map("b", "data.first.nmae")],
            "`data.first` has no `nmae`; it has n, name".into(),
        ),
        (
            vec![
                table_of(json!({ "first": "input.lines[0]" })),
                step("nap", json!({ "sleep": { "duration_ms": 5 } })),
                map("b", "data.frist"),
            ],
            "`data` has no `frist`; it has first".into(),
        ),
        (
            vec![until("u", "data.approvd", &[table_of(json!({ "approved": true }))])],
            "`data` has no `approvd`; it has approved".into(),
        ),
        (
            vec![map("a", "execution.startedat")],
            "`execution` has no `startedat`; it has conversationId, id, startedAt, userId, workflowId"
                .into(),
        ),
    ] {
        let lines = found(&with_schemas(&steps));
        let lines: Vec<_> = lines.iter().filter_map(|line| line.split_once(": ")).collect();
        let expected: Vec<_> = (!expected.is_empty()).then_some(expected).into_iter().collect();
        assert_eq!(lines.iter().map(|(_, it)| *it).collect::<Vec<_>>(), expected, "{steps:?}");
    }
}

#[test]
fn words_of_this_language_are_known() {
    let words =
        "{'j': data | fromjson, 't': execution.startedAt | epoch_ms} if data else fail('x')";
    assert_eq!(found(&definition(&[map("a", words)])), Vec::<String>::new());
}

#[test]
fn unknown_filters_tests_and_functions_are_reported() {
    let agent = |prompt: &str| step("a", json!({ "agent": { "agent": "x", "prompt": prompt } }));
    for (step, expected) in [
        (map("a", "data | total('x')"), "there is no filter `total`"),
        (map("a", "data | map('uper') | list"), "there is no filter `uper`"),
        (map("a", "data is emty"), "there is no test `emty`"),
        (map("a", "data | selectattr('x', 'eqal', 1) | list"), "there is no test `eqal`"),
        (map("a", "rnge(3)"), "there is no function `rnge`"),
        (
            map("a", "length(data)"),
            "there is no function `length`; a filter is written `value | length`",
        ),
        (
            map("a", "data.upper()"),
            "values have no methods such as `upper()`: write `value | upper`",
        ),
        (
            map("a", "data.push(1)"),
            "values have no methods such as `push()`; filters are written `value | filter`",
        ),
        (agent("{{ data | total }}"), "there is no filter `total`"),
        (agent("{% filter uper %}x{% endfilter %}"), "there is no filter `uper`"),
        (map("a", "null"), "`null` is written `none`"),
        (map("a", "len(data)"), "there is no function `len`; write `value | length`"),
        (map("a", "data is null"), "there is no test `null`; write `is none`"),
        (map("a", "data is not null"), "there is no test `null`; write `is none`"),
        (map("a", "data | parse_json"), "there is no filter `parse_json`; write `text | fromjson`"),
        (map("a", "raise('x')"), "there is no function `raise`; write `fail('why')`"),
        (
            map("a", "now()"),
            "there is no function `now`; an evaluation gives the same value each time; \
             `execution.startedAt` is a time",
        ),
    ] {
        let said: Vec<_> = found(&definition(&[step])).into_iter().collect();
        let key = if said[0].contains("prompt") { "prompt" } else { "map" };
        assert_eq!(said, [format!("steps.a.{key}: {expected}")]);
    }
}

#[test]
fn syntax_of_other_languages_is_reported() {
    let agent = |prompt: &str| step("a", json!({ "agent": { "agent": "x", "prompt": prompt } }));
    for (step, expected) in [
        (agent("Dear {{ input.name }}, {a: 1} and ${HOME} and {thing}"), ""),
        (agent("input data"), ""),
        (agent("data"), ""),
        (agent("input.name"), "is literal text; write `{{ input.name }}` for the value"),
        (
            agent("input.name | upper"),
            "is literal text; write `{{ input.name | upper }}` for the value",
        ),
        (agent("Hi ${input.name}!"), "`${input.name}` is not replaced: write `{{ input.name }}`"),
        (agent("Hi ${data}!"), "`${data}` is not replaced: write `{{ data }}`"),
        (agent("Hi {input.name}!"), "`{input.name}` is not replaced: write `{{ input.name }}`"),
        (
            map("a", "'Hi ${input.name}'"),
            "`${input.name}` is not replaced: concatenate with `~ input.name`",
        ),
        (
            map("a", "'Hi {{ input.name }}'"),
            "`{{ }}` in a string of an expression is not replaced: concatenate with `~`",
        ),
    ] {
        let said: Vec<_> = found(&definition(&[step])).into_iter().collect();
        let said: Vec<_> = said.iter().filter_map(|line| line.split_once(": warning: ")).collect();
        let expected: Vec<_> = Some(expected).into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(said.iter().map(|(_, it)| *it).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn unknown_formats_and_impossible_keys_are_reported() {
    let mut definition = definition(&[map("a", "1")]);
    definition.input_schema = Some(json!({ "properties": { "at": { "format": "datetime" } } }));
    definition.steps[0].output_schema = Some(json!({ "format": "int64" }));
    definition.resume_schema = Some(json!({ "required": ["ok"], "additionalProperties": false }));
    let forbidden = "resume_schema.required.0: warning: no value is valid: key `ok` is required but not allowed";
    let unknown =
        "input_schema.properties.at.format: warning: unknown format `datetime`: it is not checked";
    assert_eq!(found(&definition), [unknown, forbidden]);
}

#[test]
fn schemas_that_check_nothing_are_reported() {
    let mut definition = definition(&[map("a", "1")]);
    definition.input_schema = Some(json!({ "minimun": 1 }));
    definition.steps[0].output_schema =
        Some(json!({ "required": ["ordr"], "properties": { "order": {} } }));
    definition.resume_schema = Some(json!({ "approved": "boolean" }));
    let minimum = "input_schema.minimun: warning: unknown keyword `minimun`: it checks nothing";
    let property = "resume_schema.approved: warning: unknown keyword `approved`: it checks nothing; a \
                    property is written `properties = { approved = { … } }`";
    let key = "steps.a.output_schema.required.0: warning: key `ordr` is required but not among the \
               properties";
    assert_eq!(found(&definition), [minimum, property, key]);
}

#[test]
fn paths_that_no_store_could_index_are_reported() {
    // with the name of the block, `yes`, and its place: 927
    let long = |id: &str, chars: usize| format!("{id}{}", "x".repeat(chars - 1));
    let nested = |innermost: usize| {
        let inner = map(&long("a", innermost), "1");
        [when(&long("b", 900), "input.n", &[when(&long("c", 900), "input.n", &[inner])])]
    };
    assert_eq!(found(&definition(&nested(146))), Vec::<String>::new());
    let id = long("a", 147);
    let reported = format!(
        "steps.{id}.id: the ids of this step and of the steps and blocks around it have 2001 \
         characters with the indexes between them; at most 2000 are possible"
    );
    assert_eq!(found(&definition(&nested(147))), [reported]);
}
