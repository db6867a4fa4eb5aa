//! Resume data without a suspension, constant conditions, and inputs that do not match.

use super::*;

#[test]
fn resume_data_without_a_suspension_is_reported() {
    let asks = |map: &str, rule: Value| {
        let mut step = step("a", json!({ "map": { "map": map } }));
        step["suspend"] = rule;
        step
    };
    let rule = |when: &str| json!({ "when": when, "on_timeout": "fail" });
    let without = "`resume` is none here unless a caller paused the execution: the step has no \
                   `suspend`";
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
            &["steps.a.suspend.when: warning: `resume` is none here: this is evaluated before \
                 the resume"],
        ),
        (&[map("a", "resume.x")], &[&format!("steps.a.map: warning: {without}")]),
        (&[function], &[]),
    ]);
    let mut definition = definition(&[asks("resume", rule("data"))]);
    definition.result = Some(crate::definition::Mapping(json!(["resume", "steps.b"])));
    assert_eq!(
        found(&definition),
        [
            "result.0: warning: `resume` is none here: `result` is evaluated after all steps; \
             `steps.<id>` is the output of a step",
            "result.1: there is no step b",
        ]
    );
}

#[test]
fn constant_conditions_are_reported() {
    let inner: &[Value] = &[map("a", "1")];
    let other: &[Value] = &[map("b", "1")];
    table(&[
        // a block that always runs has an output
        (
            &[when("w", "true", inner), map("end", "steps.a + steps.w")],
            &["steps.w.when: warning: is always true: block yes runs each time"],
        ),
        (
            &[when("w", "1 > 2", inner)],
            &["steps.w.when: warning: is never true: block yes never runs; it reads no value"],
        ),
        (
            &[cases("k", &[("false", inner), ("data", other)], &[])],
            &["steps.k.cases.0.when: warning: is never true: block case0 never runs"],
        ),
        (
            &[cases("k", &[("true", inner), ("false", other)], &[map("c", "1")])],
            &["steps.k.cases.0.when: warning: is always true: blocks case1, default never run"],
        ),
        // the last case may be the default one
        (&[cases("k", &[("data", inner), ("true", other)], &[])], &[]),
        (
            &[cases("k", &[("data", inner), ("'data.x'", other)], &[])],
            &["steps.k.cases.1.when: warning: is always true: block case1 runs if no other does; \
               quotes make it a text: the value is written `data.x`"],
        ),
        (
            &[until("u", "false", inner)],
            &["steps.u.when: warning: is never true: the step fails after max_iterations = 3"],
        ),
        (&[until("u", "true", inner)], &[]),
        (&[each("f", "'abc'", inner)], &["steps.f.items: must be an array"]),
        (&[each("f", "[1, 2]", inner)], &[]),
    ]);
}

#[test]
fn the_reason_of_a_constant_condition_is_given() {
    let quotes = "quotes make it a text: the value is written";
    let settled = "no value that it reads changes that";
    for (source, expected) in [
        ("true", Some((true, String::new()))),
        ("False", Some((false, String::new()))),
        ("1 > 0", Some((true, "it reads no value".to_owned()))),
        ("'small' == 'large'", Some((false, "it reads no value".to_owned()))),
        ("0", Some((false, "it reads no value".to_owned()))),
        ("'yes'", Some((true, "a text is true unless it is empty".to_owned()))),
        ("''", Some((false, "a text that is empty is not true".to_owned()))),
        ("['a']", Some((true, "a list is true unless it is empty".to_owned()))),
        ("{}", Some((false, "an object that is empty is not true".to_owned()))),
        ("'data.a'", Some((true, format!("{quotes} `data.a`")))),
        ("'resume'", Some((true, format!("{quotes} `resume`")))),
        ("input.a == 1 or true", Some((true, settled.to_owned()))),
        ("not (input.a == 1 or 'x')", Some((false, settled.to_owned()))),
        ("input.a and false", Some((false, settled.to_owned()))),
        ("input.a and true", None),
        ("input.a or false", None),
        ("input.a == 1 or data.b", None),
    ] {
        let mut asks = map("a", "1");
        // with `true`, the resume is there
        asks["kind"] = json!({ "map": { "map": if source == "true" { "resume.x" } else { "1" } } });
        asks["suspend"] = json!({ "when": source, "on_timeout": "fail", "deadline_ms": 5 });
        let expected = expected.map(|(is_true, why)| {
            let effect = match is_true {
                true => "is always true: the step asks each time, as without `when`",
                false => "is never true: the step never asks",
            };
            let why = if why.is_empty() { why } else { format!("; {why}") };
            format!("steps.a.suspend.when: warning: {effect}{why}")
        });
        assert_eq!(found(&definition(&[asks])), Vec::from_iter(expected), "{source}");
    }
}

#[test]
fn constant_conditions_of_retries_are_reported() {
    let mut tried = step("a", json!({ "then": { "body": { "run": { "function": "f" } } } }));
    let retry = |on: &str, never: &str| {
        let (delay, factor) = (1, 1.0);
        json!({ "attempts": 3, "delay_ms": delay, "factor": factor, "jitter": false, "on": on, "never": never })
    };
    tried["retry"] = retry("false", "true");
    tried["compensate"] = json!({
        "kind": { "then": { "body": { "run": { "function": "g" } } } },
        "retry": retry("'error.kind'", "1 > 2"),
    });
    table(&[(
        &[tried],
        &[
            "steps.a.retry.on: warning: is never true: no failure is repeated",
            "steps.a.retry.never: warning: is always true: no failure is repeated",
            "steps.a.compensate.retry.on: warning: is always true: every failure is repeated; \
             quotes make it a text: the value is written `error.kind`",
            "steps.a.compensate.retry.never: warning: is never true: it has no effect; it reads no \
             value",
        ],
    )]);
}

#[test]
fn names_of_iterations_are_listed_inside_them() {
    let inner: &[Value] = &[map("b", "x.id")];
    let listed = |names: &str| {
        format!(
            "`x` is not in scope; in scope: data, input, steps, resume, resumed_by, context, user, \
             {names}execution"
        )
    };
    for (steps, names) in [
        (map("b", "x.id"), ""),
        (each("f", "data", inner), "item, index, "),
        (until("u", "data", inner), "index, "),
    ] {
        let expected = format!("steps.b.map: {}", listed(names));
        assert_eq!(found(&definition(&[steps])), [expected]);
    }
}

#[test]
fn known_inputs_must_match_the_schema() {
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
        (json!({ "n": 1, "unt": "data" }), Some("input.unt: unknown key `unt`")),
        (json!({ "unit": "data" }), Some("input: key `n` is missing")),
        (
            json!({ "n": "data.n", "unit": 5 }),
            Some("input.unit: unit: 5 is not of type \"string\""),
        ),
        (json!([1]), Some("input: [1] is not of type \"object\"")),
    ] {
        let kind = json!({ "workflow": { "workflow": "child", "input": input } });
        let inputs = constant_inputs(&definition(&[each("f", "data", &[step("a", kind)])]));
        let mismatch = inputs.iter().find_map(|input| input.mismatch(&schema));
        let said = mismatch.map(|it| {
            let message = it.message.replace("does not match the input of workflow child: ", "");
            format!("{}: {message}", it.place[2..].join("."))
        });
        assert_eq!(said.as_deref(), expected, "{input}");
    }
}

#[test]
fn known_payloads_and_timeout_data_must_match_the_schemas() {
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
            "suspend.payload: does not match the suspend_schema: Additional properties are not \
             allowed ('amnt' was unexpected)"
                .into(),
        ),
        (
            json!({ "amount": "data", "amnt": 5 }),
            json!({ "approved": "false" }),
            "suspend.payload.amnt: does not match the suspend_schema: unknown key `amnt`".into(),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "approved": "'yes'" }),
            format!(
                "{answer}: does not match the resume_schema: approved: \"yes\" is not of type \"boolean\""
            ),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "approved": "'yes'", "note": "input.note" }),
            format!(
                "{answer}.approved: does not match the resume_schema: approved: \"yes\" is not of type \"boolean\""
            ),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "aproved": "data.ok" }),
            format!("{answer}.aproved: does not match the resume_schema: unknown key `aproved`"),
        ),
        (
            json!({ "amount": 1 }),
            json!({ "note": "data" }),
            format!("{answer}: does not match the resume_schema: key `approved` is missing"),
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
        // the schemas of the step take precedence
        (of_workflow.suspend_schema, of_workflow.resume_schema) =
            (Some(json!(false)), Some(json!(false)));
        assert_eq!(found(&of_workflow), expected);
    }
}
