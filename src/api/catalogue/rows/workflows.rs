//! Routes of workflows and executions.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Answer, Class, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(
        Post,
        "/workflows/:id/execute",
        RouteName::ExecuteWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Run a workflow until it ends or suspends",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/executions/:executionId/resume",
        RouteName::ResumeExecution,
        Answer::Json,
        Tag::Workflows,
        "Resume a suspended execution",
    )
    .owned()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/stream",
        RouteName::StreamWorkflow,
        Answer::Events,
        Tag::Workflows,
        "Run a workflow and stream its events",
    )
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/workflows/executions",
        RouteName::ListExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of all workflows, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/executions/counts",
        RouteName::CountExecutions,
        Answer::Json,
        Tag::Workflows,
        "Count executions by workflow and status",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions",
        RouteName::ListWorkflowExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of a workflow, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/state",
        RouteName::DescribeExecution,
        Answer::Json,
        Tag::Workflows,
        "Show the state of an execution",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/why",
        RouteName::ExplainExecution,
        Answer::Json,
        Tag::Workflows,
        "Explain what an execution waits for",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/suspend",
        RouteName::SuspendExecution,
        Answer::Json,
        Tag::Workflows,
        "Suspend a running execution",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/replay",
        RouteName::ReplayExecution,
        Answer::Json,
        Tag::Workflows,
        "Start a new execution from a step of this one",
    )
    .protected()
    .owned()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/executions/:executionId/cancel",
        RouteName::CancelExecution,
        Answer::Json,
        Tag::Workflows,
        "Cancel an execution",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/stream",
        RouteName::AttachToExecution,
        Answer::Events,
        Tag::Workflows,
        "Stream the events of an execution, from the first or a given one",
    )
    .owned(),
    row(
        Get,
        "/workflows",
        RouteName::ListWorkflows,
        Answer::Json,
        Tag::Workflows,
        "List the registered workflows",
    ),
    row(
        Get,
        "/workflows/:id",
        RouteName::DescribeWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Show a workflow, its steps and schemas",
    ),
];
