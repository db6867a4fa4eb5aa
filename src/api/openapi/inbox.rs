//! Routes of the inbox.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::AskKind;
use serde_json::json;

use super::components::Components;
use super::described::Described;
use super::parts;
use crate::api::error::{ApiError, AskRefusal};
use crate::api::wire::inbox::{AnswerOptions, AskDetailView, AsksView};

const ID: &str = "ask_9f86d081884c7d65";

pub(super) fn list(components: &mut Components) -> Described {
    let data = components.answer::<AsksView<'_>>();
    let kinds = json!({ "type": "string", "enum": AskKind::ALL.map(AskKind::as_str) });
    let cursors = json!({ "type": "string", "pattern": "^[oc][0-9a-fA-F]{48}$" });
    let states = json!({ "type": "string", "enum": ["open", "closed", "all"], "default": "open" });
    Described::new("listAsks")
        .about(
            "An ask is a suspended step that waits for an answer. Open asks are sorted by deadline, \
             then by age; closed ones by the time of their end, the last first. A page may be \
             shorter than `limit`; only `nextCursor` shows whether more follow.",
        )
        .with_query([
            parts::query("state", "Open asks, those that are closed, or first one, then the other", states),
            parts::query("kind", "`step`: by the rule of a step; `function`: by its function", kinds),
            parts::query("workflowId", "Only asks of this workflow", parts::name()),
            parts::query("userId", "Only asks of executions of this user", parts::name()),
            parts::query("due", "Only asks whose deadline is before this time", parts::time()),
            parts::query("limit", "Maximum number of asks", parts::number(1, 200, 50)),
            parts::query("cursor", "`nextCursor` of the page before", cursors),
        ])
        .answering(200, parts::json_answer("A page of asks", data))
        .using_runtime()
}

/// Describes a route of one ask.
fn of_ask(operation_id: &'static str) -> Described {
    Described::new(operation_id)
        .with([parts::path("askId", "Id of the ask", parts::any_id())])
        .refusing([not_found()])
        .using_runtime()
}

fn not_found() -> ApiError {
    ApiError::Ask(AskRefusal::NotFound(ID.to_owned()))
}

pub(super) fn describe(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    of_ask("describeAsk").answering(200, parts::json_answer("The ask", data))
}

pub(super) fn answer(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    let body = json!({
        "type": "object",
        "properties": {
            "data": { "description": "Data for the step; matches `schema` of the ask" },
            "options": { "oneOf": [{ "type": "null" }, components.body::<AnswerOptions>()] },
        },
        "additionalProperties": false,
    });
    let (id, at) = (|| ID.to_owned(), Timestamp(1_790_000_000_000));
    let by = Some("lea".to_owned());
    of_ask("answerAsk")
        .using_memory()
        .about(
            "Responds when the answer is recorded, without waiting for what follows from it. If \
             several answers arrive at once, exactly one succeeds.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .with_body(body, false, json!({ "data": { "approved": true } }))
        .answering(200, parts::json_answer("The answered ask", data))
        .refusing([
            ApiError::Ask(AskRefusal::Answered { id: id(), at, by }),
            ApiError::Ask(AskRefusal::Expired { id: id(), at }),
            ApiError::Ask(AskRefusal::Withdrawn { id: id(), at }),
            ApiError::Ask(AskRefusal::InvalidData("approved: missing".to_owned())),
            super::workflows::key_invalid(),
            ApiError::KeyReused,
        ])
}
