//! Values that may be absent, and comparisons that are never true.

use std::sync::Arc;

use super::*;
use crate::expression::{Expression, Scope};

/// A step that suspends, and then evaluates `map`.
fn asks(map: &str, rule: Value) -> Value {
    let mut step = step("a", json!({ "map": { "map": map } }));
    step["suspend"] = rule;
    step
}

/// Returns the messages for a workflow whose input may lack a note, and always has a kind and
/// lines.
fn messages(steps: &[Value], callers: Callers) -> Vec<String> {
    let line = json!({ "required": ["n"], "properties": {
        "n": { "type": "integer" }, "unit": { "enum": ["kg", "lb", null] },
    } });
    let mut definition = definition(steps);
    definition.input_schema = Some(json!({
        "type": "object",
        "required": ["kind", "lines", "name", "is_large"],
        "properties": {
            "kind": { "type": "string", "enum": ["travel", "food"] },
            "lines": { "type": "array", "items": line },
            "name": { "type": "string" },
            "is_large": { "type": "boolean" },
            "note": { "type": "string" },
            "who": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
            "open": { "type": "object" },
        },
    }));
    Plan::compile(definition.clone()).unwrap();
    lints(&definition, callers).into_iter().map(|it| it.message).collect()
}

#[track_caller]
fn rows(rows: &[(Value, &str)]) {
    for (step, expected) in rows {
        let expected: Vec<_> = Some(*expected).into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(messages(std::slice::from_ref(step), Callers::Any), expected, "{step}");
    }
}

#[test]
fn reads_of_optional_properties_are_reported() {
    let missing = |way: &str| {
        format!("`{way}` may be missing: its schema does not require it; add a `default()`")
    };
    let (note, unit, who) = (missing("input.note"), missing("item.unit"), missing("input.who"));
    rows(&[
        (map("a", "input.name ~ input.lines[0].n"), ""),
        (map("a", "input.note"), &note),
        (map("a", "data.note"), &note.replace("input", "data")),
        (map("a", "input.note | default('')"), ""),
        (map("a", "input.note if input.note is defined else ''"), ""),
        (map("a", "input.note if 'note' in input else ''"), ""),
        // a condition on the value itself fails if it is missing
        (map("a", "input.note if input.note else ''"), &note),
        (map("a", "input.open.anything"), &missing("input.open")),
        (map("a", "input.who.id"), &who),
        // a default, or a test of presence, covers every part of its path
        (map("a", "input.who.id | default('')"), ""),
        (map("a", "input.open.x[0].y | default('')"), ""),
        (map("a", "input.who.id if input.who.id is defined else ''"), ""),
        (map("a", "input.who.id ~ (input.who.name | default(''))"), &who),
        (map("a", "input.who.id if 'id' in input.who else ''"), &who),
        (map("a", "input.who.id | upper | default('')"), &who),
        (map("a", "(input.who | default({})).id | default('')"), ""),
        (map("a", "input.who.id if input.who is defined else ''"), ""),
        (each("f", "input.lines", &[map("a", "item.n"), map("b", "item.unit")]), &unit),
        (when("w", "input.note is defined", &[map("a", "input.note")]), ""),
        (when("w", "input.name", &[map("a", "input.note")]), &note),
        (
            cases(
                "k",
                &[
                    ("input.note is undefined", &[map("a", "1")]),
                    ("input.name", &[map("b", "input.note")]),
                ],
                &[map("c", "input.note")],
            ),
            "",
        ),
    ]);
}

#[test]
fn properties_that_subschemas_may_require_are_not_reported() {
    for key in ["allOf", "anyOf", "oneOf", "if", "dependentRequired"] {
        let mut definition = definition(&[map("a", "input.note")]);
        let mut schema = json!({
            "type": "object", "properties": { "note": {} }, "additionalProperties": false,
        });
        definition.input_schema = Some(schema.clone());
        assert_eq!(found(&definition).len(), 1);
        schema[key] = match key {
            "if" => json!({ "required": ["note"] }),
            "dependentRequired" => json!({}),
            _ => json!([{ "required": ["note"] }]),
        };
        definition.input_schema = Some(schema);
        assert_eq!(found(&definition), Vec::<String>::new(), "{key}");
    }
}

#[test]
fn lookups_in_names_that_may_be_none_are_reported() {
    let warning = |what: &str| format!("{what}; add a `default()`");
    let user = warning("`user` is none for a request without a token");
    let by =
        warning("`resumed_by` is none if a resume has no user, and if a deadline resumes the step");
    let resume = warning("`resume` is none if `suspend.when` is false");
    let always = || json!({ "on_timeout": "fail" });
    let sometimes = || json!({ "when": "input.is_large", "on_timeout": "fail" });
    rows(&[
        (map("a", "[user]"), ""),
        (map("a", "user.id"), &user),
        (map("a", "user.id | default('guest')"), ""),
        (map("a", "user.id if user else 'guest'"), ""),
        (map("a", "user.id if user is not none else 'guest'"), ""),
        (map("a", "user.address.city | default('')"), ""),
        (map("a", "(user.address | default({})).city ~ user.id"), &user),
        (when("w", "user is not none", &[map("a", "user.id")]), ""),
        (asks("resumed_by.id", always()), &by),
        (asks("resumed_by.id | default(none)", always()), ""),
        (asks("resumed_by and resumed_by.verified", always()), ""),
        (asks("resume.ok", always()), ""),
        (asks("resume.ok", sometimes()), &resume),
        (asks("resume.ok if resume is not none else true", sometimes()), ""),
    ]);
    assert_eq!(messages(&[map("a", "user.id")], Callers::Named), Vec::<String>::new());
}

#[test]
fn comparisons_that_are_never_true_are_reported() {
    let retry = |on: &str| {
        let mut step = map("a", "1");
        step["retry"] =
            json!({ "attempts": 3, "delay_ms": 1, "factor": 1.0, "jitter": false, "on": on });
        step
    };
    let retry_of = |kind: Value| {
        let mut step = retry("error.kind != 'declined'");
        step["kind"] = kind;
        step
    };
    let kinds = "it is one of http, connection, request, response, timeout, command, tool, \
                 function, …";
    rows(&[
        (retry("error.kind == 'connection' or error.kind in ['http', 'cost']"), ""),
        (
            retry("error.kind == 'conection'"),
            &format!("`error.kind` is never 'conection'; {kinds}"),
        ),
        (
            retry("'tool' != error.kind and error.kind not in ['http', 'tmeout']"),
            &format!("`error.kind` is never 'tmeout'; {kinds}"),
        ),
        (retry_of(json!({ "then": { "body": { "run": { "function": "pay" } } } })), ""),
        (
            retry_of(json!({ "then": { "body": { "tool": { "tool": "pay" } } } })),
            &format!("`error.kind` is never 'declined'; {kinds}"),
        ),
        (retry("error.status == 503 or error.attempt == 2"), ""),
        (
            retry("error.status == '503'"),
            "`error.status` is a number and never equals '503'; a number is written 503",
        ),
        (
            retry("error.status in ['5xx', 503]"),
            "`error.status` is a number and never equals '5xx'",
        ),
        (map("a", "input.kind == 'food'"), ""),
        (map("a", "input.kind == 'fod'"), "`input.kind` is never 'fod'; it is one of travel, food"),
        (map("a", "input.kind == none or input.name == 'x'"), ""),
        (
            map("a", "input.name == 5"),
            "`input.name` is a string and never equals 5; a string is written '5'",
        ),
        (
            map("a", "input.is_large == 'true'"),
            "`input.is_large` is true or false and never equals 'true'; write true",
        ),
        (map("a", "input.lines[0].n == 1 and input.lines == 1"), ""),
    ]);
}

#[test]
fn orders_that_never_change_are_reported() {
    let number =
        "`input.lines[…].n` is a number and is always less than '5'; a number is written 5";
    rows(&[
        (map("a", "input.lines[0].n > 5 and 5.5 >= input.lines[0].n"), ""),
        (map("a", "input.lines[0].n > '5'"), number),
        (map("a", "'5' <= input.lines[0].n"), number),
        (map("a", "input.name < 'm' or input.kind >= 'food' or input.kind < 'm'"), ""),
        (
            map("a", "input.name >= 5"),
            "`input.name` is a string and is always greater than 5; `| float` makes it a number",
        ),
        (
            map("a", "input.is_large > 'no'"),
            "`input.is_large` is true or false and is always less than 'no'",
        ),
    ]);
    let input = json!({ "number": 7, "text": "7", "truth": true });
    let scope = Scope::new().with("input", Arc::new(input));
    for source in ["input.number < '5'", "input.text > 9", "input.truth < ''"] {
        assert_eq!(Expression::compile(source).unwrap().holds(&scope), Ok(true), "{source}");
    }
}

#[test]
fn unused_schemas_of_suspensions_are_reported() {
    let schemas = |mut step: Value| {
        step["suspend_schema"] = json!({ "type": "object" });
        step["resume_schema"] = json!({ "type": "object" });
        step
    };
    let run = step("a", json!({ "then": { "body": { "run": { "function": "f" } } } }));
    let idle = "warning: is not used: the step has no `suspend`";
    table(&[
        (&[schemas(asks("1", json!({ "on_timeout": "fail" })))], &[]),
        (&[schemas(run)], &[]),
        (
            &[schemas(map("a", "1"))],
            &[
                &format!("steps.a.suspend_schema: {idle}"),
                &format!("steps.a.resume_schema: {idle}"),
            ],
        ),
    ]);
}

#[test]
fn items_that_are_not_an_array_are_reported() {
    let inner = || vec![map("b", "1")];
    rows(&[
        (each("f", "input.lines", &inner()), ""),
        (each("f", "input.lines | list", &inner()), ""),
        (each("f", "input.name", &inner()), "must be an array; `input.name` is a string"),
        (each("f", "input.kind", &inner()), "must be an array; `input.kind` is a string"),
        (each("f", "input", &inner()), "must be an array; `input` is an object"),
    ]);
}
