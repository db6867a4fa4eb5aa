//! Schemas of questions, checked before people are asked.

use super::*;
use crate::agent::ask::ToolAsk;

/// Asks with the schema in its arguments, as Rust code does.
fn asks() -> ToolDefinition {
    let body = function(|arguments, context| async move {
        context.ask(ToolAsk::new("Which?").schema(arguments["schema"].clone()))
    });
    tool("asks", body)
}

#[actix::test]
async fn a_question_whose_answers_could_not_be_checked_is_a_failed_call() {
    let rows = [
        (json!({ "type": "object", "required": ["colour"] }), None),
        (json!({ "type": "string" }), None),
        (
            json!({ "properties": { "a": { "type": "numbr" } } }),
            Some(
                "schema at /properties/a/type: \"numbr\" is not a type; expected array, boolean, \
                 integer, null, number, object or string",
            ),
        ),
        (json!({ "pattern": "(" }), Some("schema at /pattern: ")),
        (json!({ "$ref": "https://a.example/schema" }), Some("schema at /$ref: ")),
        (json!({ "title": "x".repeat(70_000) }), Some("schema: larger than 65536 bytes")),
        (json!({ "enum": vec![1; 10_001] }), Some("schema: more than 10000 values")),
    ];
    let (mut deps, _) = bench([asks()]);
    deps.tool_limits.timeout = Duration::from_secs(60);
    let toolset = Toolset::of(&deps.registry, &names(&["asks", "ask_user"]), &[]).unwrap();
    for (schema, expected) in rows {
        for name in ["asks", "ask_user"] {
            let arguments = json!({ "question": "Which?", "schema": schema });
            let returned = toolset.call(&deps, &caller(), call(name, arguments)).await;
            match (expected, &returned.outcome) {
                (None, _) => assert!(returned.waits.is_some(), "{name}: {schema}"),
                (Some(expected), ToolOutcome::Error(text)) => {
                    assert_eq!(returned.waits, None, "{name}: {text}");
                    let expected = format!("the question was not asked: {expected}");
                    assert!(text.starts_with(&expected), "{name}: {text}");
                }
                (Some(_), outcome) => panic!("{name}: {outcome:?}"),
            }
        }
    }
}

#[actix::test]
async fn schemas_are_compiled_on_workers() {
    let (mut deps, toolset) = bench([asks()]);
    deps.tool_limits.timeout = Duration::from_secs(60);
    let moved = || deps.evaluations.counts().moved.load(Ordering::Relaxed);
    for (schema, expected) in
        [(json!({ "type": "string" }), 0), (json!({ "pattern": r"\p{L}{5}" }), 1)]
    {
        let arguments = json!({ "schema": schema });
        let returned = toolset.call(&deps, &caller(), call("asks", arguments)).await;
        assert!(returned.waits.is_some(), "{:?}", returned.outcome);
        assert_eq!(moved(), expected);
    }
}
