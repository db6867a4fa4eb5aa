//! Handlers of tools.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::runtime::CallTool;

use crate::api::wire::Iso;
use crate::api::wire::tool::ToolResultView;
use crate::api::{ApiError, mcp_servers, tools};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::local_only::Operator;
use crate::web::peer::cancel_on_disconnect;
use crate::web::settings::Settings;
use crate::web::{ids, respond, trace};

/// `GET /tools`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    std::future::ready(respond::json(tools::list(&runtime.registry()))).await
}

/// `POST /tools/:name/execute`. Cancelled when the client disconnects.
pub(crate) async fn execute(call: Call, body: Body) -> Answer {
    let Call { request, caller, runtime, .. } = &call;
    let tool = ids::tool(request).and_then(|name| tools::find(runtime, &name));
    let (tool, body) = body.read_for(tool).await?;
    let pairs = call.pairs()?;
    let trace = trace::origin_of(request.headers());
    let tool_call = CallTool { trace, ..tools::read_call(&tool, &pairs, &body, caller)? };
    drop(body);
    let executing = tools::execute(runtime, tool_call);
    let executed = cancel_on_disconnect(request, executing).await?;
    Ok(respond::json(ToolResultView {
        tool_name: &tool.spec.name,
        result: &executed.result,
        execution_time: executed.took_ms,
        timestamp: Iso(executed.ended_at),
    }))
}

/// `GET /tools/mcp`.
pub(crate) async fn servers(settings: web::Data<Settings>) -> HttpResponse {
    respond::json(mcp_servers::list(settings.config.servers.as_deref()).await)
}

/// `POST /tools/mcp/:server/restart`.
pub(crate) async fn restart(
    _: Operator,
    request: HttpRequest,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let servers = settings.config.servers.as_deref();
    let restarted = ids::server(&request).and_then(|name| mcp_servers::restart(servers, &name));
    std::future::ready(restarted.map(respond::json)).await
}

/// `POST /tools/mcp/:server/accept`.
pub(crate) async fn accept(
    _: Operator,
    request: HttpRequest,
    body: Body,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (server, body) = body.read_for(ids::server(&request)).await?;
    let servers = settings.config.servers.as_deref();
    Ok(respond::json(mcp_servers::accept(servers, &server, &body).await?))
}
