//! Executions as resources.

use greenroom_actors::domain::ids::ExecutionId;
use serde_json::json;

use super::answers::{Members, cached, members};
use super::message::{Refusal, Request, code, shown};
use super::tokens::Run;
use crate::api::ids::decode;

const PREFIX: &str = "greenroom://executions/";
const TEMPLATE: &str = "greenroom://executions/{workflow}/{id}";

const JSON: &str = "application/json";

/// Answers `resources/list`: there are too many executions to list them.
pub fn resources(request: &Request) -> Members {
    cached(request, members(json!({ "resources": [] })), "public")
}

/// Answers `resources/templates/list`.
pub fn resource_templates(request: &Request) -> Members {
    let template = json!({
        "uriTemplate": TEMPLATE,
        "name": "execution",
        "title": "An execution of a workflow",
        "description": "Its status, input, result and steps, and what it waits for.",
        "mimeType": JSON,
    });
    cached(request, members(json!({ "resourceTemplates": [template] })), "public")
}

/// Answers `resources/read` with the state of an execution, which may change at any time.
pub fn resource(request: &Request, uri: &str, state: &str) -> Members {
    let content = json!({ "uri": uri, "mimeType": JSON, "text": state });
    let mut read = members(json!({ "contents": [content] }));
    if !request.is_legacy() {
        read.extend(members(json!({ "ttlMs": 0, "cacheScope": "private" })));
    }
    read
}

/// Returns the execution that an address names.
pub fn resource_of(uri: &str) -> Option<Run> {
    let (workflow, execution) = uri.strip_prefix(PREFIX)?.split_once('/')?;
    let (workflow, execution) = (decode(workflow)?.into_owned(), decode(execution)?);
    Some(Run { workflow, execution: ExecutionId::parse(&execution).ok()? })
}

/// Refuses a resource that is not there, or that the caller does not see.
pub fn no_resource(request: &Request, uri: &str) -> Refusal {
    let code = if request.is_legacy() { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
    request
        .refuse(code, format!("Resource not found: {}", shown(uri)))
        .with(json!({ "uri": shown(uri) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_an_execution_of_a_workflow() {
        let run = resource_of("greenroom://executions/trip.v2/x%2D1").unwrap();
        assert_eq!((run.workflow.as_str(), run.execution.as_str()), ("trip.v2", "x-1"));
        for bad in [
            "",
            "greenroom://executions/",
            "greenroom://executions/trip",
            "greenroom://executions/trip/",
            "greenroom://executions/trip/a/b",
            "greenroom://executions/trip/%ff",
            "file:///etc/passwd",
        ] {
            assert_eq!(resource_of(bad), None, "{bad}");
        }
    }
}
