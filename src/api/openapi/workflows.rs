//! Routes of workflows and their executions.

use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::VERSIONS_COUNTED_MAX;
use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{configured, frames, parts};
use crate::api::error::ApiError;
use crate::api::wire::counts::CountsView;
use crate::api::wire::event::EventsView;
use crate::api::wire::execution::{
    CancelView, ExecutionView, ReasonBody, ReplayBody, ResumeOptions, SuspendView,
};
use crate::api::wire::state::{ExecutionsView, StateView};
use crate::api::wire::versions::VersionsView;
use crate::api::wire::why::WhyView;
use crate::api::wire::workflow::{ExecuteOptions, WorkflowSummaryView, WorkflowView};

/// Returns the id in examples of refusals.
pub(super) fn some_execution() -> ExecutionId {
    ExecutionId::trusted("order-17")
}

fn workflow_id() -> Value {
    parts::path("id", "Id of the workflow", parts::any_id())
}

pub(super) fn not_found() -> ApiError {
    ApiError::WorkflowNotFound("order".to_owned().into())
}

pub(super) fn failed() -> ApiError {
    let step = Some(Arc::from("post"));
    ApiError::ExecutionFailed { id: some_execution(), step_id: step.clone(), path: step }
}

fn execution_not_found() -> ApiError {
    ApiError::ExecutionNotFound("order-17".to_owned())
}

pub(super) fn key_invalid() -> ApiError {
    let what = "must be 1 to 255 visible ASCII characters".to_owned();
    ApiError::InvalidHeader { name: "Idempotency-Key", what }
}

pub(super) fn list(components: &mut Components) -> Described {
    let item = components.answer::<WorkflowSummaryView<'_>>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listWorkflows").answering(200, parts::json_answer("All workflows", data))
}

pub(super) fn versions(components: &mut Components) -> Described {
    let data = components.answer::<VersionsView<'_>>();
    Described::new("listVersions")
        .about(format!(
            "A version is the definition that an execution began with. Also for a workflow that is no \
             longer configured, while it has stored executions. Of each status at most the last \
             {VERSIONS_COUNTED_MAX} executions are counted; `countedFrom` says from when on all were.",
        ))
        .with([workflow_id()])
        .with_query([parts::query("userId", "Executions of this user", parts::name())])
        .answering(200, parts::json_answer("The versions, that of new executions first", data))
        .refusing([not_found()])
        .using_runtime()
}

pub(super) fn describe(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<WorkflowView<'_>>();
    let id = configured::workflow_id(registry, components);
    Described::new("describeWorkflow")
        .with([id])
        .with_query([parts::query(
            "definitionHash",
            "This version, that executions began with; by default that of new executions",
            parts::name(),
        )])
        .answering(200, parts::json_answer("The workflow", data))
        .refusing([not_found()])
}

/// Creates the schema of the body of a start, with that of its input.
pub(super) fn start_body(input: &Value, components: &mut Components) -> Value {
    json!({
        "type": "object",
        "required": ["input"],
        "properties": {
            "input": input,
            "options": {
                "oneOf": [{ "type": "null" }, components.body::<ExecuteOptions>()],
            },
        },
    })
}

fn starting(operation_id: &'static str, components: &mut Components) -> Described {
    let input = json!({ "description": "Input that matches the schema of the workflow" });
    let body = start_body(&input, components);
    Described::new(operation_id)
        .with([workflow_id()])
        .with_body(body, true, Value::Null)
        .refusing([
            not_found(),
            ApiError::InputInvalid("amount: \"ten\" is not of type \"number\"".to_owned()),
            ApiError::ExecutionExists(some_execution()),
        ])
        .using_runtime()
        .using_memory()
}

/// Answer to a start whose client does not wait.
const RECORDED: &str = "The execution is recorded. Without content if its state cannot be read";

pub(super) fn execute(components: &mut Components) -> Described {
    let data = components.answer::<ExecutionView<'_>>();
    let answer = parts::execution_answer("The execution ended or is suspended", data.clone());
    starting("executeWorkflow", components)
        .about(
            "Responds when the execution has completed, is suspended or was cancelled. It \
             continues if the client disconnects.",
        )
        .with([parts::IDEMPOTENCY_KEY, parts::PREFER].map(|it| parts::reference("parameters", it)))
        .answering(200, answer)
        .answering(202, parts::accepted_answer(RECORDED, data))
        .refusing([key_invalid(), ApiError::KeyReused, failed()])
}

pub(super) fn stream(components: &mut Components) -> Described {
    starting("streamWorkflow", components)
        .about(
            "The stream stays open while the execution is suspended, and continues after a resume.",
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

/// Returns the schema of a time, or of a date.
pub(super) fn time() -> Value {
    json!({ "anyOf": [
        { "type": "string", "format": "date-time" },
        { "type": "string", "format": "date" },
    ] })
}

pub(super) fn filters() -> [Value; 14] {
    let status = json!({ "type": "string", "enum": Status::ALL.map(Status::as_str) });
    [
        parts::query("status", "Executions with this status", status),
        parts::query("userId", "Executions of this user", parts::name()),
        parts::query(
            "from",
            "Executions that started at this time or later; a date means its beginning (UTC)",
            time(),
        ),
        parts::query(
            "to",
            "Executions that started before this time; a date means its end (UTC)",
            time(),
        ),
        parts::query(
            "endedFrom",
            "Executions that ended at this time or later, newest end first; a date means its \
             beginning (UTC)",
            time(),
        ),
        parts::query(
            "endedTo",
            "Executions that ended before this time, newest end first; a date means its end (UTC)",
            time(),
        ),
        parts::query("replayOf", "Replays of this execution", parts::name()),
        parts::query(
            "parentExecutionId",
            "Executions that a step of this one started",
            parts::name(),
        ),
        parts::query(
            "idPrefix",
            "Executions whose id begins with this text. Of all workflows and users: of more than 1,000, \
             those with the greatest ids; else a page searches 1,000 executions",
            parts::name(),
        ),
        parts::query(
            "error",
            "Failed executions with this text in the message of the failure, in upper or lower case. \
             A page searches 1,000 of them, and may be empty although more follow",
            parts::name(),
        ),
        parts::query(
            "definitionHash",
            "Executions that began with this version of the workflow. A page searches 1,000 \
             executions, and may be empty although more follow",
            parts::name(),
        ),
        parts::query(
            "via",
            "Executions that were started through this API, or are part of what was. A page searches \
             1,000 executions, and may be empty although more follow",
            json!({ "type": "string", "pattern": "^(openai|mcp(:[A-Za-z0-9_-]{1,64})?)$" }),
        ),
        parts::query("limit", "Maximum number of executions", parts::number(1, 200, 50)),
        parts::query(
            "cursor",
            "`nextCursor` of the previous page",
            json!({ "type": "string", "pattern": "^e?[0-9a-fA-F]{32}$" }),
        ),
    ]
}

fn listing(operation_id: &'static str, components: &mut Components) -> Described {
    let data = components.answer::<ExecutionsView<'_>>();
    Described::new(operation_id)
        .with_query(filters())
        .answering(200, parts::json_answer("A page, newest first", data))
        .using_runtime()
}

pub(super) fn list_executions(components: &mut Components) -> Described {
    listing("listExecutions", components)
}

pub(super) fn count_executions(components: &mut Components) -> Described {
    let data = components.answer::<CountsView<'_>>();
    Described::new("countExecutions")
        .about(
            "Counts stored executions, without those that retention has deleted. Of a single user, \
             only the newest 10,000 are counted.",
        )
        .with_query([
            parts::query("workflowId", "Executions of this workflow", parts::name()),
            parts::query("userId", "Executions of this user", parts::name()),
        ])
        .answering(200, parts::json_answer("The counts", data))
        .refusing([not_found()])
        .using_runtime()
}

pub(super) fn list_executions_of_workflow(components: &mut Components) -> Described {
    listing("listWorkflowExecutions", components)
        .about("Also for a workflow that is no longer configured, while it has stored executions.")
        .with([workflow_id()])
        .refusing([not_found()])
}

/// Describes a route of one execution.
fn of_execution(operation_id: &'static str) -> Described {
    Described::new(operation_id)
        .with([workflow_id(), parts::execution_id()])
        .refusing([execution_not_found()])
        .using_runtime()
}

pub(super) fn state(components: &mut Components) -> Described {
    let data = components.answer::<StateView<'_>>();
    of_execution("describeExecution")
        .with_query([parts::query(
            "values",
            "False: null in place of the input, the context, the result and the outputs, and neither \
             `payload` nor `resumeData`, which may be large",
            json!({ "type": "boolean", "default": true }),
        )])
        .answering(200, parts::execution_answer("The state", data))
}

pub(super) fn events(components: &mut Components) -> Described {
    let data = components.answer::<EventsView<'_>>();
    let number = json!({ "type": "integer", "minimum": 0, "default": 0 });
    of_execution("listEvents")
        .about(
            "The recorded events, as those of the stream. A page can be shorter than `limit`: it ends \
             at about a mebibyte, and an event of more than a quarter of that is a page of its own. \
             Only `nextAfter` says whether more follow.",
        )
        .with_query([
            parts::query("after", "Events with higher numbers", number),
            parts::query("limit", "Maximum number of events", parts::number(1, 1_000, 100)),
        ])
        .answering(200, parts::execution_answer("The events, oldest first", data))
}

pub(super) fn why(components: &mut Components) -> Described {
    let data = components.answer::<WhyView<'_>>();
    of_execution("explainExecution")
        .about(
            "For an execution that has ended: how it ended, its failed attempts, and the steps \
             from which it can be replayed. Changes nothing.",
        )
        .answering(200, parts::execution_answer("Everything that it waits for", data))
}

fn already() -> ApiError {
    ApiError::ExecutionAlready { id: some_execution(), status: Status::Completed }
}

pub(super) fn suspend(components: &mut Components) -> Described {
    let data = components.answer::<SuspendView<'_>>();
    let body = components.body::<ReasonBody>();
    of_execution("suspendExecution")
        .using_memory()
        .about("Running steps finish; no further step starts.")
        .with_body(body, false, json!({ "reason": "the warehouse is closed" }))
        .answering(200, parts::execution_answer("The execution is suspended", data))
        .refusing([already()])
}

pub(super) fn cancel(components: &mut Components) -> Described {
    let data = components.answer::<CancelView<'_>>();
    let body = components.body::<ReasonBody>();
    of_execution("cancelExecution")
        .with_body(body, false, json!({ "reason": "ordered twice" }))
        .answering(200, parts::execution_answer("The execution is cancelled", data))
        .refusing([already()])
}

/// Creates the schema of the body of a resume, with that of its data.
pub(super) fn resume_body(resume_data: &Value, components: &mut Components) -> Value {
    json!({
        "type": "object",
        "properties": {
            "resumeData": resume_data,
            "options": { "oneOf": [{ "type": "null" }, components.body::<ResumeOptions>()] },
        },
        "additionalProperties": false,
    })
}

pub(super) fn resume(components: &mut Components) -> Described {
    let data = components.answer::<ExecutionView<'_>>();
    let any = json!({ "description": "Data for the suspended step" });
    let body = resume_body(&any, components);
    let step = || "manager".to_owned();
    of_execution("resumeExecution")
        .using_memory()
        .about(
            "Responds like execute. If several resumes arrive at once, exactly one succeeds; the \
             others are refused as not suspended. `options.suspensionId` makes sure that only the \
             suspension with this `id` is resumed, and not a later one. It is required if several \
             steps wait, unless `options.stepId` names one.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .with_body(
            body,
            false,
            json!({ "resumeData": { "approved": true },
                    "options": { "suspensionId": "9f86d081884c7d65" } }),
        )
        .answering(200, parts::execution_answer("The execution ended or is suspended again", data))
        .refusing([
            ApiError::NotSuspended(some_execution()),
            ApiError::ResumeDataInvalid("approved: missing".to_owned()),
            ApiError::StepNotFound(step().into()),
            ApiError::StepNotSuspended(step()),
            ApiError::StepAmbiguous {
                step: step(),
                paths: "left/manager, right/manager".to_owned(),
            },
            ApiError::StepAsks(step()),
            super::inbox::refused(),
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
    let data = components.answer::<ExecutionView<'_>>();
    let body = components.body::<ReplayBody>();
    let step = || "post".to_owned();
    of_execution("replayExecution")
        .using_memory()
        .about(
            "Creates a new execution from the record of this one, which does not change: with its \
             definition or the current one, its input or another one, and its recorded outputs. \
             The new one starts from the named step, or from the one that failed, and has the \
             same owner. Responds like execute.",
        )
        .with([parts::IDEMPOTENCY_KEY, parts::PREFER].map(|it| parts::reference("parameters", it)))
        .with_body(body, false, json!({ "stepId": "post", "definition": "current" }))
        .answering(
            200,
            parts::execution_answer("The execution ended or is suspended", data.clone()),
        )
        .answering(202, parts::accepted_answer(RECORDED, data))
        .refusing([
            ApiError::StepNotFound(step().into()),
            ApiError::StepNotReplayable { step: step(), from: vec!["classify".into()] },
            ApiError::DefinitionDiffers(
                "step 1 was classify (andThen) and is now sort (andThen)".to_owned(),
            ),
            ApiError::StepDoesNotSuspend(step()),
            super::inbox::refused(),
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
        .using_memory()
        .about(
            "The stream of an ended execution replays its events and ends. A client that has read \
             all of them gets 204, so that an `EventSource` stops reconnecting.",
        )
        .with([parts::header(
            "Last-Event-ID",
            "Number of the last received event; overrides the query.",
            position.clone(),
        )])
        .with_query([
            parts::query("fromSequence", "Events after this number", position.clone()),
            parts::query(
                "lastEventId",
                "As `Last-Event-ID`, for clients that cannot set headers; overrides `fromSequence`",
                position,
            ),
        ])
        .answering(200, workflow_events())
        .answering(
            204,
            parts::response("No further events", Value::Null, &parts::ABOUT_EXECUTION[..1]),
        )
        .refusing([ApiError::InvalidHeader { name: "Last-Event-ID", what }])
}
