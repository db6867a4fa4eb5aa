//! Handlers of tools.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::wire::Iso;
use crate::api::wire::tool::ToolResultView;
use crate::api::{ApiError, tools};
use crate::web::body::Body;
use crate::web::peer::unless_gone;
use crate::web::query::query_pairs;
use crate::web::{ids, respond, trace};

/// `GET /tools`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    std::future::ready(respond::json(tools::list(&runtime.registry()))).await
}

/// `POST /tools/:name/execute`. When the client leaves, so does its call.
pub(crate) async fn execute(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let tool = ids::tool(&request).and_then(|name| tools::find(&runtime, &name));
    let (tool, body) = body.read_for(tool).await?;
    let pairs = query_pairs(&request)?;
    let origin = trace::origin_of(request.headers());
    let executing = tools::execute(&runtime, &tool, &pairs, &body, &caller, origin);
    let executed = unless_gone(&request, executing).await?;
    Ok(respond::json(ToolResultView {
        tool_name: &tool.spec.name,
        result: &executed.result,
        execution_time: executed.took_ms,
        timestamp: Iso(executed.ended_at),
    }))
}
