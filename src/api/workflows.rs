//! Use cases of workflows: list, describe, execute, stream.

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::domain::definition::{StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::domain::slot::chosen_execution_id;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{
    ExecutionOutcome, Failure, IdempotencyKey, StartExecution, Subscriber, TraceOrigin,
};
use greenroom_actors::runtime::Activity;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::api::caller::Caller;
use crate::api::error::{ApiError, UnknownName};
use crate::api::examples::example_of;
use crate::api::ids::check_id;
use crate::api::json::{self, Object};
use crate::api::wire::workflow::{ExecuteBody, WorkflowSummaryView, WorkflowView};

/// Maximum length of `Idempotency-Key`.
const KEY_CHARS_MAX: usize = 255;

/// Lists the registered workflows by id.
pub fn list<'a>(activity: &Activity, registry: &'a Registry) -> Vec<WorkflowSummaryView<'a>> {
    let is_running = |of: &WorkflowDefinition| activity.is_workflow_running(&of.id);
    let summary = |definition| WorkflowSummaryView::of(definition, is_running(definition));
    registry.workflows.values().map(|plan| summary(&plan.definition)).collect()
}

/// Finds a workflow to show: also that of bulk operations, which is not registered.
pub fn find_to_show(runtime: &Runtime, id: &str) -> Result<Arc<Plan>, ApiError> {
    runtime.plan(id).ok_or_else(|| unknown(&runtime.registry(), id))
}

/// Shows a workflow.
pub fn describe<'a>(activity: &Activity, plan: &'a Plan) -> WorkflowView<'a> {
    WorkflowView::of(plan, activity.is_workflow_running(&plan.definition.id))
}

/// Finds a version of a workflow that executions began with, also of one that is no longer configured.
pub async fn find_version(
    runtime: &Runtime,
    id: &str,
    definition_hash: &str,
) -> Result<Arc<Plan>, ApiError> {
    let found = runtime.version(id, definition_hash).await?;
    let refusal =
        || ApiError::WorkflowNotFound(format!("{id} of version {definition_hash}").into());
    found.ok_or_else(refusal)
}

/// Finds a registered workflow. Handlers call it before they read the body.
pub fn find(runtime: &Runtime, id: &str) -> Result<Arc<Plan>, ApiError> {
    find_in(&runtime.registry(), id).map(Arc::clone)
}

fn find_in<'a>(registry: &'a Registry, id: &str) -> Result<&'a Arc<Plan>, ApiError> {
    registry.workflows.get(id).ok_or_else(|| unknown(registry, id))
}

/// Refuses an unknown workflow, with a suggestion.
pub fn unknown(registry: &Registry, id: &str) -> ApiError {
    let known = registry.workflows.keys().map(String::as_str);
    ApiError::WorkflowNotFound(UnknownName::among(id, known))
}

/// Runs a workflow until it leaves `running`.
pub async fn execute(
    runtime: &Runtime,
    request: StartExecution,
) -> Result<ExecutionOutcome, ApiError> {
    Ok(runtime.execute(request).await?)
}

/// Starts a workflow; resolves when the start is durable.
pub async fn begin(runtime: &Runtime, request: StartExecution) -> Result<ExecutionId, ApiError> {
    Ok(runtime.begin(request).await?)
}

/// Starts a workflow and sends its events to the subscriber.
pub async fn stream(
    runtime: &Runtime,
    request: StartExecution,
    subscriber: Subscriber,
) -> Result<ExecutionId, ApiError> {
    Ok(runtime.stream(request, subscriber).await?)
}

/// Turns a failed execution into a refusal. It names the step, not the reason, which is in the
/// state, the log and the trace.
pub fn succeeded(outcome: ExecutionOutcome) -> Result<ExecutionOutcome, ApiError> {
    match outcome.failure() {
        Some(Failure { step_id, path, .. }) => {
            Err(ApiError::ExecutionFailed { id: outcome.execution_id, step_id, path })
        }
        None => Ok(outcome),
    }
}

/// Checks an `Idempotency-Key` and binds it to its scope and body, which must be the same when it
/// is repeated. `subject`: the workflow of a start, or the execution of a resume or replay. `user` is
/// the user of what is started.
pub fn idempotency(
    key: Option<&str>,
    route: &str,
    subject: &str,
    (caller, user): (&Caller, Option<&str>),
    body: &[u8],
) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = key else { return Ok(None) };
    let is_visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_visible || key.len() > KEY_CHARS_MAX {
        let what = "must be 1 to 255 visible ASCII characters".to_owned();
        return Err(ApiError::InvalidHeader { name: "Idempotency-Key", what });
    }
    if caller.sees_nothing() {
        // Such callers would share their keys, and get each other's results.
        let what =
            "needs a token with the id of a user, as results are private to users".to_owned();
        return Err(ApiError::InvalidHeader { name: "Idempotency-Key", what });
    }
    // As JSON, so that no choice of ids and keys makes two scopes equal.
    let scope = Value::from_iter([Some(route), Some(subject), user, Some(key)]).to_string();
    let digest = Sha256::digest(body);
    let body_hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(IdempotencyKey { scope: scope.into(), body_hash: body_hash.into() }))
}

/// Form of a body that starts a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartBody {
    /// The input and the options.
    Request,
    /// Only the input.
    Input,
}

impl StartBody {
    /// Parses the body.
    pub fn read(
        self,
        definition: &WorkflowDefinition,
        bytes: &[u8],
        key: Option<&str>,
        caller: &Caller,
    ) -> Result<StartExecution, ApiError> {
        let (body, kind) = match self {
            Self::Request => (json::parse_closed(bytes)?, "execute"),
            Self::Input => {
                let input = json::parse_value(bytes)?;
                if !definition.admits_input(&input) {
                    return Err(ApiError::InvalidBody("must be an object".to_owned()));
                }
                (ExecuteBody { input: Some(input), options: None }, "input")
            }
        };
        start_of(definition, body, (kind, bytes), key, caller)
    }
}

/// Returns the start of a call by a tool, without options. `key` is the `Idempotency-Key`, which is
/// bound to the input.
pub fn start_with(
    definition: &WorkflowDefinition,
    input: Value,
    key: Option<&str>,
    caller: &Caller,
) -> Result<StartExecution, ApiError> {
    let bytes = key.map(|_| input.to_string()).unwrap_or_default();
    let body = ExecuteBody { input: Some(input), options: None };
    start_of(definition, body, ("call", bytes.as_bytes()), key, caller)
}

/// `sent`: the kind of the body, for the scope of the idempotency key, and its bytes.
fn start_of(
    definition: &WorkflowDefinition,
    body: ExecuteBody,
    sent: (&str, &[u8]),
    key: Option<&str>,
    caller: &Caller,
) -> Result<StartExecution, ApiError> {
    let input = body.input.ok_or_else(|| ApiError::body("input", "missing"))?;
    if !definition.admits_input(&input) {
        return Err(ApiError::body("input", "must be an object"));
    }
    let Object(options) = body.options.unwrap_or_default();
    let execution_id = read_execution_id(options.execution_id.as_deref())?;
    for (place, id) in
        [("options.userId", &options.user_id), ("options.conversationId", &options.conversation_id)]
    {
        id.as_deref().map_or(Ok(()), |id| check_id(place, id))?;
    }
    let user_id = caller.user_id(options.user_id);
    let (route, bytes) = sent;
    let idempotency = idempotency(key, route, &definition.id, (caller, user_id.as_deref()), bytes)?;
    let mut context = options.context.unwrap_or_default();
    caller.sign(&mut context);
    Ok(StartExecution {
        workflow_id: definition.id.clone(),
        execution_id,
        input,
        user_id,
        conversation_id: caller.conversation(options.conversation_id),
        context,
        idempotency,
        trace: TraceOrigin::New,
    })
}

/// Parses the id that a caller chose for a new execution.
pub fn read_execution_id(chosen: Option<&str>) -> Result<Option<ExecutionId>, ApiError> {
    let refusal = |error| ApiError::body("options.executionId", error);
    chosen.map(chosen_execution_id).transpose().map_err(refusal)
}

/// A workflow to try first.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstTry<'a> {
    pub id: &'a str,
    /// Example of its input.
    pub input: Value,
    /// Example of the data that resumes its first step with a resume schema.
    pub resume_data: Option<Value>,
}

/// Returns the first workflow with an example of its input, else the first for which one can be
/// generated.
pub fn first_to_try(registry: &Registry) -> Option<FirstTry<'_>> {
    let has_example = |plan: &Arc<Plan>| {
        let schema = plan.definition.input_schema.as_ref();
        schema.is_some_and(|schema| schema.get("examples").is_some())
    };
    let (with_example, others): (Vec<_>, Vec<_>) =
        registry.workflows.iter().partition(|(_, plan)| has_example(plan));
    with_example.into_iter().chain(others).find_map(|(id, plan)| {
        let input = sample_input(plan.definition.input_schema.as_ref());
        let fits = plan.input_schema.as_ref().is_none_or(|schema| schema.check(&input).is_ok());
        let resume_data = resume_schema_of(&plan.definition.steps).map(example_of);
        fits.then_some(FirstTry { id, input, resume_data })
    })
}

/// Returns the first resume schema of the steps, at any depth.
fn resume_schema_of(steps: &[StepDefinition]) -> Option<&Value> {
    steps.iter().find_map(|step| {
        let inside =
            || step.kind.blocks().into_iter().find_map(|block| resume_schema_of(&block.steps));
        step.resume_schema.as_ref().or_else(inside)
    })
}

/// Returns an example of the input of a workflow.
pub fn sample_input(schema: Option<&Value>) -> Value {
    schema.map_or_else(|| Value::Object(Map::new()), example_of)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::User;

    fn definition(input_schema: Option<Value>) -> WorkflowDefinition {
        WorkflowDefinition { input_schema, ..WorkflowDefinition::new("order", Vec::new()) }
    }

    fn refusal(body: &str) -> String {
        let key = Some("k");
        let (definition, caller) = (definition(None), Caller::unchecked());
        let refused = StartBody::Request.read(&definition, body.as_bytes(), key, &caller);
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_start_reads_its_options_from_the_body() {
        let body = json!({ "input": { "n": 1 }, "extra": true, "options": {
            "userId": "u", "conversationId": "c", "executionId": "x-1", "context": { "a": 1 } } });
        let body = body.to_string();
        let caller = Caller::unchecked();
        let start = StartBody::Request.read(&definition(None), body.as_bytes(), None, &caller);
        let start = start.unwrap();
        assert_eq!(start.execution_id, Some(ExecutionId::trusted("x-1")));
        assert_eq!(start.user_id.as_deref(), Some("u"));
        assert_eq!(start.conversation_id.as_deref(), Some("c"));
        assert_eq!(Value::from(start.context), json!({ "a": 1 }));
        assert!(start.idempotency.is_none());
    }

    #[test]
    fn an_invalid_start_is_refused_with_its_path() {
        let rows = [
            ("{}", "input: missing"),
            (r#"{"input":null}"#, "input: must be an object"),
            (r#"{"input":[1]}"#, "input: must be an object"),
            (
                r#"{"input":{},"options":{"executionId":".."}}"#,
                "options.executionId: must be 1 to 128 of the characters \
                 A-Z a-z 0-9 . _ : - and not only dots",
            ),
            (
                r#"{"input":{},"options":{"executionId":"4a2b6c8d-0e1f-8abc-8def-0123456789ab"}}"#,
                "options.executionId: must not be a UUID of version 8: those are the ids of \
                 executions that undo what others did",
            ),
            (
                r#"{"input":{},"options":{"context":5}}"#,
                "options.context: invalid type: integer `5`, expected a map",
            ),
            (
                r#"{"input":{},"options":{"userId":""}}"#,
                "options.userId: must be 1 to 200 characters, no control characters",
            ),
            (
                r#"{"input":{},"options":{"conversationId":"a/b"}}"#,
                "options.conversationId: must not contain / and must not be . or ..",
            ),
            (
                r#"{"input":{},"options":{"userId":5}}"#,
                "options.userId: invalid type: integer `5`, expected a string",
            ),
            (
                r#"{"input":{},"options":{"userID":"u"}}"#,
                "options.userID: unknown key; did you mean options.userId?",
            ),
            (
                r#"{"input":{},"options":{"stepId":"u"}}"#,
                "options.stepId: unknown key; known keys: options.userId, \
                 options.conversationId, options.executionId, options.context",
            ),
        ];
        for (body, what) in rows {
            assert_eq!(refusal(body), format!("Invalid request body: {what}"), "for {body}");
        }
    }

    #[test]
    fn a_body_may_be_only_the_input() {
        let body = br#"{"input":{"n":1},"options":{"userId":"u"}}"#;
        let (caller, plain) = (Caller::unchecked(), definition(None));
        let read = |definition: &WorkflowDefinition, bytes: &[u8]| {
            StartBody::Input.read(definition, bytes, Some("k"), &caller)
        };
        let start = read(&plain, body).unwrap();
        assert_eq!(start.input, serde_json::from_slice::<Value>(body).unwrap());
        assert_eq!((start.user_id, start.context.len()), (None, 0));
        // the same bytes with the same key, but a different request
        let other = StartBody::Request.read(&plain, body, Some("k"), &caller).unwrap();
        assert_ne!(start.idempotency.unwrap().scope, other.idempotency.unwrap().scope);
        let number = definition(Some(json!({ "type": "integer" })));
        assert_eq!(read(&number, b"5").unwrap().input, 5);
        let deep = "[".repeat(200);
        let rows: [(&[u8], &str); 4] = [
            (b"5", "Invalid request body: must be an object"),
            (b"", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
            (b"\xff", "Invalid JSON: not UTF-8 after byte 0"),
            (deep.as_bytes(), "Invalid JSON: recursion limit exceeded at line 1 column 129"),
        ];
        for (bytes, text) in rows {
            assert_eq!(read(&plain, bytes).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn the_input_schema_may_allow_other_types() {
        let caller = Caller::unchecked();
        let rows = [
            (Some(json!({ "type": "integer" })), true),
            (Some(json!({ "type": ["object", "integer"] })), true),
            (Some(json!({ "enum": [5, 6] })), true),
            (Some(json!({ "const": 5 })), true),
            (Some(json!({ "anyOf": [{ "type": "integer" }, { "type": "object" }] })), true),
            (Some(json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "integer" } } })), true),
            (Some(json!({ "minLength": 2 })), true),
            (Some(json!({})), true),
            (Some(json!(true)), true),
            (Some(json!({ "required": ["a"] })), false),
            (Some(json!({ "properties": { "a": true } })), false),
            (Some(json!({ "type": "object" })), false),
            (Some(json!({ "type": ["object"] })), false),
            (None, false),
        ];
        for (schema, is_admitted) in rows {
            let definition = definition(schema);
            let start = StartBody::Request.read(&definition, br#"{"input":5}"#, None, &caller);
            assert_eq!(start.is_ok(), is_admitted, "{:?}", definition.input_schema);
        }
    }

    #[test]
    fn idempotency_keys_of_different_callers_are_distinct() {
        let caller = Caller::unchecked();
        let scope = |route, subject, user, key| {
            let owner = (&caller, user);
            idempotency(Some(key), route, subject, owner, b"{}").unwrap().unwrap().scope
        };
        let scopes = [
            scope("execute", "a", None, "k"),
            scope("execute", "a", Some(""), "k"),
            scope("execute", "a", Some("u"), "k"),
            scope("execute", "a\",\"u", None, "k"),
            scope("execute", "b", None, "k"),
            scope("resume", "a", None, "k"),
        ];
        let distinct: std::collections::HashSet<_> = scopes.iter().collect();
        assert_eq!(distinct.len(), scopes.len());
        let too_long = "k".repeat(256);
        for bad in ["", "a b", "ü", too_long.as_str()] {
            let refused = idempotency(Some(bad), "execute", "a", (&caller, None), b"");
            assert!(refused.is_err(), "{bad:?}");
        }
    }

    #[test]
    fn callers_without_an_id_share_no_idempotency_keys() {
        let user = |profile: Value| {
            Some(Arc::new(User::new(profile.as_object().cloned().unwrap()).unwrap()))
        };
        let owned = |user| Caller::checked(user, Some(Arc::from(["admin".to_owned()])));
        let rows = [
            (Caller::unchecked(), true),
            (Caller::checked(None, None), true),
            (owned(user(json!({ "id": "ann" }))), true),
            (owned(user(json!({ "roles": ["admin"] }))), true),
            (owned(user(json!({ "roles": ["staff"] }))), false),
            (owned(None), false),
        ];
        for (caller, is_taken) in rows {
            let read = |key| idempotency(key, "execute", "a", (&caller, None), b"{}");
            assert_eq!(read(Some("k")).is_ok(), is_taken, "{caller:?}");
            assert!(read(None).is_ok_and(|key| key.is_none()), "{caller:?}");
        }
    }
}
