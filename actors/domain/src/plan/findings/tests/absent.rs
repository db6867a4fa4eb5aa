//! What may not be there when a text reads it, and comparisons that never hold.

use super::*;

/// Asks, and then gives this.
fn asks(map: &str, rule: Value) -> Value {
    let mut step = step("a", json!({ "map": { "map": map } }));
    step["suspend"] = rule;
    step
}

/// What is said of a workflow whose input may lack a note, and always has a kind and lines.
fn said(steps: &[Value], callers: Callers) -> Vec<String> {
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
    findings(&definition, callers).into_iter().map(|it| it.message).collect()
}

#[track_caller]
fn rows(rows: &[(Value, &str)]) {
    for (step, expected) in rows {
        let expected: Vec<_> = Some(*expected).into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(said(std::slice::from_ref(step), Callers::Any), expected, "{step}");
    }
}

#[test]
fn a_property_that_is_not_required_may_be_missing() {
    let missing = |way: &str| {
        format!(
            "`{way}` may be missing: its schema does not require it; say what holds then with \
             `default()`"
        )
    };
    let (note, unit, who) = (missing("input.note"), missing("item.unit"), missing("input.who"));
    rows(&[
        (map("a", "input.name ~ input.lines[0].n"), ""),
        (map("a", "input.note"), &note),
        (map("a", "data.note"), &note.replace("input", "data")),
        (map("a", "input.note | default('')"), ""),
        (map("a", "input.note if input.note is defined else ''"), ""),
        (map("a", "input.note if 'note' in input else ''"), ""),
        // a truth is no question: the engine refuses what is not there
        (map("a", "input.note if input.note else ''"), &note),
        (map("a", "input.open.anything"), &missing("input.open")),
        (map("a", "input.who.id"), &who),
        // nor does the end of a way speak of its middle
        (map("a", "input.who.id | default('')"), &who),
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
fn what_is_required_elsewhere_is_not_said_to_be_missing() {
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
fn what_is_none_has_no_keys() {
    let told = |what: &str| format!("{what}; say what holds then with `default()`");
    let user = told("`user` is none for a request without a token");
    let by = told(
        "`resumed_by` is none when a resume names no user, and when a deadline resumes the step",
    );
    let resume = told("`resume` is none when `suspend.when` does not hold");
    let always = || json!({ "on_timeout": "fail" });
    let sometimes = || json!({ "when": "input.is_large", "on_timeout": "fail" });
    rows(&[
        (map("a", "[user]"), ""),
        (map("a", "user.id"), &user),
        (map("a", "user.id | default('guest')"), ""),
        (map("a", "user.id if user else 'guest'"), ""),
        (map("a", "user.id if user is not none else 'guest'"), ""),
        (map("a", "user.address.city | default('')"), &user),
        (when("w", "user is not none", &[map("a", "user.id")]), ""),
        (asks("resumed_by.id", always()), &by),
        (asks("resumed_by.id | default(none)", always()), ""),
        (asks("resumed_by and resumed_by.verified", always()), ""),
        (asks("resume.ok", always()), ""),
        (asks("resume.ok", sometimes()), &resume),
        (asks("resume.ok if resume is not none else true", sometimes()), ""),
        (asks("resume.ok", json!({ "when": "true", "on_timeout": "fail" })), ""),
    ]);
    assert_eq!(said(&[map("a", "user.id")], Callers::Named), Vec::<String>::new());
}

#[test]
fn comparisons_that_never_hold_are_told() {
    let retry = |on: &str| {
        let mut step = map("a", "1");
        step["retry"] =
            json!({ "attempts": 3, "delay_ms": 1, "factor": 1.0, "jitter": false, "on": on });
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
            "`input.name` is a text and never equals 5; a text is written '5'",
        ),
        (
            map("a", "input.is_large == 'true'"),
            "`input.is_large` is true or false and never equals 'true'; write true",
        ),
        (map("a", "input.lines[0].n == 1 and input.lines == 1"), ""),
    ]);
}

#[test]
fn schemas_of_a_suspension_that_never_is_are_told() {
    let schemas = |mut step: Value| {
        step["suspend_schema"] = json!({ "type": "object" });
        step["resume_schema"] = json!({ "type": "object" });
        step
    };
    let run = step("a", json!({ "then": { "body": { "run": { "function": "f" } } } }));
    let idle = "warning: nothing is held to it: the step has no `suspend`";
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
fn items_that_are_no_array_are_refused() {
    let inner = || vec![map("b", "1")];
    rows(&[
        (each("f", "input.lines", &inner()), ""),
        (each("f", "input.lines | list", &inner()), ""),
        (each("f", "input.name", &inner()), "must give an array; `input.name` is a text"),
        (each("f", "input.kind", &inner()), "must give an array; `input.kind` is a text"),
        (each("f", "input", &inner()), "must give an array; `input` is an object"),
    ]);
}
