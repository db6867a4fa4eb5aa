//! Operations of the document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Source;
use super::components::Components;
use super::described::Described;
use crate::api::catalogue::{Answer, Method, Route};
use crate::api::error::{ApiError, Shortage};
use crate::auth::User;

/// Names of security schemes.
pub(super) const BEARER: &str = "bearerAuth";
pub(super) const API_KEY: &str = "apiKeyAuth";

/// Access requirements of a path.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Access {
    needs_token: bool,
    takes_api_keys: bool,
    /// Roles, of which one is required.
    roles: Vec<String>,
}

impl Access {
    pub(super) fn of(row: &Route, path: &str, source: &Source<'_>) -> Self {
        let Some(policy) = source.policy else { return Self::default() };
        let gate = policy.gate(row);
        let no_roles = User::new(Map::new()).ok();
        let missing = no_roles.as_ref().and_then(|user| gate.missing_roles(path, user));
        let roles = missing.unwrap_or_default().to_vec();
        let needs_token = gate.needs_token(path);
        Self { needs_token, takes_api_keys: source.takes_api_keys, roles }
    }

    /// Returns the security schemes, of which one is sufficient.
    fn security(&self) -> Value {
        let ways = [(BEARER, true), (API_KEY, self.takes_api_keys)];
        ways.into_iter()
            .filter(|(_, is_taken)| *is_taken)
            .map(|(way, _)| json!({ way: [] }))
            .collect()
    }
}

/// Responses of the operations of a route by access requirements, shared by its typed paths.
#[derive(Debug, Default)]
pub(super) struct Answers(Vec<(Access, Value)>);

impl Answers {
    fn of(
        &mut self,
        row: &Route,
        described: &Described,
        access: &Access,
        components: &mut Components,
    ) -> Value {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| known == access) {
            return known.clone();
        }
        let responses = responses(row, described, access, components);
        self.0.push((access.clone(), responses.clone()));
        responses
    }
}

/// Creates an operation.
pub(super) fn operation(
    row: &Route,
    described: &Described,
    access: &Access,
    answers: &mut Answers,
    components: &mut Components,
) -> Value {
    let mut operation = json!({
        "operationId": described.operation_id,
        "tags": [row.tag.as_str()],
        "summary": row.summary,
    });
    if let Some(about) = &described.about {
        operation["description"] = json!(about);
    }
    operation["parameters"] = json!(described.parameters);
    if let Some(body) = &described.body {
        operation["requestBody"] = body.clone();
    }
    operation["responses"] = answers.of(row, described, access, components);
    if access.needs_token {
        operation["security"] = access.security();
    }
    operation["x-rate-limit-class"] = json!(row.class.as_str());
    operation
}

fn responses(
    row: &Route,
    described: &Described,
    access: &Access,
    components: &mut Components,
) -> Value {
    let mut refusals = described.refusals.clone();
    if row.method != Method::Get {
        refusals.push(ApiError::OriginNotAllowed);
    }
    if access.needs_token {
        refusals.extend([
            ApiError::Unauthenticated,
            ApiError::TokenExpired,
            ApiError::TokenInvalid("bad signature".into()),
            ApiError::TokenUnchecked,
        ]);
    }
    if !access.roles.is_empty() {
        refusals.push(ApiError::RoleMissing(access.roles.join(", ")));
    }
    if matches!(row.answer, Answer::Events | Answer::WebSocket) {
        refusals.push(ApiError::AtCapacity(Shortage::Streams));
    }
    let mut by_status: BTreeMap<u16, Vec<&ApiError>> = BTreeMap::new();
    for refusal in &refusals {
        by_status.entry(refusal.status()).or_default().push(refusal);
    }
    let mut responses = Map::new();
    for (status, response) in &described.answers {
        responses.insert(status.clone(), response.clone());
    }
    for (status, refusals) in by_status {
        let response = components.refusal(status, &refusals, described.refusal_form);
        // A route may describe the status itself.
        responses.entry(status.to_string()).or_insert(response);
    }
    Value::Object(responses)
}
