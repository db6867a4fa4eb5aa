//! The built-in workflow of bulk operations.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::definition::{
    Block, Body, Mapping, RetryPolicy, StepDefinition, StepKind, WorkflowDefinition,
};
use crate::domain::plan::Plan;
use crate::requests::Unavailable;

/// Id of the workflow whose executions are bulk operations. It is not in the registry, and cannot
/// be started by name through the API.
pub const BULK_WORKFLOW: &str = "greenroom.bulk";

/// Returns the compiled workflow.
pub(in crate::runtime) fn plan() -> Result<Arc<Plan>, Unavailable> {
    let plan = Plan::compile(definition());
    plan.map(Arc::new).map_err(|_| Unavailable::Corrupt(Arc::from(BULK_WORKFLOW)))
}

fn definition() -> WorkflowDefinition {
    let body = Body::Run { function: BULK_WORKFLOW.to_owned(), version: None };
    let mut step = StepDefinition::new("page", StepKind::Then { body });
    let attempts =
        RetryPolicy { attempts: 10, max_delay_ms: Some(60_000), ..RetryPolicy::default() };
    step.retry = Some(attempts);
    let pages = StepKind::DoUntil {
        when: "data.isOver".to_owned(),
        block: Block { name: "pages".to_owned(), steps: vec![step] },
        max_iterations: u32::MAX,
    };
    let result = ["matched", "done", "skipped", "failed", "children", "failures"]
        .map(|name| (name.to_owned(), Value::from(format!("data.{name}"))));
    // a server of an earlier version does not count them
    let compensating = ("compensating".to_owned(), Value::from("data.compensating | default(0)"));
    let result = result.into_iter().chain([compensating]);
    WorkflowDefinition {
        name: "Bulk operation".to_owned(),
        purpose: "Suspends, resumes, cancels or replays many executions".to_owned(),
        result: Some(Mapping(Value::Object(Map::from_iter(result)))),
        ..WorkflowDefinition::new(BULK_WORKFLOW, vec![StepDefinition::new("all", pages)])
    }
}
