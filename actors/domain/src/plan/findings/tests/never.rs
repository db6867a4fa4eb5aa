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
        (&[asks("resume.x", json!({ "on_timeout": "fail" }))], &[]),
        (&[asks("resumed_by.id if resumed_by else none", rule("data"))], &[]),
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
    definition.result = Some(crate::definition::Projection(json!(["resume", "steps.b"])));
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
        (
            json!({ "n": "data.n", "unit": 5 }),
            Some("input.unit: unit: 5 is not of type \"string\""),
        ),
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

#[test]
fn what_a_suspension_shows_and_what_a_deadline_answers_fit_the_schemas() {
    let closed = |key: &str, kind: &str| {
        let properties = json!({ key: { "type": kind }, "note": { "type": "string" } });
        json!({ "type": "object", "required": [key], "properties": properties, "additionalProperties": false })
    };
    let (shown, asked) = (closed("amount", "number"), closed("approved", "boolean"));
    let answer = "suspend.on_timeout.resume";
    for (payload, resume, expected) in [
        (json!({ "amount": "input.amount" }), json!({ "approved": "false" }), String::new()),
        (json!("input"), json!("input"), String::new()),
        (
            json!({ "amnt": 5 }),
            json!({ "approved": "false" }),
            "suspend.payload: does not fit the suspend_schema: Additional properties are not \
             allowed ('amnt' was unexpected)"
                .into(),
        ),
        (
            json!({ "amount": "data", "amnt": 5 }),
            json!({ "approved": "false" }),
            "suspend.payload.amnt: does not fit the suspend_schema: it has no key `amnt`".into(),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "approved": "'yes'" }),
            format!(
                "{answer}: does not fit the resume_schema: approved: \"yes\" is not of type \"boolean\""
            ),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "approved": "'yes'", "note": "input.note" }),
            format!(
                "{answer}.approved: does not fit the resume_schema: approved: \"yes\" is not of type \"boolean\""
            ),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "aproved": "data.ok" }),
            format!("{answer}.aproved: does not fit the resume_schema: it has no key `aproved`"),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "note": "data" }),
            format!("{answer}: does not fit the resume_schema: key `approved` is missing"),
        ),
    ] {
        let mut asks = map("a", "1");
        asks["suspend"] =
            json!({ "payload": payload, "deadline_ms": 5, "on_timeout": { "resume": resume } });
        let expected = Some(expected).into_iter().filter(|it| !it.is_empty());
        let expected: Vec<_> = expected.map(|it| format!("steps.a.{it}")).collect();
        let mut of_workflow = definition(&[asks.clone()]);
        (of_workflow.suspend_schema, of_workflow.resume_schema) =
            (Some(shown.clone()), Some(asked.clone()));
        assert_eq!(found(&of_workflow), expected);
        asks["suspend_schema"] = shown.clone();
        asks["resume_schema"] = asked.clone();
        of_workflow = definition(&[asks]);
        // the step's own come first
        (of_workflow.suspend_schema, of_workflow.resume_schema) =
            (Some(json!(false)), Some(json!(false)));
        assert_eq!(found(&of_workflow), expected);
    }
}
