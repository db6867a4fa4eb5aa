//! The routes of workflows and their executions.

use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{configured, frames, parts};
use crate::api::error::ApiError;
use crate::api::wire::counts::CountsView;
use crate::api::wire::execution::{
    CancelView, ExecutionView, ReasonBody, ReplayBody, ResumeOptions, SuspendView,
};
use crate::api::wire::state::{ExecutionsView, StateView};
use crate::api::wire::why::WhyView;
use crate::api::wire::workflow::{ExecuteOptions, WorkflowSummaryView, WorkflowView};

/// A name for examples of refusals.
pub(super) fn some_execution() -> ExecutionId {
    ExecutionId::trusted("order-17")
}

fn workflow_id() -> Value {
    parts::path("id", "Id of the workflow", parts::any_id())
}

fn not_found() -> ApiError {
    ApiError::WorkflowNotFound("order".to_owned().into())
}

fn failed() -> ApiError {
    let step = Some(Arc::from("post"));
    ApiError::ExecutionFailed { id: some_execution(), step_id: step.clone(), path: step }
}

fn execution_not_found() -> ApiError {
    ApiError::ExecutionNotFound("order-17".to_owned())
}

fn key_invalid() -> ApiError {
    let what = "must be 1 to 255 visible ASCII characters".to_owned();
    ApiError::InvalidHeader { name: "Idempotency-Key", what }
}

pub(super) fn list(components: &mut Components) -> Described {
    let item = components.of::<WorkflowSummaryView<'_>>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listWorkflows").answering(200, parts::json_answer("All workflows", data))
}

pub(super) fn describe(registry: &Registry, components: &mut Components) -> Described {
    let data = components.of::<WorkflowView<'_>>();
    let id = configured::workflow_id(registry, components);
    Described::new("describeWorkflow")
        .with([id])
        .answering(200, parts::json_answer("The workflow", data))
        .refusing([not_found()])
}

/// The body of a start whose input is of a schema.
pub(super) fn start_body(input: &Value, components: &mut Components) -> Value {
    json!({
        "type": "object",
        "required": ["input"],
        "properties": {
            "input": input,
            "options": {
                "oneOf": [{ "type": "null" }, components.of::<ExecuteOptions>()],
            },
        },
    })
}

fn starting(operation_id: &'static str, components: &mut Components) -> Described {
    let input = json!({ "description": "What the workflow's input schema takes" });
    let body = start_body(&input, components);
    Described::new(operation_id)
        .with([workflow_id()])
        .taking(body, true, Value::Null)
        .refusing([
            not_found(),
            ApiError::InputInvalid("amount: \"ten\" is not of type \"number\"".to_owned()),
            ApiError::ExecutionExists(some_execution()),
        ])
        .working()
}

pub(super) fn execute(components: &mut Components) -> Described {
    let data = components.of::<ExecutionView<'_>>();
    let answer = parts::execution_answer("It ended, or it is suspended", data);
    starting("executeWorkflow", components)
        .about(
            "Answers when the execution has completed, is suspended or was cancelled. A client \
             that leaves does not stop it.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .answering(200, answer)
        .refusing([key_invalid(), ApiError::KeyReused, failed()])
}

pub(super) fn stream(components: &mut Components) -> Described {
    starting("streamWorkflow", components)
        .about(
            "The stream stays open while the execution is suspended: what follows a resume \
             arrives on it.",
        )
        .answering(200, workflow_events())
}

fn workflow_events() -> Value {
    let event = json!({ "oneOf": [
        parts::reference("schemas", frames::WORKFLOW_EVENT),
        parts::reference("schemas", frames::PROGRESS_EVENT),
    ] });
    let example = json!({ "type": "step-complete", "executionId": "order-17",
                          "timestamp": "2026-01-31T08:15:30.000Z", "from": "classify",
                          "output": { "large": false } });
    let content = json!({ "text/event-stream": parts::events(event, &example) });
    parts::response("The events", content, &parts::ABOUT_EXECUTION)
}

fn filters() -> [Value; 9] {
    let status = json!({ "type": "string", "enum": Status::ALL.map(Status::as_str) });
    let time = || {
        json!({ "anyOf": [
            { "type": "string", "format": "date-time" },
            { "type": "string", "format": "date" },
        ] })
    };
    [
        parts::query("status", "Executions that stand there", status),
        parts::query(
            "userId",
            "Executions of this user",
            json!({"type": "string", "minLength": 1}),
        ),
        parts::query(
            "from",
            "Executions that started then or later; of a date (UTC) from its beginning on",
            time(),
        ),
        parts::query("to", "Executions that started before; of a date (UTC) until its end", time()),
        parts::query(
            "endedFrom",
            "Executions that ended then or later, those that ended last first; of a date (UTC) from \
             its beginning on",
            time(),
        ),
        parts::query(
            "endedTo",
            "Executions that ended before, those that ended last first; of a date (UTC) until its \
             end",
            time(),
        ),
        parts::query(
            "replayOf",
            "Replays of this execution",
            json!({"type": "string", "minLength": 1}),
        ),
        parts::query("limit", "Executions of a page", parts::number(1, 200, 50)),
        parts::query(
            "cursor",
            "`nextCursor` of the page before",
            json!({ "type": "string", "pattern": "^e?[0-9a-fA-F]{32}$" }),
        ),
    ]
}

fn listing(operation_id: &'static str, components: &mut Components) -> Described {
    let data = components.of::<ExecutionsView<'_>>();
    Described::new(operation_id)
        .asking(filters())
        .answering(200, parts::json_answer("A page, newest first", data))
        .working()
}

pub(super) fn list_executions(components: &mut Components) -> Described {
    listing("listExecutions", components)
}

pub(super) fn count_executions(components: &mut Components) -> Described {
    let data = components.of::<CountsView<'_>>();
    let name = || json!({ "type": "string", "minLength": 1 });
    Described::new("countExecutions")
        .about(
            "What is kept is counted: what retention has dropped is not. All executions are \
             counted, whatever their number; those of one user among the newest 10,000.",
        )
        .asking([
            parts::query("workflowId", "Executions of this workflow", name()),
            parts::query("userId", "Executions of this user", name()),
        ])
        .answering(200, parts::json_answer("The counts", data))
        .refusing([not_found()])
        .working()
}

pub(super) fn list_executions_of_workflow(components: &mut Components) -> Described {
    listing("listWorkflowExecutions", components)
        .about("Also of a workflow that is no longer configured, as long as one of them is kept.")
        .with([workflow_id()])
        .refusing([not_found()])
}

/// A route of one execution.
fn of_execution(operation_id: &'static str) -> Described {
    Described::new(operation_id)
        .with([workflow_id(), parts::execution_id()])
        .refusing([execution_not_found()])
        .working()
}

pub(super) fn state(components: &mut Components) -> Described {
    let data = components.of::<StateView<'_>>();
    of_execution("describeExecution").answering(200, parts::execution_answer("The state", data))
}

pub(super) fn why(components: &mut Components) -> Described {
    let data = components.of::<WhyView<'_>>();
    of_execution("explainExecution")
        .about(
            "Of an execution that has ended: how, after which attempts, and from which steps it can \
             be replayed. Nothing is changed by asking.",
        )
        .answering(200, parts::execution_answer("What it waits for", data))
}

fn already() -> ApiError {
    ApiError::ExecutionAlready { id: some_execution(), status: Status::Completed }
}

pub(super) fn suspend(components: &mut Components) -> Described {
    let data = components.of::<SuspendView<'_>>();
    let body = components.of::<ReasonBody>();
    of_execution("suspendExecution")
        .about("A step in flight finishes, and no further one starts.")
        .taking(body, false, json!({ "reason": "the warehouse is closed" }))
        .answering(200, parts::execution_answer("It is suspended", data))
        .refusing([already()])
}

pub(super) fn cancel(components: &mut Components) -> Described {
    let data = components.of::<CancelView<'_>>();
    let body = components.of::<ReasonBody>();
    of_execution("cancelExecution")
        .taking(body, false, json!({ "reason": "ordered twice" }))
        .answering(200, parts::execution_answer("It is cancelled", data))
        .refusing([already()])
}

/// The body of a resume whose data are of a schema.
pub(super) fn resume_body(resume_data: &Value, components: &mut Components) -> Value {
    json!({
        "type": "object",
        "properties": {
            "resumeData": resume_data,
            "options": { "oneOf": [{ "type": "null" }, components.of::<ResumeOptions>()] },
        },
        "additionalProperties": false,
    })
}

pub(super) fn resume(components: &mut Components) -> Described {
    let data = components.of::<ExecutionView<'_>>();
    let any = json!({ "description": "What the waiting step takes" });
    let body = resume_body(&any, components);
    let step = || "manager".to_owned();
    of_execution("resumeExecution")
        .about(
            "Answers like execute. Of several at once exactly one wins; the others find the \
             execution not suspended. With the `id` of the suspension that was seen, in \
             `options.suspensionId`, it answers that one and no later one. Where several wait, it \
             has to name one.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .taking(
            body,
            false,
            json!({ "resumeData": { "approved": true },
                    "options": { "suspensionId": "9f86d081884c7d65" } }),
        )
        .answering(200, parts::execution_answer("It ended, or it is suspended again", data))
        .refusing([
            ApiError::NotSuspended(some_execution()),
            ApiError::ResumeDataInvalid("approved: missing".to_owned()),
            ApiError::StepNotFound(step().into()),
            ApiError::StepNotSuspended(step()),
            ApiError::StepAmbiguous {
                step: step(),
                paths: "left/manager, right/manager".to_owned(),
            },
            ApiError::SuspensionPassed {
                id: "9f86d081884c7d65".to_owned(),
                why: "no longer waits; what waits now: 60303ae22b998861 at boss".to_owned(),
            },
            key_invalid(),
            ApiError::KeyReused,
            failed(),
        ])
}

pub(super) fn replay(components: &mut Components) -> Described {
    let data = components.of::<ExecutionView<'_>>();
    let body = components.of::<ReplayBody>();
    let step = || "post".to_owned();
    of_execution("replayExecution")
        .about(
            "Makes a new execution from the record of this one, which stays as it is: with its \
             definition (or the current one), its input (or another one) and its recorded outputs. \
             The new one begins with the step, or with the one that failed. It belongs to whom this one belongs. Answers like execute.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .taking(body, false, json!({ "stepId": "post", "definition": "current" }))
        .answering(200, parts::execution_answer("It ended, or it is suspended", data))
        .refusing([
            ApiError::StepNotFound(step().into()),
            ApiError::StepNotReplayable { step: step(), from: vec!["classify".into()] },
            ApiError::DefinitionDiffers(
                "step 1 was classify (andThen) and is sort (andThen) now".to_owned(),
            ),
            ApiError::StepDoesNotSuspend(step()),
            ApiError::ResumeDataInvalid("approved: missing".to_owned()),
            ApiError::InputInvalid("amount: \"ten\" is not of type \"number\"".to_owned()),
            ApiError::ExecutionExists(some_execution()),
            key_invalid(),
            ApiError::KeyReused,
            failed(),
        ])
}

pub(super) fn attach(_: &mut Components) -> Described {
    let position = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    let what = "must be the number of an event".to_owned();
    of_execution("attachToExecution")
        .about(
            "A finished execution replays and ends; one who has read all of it gets 204, at which an \
             `EventSource` stops.",
        )
        .with([parts::header(
            "Last-Event-ID",
            "The number of the last event that was seen; counts more than what the query says.",
            position.clone(),
        )])
        .asking([
            parts::query("fromSequence", "Events after this one", position.clone()),
            parts::query(
                "lastEventId",
                "The same, from clients that send no headers; counts more than `fromSequence`",
                position,
            ),
        ])
        .answering(200, workflow_events())
        .answering(204, parts::response("It has ended, and nothing is left", Value::Null, &parts::ABOUT_EXECUTION[..1]))
        .refusing([ApiError::InvalidHeader { name: "Last-Event-ID", what }])
}
