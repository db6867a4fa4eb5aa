//! What can never be, or never change: resumes without a question, constant conditions, misfits.

use super::*;

#[test]
fn resume_belongs_to_a_step_that_asks() {
    let asks = |map: &str, rule: Value| {
        let mut step = step("a", json!({ "map": { "map": map } }));
        step["suspend"] = rule;
        step
    };
    let rule = |when: &str| json!({ "when": when, "on_timeout": "fail" });
    let without = "`resume` is none here, unless the execution was suspended from outside: the \
                   step has no `suspend`";
    let mut function = step("a", json!({ "then": { "body": { "run": { "function": "f" } } } }));
    function["on_error"] = json!({ "value": "resume" });
    table(&[
        (&[asks("resume.x", rule("data"))], &[]),
        (&[asks("resumed_by.id", rule("data"))], &[]),
        (
            &[map("a", "resumed_by.id")],
            &[&format!("steps.a.map: warning: {}", without.replace("`resume`", "`resumed_by`"))],
        ),
        (
            &[asks("1", rule("resume"))],
            &[
                "steps.a.suspend.when: warning: `resume` is none here: this is asked before anybody \
               answers",
            ],
        ),
        (&[map("a", "resume.x")], &[&format!("steps.a.map: warning: {without}")]),
        (&[function], &[]),
    ]);
    let mut definition = definition(&[asks("resume", rule("data"))]);
    definition.result = Some(crate::domain::definition::Projection(json!(["resume", "steps.b"])));
    assert_eq!(
        found(&definition),
        [
            "result.0: warning: `resume` is none here: a result is made when nothing waits; \
             `steps.<id>` has what a step gave",
            "result.1: there is no step b",
        ]
    );
}

#[test]
fn conditions_that_nothing_can_change_are_told() {
    let inner: &[Value] = &[map("a", "1")];
    let other: &[Value] = &[map("b", "1")];
    table(&[
        (&[when("w", "true", inner)], &[]),
        (
            &[when("w", "1 > 2", inner)],
            &["steps.w.when: warning: never holds: block yes can never run"],
        ),
        (
            &[cases("k", &[("false", inner), ("data", other)], &[])],
            &["steps.k.cases.0.when: warning: never holds: block case0 can never run"],
        ),
        (
            &[cases("k", &[("true", inner), ("false", other)], &[map("c", "1")])],
            &["steps.k.cases.0.when: warning: always holds: blocks case1, default can never run"],
        ),
        (&[cases("k", &[("data", inner), ("true", other)], &[])], &[]),
        (
            &[until("u", "false", inner)],
            &["steps.u.when: warning: never holds: the step fails after max_iterations = 3"],
        ),
        (&[until("u", "true", inner)], &[]),
        (&[each("f", "'abc'", inner)], &["steps.f.items: must give an array"]),
        (&[each("f", "[1, 2]", inner)], &[]),
    ]);
}

#[test]
fn what_is_handed_on_has_to_fit() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "required": ["n"],
        "properties": { "n": { "type": "integer" }, "unit": { "type": "string" } },
        "additionalProperties": false,
    }))
    .unwrap();
    for (input, expected) in [
        (json!({ "n": 1, "unit": "'kg'" }), None),
        (json!({ "n": "1 + 1" }), None),
        (json!({ "n": "data.n" }), None),
        (json!("data"), None),
        (json!({ "n": "'1'" }), Some("input: n: \"1\" is not of type \"integer\"")),
        (json!({ "n": 1, "unt": "data" }), Some("input.unt: it has no key `unt`")),
        (json!({ "unit": "data" }), Some("input: key `n` is missing")),
        (json!([1]), Some("input: [1] is not of type \"object\"")),
    ] {
        let kind = json!({ "workflow": { "workflow": "child", "input": input } });
        let given = given(&definition(&[each("f", "data", &[step("a", kind)])]));
        let misfit = given.iter().find_map(|given| given.misfit(&schema));
        let said = misfit.map(|it| {
            let message = it.message.replace("does not fit the input of workflow child: ", "");
            format!("{}: {message}", it.place[2..].join("."))
        });
        assert_eq!(said.as_deref(), expected, "{input}");
    }
}
