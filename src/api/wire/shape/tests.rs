//! The schemas match the types.

use greenroom_actors::domain::definition::{Container, Course};
use greenroom_actors::domain::message::{Role, ToolCall, ToolOutcome, ToolResult};
use greenroom_actors::ports::model::{FinishReason, Served, Usage};
use greenroom_actors::ports::store::{GenerationStatus, GenerationStep, TurnTiming};
use serde_json::{json, to_value};

use super::*;
use crate::api::wire::history::StepView;
use crate::made_page;

/// Validates values against the schema; unknown keys are rejected.
fn check<T: ToSchema>(values: impl IntoIterator<Item = Value>) {
    let mut found = vec![(T::name().to_string(), T::schema())];
    T::schemas(&mut found);
    let mut schemas: serde_json::Map<String, Value> =
        found.into_iter().map(|(name, schema)| (name, to_value(schema).unwrap())).collect();
    for schema in schemas.values_mut().filter(|schema| schema["properties"].is_object()) {
        schema["additionalProperties"] = Value::Bool(false);
    }
    let schema = json!({
        "$ref": format!("#/components/schemas/{}", T::name()),
        "components": { "schemas": schemas },
    });
    let schema = jsonschema::validator_for(&schema).unwrap();
    for value in values {
        if let Err(error) = schema.validate(&value) {
            panic!("{}: {error}: {value}", T::name());
        }
    }
}

#[test]
fn schemas_match_the_types_of_the_runtime() {
    let call = ToolCall {
        tool_call_id: "c".to_owned(),
        tool_name: "add".to_owned(),
        input: json!({ "n": 1 }),
    };
    let result = |outcome| ToolResult {
        tool_call_id: "c".to_owned(),
        tool_name: "add".to_owned(),
        input: json!({}),
        outcome,
    };
    let results = [
        ToolOutcome::Output(Value::Null),
        ToolOutcome::Error("no".to_owned()),
        ToolOutcome::Denied("refused".to_owned()),
    ];
    let results: Vec<_> = results.into_iter().map(result).collect();
    let reasons = [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::ToolCalls,
        FinishReason::Error,
        FinishReason::Other,
    ];
    let statuses = [
        GenerationStatus::Working,
        GenerationStatus::Completed,
        GenerationStatus::Error,
        GenerationStatus::Cancelled,
        GenerationStatus::Suspended,
    ];
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    check::<UsageShape>([to_value(Usage::default()).unwrap()]);
    check::<FinishReasonShape>(reasons.map(|it| to_value(it).unwrap()));
    check::<GenerationStatusShape>(statuses.map(|it| to_value(it).unwrap()));
    check::<RoleShape>(roles.map(|it| to_value(it).unwrap()));
    check::<ToolCallShape>([to_value(&call).unwrap()]);
    check::<ToolResultShape>(results.iter().map(|it| to_value(it).unwrap()));
    let stand_in = |reasoning: &str| {
        let first = (!reasoning.is_empty()).then(|| "large".into());
        Some(Box::new(Served {
            provider: Some("p".into()),
            instead_of: first,
            ..Served::of("small")
        }))
    };
    let step = |reasoning: &str| GenerationStep {
        text: "hello".to_owned(),
        reasoning: reasoning.to_owned(),
        tool_calls: vec![call.clone()],
        tool_results: results.clone(),
        timing: TurnTiming { served: stand_in(reasoning), ..TurnTiming::default() },
        ..GenerationStep::default()
    };
    let shown = |step: GenerationStep| to_value(StepView::of(&step)).unwrap();
    check::<GenerationStepShape>(["", "hm"].map(|it| shown(step(it))));
}

/// Returns the name of a course in the console.
fn name_of(course: Course) -> &'static str {
    match course {
        Course::Work => "work",
        Course::Wait => "wait",
        Course::Blocks(Container::Optional) => "optional",
        Course::Blocks(Container::OneOf) => "oneOf",
        Course::Blocks(Container::All) => "all",
        Course::Blocks(Container::Race) => "race",
        Course::Blocks(Container::Items) => "items",
        Course::Blocks(Container::Rounds) => "rounds",
    }
}

/// The console draws steps by what their kinds do.
#[test]
fn the_kinds_of_the_console() {
    let rows =
        StepType::ALL.map(|kind| format!("  {}: \"{}\",\n", kind.name(), name_of(kind.course())));
    let made = format!(
        "// Made from the table of kinds by `UPDATE_DOCS=1 cargo test --lib the_kinds_of_the_console`.
import type {{ WorkflowStep }} from \"./types.ts\";

/** Course of a step until it ends: its work, a wait, or its blocks in one of several ways. */
export type Course = \"work\" | \"wait\" | \"optional\" | \"oneOf\" | \"all\" | \"race\" | \"items\" | \"rounds\";

export const courses: Record<WorkflowStep[\"type\"], Course> = {{
{}}};
",
        rows.concat()
    );
    made_page::compare("console/src/api/kinds.ts", &made, "the_kinds_of_the_console");
}
