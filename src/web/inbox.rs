//! Handlers of the inbox.

pub(super) mod links;
pub(super) mod stream;

use std::borrow::Cow;

use actix_web::http::header::{ETAG, IF_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::ports::store::{Ask, AskSubject};
use greenroom_actors::requests::AskDetail;

use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::ids::decode;
use crate::api::inbox::{AskQuery, Change};
use crate::api::wire::inbox::{AskDetailView, AskView, AsksView};
use crate::api::{ApiError, inbox};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::ids::segment;
use crate::web::respond;
use crate::web::workflows::idempotency_key;

/// Segment of the ask's id: `/inbox/:askId/...`.
const ASK: usize = 2;

/// `GET /inbox`.
pub(crate) async fn list(call: Call) -> Answer {
    let query = AskQuery::parse(&call.pairs()?, &call.caller)?;
    let inbox = inbox::list(&call.runtime, query, &call.caller).await?;
    Ok(respond::json(AsksView {
        asks: inbox.asks.iter().map(AskView::of).collect(),
        next_cursor: inbox.next,
        incomplete: inbox.is_incomplete,
    }))
}

/// `GET /inbox/:askId`. Refused like the state of the execution.
pub(crate) async fn describe(call: Call) -> Answer {
    let ask = inbox::find(&call.runtime, &id_of(&call.request)?, &call.caller).await?;
    check_like(&call, Purpose::Show, &ask)?;
    let subject = ask.subject.clone();
    let described = inbox::describe(&call.runtime, ask).await;
    about(&subject, described.map(|detail| shown(&detail)))
}

/// `POST /inbox/:askId/answer`.
pub(crate) async fn answer(call: Call, body: Body) -> Answer {
    let key = idempotency_key(call.request.headers()).map(Cow::into_owned);
    change(call, body, async |change| inbox::answer(change, key.as_deref()).await).await
}

/// `POST /inbox/:askId/claim`.
pub(crate) async fn claim(call: Call, body: Body) -> Answer {
    change(call, body, async |change| inbox::claim(change).await).await
}

/// `POST /inbox/:askId/release`.
pub(crate) async fn release(call: Call, body: Body) -> Answer {
    change(call, body, async |change| inbox::release(change).await).await
}

/// `POST /inbox/:askId/assign`.
pub(crate) async fn assign(call: Call, body: Body) -> Answer {
    change(call, body, async |change| inbox::assign(change).await).await
}

/// Changes an ask. Refused like a resume of the execution.
async fn change(
    call: Call,
    body: Body,
    carry_out: impl AsyncFnOnce(Change<'_>) -> Result<AskDetail, ApiError>,
) -> Answer {
    let (id, body) = body.take_for(id_of(&call.request)).await?;
    let ask = inbox::find(&call.runtime, &id, &call.caller).await?;
    check_like(&call, Purpose::Change, &ask)?;
    let subject = ask.subject.clone();
    let change = Change {
        runtime: &call.runtime,
        ask,
        body: body.as_deref(),
        caller: &call.caller,
        permissions: call.permissions(),
        force_roles: &call.settings.config.force_roles,
        revision: seen_revision(&call.request)?,
    };
    let changed = carry_out(change).await.map(|detail| shown(&detail));
    about(&subject, changed)
}

/// Adds the header with the id of the execution or the generation that asks.
fn about(subject: &AskSubject, answer: Answer) -> Answer {
    match subject {
        AskSubject::Step(step) => Ok(respond::about(&step.execution_id, answer)),
        AskSubject::Call(call) => {
            let mut response = answer?;
            let id = &call.generation_id;
            respond::insert_text(&mut response, respond::X_GENERATION_ID, id);
            Ok(response)
        }
    }
}

/// Shows an ask, with its revision as `ETag`.
pub(super) fn shown(detail: &AskDetail) -> HttpResponse {
    let mut response = respond::json(AskDetailView::of(detail));
    respond::insert_text(&mut response, ETAG, &format!("\"{}\"", detail.ask.revision));
    response
}

/// Reads `If-Match`.
fn seen_revision(request: &HttpRequest) -> Result<Option<u64>, ApiError> {
    let headers = request.headers().get_all(IF_MATCH);
    let texts = headers.map(|text| String::from_utf8_lossy(text.as_bytes()));
    inbox::revision_of(texts.reduce(|texts, text| texts + ", " + text).as_deref())
}

fn id_of(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, ASK);
    decode(raw).ok_or_else(|| ApiError::Ask(AskRefusal::NotFound(raw.to_owned())))
}

/// Purpose of a request about an ask.
#[derive(Clone, Copy)]
enum Purpose {
    Show,
    Change,
}

/// Refuses a caller who may not do the like with what waits.
fn check_like(call: &Call, purpose: Purpose, ask: &Ask) -> Result<(), ApiError> {
    let (name, ids) = match (&ask.subject, purpose) {
        (AskSubject::Step(step), purpose) => {
            let name = match purpose {
                Purpose::Show => RouteName::DescribeExecution,
                Purpose::Change => RouteName::ResumeExecution,
            };
            let execution = (":executionId", step.execution_id.as_str());
            (name, [(":id", &*step.workflow_id), execution])
        }
        (AskSubject::Call(of), purpose) => {
            let name = match purpose {
                Purpose::Show => RouteName::DescribeGeneration,
                Purpose::Change => RouteName::CancelGeneration,
            };
            (name, [(":id", &*of.agent_id), (":generationId", &*of.generation_id)])
        }
    };
    call.check_like(name, &ids)
}
