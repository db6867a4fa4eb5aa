//! Descriptions of all routes. A route without one does not compile.

use greenroom_actors::registry::Registry;

use super::components::Components;
use super::described::Described;
use super::{agents, configured, memory, observability, system, tools, workflows};
use crate::api::catalogue::{Route, RouteName};

/// Describes a route.
pub(super) fn describe(row: &Route, registry: &Registry, components: &mut Components) -> Described {
    match row.name {
        RouteName::ExecuteWorkflow => workflows::execute(components),
        RouteName::StreamWorkflow => workflows::stream(components),
        RouteName::ListWorkflows => workflows::list(components),
        RouteName::DescribeWorkflow => workflows::describe(registry, components),
        RouteName::ListExecutions => workflows::list_executions(components),
        RouteName::CountExecutions => workflows::count_executions(components),
        RouteName::ListWorkflowExecutions => workflows::list_executions_of_workflow(components),
        RouteName::DescribeExecution => workflows::state(components),
        RouteName::ExplainExecution => workflows::why(components),
        RouteName::SuspendExecution => workflows::suspend(components),
        RouteName::ReplayExecution => workflows::replay(components),
        RouteName::CancelExecution => workflows::cancel(components),
        RouteName::ResumeExecution => workflows::resume(components),
        RouteName::AttachToExecution => workflows::attach(components),
        RouteName::ListAgents => agents::list(components),
        RouteName::DescribeAgent => agents::describe(registry, components),
        RouteName::GenerateText => agents::text(registry, components),
        RouteName::StreamText => agents::stream(registry, components),
        RouteName::Chat => agents::chat(registry, components),
        RouteName::GenerateObject => agents::object(registry, components),
        RouteName::StreamObject => agents::stream_object(registry, components),
        RouteName::AttachToChat => agents::attach(registry, components),
        RouteName::CancelGeneration => agents::cancel(registry, components),
        RouteName::DescribeGeneration => agents::generation(registry, components),
        RouteName::ShowHistory => agents::history(registry, components),
        RouteName::ListTools => tools::list(components),
        RouteName::ExecuteTool => tools::execute(components),
        RouteName::ListConversations => memory::list(registry, components),
        RouteName::CreateConversation => memory::create(registry, components),
        RouteName::DescribeConversation => memory::describe(registry, components),
        RouteName::ChangeConversation => memory::change(registry, components),
        RouteName::DeleteConversation => memory::delete(registry, components),
        RouteName::ListMessages => memory::messages(registry, components),
        RouteName::ShowWorkingMemory => memory::working_memory(registry, components),
        RouteName::SetWorkingMemory => memory::set_working_memory(registry, components),
        RouteName::CloneConversation => memory::copy(registry, components),
        RouteName::SearchMessages => memory::search(registry, components),
        RouteName::ForgetUser => memory::forget_user(),
        RouteName::Landing => system::landing(),
        RouteName::ApiDocument => system::document(),
        RouteName::BrowseApi => system::browse(),
        RouteName::BrowseApiFile => system::browse_file(),
        RouteName::Live => system::live(),
        RouteName::Ready => system::ready(),
        RouteName::CheckUpdates => system::check_updates(components),
        RouteName::InstallUpdates => system::install_updates(components),
        RouteName::SetUpObservability => system::set_up_observability(components),
        RouteName::ShowObservability => observability::status(components),
        RouteName::ListTraces => observability::traces(components),
        RouteName::DescribeTrace => observability::trace(components),
        RouteName::ListTraceLogs => observability::trace_logs(components),
        RouteName::DescribeSpan => observability::span(components),
        RouteName::ListSpanLogs => observability::span_logs(components),
        RouteName::ListLogRecords => observability::all_records(components),
        RouteName::ListLogs => observability::entries(components),
        RouteName::ShowMetrics => system::metrics(),
        RouteName::Echo => system::echo(),
        RouteName::TailLogs => system::tail_logs(),
        RouteName::Observe => system::observe(),
        RouteName::Custom(index) => match &row.like {
            Some(like) => configured::like(like, index, registry, components),
            None => system::custom(row, index),
        },
    }
}
