//! Description of a route, beside its row of the catalogue.

use std::borrow::Cow;

use serde_json::Value;

use super::parts;
use crate::api::error::{ApiError, Shortage};

/// Form of the refusals of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalForm {
    Envelope,
    /// In the envelope, and as pages.
    Pages,
    /// That of OpenAI's API.
    OpenAi,
    /// That of JSON-RPC, but for what comes before it, such as a missing token.
    JsonRpc,
}

/// Description of a route, beside its row of the catalogue.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub(super) operation_id: Cow<'static, str>,
    pub(super) about: Option<String>,
    pub(super) parameters: Vec<Value>,
    pub(super) body: Option<Value>,
    /// Successful statuses, or `default`, with their response objects.
    pub(super) answers: Vec<(String, Value)>,
    /// Examples of all refusals.
    pub(super) refusals: Vec<ApiError>,
    pub(super) refusal_form: RefusalForm,
}

impl Described {
    /// Creates a description with the refusals of all routes.
    pub(super) fn new(operation_id: impl Into<Cow<'static, str>>) -> Self {
        Self {
            operation_id: operation_id.into(),
            about: None,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: vec![ApiError::HostNotAllowed, ApiError::Internal],
            refusal_form: RefusalForm::Envelope,
        }
    }

    pub(super) fn about(mut self, text: impl Into<String>) -> Self {
        self.about = Some(text.into());
        self
    }

    pub(super) fn with(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Adds query parameters and their refusals.
    pub(super) fn with_query(self, parameters: impl IntoIterator<Item = Value>) -> Self {
        let refusal = ApiError::InvalidQuery {
            name: "limit".to_owned(),
            what: "must be a number from 1 to 200".to_owned(),
        };
        let unreadable = "the query cannot be read".to_owned();
        self.with(parameters).refusing([refusal, ApiError::InvalidRequest(unreadable)])
    }

    /// Adds a JSON body and its refusals.
    pub(super) fn with_body(mut self, schema: Value, is_required: bool, example: Value) -> Self {
        self.body = Some(parts::request_body(schema, is_required, example));
        self.refusing([
            ApiError::InvalidJson("expected value at line 1 column 1".to_owned()),
            ApiError::InvalidBody("invalid type: sequence, expected an object".to_owned()),
            ApiError::BodyBroken("ends before it is complete"),
            ApiError::BodyTooSlow,
            ApiError::BodyTooLarge { bytes_max: 1024 * 1024 },
            ApiError::UnsupportedMediaType("text/csv".to_owned()),
            ApiError::UnsupportedEncoding("gzip".to_owned()),
        ])
    }

    pub(super) fn answering(mut self, status: u16, response: Value) -> Self {
        self.answers.push((status.to_string(), response));
        self
    }

    /// Adds the response for all other statuses.
    pub(super) fn answering_else(mut self, response: Value) -> Self {
        self.answers.push(("default".to_owned(), response));
        self
    }

    pub(super) fn refusing(mut self, refusals: impl IntoIterator<Item = ApiError>) -> Self {
        self.refusals.extend(refusals);
        self
    }

    /// Adds the refusals of routes that use the store or the runtime.
    pub(super) fn using_runtime(self) -> Self {
        self.refusing([
            ApiError::Draining { recorded: None },
            ApiError::Busy { execution: None },
            ApiError::StoreUnavailable { recorded: None },
        ])
    }

    /// Adds the refusals of routes that bring an execution into memory.
    pub(super) fn using_memory(self) -> Self {
        self.refusing([
            ApiError::AtCapacity(Shortage::ExecutionMemory),
            ApiError::ExecutionMoved { execution: None },
        ])
    }
}
