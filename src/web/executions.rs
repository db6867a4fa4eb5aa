//! Handlers of executions.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::requests::Target;
use greenroom_actors::runtime::{BulkReach, Replay};

use crate::api::catalogue::RouteName;
use crate::api::query::{
    CountQuery, EventsQuery, ExecutionQuery, OutcomesQuery, StateQuery, VersionsQuery,
    read_position,
};
use crate::api::wire::bulk::BulkPreviewView;
use crate::api::wire::counts::CountsView;
use crate::api::wire::event::EventsView;
use crate::api::wire::execution::{CancelView, SuspendView};
use crate::api::wire::outcomes::OutcomesView;
use crate::api::wire::state::{ExecutionsView, StateView};
use crate::api::wire::versions::VersionsView;
use crate::api::wire::why::WhyView;
use crate::api::{ApiError, bulk, executions};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::peer::{cancel_on_disconnect, stop_waiting_on_disconnect};
use crate::web::query::query_pairs;
use crate::web::sse::Begin;
use crate::web::workflows::{idempotency_key, respond_begun, respond_outcome, respond_replay, run};
use crate::web::{ids, prefer, respond, sse, trace};

impl Call {
    fn target(&self) -> Result<Target, ApiError> {
        ids::target(&self.request, &self.caller)
    }
}

/// `GET /workflows/executions`.
pub(crate) async fn list(call: Call) -> Answer {
    page(&call, None).await
}

/// `GET /workflows/:id/executions`. Also lists executions of a workflow that is no longer
/// configured.
pub(crate) async fn list_of_workflow(call: Call) -> Answer {
    let id = ids::workflow(&call.request)?.into_owned();
    page(&call, Some(id)).await
}

async fn page(call: &Call, workflow_id: Option<String>) -> Answer {
    let query = call.pairs().and_then(|pairs| ExecutionQuery::parse(&pairs));
    let (rows, next) = executions::list(&call.runtime, workflow_id, query, &call.caller).await?;
    Ok(respond::json(ExecutionsView::of(&rows, next)))
}

/// `GET /workflows/executions/counts`.
pub(crate) async fn counts(call: Call) -> Answer {
    let query = CountQuery::parse(&call.pairs()?)?;
    let counted = executions::counts(&call.runtime, query, &call.caller).await?;
    Ok(respond::json(CountsView::of(&counted.counts, counted.is_complete)))
}

/// `GET /workflows/executions/outcomes`.
pub(crate) async fn outcomes(call: Call) -> Answer {
    let query = OutcomesQuery::parse(&call.pairs()?)?;
    let (request, outcomes) = executions::outcomes(&call.runtime, query, &call.caller).await?;
    Ok(respond::json(OutcomesView::of(&request, &outcomes)))
}

/// `GET /workflows/:id/versions`.
pub(crate) async fn versions(call: Call) -> Answer {
    let id = ids::workflow(&call.request)?;
    let query = call.pairs().and_then(|pairs| VersionsQuery::parse(&pairs));
    let versions = executions::versions(&call.runtime, &id, query, &call.caller).await?;
    Ok(respond::json(VersionsView::of(&versions)))
}

/// `POST /workflows/executions/bulk`.
pub(crate) async fn bulk(call: Call, body: Body) -> Answer {
    let Call { request, caller, runtime, .. } = &call;
    let (pairs, body) = body.read_for(call.pairs()).await?;
    let key = idempotency_key(request.headers());
    let origin = (caller, trace::origin_of(request.headers()));
    let mut bulk = bulk::read(&pairs, &body, key.as_deref(), origin)?;
    drop(body);
    let route = bulk::route_of(bulk.operation.action);
    let reach = bulk::reach(runtime, &bulk.operation).await?;
    for BulkReach { workflow, execution } in &reach {
        let execution = execution.as_ref().map(|id| (":executionId", id.as_str()));
        let ids: Vec<_> = [(":id", &**workflow)].into_iter().chain(execution).collect();
        call.check_like(route, &ids)?;
    }
    let workflows: BTreeSet<_> = reach.into_iter().map(|reach| reach.workflow).collect();
    let lists = |id: &Arc<str>| call.check_like(RouteName::ListWorkflowExecutions, &[(":id", id)]);
    let may_list = workflows.iter().all(|id| lists(id).is_ok());
    bulk.operation.allowed = Some(workflows);
    if bulk.is_dry_run {
        let counting = bulk::preview(runtime, &bulk.operation);
        let mut preview = cancel_on_disconnect(request, counting).await?;
        if !may_list {
            preview.executions.clear();
        }
        return Ok(respond::json(BulkPreviewView::of(&preview)));
    }
    let start = bulk.start(runtime);
    run(&call, start).await
}

/// `GET /workflows/:id/executions/:executionId/state`.
pub(crate) async fn describe(call: Call) -> Answer {
    let target = call.target()?;
    let query = call.pairs().and_then(|pairs| StateQuery::parse(&pairs));
    let state = executions::describe(&call.runtime, &target).await;
    let answer = state.and_then(|state| {
        let StateQuery { with_values } = query?;
        let view = StateView::of(&state);
        let view = if with_values { view } else { view.without_values() };
        Ok(respond::traced(&state.header.trace.id, respond::json(view)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `GET /workflows/:id/executions/:executionId/events`.
pub(crate) async fn events(call: Call) -> Answer {
    let target = call.target()?;
    let query = call.pairs().and_then(|pairs| EventsQuery::parse(&pairs));
    let page = executions::events(&call.runtime, &target, query).await;
    let id = &target.execution_id;
    let answer = page.map(|(query, page)| {
        let times: Vec<_> = page.facts.iter().map(|fact| fact.at.to_iso()).collect();
        respond::json(EventsView::of(id, &page, &times, (query.after, query.limit)))
    });
    Ok(respond::about(id, answer))
}

/// `GET /workflows/:id/executions/:executionId/why`.
pub(crate) async fn why(call: Call) -> Answer {
    let target = call.target()?;
    let report = executions::why(&call.runtime, &target).await;
    let answer = report.map(|report| {
        respond::traced(&report.header.trace.id, respond::json(WhyView::of(&report)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/suspend`.
pub(crate) async fn suspend(call: Call, body: Body) -> Answer {
    let (target, body) = body.take_for(call.target()).await?;
    let body = body.as_deref();
    let suspended = executions::suspend(&call.runtime, &target, body, &call.caller).await;
    let answer = suspended.map(|suspended| {
        respond::traced(&suspended.trace_id, respond::json(SuspendView::of(&suspended)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/cancel`.
pub(crate) async fn cancel(call: Call, body: Body) -> Answer {
    let (target, body) = body.take_for(call.target()).await?;
    let body = body.as_deref();
    let cancelled = executions::cancel(&call.runtime, &target, body, &call.caller).await;
    let answer = cancelled.map(|cancelled| {
        respond::traced(&cancelled.trace_id, respond::json(CancelView::of(&cancelled)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/resume`.
pub(crate) async fn resume(call: Call, body: Body) -> Answer {
    let Call { request, caller, runtime, .. } = &call;
    let (target, body) = body.take_for(call.target()).await?;
    let key = idempotency_key(request.headers());
    let resume = executions::read_resume(&target, body.as_deref(), key.as_deref(), caller);
    drop(body);
    let resuming = executions::resume(runtime, &target, resume);
    let outcome = stop_waiting_on_disconnect(request, resuming).await;
    Ok(respond::about(&target.execution_id, outcome.map(respond_outcome)))
}

/// `POST /workflows/:id/executions/:executionId/replay`. The answer is about the new execution, a refusal
/// about the original.
pub(crate) async fn replay(call: Call, body: Body) -> Answer {
    let Call { request, caller, runtime, .. } = &call;
    let (target, body) = body.take_for(call.target()).await?;
    let key = idempotency_key(request.headers());
    let origin = (caller, trace::origin_of(request.headers()));
    let replay = executions::read_replay(&target, body.as_deref(), key.as_deref(), origin);
    drop(body);
    let answer = match prefer::wait_of(request) {
        Some(wait) => {
            let beginning = executions::begin_replay(runtime, &target, replay);
            let begun = stop_waiting_on_disconnect(request, beginning).await;
            match begun {
                Ok(Replay { new, from }) => respond_begun(&call, &new, from.as_ref(), wait).await,
                Err(refusal) => Err(refusal),
            }
        }
        None => {
            let replaying = executions::replay(runtime, &target, replay);
            let replayed = stop_waiting_on_disconnect(request, replaying).await;
            replayed.map(|Replay { new, from }| respond_replay(new, from.as_ref()))
        }
    };
    match answer {
        // With a status 5xx the header would say that a replay is recorded.
        Err(refusal) if refusal.status() < 500 && refusal.execution_id().is_none() => {
            Ok(respond::about(&target.execution_id, Err(refusal)))
        }
        answer => answer,
    }
}

/// `GET /workflows/:id/executions/:executionId/stream`. 204 if all events have been read.
pub(crate) async fn attach(call: Call) -> Answer {
    let target = call.target()?;
    let answer = attach_to(&call, &target).await;
    Ok(respond::about(&target.execution_id, answer))
}

async fn attach_to(call: &Call, target: &Target) -> Answer {
    let Call { request, runtime, settings, .. } = call;
    let after = executions::existing(runtime, target, position(request)).await?;
    let stream = sse::open(request, runtime, settings, &target.workflow_id, Begin::AtPosition)?;
    match executions::subscribe(runtime, target, stream.subscriber()).await {
        // No event will follow: an EventSource would reconnect again and again.
        Ok(subscription) if subscription.ended && subscription.durable_seq <= after => {
            stream.abandon();
            Ok(HttpResponse::NoContent().finish())
        }
        Ok(subscription) => {
            stream.read_from(&target.execution_id, after, subscription);
            Ok(stream.respond())
        }
        Err(refusal) => {
            stream.abandon();
            Err(refusal)
        }
    }
}

fn position(request: &HttpRequest) -> Result<u64, ApiError> {
    let header = request.headers().get("last-event-id");
    let last_event_id = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
    read_position(last_event_id.as_deref(), &query_pairs(request)?)
}
