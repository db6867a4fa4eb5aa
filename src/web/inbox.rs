//! Handlers of the inbox.

use std::borrow::Cow;

use actix_web::HttpRequest;
use greenroom_actors::ports::store::Ask;

use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::ids::{decode, encode};
use crate::api::inbox::AskQuery;
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
    let query = AskQuery::parse(&call.pairs()?)?;
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
    check_like(&call, RouteName::DescribeExecution, &ask)?;
    let detail = inbox::describe(&call.runtime, ask).await?;
    Ok(respond::json(AskDetailView::of(&detail)))
}

/// `POST /inbox/:askId/answer`. Refused like a resume of the execution.
pub(crate) async fn answer(call: Call, body: Body) -> Answer {
    let (id, body) = body.take_for(id_of(&call.request)).await?;
    let ask = inbox::find(&call.runtime, &id, &call.caller).await?;
    check_like(&call, RouteName::ResumeExecution, &ask)?;
    let key = idempotency_key(call.request.headers());
    let execution = ask.execution_id.clone();
    let answering =
        inbox::answer(&call.runtime, ask, body.as_deref(), key.as_deref(), &call.caller);
    let answer = answering.await.map(|detail| respond::json(AskDetailView::of(&detail)));
    Ok(respond::about(&execution, answer))
}

fn id_of(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, ASK);
    decode(raw).ok_or_else(|| ApiError::Ask(AskRefusal::NotFound(raw.to_owned())))
}

/// Refuses a caller who may not use a route of the execution that waits.
fn check_like(call: &Call, name: RouteName, ask: &Ask) -> Result<(), ApiError> {
    let binding = &call.settings.config.binding;
    let route = binding.catalogue.rows().iter().find(|row| row.name == name);
    let Some(route) = route else { return Ok(()) };
    let (workflow, execution) = (encode(&ask.workflow_id), encode(ask.execution_id.as_str()));
    let path = route.path.replacen(":id", &workflow.to_string(), 1);
    let path = path.replacen(":executionId", &execution.to_string(), 1);
    binding.auth.check_like(route, &path, &call.caller)
}
