//! Routes of the inbox.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::AskKind;
use serde_json::{Value, json};

use super::components::Components;
use super::described::{Described, RefusalForm};
use super::parts;
use crate::api::error::{ApiError, AskRefusal};
use crate::api::wire::inbox::{
    AskDetailView, AskOptions, AsksView, AssignBody, ClaimBody, LinkBody, LinkView, NewsView,
    ReleaseBody,
};

const ID: &str = "ask_9f86d081884c7d65";

pub(super) fn list(components: &mut Components) -> Described {
    let data = components.answer::<AsksView<'_>>();
    let cursors = json!({ "type": "string", "pattern": "^[oc][0-9a-fA-F]{48}$" });
    let states = json!({ "type": "string", "enum": ["open", "closed", "all"], "default": "open" });
    Described::new("listAsks")
        .about(
            "An ask is a suspended step, or a call of a tool, that waits for an answer. Open asks are sorted by deadline, \
             then by age; closed ones by the time of their end, the last first. A page may be \
             shorter than `limit`; only `nextCursor` shows whether more follow.",
        )
        .with_query(filters())
        .with([
            parts::query("state", "Open asks, those that are closed, or first one, then the other", states),
            parts::query("limit", "Maximum number of asks", parts::number(1, 200, 50)),
            parts::query("cursor", "`nextCursor` of the page before", cursors),
        ])
        .answering(200, parts::json_answer("A page of asks", data))
        .using_runtime()
}

/// Returns the parameters that say which asks are meant.
fn filters() -> [Value; 7] {
    let kinds = json!({ "type": "string", "enum": AskKind::ALL.map(AskKind::as_str) });
    // a name without control characters that is not blank
    let pattern = r"^(me|none|(user|role):[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*)$";
    let assignees = json!({ "type": "string", "pattern": pattern });
    let claimed = json!({ "type": "boolean" });
    [
        parts::query(
            "kind",
            "`step`: by the rule of a step; `function`: by its function; `compensation`: because its compensation has \
             failed; `approval`, `input`: by a tool of an agent",
            kinds,
        ),
        parts::query("workflowId", "Only asks of this workflow", parts::name()),
        parts::query("agentId", "Only asks of generations of this agent", parts::name()),
        parts::query(
            "userId",
            "Only asks of executions and generations of this user",
            parts::name(),
        ),
        parts::query(
            "to",
            "Only asks that the caller may answer (`me`), that name no one (`none`), or that name this user or role",
            assignees,
        ),
        parts::query("claimed", "Only asks that are claimed, or only others", claimed),
        parts::query("due", "Only asks whose deadline is before this time", parts::time()),
    ]
}

pub(super) fn stream(components: &mut Components) -> Described {
    let event = components.answer::<NewsView<'_>>();
    let example = json!({ "type": "overflow" });
    let content = json!({ "text/event-stream": parts::events(event, &example) });
    Described::new("watchAsks")
        .about(
            "Changes from now on, up to a second late; an ask that is opened and closed within it \
             may be missed. A client that falls too far behind is disconnected. After a \
             reconnect, read the list.",
        )
        .with_query(filters())
        .answering(200, parts::response("The events", content, &[]))
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
    of_ask("describeAsk").answering(200, tagged("The ask", data))
}

pub(super) fn answer(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    let body = json!({
        "type": "object",
        "properties": {
            "data": { "description": "Data for the step; matches `schema` of the ask" },
            "force": { "description": "Passes over the claim of another user, for roles in `inbox.force_roles`", "type": "boolean" },
            "options": { "oneOf": [{ "type": "null" }, components.body::<AskOptions>()] },
        },
        "additionalProperties": false,
    });
    changing("answerAsk")
        .about(
            "Responds when the answer is recorded, without waiting for what follows from it. If \
             several answers arrive at once, exactly one succeeds.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .with_body(body, false, json!({ "data": { "approved": true } }))
        .answering(200, tagged("The answered ask", data))
        .refusing([
            not_assigned(),
            refused(),
            ApiError::Ask(AskRefusal::InvalidData("approved: missing".to_owned())),
            super::workflows::key_invalid(),
            ApiError::KeyReused,
        ])
}

pub(super) fn claim(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    changing("claimAsk")
        .about(
            "Keeps others away while the caller is about to answer: until the claim ends, their answers \
             and changes are refused. A claim of one's own is made anew.",
        )
        .with_body(components.body::<ClaimBody>(), false, json!({ "for": "30m" }))
        .answering(200, tagged("The claimed ask", data))
        .refusing([not_assigned(), ApiError::NotYours])
}

pub(super) fn release(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    changing("releaseAsk")
        .about("Ends the claim of the caller. Without a claim, nothing changes.")
        .with_body(components.body::<ReleaseBody>(), false, json!({}))
        .answering(200, tagged("The ask", data))
}

pub(super) fn assign(components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    changing("assignAsk")
        .about("Asks other users and roles in place of those before.")
        .with_body(components.body::<AssignBody>(), true, json!({ "to": ["role:manager"] }))
        .answering(200, tagged("The ask", data))
        .refusing([not_assigned()])
}

pub(super) fn link(components: &mut Components) -> Described {
    let data = components.answer::<LinkView>();
    changing("linkToAsk")
        .about(
            "The link answers as the user or the role in `to`, without a token, until the ask is \
             closed or the time of the link is over. Nothing is stored; a link cannot be revoked.",
        )
        .with_body(components.body::<LinkBody>(), true, json!({ "to": "user:ann", "ttl": "2h" }))
        .answering(200, parts::json_answer("A link", data))
        .refusing([not_assigned(), ApiError::Ask(AskRefusal::LinksOff)])
}

pub(super) fn show_link() -> Described {
    of_link("showAskLink").about(
        "A page without scripts, with a form. It changes nothing, so that scanners of mail may \
         follow the link.",
    )
}

pub(super) fn answer_link() -> Described {
    let values = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let mut described = of_link("answerAskLink")
        .about(
            "The fields of the form are `data.<name>`, or `approved` (`true` or `false`) and \
             `reason` of an approval, or `data` with JSON. Refusals are pages as well.",
        )
        .using_memory()
        .refusing([
            not_assigned(),
            refused(),
            ApiError::Ask(AskRefusal::InvalidData("approved: missing".to_owned())),
            ApiError::BodyBroken("is no form"),
            ApiError::BodyTooSlow,
            ApiError::BodyTooLarge { bytes_max: 1024 * 1024 },
            ApiError::FormOnly,
            ApiError::UnsupportedEncoding("gzip".to_owned()),
        ]);
    described.body = Some(json!({
        "required": true,
        "content": { "application/x-www-form-urlencoded": { "schema": values } },
    }));
    described
}

/// Describes a page of a link.
fn of_link(operation_id: &'static str) -> Described {
    let at = Timestamp(1_790_000_000_000);
    Described { refusal_form: RefusalForm::Pages, ..Described::new(operation_id) }
        .with([parts::path("token", "Token of the link", parts::name())])
        .answering(200, parts::text_answer("A page", "text/html"))
        .refusing([not_found()])
        .refusing(closed_or_claimed())
        .refusing([
            ApiError::Ask(AskRefusal::LinkInvalid),
            ApiError::Ask(AskRefusal::LinkExpired { at }),
        ])
        .using_runtime()
}

/// Describes a change of an ask.
fn changing(operation_id: &'static str) -> Described {
    let tags = json!({ "type": "string", "pattern": r#"^(\*|"[0-9]{1,19}")$"# });
    let what = "must be the ETag of the ask, which is its revision in quotes".to_owned();
    of_ask(operation_id)
        .using_memory()
        .with([parts::header("If-Match", "`ETag` of the ask that the client has seen", tags)])
        .refusing(closed_or_claimed())
        .refusing([
            ApiError::Ask(AskRefusal::Changed { id: ID.to_owned(), revision: 2 }),
            ApiError::InvalidHeader { name: "If-Match", what },
        ])
}

/// Returns the refusals of a change of an ask that is closed, or claimed by others.
fn closed_or_claimed() -> [ApiError; 4] {
    let (id, at) = (|| ID.to_owned(), Timestamp(1_790_000_000_000));
    let by = Some("lea".to_owned());
    [
        ApiError::Ask(AskRefusal::Answered { id: id(), at, by }),
        ApiError::Ask(AskRefusal::Expired { id: id(), at }),
        ApiError::Ask(AskRefusal::Withdrawn { id: id(), at }),
        ApiError::Ask(AskRefusal::Claimed { id: id(), by: "bob".to_owned(), until: at }),
    ]
}

/// Returns the refusals of an answer that names its ask otherwise than by its id.
pub(super) fn of_answers() -> Vec<ApiError> {
    let invalid = ApiError::Ask(AskRefusal::InvalidData("approved: missing".to_owned()));
    closed_or_claimed()
        .into_iter()
        .chain([not_found(), not_assigned(), refused(), invalid])
        .collect()
}

fn not_assigned() -> ApiError {
    ApiError::Ask(AskRefusal::NotAssigned {
        to: Vec::new(),
        is_nameless: false,
        is_of_nobody: false,
    })
}

/// Returns the refusal of the program's own check of answers.
pub(super) fn refused() -> ApiError {
    ApiError::Ask(AskRefusal::Refused("a large amount needs a signed-in user".to_owned()))
}

/// Describes an answer with the revision of the ask, about the execution or the generation that asks.
pub(super) fn tagged(about: &str, data: Value) -> Value {
    let mut answer = parts::json_answer(about, data);
    for (name, component) in [
        ("etag", parts::ETAG),
        ("x-execution-id", parts::EXECUTION_ID),
        ("x-generation-id", parts::GENERATION_ID),
    ] {
        answer["headers"][name] = parts::reference("headers", component);
    }
    answer
}
