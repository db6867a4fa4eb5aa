//! Texts, statuses and codes of refusals.

mod asks;
mod page;

use greenroom_actors::agent::generation::GenerateError;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::model::{ModelError, ModelErrorKind};
use greenroom_actors::ports::store::AskState;
use greenroom_actors::requests::{AskError, ControlError, ResumeError, StartError, Unavailable};
use greenroom_actors::runtime::{CancelGenerationError, FailedGeneration};
use serde_json::json;

use super::*;
use crate::maintenance::{IndexError, InstallError};

fn id() -> ExecutionId {
    ExecutionId::trusted("x1")
}

fn failed() -> ApiError {
    ApiError::ExecutionFailed {
        id: id(),
        step_id: Some("post".into()),
        path: Some("checks/ledger/post".into()),
    }
}

#[test]
fn details_name_the_place_and_a_suggestion_but_no_cause() {
    let shown = |error: &ApiError| serde_json::to_value(error.details()).unwrap();
    let expected = json!({ "executionId": id().as_str(), "stepId": "post",
                           "path": "checks/ledger/post" });
    assert_eq!(shown(&failed()), expected);
    let known = ["noop3", "trip"];
    let kinds = [
        ("Workflow", ApiError::WorkflowNotFound as fn(UnknownName) -> ApiError),
        ("Agent", ApiError::AgentNotFound),
        ("Tool", ApiError::ToolNotFound),
        ("MCP server", ApiError::ServerNotFound),
        ("Step", ApiError::StepNotFound),
    ];
    for (kind, refusal) in kinds {
        let unknown = |name| refusal(UnknownName::among(name, known));
        assert_eq!(shown(&unknown("nop3")), json!({ "didYouMean": "noop3" }), "{kind}");
        assert_eq!(shown(&unknown("elephant")), json!(null), "{kind}");
        assert_eq!(unknown("nop3").to_string(), format!("{kind} nop3 not found"));
    }
}

#[test]
fn texts_and_statuses_are_those_of_the_contract() {
    let rows: [(ApiError, u16, &str); 28] = [
        (ApiError::WorkflowNotFound("a".to_owned().into()), 404, "Workflow a not found"),
        (ApiError::AgentNotFound("a".to_owned().into()), 404, "Agent a not found"),
        (
            StartError::InvalidInput("n: missing".into()).into(),
            400,
            "Input validation failed: n: missing",
        ),
        (failed(), 500, "Failed to execute workflow"),
        (ApiError::from_control(&id(), ControlError::NotFound), 404, "Execution x1 not found"),
        (
            ApiError::from_control(&id(), ControlError::Already(Status::Completed)),
            400,
            "Execution x1 is already completed",
        ),
        (
            ApiError::from_resume(&id(), ResumeError::NotSuspended),
            404,
            "Execution x1 is not suspended",
        ),
        (
            ApiError::from_resume(&id(), ResumeError::InvalidData("by: missing".into())),
            400,
            "Resume data validation failed: by: missing",
        ),
        (
            ApiError::from_resume(&id(), ResumeError::UnknownStep("s".into())),
            400,
            "Step s not found",
        ),
        (ApiError::ExecutionExists(id()), 409, "Execution x1 already exists"),
        (ApiError::KeyReused, 409, "Idempotency-Key was used with another body"),
        (ApiError::body("input", "missing"), 400, "Invalid request body: input: missing"),
        (
            ApiError::PathNotFound { method: "GET".into(), path: "/x".into() },
            404,
            "Not found: GET /x",
        ),
        (ApiError::ToolNotFound("t".to_owned().into()), 404, "Tool t not found"),
        (ApiError::ServerNotFound("s".to_owned().into()), 404, "MCP server s not found"),
        (
            ApiError::ToolChanged("s.t".into()),
            409,
            "Tool s.t does not have this definition: it has changed again",
        ),
        (ApiError::ToolInputInvalid("n: missing".into()), 400, "Invalid tool input: n: missing"),
        (ApiError::ToolFailed("no".into()), 500, "Failed to execute tool: no"),
        (ApiError::AgentRequired("one of a, b".into()), 400, "agentId is required: one of a, b"),
        (ApiError::NoMemory("a".into()), 400, "Agent a has no memory"),
        (ApiError::ConversationNotFound, 404, "Conversation not found"),
        (ApiError::ConversationExists("c".into()), 409, "Conversation already exists: c"),
        (ApiError::Unauthenticated, 401, "Authentication required"),
        (ApiError::TokenExpired, 401, "Token expired"),
        (ApiError::TokenInvalid("not recognized".into()), 401, "Invalid token: not recognized"),
        (ApiError::ByHandler { status: 409, text: "Sold".into() }, 409, "Sold"),
        (ApiError::OriginNotAllowed, 403, "Origin not allowed"),
        (ApiError::HostNotAllowed, 403, "Host not allowed"),
    ];
    for (error, status, text) in rows {
        assert_eq!(error.status(), status, "status of {error:?}");
        assert_eq!(error.to_string(), text, "text of {error:?}");
    }
}

#[test]
fn a_failed_generation_names_its_product_and_cause() {
    let model = |kind| GenerateError::Model(ModelError::new(kind, "no luck"));
    let text = "Failed to generate text: no luck";
    let object = "Failed to generate object: no luck";
    let rows = [
        (Product::Text, model(ModelErrorKind::Other), "provider_error", text),
        (Product::Text, model(ModelErrorKind::Unavailable), "provider_error", text),
        (Product::Text, model(ModelErrorKind::RateLimited), "provider_rate_limited", text),
        (Product::Object, model(ModelErrorKind::Auth), "provider_auth", object),
        (Product::Object, model(ModelErrorKind::Timeout), "provider_timeout", object),
        (Product::Object, GenerateError::Failed("no luck".to_owned()), "generation_failed", object),
    ];
    for (product, error, code, text) in rows {
        let id = Some(Arc::from("g1"));
        let error = ApiError::from_generate(product, FailedGeneration { id, error });
        assert_eq!((error.status(), error.code().as_str()), (500, code));
        assert_eq!(error.generation_id(), Some("g1"));
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn an_outage_and_a_stop_name_a_generation_that_may_be_recorded() {
    let store = Unavailable::Store { reason: "it accepts no writes".into(), execution: None };
    for cause in [store, Unavailable::Draining { execution: None }] {
        for id in [None, Some("g1")] {
            let failed = FailedGeneration { id: id.map(Arc::from), error: cause.clone().into() };
            let error = ApiError::from_generate(Product::Text, failed);
            assert_eq!((error.status(), error.generation_id()), (503, id), "{error}");
        }
    }
}

#[test]
fn a_generation_that_cannot_be_cancelled_is_named() {
    let id = || "g1".to_owned();
    let rows = [
        (CancelGenerationError::NotFound(id()), 404, "Generation g1 not found"),
        (
            CancelGenerationError::Ended { id: id(), status: GenerationStatus::Completed },
            400,
            "Generation g1 is already completed",
        ),
        (
            CancelGenerationError::Unavailable(Unavailable::Busy { execution: None }),
            503,
            "The server is busy",
        ),
    ];
    for (error, status, text) in rows {
        let error = ApiError::from(error);
        assert_eq!((error.status(), error.to_string().as_str()), (status, text));
    }
}

#[test]
fn retry_after_is_sent_only_if_a_retry_can_help() {
    assert_eq!(ApiError::from(Unavailable::Busy { execution: None }).retry_after_s(), Some(1));
    assert_eq!(ApiError::Internal.retry_after_s(), None);
    let error = ApiError::from(Unavailable::Unreachable);
    assert_eq!((error.status(), error.retry_after_s()), (503, Some(1)));
    let execution = Some(id());
    for why in [
        Unavailable::Draining { execution: execution.clone() },
        Unavailable::Busy { execution: execution.clone() },
        Unavailable::Moved { execution: execution.clone() },
        Unavailable::Store { reason: "disk full".into(), execution: execution.clone() },
    ] {
        let error = ApiError::from(why);
        assert_eq!((error.status(), error.execution_id()), (503, execution.as_ref()), "{error}");
    }
}

#[test]
fn a_refusal_without_a_valid_token_has_a_challenge() {
    let custom = |status| ApiError::ByHandler { status, text: String::new() };
    let rows = [
        (ApiError::Unauthenticated, Some("Bearer")),
        (ApiError::TokenExpired, Some("Bearer error=\"invalid_token\"")),
        (ApiError::TokenInvalid("odd".into()), Some("Bearer error=\"invalid_token\"")),
        (ApiError::RoleMissing("admin".into()), Some("Bearer error=\"insufficient_scope\"")),
        (custom(401), Some("Bearer")),
        (custom(403), None),
        (ApiError::TokenUnchecked, None),
        (ApiError::LocalOnly, None),
    ];
    for (error, challenge) in rows {
        assert_eq!(error.challenge(), challenge, "{error:?}");
    }
}

/// One refusal of each kind.
fn of_the_installation() -> [SystemFailure; 6] {
    [
        SystemFailure::Unchecked(IndexError::Unreachable),
        SystemFailure::NoCommand,
        SystemFailure::UnknownPackage(String::new()),
        SystemFailure::Installing,
        SystemFailure::NotInstalled(InstallError::Missing),
        SystemFailure::FileNotWritten,
    ]
}

fn of_asks() -> Vec<ApiError> {
    let (id, at) = (String::new, Timestamp(0));
    let refusals = [
        AskRefusal::NotFound(id()),
        AskRefusal::Answered { id: id(), at, by: None },
        AskRefusal::Expired { id: id(), at },
        AskRefusal::Withdrawn { id: id(), at },
        AskRefusal::NotAssigned { to: Vec::new(), is_nameless: false, is_of_nobody: false },
        AskRefusal::NotPermitted { request: id(), needs: id() },
        AskRefusal::Refused(id()),
        AskRefusal::Ambiguous { of: id(), asks: Vec::new() },
        AskRefusal::Claimed { id: id(), by: id(), until: at },
        AskRefusal::Changed { id: id(), revision: 1 },
        AskRefusal::InvalidData(id()),
        AskRefusal::LinksOff,
        AskRefusal::LinkInvalid,
        AskRefusal::LinkExpired { at },
    ];
    refusals.map(ApiError::Ask).into()
}

fn of_agents() -> Vec<ApiError> {
    let text = String::new;
    let failed = |cause| ApiError::GenerationFailed {
        id: None,
        product: Product::Text,
        message: text(),
        cause,
    };
    let provider = |kind| failed(GenerationFailure::Provider(kind));
    vec![
        ApiError::AgentNotFound(text().into()),
        ApiError::SchemaInvalid(text()),
        provider(ModelErrorKind::Other),
        provider(ModelErrorKind::RateLimited),
        provider(ModelErrorKind::Auth),
        provider(ModelErrorKind::Timeout),
        failed(GenerationFailure::Agent),
        failed(GenerationFailure::Cancelled),
        ApiError::GenerationNotFound(text()),
        ApiError::GenerationExists(text()),
        ApiError::GenerationAlready { id: text(), status: GenerationStatus::Completed },
    ]
}

fn every_kind() -> Vec<ApiError> {
    let text = String::new;
    vec![
        ApiError::PathNotFound { method: text(), path: text() },
        ApiError::MethodNotAllowed { method: text(), allow: text() },
        ApiError::OriginNotAllowed,
        ApiError::HostNotAllowed,
        ApiError::Unauthenticated,
        ApiError::TokenExpired,
        ApiError::TokenInvalid("".into()),
        ApiError::TokenUnchecked,
        ApiError::RoleMissing(text()),
        ApiError::NotYours,
        ApiError::LocalOnly,
        ApiError::InvalidJson(text()),
        ApiError::InvalidBody(text()),
        ApiError::Unsupported { place: text(), what: "" },
        ApiError::InvalidQuery { name: text(), what: text() },
        ApiError::InvalidHeader { name: "", what: text() },
        ApiError::InvalidRequest(text()),
        ApiError::BodyBroken(""),
        ApiError::BodyTooSlow,
        ApiError::BodyTooLarge { bytes_max: 1 },
        ApiError::TooLargeToPassOn,
        ApiError::UnsupportedMediaType(text()),
        ApiError::UnsupportedEncoding(text()),
        ApiError::WebSocketOnly(""),
        ApiError::ByHandler { status: 400, text: text() },
        ApiError::ModelNotFound(text().into()),
        ApiError::WorkflowNotFound(text().into()),
        ApiError::InputInvalid(text()),
        failed(),
        ApiError::ExecutionNotFound(text()),
        ApiError::ExecutionExists(id()),
        ApiError::ExecutionAlready { id: id(), status: Status::Completed },
        ApiError::ExecutionCompensates(id()),
        ApiError::NotSuspended(id()),
        ApiError::StepNotFound(text().into()),
        ApiError::StepNotSuspended(text()),
        ApiError::StepAmbiguous { step: text(), paths: text() },
        ApiError::SeveralStepsWaiting(text()),
        ApiError::StepAsks(text()),
        ApiError::SuspensionPassed { id: text(), why: text() },
        ApiError::StepNotReplayable { step: text(), from: vec![text().into()] },
        ApiError::NoStepFailed(Vec::new()),
        ApiError::CompensationSkipped { path: text().into(), from: Vec::new() },
        ApiError::DefinitionDiffers(text()),
        ApiError::StepDoesNotSuspend(text()),
        ApiError::ResumeDataInvalid(text()),
        ApiError::KeyReused,
        ApiError::ApprovalNeeded { tool: text(), to: text() },
        ApiError::ToolNotFound(text().into()),
        ApiError::ServerNotFound(text().into()),
        ApiError::ToolChanged(text()),
        ApiError::ToolInputInvalid(text()),
        ApiError::ToolFailed(text()),
        ApiError::AgentRequired(text()),
        ApiError::NoMemory(text()),
        ApiError::ConversationNotFound,
        ApiError::ConversationExists(text()),
        ApiError::TraceNotFound(text()),
        ApiError::SpanNotFound(text()),
        ApiError::Draining { recorded: None },
        ApiError::Busy { execution: None },
        ApiError::ExecutionMoved { execution: None },
        ApiError::ServerUnreachable,
        ApiError::AtCapacity(Shortage::Streams),
        ApiError::StoreUnavailable { recorded: None },
        ApiError::RecordCorrupt(text()),
        ApiError::Internal,
    ]
}

#[test]
fn every_code_belongs_to_a_refusal() {
    let mut unused: Vec<_> = ErrorCode::ALL.iter().collect();
    let of_all = every_kind().into_iter().chain(of_agents()).chain(of_asks());
    for error in of_all.chain(of_the_installation().map(ApiError::from)) {
        unused.retain(|code| **code != error.code());
        assert_eq!(error.status(), error.code().status(), "{error:?}");
    }
    assert_eq!(unused, Vec::<&ErrorCode>::new());
}
