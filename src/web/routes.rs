//! Binds the catalogue: a handler for every row, and 405 for other methods of its path.

use std::sync::Arc;

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, guard as on, web};

use crate::api::ApiError;
use crate::api::catalogue::{Catalogue, Method, Route, RouteName};
use crate::telemetry::metrics::UNMATCHED;
use crate::web::custom;
use crate::web::custom::handler::CustomHandler;
use crate::web::faces::openai;
use crate::web::gate::{Challenge, Gatekeeper, guard};
use crate::web::request_metrics::{self, RouteMeter};
use crate::web::settings::WebConfig;
use crate::web::{
    agents, docs, executions, faces, history, inbox, landing, memory, observability, system, tools,
    whoami, workflows, ws,
};
#[cfg(feature = "ui")]
use crate::web::{browse, console};

/// Adds every route of the catalogue, and 404 for unknown paths.
pub(crate) fn bind(service: &mut web::ServiceConfig, config: &WebConfig) {
    let binding = &config.binding;
    for (scope, paths) in scopes(&binding.catalogue) {
        if scope.is_empty() || paths.len() == 1 {
            for path in paths {
                service.service(resource(config, path, path));
            }
            continue;
        }
        // Paths with the same first segment form a scope, which is matched as a whole.
        let mut bound = web::scope(scope);
        for path in paths {
            bound = bound.service(resource(config, path, &path[scope.len()..]));
        }
        service.service(bound);
    }
    custom::configure(service, config.body_bytes_max);
    if let Some(metrics) = &config.metrics {
        service.app_data(RouteMeter::new(UNMATCHED, metrics.requests()));
    }
    service.default_service(web::to(not_found));
}

/// Returns the first segments in the order of the catalogue, empty for the root, with their paths.
fn scopes(catalogue: &Catalogue) -> Vec<(&str, Vec<&str>)> {
    let mut scopes: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in catalogue.rows() {
        let scope = scope_of(&row.path);
        let at = scopes.iter().position(|(known, _)| *known == scope).unwrap_or(scopes.len());
        if at == scopes.len() {
            scopes.push((scope, Vec::new()));
        }
        let paths = &mut scopes[at].1;
        if !paths.contains(&&*row.path) {
            paths.push(&row.path);
        }
    }
    scopes
}

fn scope_of(path: &str) -> &str {
    let end = path[1..].find('/').map_or(path.len(), |index| index + 1);
    let is_fixed = !path[1..].starts_with([':', '*']);
    if end == 1 || !is_fixed { "" } else { &path[..end] }
}

/// Returns the resource of a path; `tail` is the path relative to its scope.
fn resource(config: &WebConfig, path: &str, tail: &str) -> actix_web::Resource {
    let binding = &config.binding;
    let mut resource = web::resource(patterns_of(path, tail));
    if let Some(metrics) = &config.metrics {
        resource = resource.app_data(RouteMeter::new(path, metrics.requests()));
    }
    for row in binding.catalogue.at(path) {
        let route = handler(row, &binding.custom);
        resource =
            resource.route(match Gatekeeper::of(&binding.auth, row, challenge_of(row.name)) {
                Some(keeper) => route
                    .wrap(from_fn(move |request, next| guard(Arc::clone(&keeper), request, next))),
                None => route,
            });
    }
    let allow = binding.catalogue.allow_of(path);
    resource.default_service(web::to(move |request: HttpRequest| {
        let method = request.method().to_string();
        std::future::ready(refusal(ApiError::MethodNotAllowed { method, allow: allow.clone() }))
    }))
}

fn challenge_of(route: RouteName) -> Option<Challenge> {
    let is_of_mcp = matches!(route, RouteName::CallMcp | RouteName::CallNamedMcp);
    is_of_mcp.then_some(faces::mcp::challenge)
}

/// Returns the patterns of a path. The page of the API also has one with a slash at its end.
fn patterns_of(path: &str, tail: &str) -> Vec<String> {
    let pattern = pattern_of(tail);
    if path == "/ui" { vec![format!("{pattern}/"), pattern] } else { vec![pattern] }
}

/// Translates `:name` to `{name}`, and `*` to a pattern for the rest of the path.
fn pattern_of(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None if segment == "*" => "{tail:.*}".to_owned(),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
fn handler(row: &Route, custom: &[CustomHandler]) -> actix_web::Route {
    let route = match row.method {
        Method::Post => web::post(),
        Method::Put => web::put(),
        Method::Patch => web::patch(),
        Method::Delete => web::delete(),
        Method::Get if row.answers_head() => web::route().guard(on::Any(on::Get()).or(on::Head())),
        Method::Get => web::get(),
    };
    match row.name {
        RouteName::Landing => route.to(landing::page),
        RouteName::Live => route.to(system::live),
        RouteName::Ready => route.to(system::ready),
        RouteName::WhoAmI => route.to(whoami::show),
        RouteName::ListAgents => route.to(agents::list),
        RouteName::DescribeAgent => route.to(agents::describe),
        RouteName::GenerateText => route.to(agents::generate_text),
        RouteName::StreamText => route.to(agents::stream_text),
        RouteName::Chat => route.to(agents::chat),
        RouteName::AttachToChat => route.to(agents::attach_to_chat),
        RouteName::GenerateObject => route.to(agents::generate_object),
        RouteName::StreamObject => route.to(agents::stream_object),
        RouteName::DescribeGeneration => route.to(agents::describe_generation),
        RouteName::CancelGeneration => route.to(agents::cancel_generation),
        RouteName::ApproveCall => route.to(agents::approve),
        RouteName::ListWorkflows => route.to(workflows::list),
        RouteName::DescribeWorkflow => route.to(workflows::describe),
        RouteName::ExecuteWorkflow => route.to(workflows::execute),
        RouteName::StreamWorkflow => route.to(workflows::stream),
        RouteName::ListExecutions => route.to(executions::list),
        RouteName::CountExecutions => route.to(executions::counts),
        RouteName::BulkExecutions => route.to(executions::bulk),
        RouteName::CountOutcomes => route.to(executions::outcomes),
        RouteName::ListVersions => route.to(executions::versions),
        RouteName::ListEvents => route.to(executions::events),
        RouteName::ListWorkflowExecutions => route.to(executions::list_of_workflow),
        RouteName::DescribeExecution => route.to(executions::describe),
        RouteName::ExplainExecution => route.to(executions::why),
        RouteName::SuspendExecution => route.to(executions::suspend),
        RouteName::ResumeExecution => route.to(executions::resume),
        RouteName::ReplayExecution => route.to(executions::replay),
        RouteName::CancelExecution => route.to(executions::cancel),
        RouteName::AttachToExecution => route.to(executions::attach),
        RouteName::ListAsks => route.to(inbox::list),
        RouteName::DescribeAsk => route.to(inbox::describe),
        RouteName::AnswerAsk => route.to(inbox::answer),
        RouteName::ClaimAsk => route.to(inbox::claim),
        RouteName::ReleaseAsk => route.to(inbox::release),
        RouteName::AssignAsk => route.to(inbox::assign),
        RouteName::LinkToAsk => route.to(inbox::links::make),
        RouteName::WatchAsks => route.to(inbox::stream::open),
        RouteName::ShowAskLink => route.to(inbox::links::show),
        RouteName::AnswerAskLink => route.to(inbox::links::answer),
        RouteName::ShowHistory => route.to(history::page),
        RouteName::ListModels => route.to(openai::models),
        RouteName::DescribeModel => route.to(openai::model),
        RouteName::CompleteChat => route.to(openai::complete),
        RouteName::ListTools => route.to(tools::list),
        RouteName::ExecuteTool => route.to(tools::execute),
        RouteName::CallMcp | RouteName::CallNamedMcp => route.to(faces::mcp::post),
        RouteName::DescribeMcp | RouteName::DescribeNamedMcp => route.to(faces::mcp::describe),
        RouteName::ListServers => route.to(tools::servers),
        RouteName::RestartServer => route.to(tools::restart),
        RouteName::AcceptTools => route.to(tools::accept),
        RouteName::ListConversations => route.to(memory::list),
        RouteName::CreateConversation => route.to(memory::create),
        RouteName::DescribeConversation => route.to(memory::describe),
        RouteName::ChangeConversation => route.to(memory::change),
        RouteName::DeleteConversation => route.to(memory::delete),
        RouteName::ListMessages => route.to(memory::messages),
        RouteName::ShowWorkingMemory => route.to(memory::working_memory),
        RouteName::SetWorkingMemory => route.to(memory::set_working_memory),
        RouteName::CloneConversation => route.to(memory::copy),
        RouteName::SearchMessages => route.to(memory::search),
        RouteName::ForgetUser => route.to(memory::forget_user),
        RouteName::ApiDocument => route.to(docs::document),
        #[cfg(feature = "ui")]
        RouteName::BrowseApi => route.to(browse::page),
        #[cfg(feature = "ui")]
        RouteName::BrowseApiFile => route.to(browse::file),
        #[cfg(feature = "ui")]
        RouteName::Console | RouteName::ConsolePlace => route.to(console::page),
        #[cfg(feature = "ui")]
        RouteName::ConsoleAsset => route.to(console::asset),
        // not in the catalogue of a program without them
        #[cfg(not(feature = "ui"))]
        RouteName::BrowseApi
        | RouteName::BrowseApiFile
        | RouteName::Console
        | RouteName::ConsolePlace
        | RouteName::ConsoleAsset => route.to(not_found),
        RouteName::CheckUpdates => route.to(system::check_updates),
        RouteName::InstallUpdates => route.to(system::install_updates),
        RouteName::SetUpObservability => route.to(system::set_up_observability),
        RouteName::Custom(index) => match custom.get(index) {
            Some(handler) => handler.bind(route),
            None => route.to(not_found),
        },
        RouteName::ShowObservability => route.to(observability::status),
        RouteName::ListTraces => route.to(observability::traces),
        RouteName::DescribeTrace => route.to(observability::trace),
        RouteName::ListTraceLogs => route.to(observability::trace_logs),
        RouteName::DescribeSpan => route.to(observability::span),
        RouteName::ListSpanLogs => route.to(observability::span_logs),
        RouteName::ListLogRecords => route.to(observability::records),
        RouteName::ListLogs => route.to(observability::entries),
        RouteName::ShowMetrics => route.to(request_metrics::show),
        RouteName::Echo => route.to(ws::echo),
        RouteName::TailLogs => route.to(ws::tail),
        RouteName::Observe => route.to(ws::observe),
    }
}

async fn not_found(request: HttpRequest) -> Result<&'static str, ApiError> {
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    std::future::ready(refusal(ApiError::PathNotFound { method, path })).await
}

fn refusal(error: ApiError) -> Result<&'static str, ApiError> {
    Err(error)
}

#[cfg(test)]
mod tests;
